// Certificates for trying out: an authority of one's own and what it signs. What `muster certs` does; a real
// authority does the same with more care.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/base/base.h"

namespace muster::launch {

struct CertificateRequest {
  std::vector<std::string> hosts = {};  // names and addresses of the job's hosts
  // Node ids that get a folder with certificates of their own, good for that node alone. Those in `folder`
  // itself are then the scheduler's; without nodes all nodes share them.
  std::vector<std::string> nodes = {};
  std::string folder = {};  // is made; an existing one must be empty
  std::int64_t days = 365;
  std::int64_t now_s = 0;  // since 1970
};

// What was made, for which names, and what to do with it, for people.
struct MadeCertificates {
  std::vector<std::string> names = {};  // "DNS:a", "IP:10.0.0.1"
  std::vector<std::string> notes = {};  // of names that could not be resolved
  std::int64_t end_s = 0;
};
Result<MadeCertificates> make_certificates(const CertificateRequest& request);

// Adds a certificate to the revocation list in `place`, a folder of make_certificates or the list in it, and
// to the copies in its nodes' folders. `certificate` is a .p12 file, whose password stands beside it or in
// `password_file`, or PEM. Returns its serial number and whether it was there already.
struct Revocation {
  std::string subject = {};
  std::string serial = {};
  bool was_revoked = false;
  std::vector<std::string> lists = {};  // files
};
struct RevocationRequest {
  std::string place = {};
  std::string certificate = {};
  std::string password_file = {};
  std::int64_t now_s = 0;
};
Result<Revocation> revoke_certificate(const RevocationRequest& request);

// The lines that say what is in a file (.p12, PEM certificates, a revocation list), or in each of a folder.
Result<std::vector<std::string>> describe_certificates(const std::string& path,
                                                       const std::string& password_file, std::int64_t now_s);

// "2027-11-22".
std::string date_text(std::int64_t time_s);

}  // namespace muster::launch
