#include "muster/net/security.h"

#include <fmt/format.h>
#include <openssl/hmac.h>

#include <cstring>

#include "muster/net/credentials.h"
#include "muster/net/security_implementation.h"
#include "muster/net/tls_session.h"

namespace muster::net {
namespace {

constexpr std::size_t token_size_min = 16;
constexpr std::size_t token_size_max = secret_bytes_max;  // as much as a file of one may have
constexpr unsigned char token_identity[] = {'m', 'u', 's', 't', 'e', 'r', '-', 'j', 'o', 'b'};
// Of the one hash that the key of a token is for.
constexpr unsigned char token_suite[] = {0x13, 0x01};  // TLS_AES_128_GCM_SHA256
constexpr const char* token_suites = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";

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
  MUSTER_TRY(openssl::Context context, make_tls_context(TLS1_3_VERSION));
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
  const auto read = [&](CertificateSource source, const std::string& password, int purpose) {
    return OwnCertificate::read({.source = std::move(source),
                                 .password = password,
                                 .purpose = purpose,
                                 .ciphers = ciphers,
                                 .expire_warning_days = options.expire_warning_days},
                                *made->trust);
  };
  MUSTER_TRY(made->server, read({"server_cert_path", options.server_cert_path}, options.server_password,
                                X509_PURPOSE_SSL_SERVER));
  MUSTER_TRY(made->client, read({"client_cert_path", options.client_cert_path}, options.client_password,
                                X509_PURPOSE_SSL_CLIENT));
  for (const auto* own : {made->server.get(), made->client.get()})
    for (std::string& warning : own->warnings()) made->warnings.push_back(std::move(warning));
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
  MUSTER_TRY(made->token_server, token_context(*made));
  MUSTER_TRY(made->token_client, token_context(*made));
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

std::shared_ptr<SSL_CTX> Security::Implementation::context(TlsSide side) const {
  const bool listens = side == TlsSide::listener;
  if (trust != nullptr) return (listens ? server : client)->context();
  SSL_CTX* const own = (listens ? token_server : token_client).get();
  SSL_CTX_up_ref(own);
  return {own, SSL_CTX_free};
}

bool Security::uses_certificates() const { return implementation_->trust != nullptr; }
const std::vector<std::string>& Security::warnings() const { return implementation_->warnings; }

}  // namespace muster::net
