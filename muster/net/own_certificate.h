// Certificate and key that this process shows in one direction, read again when the file is replaced. Private
// to net. Threads: any.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/net/certificate_files.h"
#include "muster/net/cipher_names.h"
#include "muster/net/trust.h"
#include "muster/net/watched_file.h"

namespace muster::net {

// With everything off that no process of a job needs.
Result<openssl::Context> make_tls_context(int version_min);

class OwnCertificate {
 public:
  struct Recipe {
    CertificateSource source;
    std::string password;
    int purpose = 0;  // X509_PURPOSE_SSL_SERVER or _CLIENT
    CipherNames ciphers;
    int expire_warning_days = 0;
  };

  // Borrows `trust`: what is shown is completed from its authorities.
  static Result<std::unique_ptr<OwnCertificate>> read(Recipe recipe, const Trust& trust);
  ~OwnCertificate();
  OwnCertificate(const OwnCertificate&) = delete;
  OwnCertificate& operator=(const OwnCertificate&) = delete;

  // For a new connection. Looks at the file at most once a second; while it cannot be used, the certificate
  // of before is shown.
  std::shared_ptr<SSL_CTX> context() const;
  // That it ends soon, or nothing.
  std::vector<std::string> warnings() const;

 private:
  OwnCertificate(Recipe recipe, const Trust& trust)
      : recipe_(std::move(recipe)), trust_(trust), file_(recipe_.source.path) {}
  Result<> read_again() const;

  Recipe recipe_;
  const Trust& trust_;
  mutable std::mutex mutex_;
  mutable WatchedFile file_;
  mutable std::shared_ptr<SSL_CTX> context_;
  mutable bool is_broken_ = false;
};

}  // namespace muster::net
