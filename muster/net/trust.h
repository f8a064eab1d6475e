// Whom this process believes: certificates of authorities, and the list of who was revoked. Private to net.
//
// Threads: any.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/net/certificate_files.h"

namespace muster::net {

class Trust {
 public:
  // What certificates are checked against. A later generation has another revocation list.
  struct Snapshot {
    std::shared_ptr<X509_STORE> store;
    std::uint64_t generation = 0;
  };

  // An empty `crl_path`: nobody is revoked.
  static Result<std::unique_ptr<Trust>> read(const std::string& ca_cert_path, const std::string& crl_path);

  // Looks at the file of the revocation list, at most once a second, and reads it again when it is another.
  // While it cannot be used this is an error: nobody new is believed.
  Result<Snapshot> current() const;

  const std::vector<openssl::Certificate>& authorities() const { return authorities_; }
  // Authorities near their end, and those without a usable revocation list.
  std::vector<std::string> warnings(int expire_warning_days) const;

 private:
  struct FileState {  // a file that was replaced or written has another
    ino_t inode = 0;
    off_t size_bytes = 0;
    timespec changed{};
    bool operator==(const FileState& other) const {
      return inode == other.inode && size_bytes == other.size_bytes &&
             changed.tv_sec == other.changed.tv_sec && changed.tv_nsec == other.changed.tv_nsec;
    }
  };
  Trust(CertificateSource ca, CertificateSource crl) : ca_(std::move(ca)), crl_(std::move(crl)) {}
  std::optional<FileState> look() const;
  Result<> read_again() const;
  std::shared_ptr<X509_STORE> make_store(const std::vector<openssl::Crl>& crls) const;

  const CertificateSource ca_;
  const CertificateSource crl_;
  std::vector<openssl::Certificate> authorities_;

  mutable std::mutex mutex_;
  mutable Snapshot snapshot_;
  mutable std::vector<openssl::Crl> crls_;
  mutable std::optional<FileState> seen_;
  mutable std::optional<Error> problem_;
  mutable TimePoint next_look_{};
};

}  // namespace muster::net
