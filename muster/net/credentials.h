// Certificates, keys, revocation lists and PKCS#12 files as values, made and read: for `muster certs`, which
// stands in for a real authority while one tries things out, and for tests, which need bad ones too. And the
// small files that they, passwords and tokens are read from: what is read has a limit, and so has the wait
// for the writer of a pipe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"

namespace muster::net {

enum class KeyKind { p256, rsa_2048, rsa_1024 };  // every peer refuses the last

struct CertificateSpec {
  std::string common_name = {};
  std::vector<std::string> alternative_names = {};  // "DNS:a.example", "IP:10.0.0.7", "URI:muster:node:3"
  bool is_authority = false;
  bool for_servers = false;  // purposes, as an extended key usage; neither: any purpose
  bool for_clients = false;
  std::int64_t begin_s = 0;  // seconds since 1970
  std::int64_t end_s = 0;
  KeyKind key_kind = KeyKind::p256;
  std::string digest = "SHA256";
};

// A certificate with its private key, both PEM.
struct Credential {
  std::string certificate_pem = {};
  std::string key_pem = {};
};

// With a new key and a random serial number. Null `issuer`: signed by itself.
Result<Credential> make_certificate(const CertificateSpec& spec, const Credential* issuer);

struct RevokedCertificate {
  std::string serial = {};  // hexadecimal, as in CertificateFacts
  std::int64_t time_s = 0;
  friend bool operator==(const RevokedCertificate&, const RevokedCertificate&) = default;
};
struct RevocationList {
  std::string issuer = {};  // only read
  std::int64_t begin_s = 0;
  std::int64_t end_s = 0;
  std::vector<RevokedCertificate> revoked = {};
};
// PEM.
Result<std::string> make_crl(const RevocationList& list, const Credential& issuer);
// The first one of a PEM text.
Result<RevocationList> read_crl(std::string_view pem);

struct Pkcs12Content {
  Credential credential = {};  // an empty key: a file without one
  std::string chain_pem = {};  // certificates above it, may be empty
};
// The binary file. The key need not be the certificate's.
Result<std::string> make_pkcs12(const Pkcs12Content& content, const std::string& password);
// A wrong password is an error that says so.
Result<Pkcs12Content> read_pkcs12(std::string_view bytes, const std::string& password);

// What a certificate says.
struct CertificateFacts {
  std::string subject = {};  // "CN = worker, O = Muster"
  std::string issuer = {};
  std::string serial = {};  // hexadecimal
  std::vector<std::string> alternative_names = {};
  bool is_authority = false;
  std::int64_t begin_s = 0;
  std::int64_t end_s = 0;
};
// Of every certificate of a PEM text, never none.
Result<std::vector<CertificateFacts>> read_certificates(std::string_view pem);

// Bits from the operating system for passwords: hexadecimal digits.
std::string random_hex(std::size_t digit_count);

struct SmallFile {
  std::string text = {};
  bool is_open_to_all = false;  // a file that every user of this host may read
};

// `name` is a path, or "fd:N": a descriptor that this process was started with, which its own children do not
// inherit any more. A regular file is read from its beginning, and may be read again. Errors name it; a file
// that is larger than `size_bytes_max` is one.
Result<SmallFile> read_small_file(const std::string& name, std::size_t size_bytes_max);

// The text of a file of one line, without the line's end. `what` it is ("a password") stands in errors, which
// never show the text. An empty line is an error.
Result<SmallFile> read_secret(const std::string& name, std::string_view what);

inline constexpr std::size_t secret_bytes_max = 1024;

}  // namespace muster::net
