#include "muster/net/security.h"

#include <fmt/format.h>
#include <openssl/hmac.h>

#include <cstring>

#include "muster/net/cipher_names.h"
#include "muster/net/security_implementation.h"
#include "muster/net/tls_session.h"

namespace muster::net {
namespace {

// A handshake's certificates; more is refused before anybody is believed.
constexpr long certificates_size_limit_bytes = 32 << 10;
constexpr std::size_t token_size_min = 16;
constexpr std::size_t token_size_max = 4096;
constexpr unsigned char token_identity[] = {'m', 'u', 's', 't', 'e', 'r', '-', 'j', 'o', 'b'};
// Of the one hash that the key of a token is for.
constexpr unsigned char token_suite[] = {0x13, 0x01};  // TLS_AES_128_GCM_SHA256
constexpr const char* token_suites = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";

Result<openssl::Context> make_context(int version_min) {
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

struct ContextRecipe {
  CertificateSource source;
  const std::string& password;
  int purpose = 0;  // of the own certificate
};

Result<openssl::Context> certificate_context(const ContextRecipe& recipe, const CipherNames& ciphers,
                                             Security::Implementation& made, int expire_warning_days) {
  MUSTER_TRY(openssl::Context context, make_context(TLS1_2_VERSION));
  SSL_CTX_set_cipher_list(context.get(), ciphers.tls_1_2.c_str());
  SSL_CTX_set_ciphersuites(context.get(), ciphers.tls_1_3.c_str());
  MUSTER_TRY(const CertificatePackage package, read_package(recipe.source, recipe.password, recipe.purpose));
  MUSTER_TRY_VOID(show(context.get(), recipe.source, package));
  // What it shows is completed from these; whom it believes is chosen for each connection.
  for (const auto& authority : made.trust->authorities())
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), authority.get());
  const ASN1_TIME* end = X509_get0_notAfter(package.certificate.get());
  if (const int days = days_left(end); days < expire_warning_days)
    made.warnings.push_back(fmt::format("{}: the certificate ({}) expires on {}, in {} days",
                                        recipe.source.name(), subject_of(package.certificate.get()),
                                        time_text(end), days));
  return context;
}

// --- tokens ------------------------------------------------------------------------------------------------

SSL_SESSION* token_session(SSL* ssl) {
  const auto* owner =
      static_cast<const Security::Implementation*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  openssl::Session session(SSL_SESSION_new());
  const SSL_CIPHER* suite = SSL_CIPHER_find(ssl, token_suite);
  const bool made =
      session && suite != nullptr &&
      SSL_SESSION_set1_master_key(session.get(), owner->token_key.data(), owner->token_key.size()) == 1 &&
      SSL_SESSION_set_cipher(session.get(), suite) == 1 &&
      SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) == 1;
  return made ? session.release() : nullptr;
}

int offer_token(SSL* ssl, const EVP_MD*, const unsigned char** id, std::size_t* size, SSL_SESSION** session) {
  *id = token_identity;
  *size = sizeof token_identity;
  *session = token_session(ssl);
  return *session == nullptr ? 0 : 1;
}

int find_token(SSL* ssl, const unsigned char* id, std::size_t size, SSL_SESSION** session) {
  const bool is_ours = size == sizeof token_identity && std::memcmp(id, token_identity, size) == 0;
  *session = is_ours ? token_session(ssl) : nullptr;
  return 1;
}

Result<openssl::Context> token_context(Security::Implementation& owner) {
  MUSTER_TRY(openssl::Context context, make_context(TLS1_3_VERSION));
  SSL_CTX_set_ciphersuites(context.get(), token_suites);
  SSL_CTX_set_app_data(context.get(), &owner);
  SSL_CTX_set_psk_use_session_callback(context.get(), offer_token);
  SSL_CTX_set_psk_find_session_callback(context.get(), find_token);
  return context;
}

}  // namespace

Security::Security(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
Security::~Security() = default;

Result<std::shared_ptr<const Security>> Security::from_certificates(const CertificateOptions& options) {
  auto made = std::make_unique<Implementation>();
  MUSTER_TRY(CipherNames ciphers, read_cipher_names(options.cipher_list));
  MUSTER_TRY(made->trust, Trust::read(options.ca_cert_path, options.crl_path));
  made->warnings = std::move(ciphers.warnings);
  MUSTER_TRY(made->server, certificate_context({.source = {"server_cert_path", options.server_cert_path},
                                                .password = options.server_password,
                                                .purpose = X509_PURPOSE_SSL_SERVER},
                                               ciphers, *made, options.expire_warning_days));
  MUSTER_TRY(made->client, certificate_context({.source = {"client_cert_path", options.client_cert_path},
                                                .password = options.client_password,
                                                .purpose = X509_PURPOSE_SSL_CLIENT},
                                               ciphers, *made, options.expire_warning_days));
  for (std::string& warning : made->trust->warnings(options.expire_warning_days))
    made->warnings.push_back(std::move(warning));
  return std::make_shared<const Security>(std::move(made));
}

Result<std::shared_ptr<const Security>> Security::from_token(std::string_view token) {
  if (token.size() < token_size_min || token.size() > token_size_max)
    return fail(Code::invalid_argument,
                fmt::format("the token has {} characters; {} to {} are needed, drawn at random (e.g. by "
                            "openssl rand -hex 32): a short one can be guessed",
                            token.size(), token_size_min, token_size_max));
  auto made = std::make_unique<Implementation>();
  static constexpr std::string_view purpose = "muster token 1";
  unsigned int size = token_key_size_bytes;
  HMAC(EVP_sha256(), purpose.data(), static_cast<int>(purpose.size()),
       reinterpret_cast<const unsigned char*>(token.data()), token.size(), made->token_key.data(), &size);
  MUSTER_TRY(made->server, token_context(*made));
  MUSTER_TRY(made->client, token_context(*made));
  return std::make_shared<const Security>(std::move(made));
}

bool begins_tls(std::span<const std::byte> bytes) {
  return !bytes.empty() && bytes.front() == tls_handshake_record;
}

// A fatal alert, "protocol version".
std::vector<std::byte> answer_to_tls() {
  return {tls_alert_record, std::byte{3}, std::byte{3}, std::byte{0},
          std::byte{2},     std::byte{2}, std::byte{70}};
}

bool Security::uses_certificates() const { return implementation_->trust != nullptr; }
const std::vector<std::string>& Security::warnings() const { return implementation_->warnings; }

}  // namespace muster::net
