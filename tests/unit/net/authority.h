// A made-up authority, and the files of a process that it certifies, for tests of whatever uses TLS.
#pragma once

#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "muster/net/net.h"

namespace muster::net::testing_only {

inline std::int64_t seconds_from_now(std::int64_t seconds) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count() + seconds;
}

inline constexpr std::int64_t day_s = 24 * 3600;

// Signs certificates and keeps a list of those that it took back.
class Authority {
 public:
  explicit Authority(const std::string& name, const Authority* above = nullptr)
      : credential_(make_certificate(spec(name), above == nullptr ? nullptr : &above->credential_).value()) {}

  Credential issue(CertificateSpec spec) const {
    if (spec.begin_s == 0) spec.begin_s = seconds_from_now(-day_s);
    if (spec.end_s == 0) spec.end_s = seconds_from_now(365 * day_s);
    return make_certificate(spec, &credential_).value();
  }
  void revoke(const Credential& credential) {
    revoked_.push_back({.serial = read_certificates(credential.certificate_pem)->front().serial,
                        .time_s = seconds_from_now(-60)});
  }
  // Its revocation list, good for `days`.
  std::string crl(std::int64_t days = 30) const {
    return make_crl({.begin_s = seconds_from_now(-day_s),
                     .end_s = seconds_from_now(days * day_s),
                     .revoked = revoked_},
                    credential_)
        .value();
  }
  const Credential& credential() const { return credential_; }
  const std::string& pem() const { return credential_.certificate_pem; }

 private:
  static CertificateSpec spec(const std::string& name) {
    return {.common_name = name,
            .is_authority = true,
            .begin_s = seconds_from_now(-2 * day_s),
            .end_s = seconds_from_now(1000 * day_s)};
  }
  Credential credential_;
  std::vector<RevokedCertificate> revoked_;
};

// A folder that goes with its owner.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "muster-tls-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path(const std::string& name) const { return path_ / name; }
  // Replaces the file as an operator should: with a rename.
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name + ".new"), std::ios::binary) << bytes;
    std::filesystem::rename(path(name + ".new"), path(name));
    return path(name);
  }

 private:
  std::filesystem::path path_;
};

inline const std::string password = "correct horse";

// What a process of a job has: one certificate for each direction, both for this host.
struct ProcessFiles {
  CertificateSpec server = {.common_name = "server",
                            .alternative_names = {"DNS:localhost", "IP:127.0.0.1", "IP:::1"},
                            .for_servers = true};
  CertificateSpec client = {.common_name = "client",
                            .alternative_names = {"DNS:localhost", "IP:127.0.0.1", "IP:::1"},
                            .for_clients = true};

  // `believed` and `revocations` are PEM texts; an empty list of revocations: nobody asks for one.
  CertificateOptions write(const Folder& folder, const Authority& issuer, const std::string& believed,
                           const std::string& revocations = {}) const {
    return write(folder, issuer.issue(server), issuer.issue(client), believed, revocations);
  }
  static CertificateOptions write(const Folder& folder, const Credential& server, const Credential& client,
                                  const std::string& believed, const std::string& revocations = {}) {
    CertificateOptions options{
        .server_cert_path = folder.write("server.p12", make_pkcs12({.credential = server}, password).value()),
        .client_cert_path = folder.write("client.p12", make_pkcs12({.credential = client}, password).value()),
        .ca_cert_path = folder.write("ca.pem", believed),
        .server_password = password,
        .client_password = password};
    if (!revocations.empty()) options.crl_path = folder.write("crl.pem", revocations);
    return options;
  }
};

}  // namespace muster::net::testing_only
