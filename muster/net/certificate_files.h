// Reads certificates, keys and revocation lists from files. Private to net.
#pragma once

#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/net/openssl_objects.h"
#include "muster/net/security.h"

namespace muster::net {

// What a PKCS#12 file holds.
struct CertificatePackage {
  openssl::Certificate certificate;
  openssl::Key key;
  openssl::CertificateStack chain;  // certificates of issuers; may be null
};

// How errors name what is read: "client_cert_path 'client.p12'".
struct CertificateSource {
  std::string field;
  std::string path;
  std::string name() const { return field + " '" + path + "'"; }
};

// The certificate is one for now and for `purpose` (X509_PURPOSE_SSL_SERVER or _CLIENT), and the key is its
// own.
Result<CertificatePackage> read_package(const CertificateSource& source, const std::string& password,
                                        int purpose);
Result<std::vector<openssl::Certificate>> read_authorities(const CertificateSource& source);
Result<std::vector<openssl::Crl>> read_crls(const CertificateSource& source);

// "CN=worker, O=Muster".
std::string subject_of(const X509* certificate);
std::string name_text(const X509_NAME* name);
PeerNames names_of(const X509* certificate);
// Negative when it is over.
int days_left(const ASN1_TIME* end);
std::string time_text(const ASN1_TIME* time);

}  // namespace muster::net
