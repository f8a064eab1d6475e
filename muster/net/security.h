// Security of connections: TLS 1.2 or 1.3 with certificates on both sides, or TLS 1.3 with a key that all
// processes of a job share. A null `shared_ptr<const Security>` means: plain.
//
// Ownership: immutable but for the revocation list, which is read again when its file changes; shared by
// whatever connects or listens. Threads: any.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"

namespace muster::net {

// SHA-256: what is known by it can be recognized, and not made up.
using Digest = std::array<std::byte, 32>;

Digest sha256(std::span<const std::byte> bytes);

// Paths as they can be opened.
struct CertificateOptions {
  std::string server_cert_path = {};  // PKCS#12: what this process shows when it listens
  std::string client_cert_path = {};  // PKCS#12: what it shows when it connects
  std::string ca_cert_path = {};  // PEM: the authorities that it trusts; may hold several, intermediates too
  std::string crl_path = {};      // PEM: the revoked certificates; may hold several; empty: none is checked
  std::string cipher_list = {};   // names of suites, separated by colons; empty: OpenSSL's own choice
  std::string server_password = {};
  std::string client_password = {};
  int expire_warning_days = 90;
};

// The expected identity of a peer; one match in the certificate suffices.
struct Identity {
  std::vector<std::string> hosts = {};  // names, and addresses as text
  std::string node_id = {};
};

// The node id under which every process meets the scheduler.
inline constexpr std::string_view scheduler_node_id = "scheduler";
// A name of type URI with this prefix says for which node a certificate was made: "muster:node:3".
inline constexpr std::string_view node_uri_prefix = "muster:node:";

// Whether the bytes of a peer of a plain listener begin TLS, and the answer that there is no TLS here.
bool begins_tls(std::span<const std::byte> bytes);
std::vector<std::byte> answer_to_tls();

// What a verified certificate says of its owner: its alternative names. The common name never counts.
struct PeerNames {
  std::vector<std::string> hosts = {};
  std::vector<std::string> addresses = {};  // canonical, as parse_ip gives them
  std::vector<std::string> node_ids = {};
  std::string subject = {};  // "CN=worker, O=Muster", for messages
};

// Whether the owner of the certificate is the expected one. A certificate that was made for certain nodes is
// good for no other, whatever hosts it names. The error says what was expected and what is there.
Result<> check_identity(const PeerNames& names, const Identity& expected);

class Security {
 public:
  // Errors name the field and the file: no certificate that could not be used is taken.
  static Result<std::shared_ptr<const Security>> from_certificates(const CertificateOptions& options);
  // TLS 1.3 with a key made of the token: keeps unauthorized peers out, and everything between processes is
  // encrypted. A peer that has the token is trusted in what it says of itself.
  static Result<std::shared_ptr<const Security>> from_token(std::string_view token);
  ~Security();
  Security(const Security&) = delete;
  Security& operator=(const Security&) = delete;

  bool uses_certificates() const;
  // Worth a line of log each: cipher names that cannot be used, certificates near their end.
  const std::vector<std::string>& warnings() const;

  class Implementation;
  explicit Security(std::unique_ptr<Implementation> implementation);  // for the rest of net/tls*
  const Implementation& implementation() const { return *implementation_; }

 private:
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace muster::net
