#include "muster/net/own_certificate.h"

#include <fmt/format.h>

#include <utility>

namespace muster::net {
namespace {

// A handshake's certificates; more is refused before any peer is trusted.
constexpr long certificates_size_limit_bytes = 32 << 10;

Result<> show(SSL_CTX* context, const CertificateSource& source, const CertificatePackage& package) {
  ERR_clear_error();
  if (SSL_CTX_use_certificate(context, package.certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, package.key.get()) != 1)
    return fail(Code::refused, fmt::format("{}: the certificate ({}) cannot be used: {}", source.name(),
                                           subject_of(package.certificate.get()), openssl::take_reason()));
  for (int i = 0; i < sk_X509_num(package.chain.get()); ++i)
    if (SSL_CTX_add1_chain_cert(context, sk_X509_value(package.chain.get(), i)) != 1)
      return fail(Code::refused,
                  fmt::format("{}: the certificate ({}) cannot be used: {}", source.name(),
                              subject_of(sk_X509_value(package.chain.get(), i)), openssl::take_reason()));
  return {};
}

}  // namespace

Result<openssl::Context> make_tls_context(int version_min) {
  // Threads may still speak when the process ends: OpenSSL's own clean-up at exit would pull the rug away.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
  openssl::Context context(SSL_CTX_new(TLS_method()));
  if (!context)
    return fail(Code::internal, fmt::format("OpenSSL cannot be used: {}", openssl::take_reason()));
  SSL_CTX_set_min_proto_version(context.get(), version_min);
  SSL_CTX_set_max_proto_version(context.get(), TLS1_3_VERSION);
  SSL_CTX_set_security_level(context.get(), 2);  // no RSA below 2,048 bits, no SHA-1
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_max_cert_list(context.get(), certificates_size_limit_bytes);
  return context;
}

Result<std::unique_ptr<OwnCertificate>> OwnCertificate::read(Recipe recipe, const Trust& trust) {
  std::unique_ptr<OwnCertificate> made(new OwnCertificate(std::move(recipe), trust));
  MUSTER_TRY_VOID(made->read_again());
  return made;
}

OwnCertificate::~OwnCertificate() { OPENSSL_cleanse(recipe_.password.data(), recipe_.password.size()); }

Result<> OwnCertificate::read_again() const {
  MUSTER_TRY(const openssl::Context made, make_tls_context(TLS1_2_VERSION));
  SSL_CTX_set_cipher_list(made.get(), recipe_.ciphers.tls_1_2.c_str());
  SSL_CTX_set_ciphersuites(made.get(), recipe_.ciphers.tls_1_3.c_str());
  MUSTER_TRY(const CertificatePackage package,
             read_package(recipe_.source, recipe_.password, recipe_.purpose));
  MUSTER_TRY_VOID(show(made.get(), recipe_.source, package));
  // What it shows is completed from these; whom it believes is chosen for each connection.
  for (const auto& authority : trust_.authorities())
    X509_STORE_add_cert(SSL_CTX_get_cert_store(made.get()), authority.get());
  SSL_CTX_up_ref(made.get());
  context_ = std::shared_ptr<SSL_CTX>(made.get(), SSL_CTX_free);
  return {};
}

// The passwords stay the same: a new certificate comes in a package that the old one opens.
std::shared_ptr<SSL_CTX> OwnCertificate::context() const {
  const std::lock_guard lock(mutex_);
  if (!file_.has_changed()) return context_;
  const auto read = read_again();
  if (!read) {
    file_.look_again();  // it may be in the middle of being written
    if (!std::exchange(is_broken_, true))
      log::error(
          fmt::format("{}: the certificate of before is shown until it can be read", read.error().message));
    return context_;
  }
  is_broken_ = false;
  const X509* certificate = SSL_CTX_get0_certificate(context_.get());
  log::info(fmt::format("read {} again: it is good until {}", recipe_.source.name(),
                        time_text(X509_get0_notAfter(certificate))));
  return context_;
}

std::vector<std::string> OwnCertificate::warnings() const {
  const std::lock_guard lock(mutex_);
  const X509* certificate = SSL_CTX_get0_certificate(context_.get());
  const ASN1_TIME* end = X509_get0_notAfter(certificate);
  const int days = days_left(end);
  if (days >= recipe_.expire_warning_days) return {};
  return {fmt::format("{}: the certificate ({}) expires on {}, in {} days", recipe_.source.name(),
                      subject_of(certificate), time_text(end), days)};
}

}  // namespace muster::net
