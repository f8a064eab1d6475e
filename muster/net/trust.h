// Trust of this process: certificates of authorities, and the list of revoked certificates. Private to net.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/net/certificate_files.h"
#include "muster/net/watched_file.h"

namespace muster::net {

class Trust {
 public:
  // What certificates are checked against. A later generation has another revocation list, or authorities.
  struct Snapshot {
    std::shared_ptr<X509_STORE> store;
    std::uint64_t generation = 0;
  };

  // An empty `crl_path`: no certificate is revoked.
  static Result<std::unique_ptr<Trust>> read(const std::string& ca_cert_path, const std::string& crl_path);

  // Looks at both files, at most once a second, and reads again what is another. While the revocation list
  // cannot be used this is an error: no new peer is trusted. Authorities that cannot be read stay those of
  // before.
  Result<Snapshot> current() const;

  // As they are now.
  std::vector<openssl::Certificate> authorities() const;
  // Authorities near their end, and those without a usable revocation list.
  std::vector<std::string> warnings(int expire_warning_days) const;

 private:
  Trust(CertificateSource ca, CertificateSource crl)
      : ca_(std::move(ca)), crl_(std::move(crl)), ca_file_(ca_.path), crl_file_(crl_.path) {}
  bool read_authorities_again() const;
  bool read_crls_again() const;
  void renew_store() const;

  const CertificateSource ca_;
  const CertificateSource crl_;

  mutable std::mutex mutex_;
  mutable std::vector<openssl::Certificate> authorities_;
  mutable std::vector<openssl::Crl> crls_;
  mutable Snapshot snapshot_;
  mutable WatchedFile ca_file_;
  mutable WatchedFile crl_file_;
  mutable bool ca_is_broken_ = false;
  mutable std::optional<Error> crl_problem_;
};

}  // namespace muster::net
