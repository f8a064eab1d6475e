#include "muster/net/tls_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "muster/net/security_implementation.h"
#include "muster/net/tls_words.h"

namespace muster::net {

// The functions that OpenSSL calls, each of which finds its session.
struct TlsCallbacks {
  static TlsSession& session(BIO* bio) { return *static_cast<TlsSession*>(BIO_get_data(bio)); }

  static int read(BIO* bio, char* data, int size) {
    BIO_clear_retry_flags(bio);
    const int taken = session(bio).read_input(data, size);
    if (taken < 0) BIO_set_retry_read(bio);
    return taken;
  }
  static int write(BIO* bio, const char* data, int size) {
    BIO_clear_retry_flags(bio);
    return session(bio).write_output(data, size);
  }
  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  static int verify(int good, X509_STORE_CTX* context) {
    const auto* ssl =
        static_cast<SSL*>(X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx()));
    return static_cast<TlsSession*>(SSL_get_app_data(ssl))->verify(good, context);
  }

  static BIO* make_bio(TlsSession& owner) {
    static const BIO_METHOD* const method = [] {
      BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "muster");
      BIO_meth_set_read(made, read);
      BIO_meth_set_write(made, write);
      BIO_meth_set_ctrl(made, control);
      return made;
    }();
    BIO* bio = BIO_new(method);
    BIO_set_data(bio, &owner);
    BIO_set_init(bio, 1);
    return bio;
  }
};

namespace {

constexpr auto first_byte_of_frame = std::byte{'M'};

// The oldest one that is about TLS: below it lie those of what TLS is made of.
unsigned long take_tls_error() {
  for (;;) {
    const unsigned long error = ERR_get_error();
    if (error == 0 || ERR_GET_LIB(error) == ERR_LIB_SSL) return error;
  }
}

}  // namespace

TlsSession::TlsSession(std::shared_ptr<const Security> security, Options options)
    : security_(std::move(security)), options_(std::move(options)) {}

TlsSession::~TlsSession() { SSL_free(ssl_); }

Result<std::unique_ptr<TlsSession>> TlsSession::create(std::shared_ptr<const Security> security,
                                                       Options options) {
  MUSTER_CHECK(security != nullptr, "a TLS session needs a Security");
  std::unique_ptr<TlsSession> session(new TlsSession(std::move(security), std::move(options)));
  MUSTER_TRY_VOID(session->open_ssl());
  return session;
}

Result<> TlsSession::open_ssl() {
  const auto& own = security_->implementation();
  const bool listens = options_.side == TlsSide::listener;
  ERR_clear_error();
  ssl_ = SSL_new(own.context(options_.side).get());
  if (ssl_ == nullptr) return fail(Code::internal, fmt::format("no TLS session: {}", openssl::take_reason()));
  SSL_set_app_data(ssl_, this);
  BIO* bio = TlsCallbacks::make_bio(*this);
  SSL_set_bio(ssl_, bio, bio);
  if (listens)
    SSL_set_accept_state(ssl_);
  else
    SSL_set_connect_state(ssl_);
  if (options_.serves_anyone) {
    MUSTER_CHECK(listens && own.trust != nullptr, "who serves anyone shows a certificate");
    SSL_set_verify(ssl_, SSL_VERIFY_NONE, nullptr);
    return {};
  }
  if (own.trust == nullptr) {
    // Who listens has no certificate, and without the key there is no handshake; who connects believes none.
    SSL_set_verify(ssl_, listens ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, TlsCallbacks::verify);
    return {};
  }
  const auto trust = own.trust->current();
  if (!trust && !listens) return fail(trust.error());
  if (trust) {
    generation_ = trust->generation;
    SSL_set1_verify_cert_store(ssl_, trust->store.get());
  } else {
    distrust_ = trust.error();
  }
  SSL_set_verify(ssl_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, TlsCallbacks::verify);
  return {};
}

// ---- What OpenSSL calls -----------------------------------------------------------------------------------

int TlsSession::read_input(char* data, int size) {
  const std::size_t taken = std::min(input_.size(), static_cast<std::size_t>(size));
  if (!open_ && handshake_size_bytes_ + taken > handshake_size_limit_bytes) {
    too_long_ = true;
    return 0;  // an end
  }
  if (taken == 0) return -1;
  if (!open_) handshake_size_bytes_ += taken;
  held_size_bytes_ += taken;
  std::memcpy(data, input_.data(), taken);
  input_ = input_.subspan(taken);
  return static_cast<int>(taken);
}

int TlsSession::write_output(const char* data, int size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  output_.insert(output_.end(), bytes, bytes + size);
  return size;
}

// Asked for each certificate from the authority down to the peer's own, which comes last.
int TlsSession::verify(int good, X509_STORE_CTX* context) {
  if (verify_one(good, context) == 1) return 1;
  if (const X509* shown = X509_STORE_CTX_get0_cert(context)) refused_names_ = names_of(shown);
  return 0;
}

int TlsSession::verify_one(int good, X509_STORE_CTX* context) {
  if (distrust_) {
    verify_problem_ = distrust_->message;
    X509_STORE_CTX_set_error(context, X509_V_ERR_STORE_LOOKUP);  // for the other side: no fault of its own
    return 0;
  }
  if (good == 0) {
    if (verify_problem_.empty()) verify_problem_ = verify_words(context);
    return 0;
  }
  if (X509_STORE_CTX_get_error_depth(context) != 0) return 1;
  if (!options_.expected) return 1;
  const PeerNames names = names_of(X509_STORE_CTX_get_current_cert(context));
  if (const auto fits = check_identity(names, *options_.expected); !fits) {
    verify_problem_ = fits.error().message;
    X509_STORE_CTX_set_error(context, X509_V_ERR_HOSTNAME_MISMATCH);
    return 0;
  }
  return 1;
}

// ---- Failures ---------------------------------------------------------------------------------------------

tl::unexpected<Error> TlsSession::fail_with(Code code, std::string message) {
  if (!failure_) failure_ = Error{code, std::move(message)};
  return fail(*failure_);
}

std::string TlsSession::words_of_failure(unsigned long error) const {
  const bool with_certificates = security_->uses_certificates();
  if (!verify_problem_.empty() && with_certificates)
    return fmt::format("the certificate of {} is refused: {}", options_.peer, verify_problem_);
  if (!verify_problem_.empty())
    return fmt::format("{} uses TLS with certificates, and this process a token", options_.peer);
  const int reason = error == 0 ? 0 : ERR_GET_REASON(error);
  if (reason >= SSL_AD_REASON_OFFSET)
    return alert_words(reason - SSL_AD_REASON_OFFSET,
                       {.peer = options_.peer, .with_certificates = with_certificates});
  switch (reason) {
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return fmt::format("{} showed no certificate", options_.peer);
    case SSL_R_BINDER_DOES_NOT_VERIFY:
      return fmt::format("{} has another token", options_.peer);
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
      if (!with_certificates) return fmt::format("{} showed no token", options_.peer);
      break;
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_WRONG_SSL_VERSION:
      return fmt::format("{} speaks no version of TLS that is allowed here ({})", options_.peer,
                         with_certificates ? "1.2 or 1.3" : "1.3");
    case SSL_R_NO_SHARED_CIPHER:
      return fmt::format("{} offers no cipher suite that is allowed here (cipher_list)", options_.peer);
    default:
      break;
  }
  const char* text = error == 0 ? nullptr : ERR_reason_error_string(error);
  return fmt::format("TLS with {} failed: {}", options_.peer, text == nullptr ? "for no reason" : text);
}

tl::unexpected<Error> TlsSession::fail_from(int result) {
  const int kind = SSL_get_error(ssl_, result);
  if (too_long_)
    return fail_with(Code::refused, fmt::format("{} sent more than {} bytes before it said who it is",
                                                options_.peer, handshake_size_limit_bytes));
  if (kind == SSL_ERROR_ZERO_RETURN)
    return fail_with(Code::peer_lost, fmt::format("{} closed the connection", options_.peer));
  const unsigned long error = take_tls_error();
  std::string words = words_of_failure(error);
  ERR_clear_error();
  // A side that cannot judge a peer now may be able to later.
  const bool may_pass = verify_problem_.empty() && error != 0 &&
                        ERR_GET_REASON(error) == SSL_AD_REASON_OFFSET + SSL_AD_INTERNAL_ERROR;
  // A record that does not fit is damage or a forger on the way; all else is a refusal by one side.
  const bool is_damage = open_ && words.starts_with("TLS with");
  return fail_with(may_pass ? Code::peer_lost : is_damage ? Code::corrupt : Code::refused, std::move(words));
}

Result<> TlsSession::look_at_first_byte() {
  if (started_ || input_.empty()) return {};
  started_ = true;
  const std::byte first = input_.front();
  if (first == tls_handshake_record || first == tls_alert_record) return {};
  spoke_plain_ = first == first_byte_of_frame;
  if (spoke_plain_)
    return fail_with(Code::refused, fmt::format("{} does not use TLS, and this process does: it has to be "
                                                "configured on every process or on none",
                                                options_.peer));
  return fail_with(Code::corrupt, fmt::format("{} sent bytes that are neither TLS nor Muster's (the first is "
                                              "{:#04x})",
                                              options_.peer, std::to_integer<unsigned>(first)));
}

// ---- Talking ----------------------------------------------------------------------------------------------

Result<bool> TlsSession::shake_hands() {
  if (failure_) return fail(*failure_);
  if (open_) return true;
  MUSTER_TRY_VOID(look_at_first_byte());
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  if (result != 1) {
    if (!too_long_ && SSL_get_error(ssl_, result) == SSL_ERROR_WANT_READ) return false;
    return fail_from(result);
  }
  MUSTER_TRY_VOID(check_open());
  open_ = true;
  held_size_bytes_ = 0;
  return true;
}

// OpenSSL has checked all this; that it was asked to is checked here.
Result<> TlsSession::check_open() {
  if (options_.serves_anyone) return {};
  if (!security_->uses_certificates()) {
    if (SSL_session_reused(ssl_) == 1 && SSL_version(ssl_) == TLS1_3_VERSION) return {};
    return fail_with(Code::refused, fmt::format("{} showed no token", options_.peer));
  }
  const X509* certificate = SSL_get0_peer_certificate(ssl_);
  if (certificate == nullptr || SSL_get_verify_result(ssl_) != X509_V_OK)
    return fail_with(Code::refused, fmt::format("{} showed no certificate", options_.peer));
  names_ = names_of(certificate);
  return {};
}

Result<std::size_t> TlsSession::read(std::span<std::byte> bytes) {
  MUSTER_TRY(const bool through, shake_hands());
  if (!through || bytes.empty()) return 0;
  ERR_clear_error();
  std::size_t size = 0;
  const int result = SSL_read_ex(ssl_, bytes.data(), bytes.size(), &size);
  if (result == 1) {
    held_size_bytes_ = 0;
    return size;
  }
  const int kind = SSL_get_error(ssl_, result);
  if (kind == SSL_ERROR_WANT_READ) return 0;
  return fail_from(result);
}

Result<> TlsSession::write(std::span<const std::byte> bytes) {
  if (failure_) return fail(*failure_);
  MUSTER_CHECK(open_, "nothing can be sent before the handshake is through");
  while (!bytes.empty()) {
    ERR_clear_error();
    std::size_t size = 0;
    const int result = SSL_write_ex(ssl_, bytes.data(), bytes.size(), &size);
    if (result != 1) return fail_from(result);
    bytes = bytes.subspan(size);
  }
  return {};
}

void TlsSession::finish() {
  if (failure_ || !open_) return;
  ERR_clear_error();
  SSL_shutdown(ssl_);
  ERR_clear_error();
}

void TlsSession::sent(std::size_t size_bytes) {
  output_begin_ += size_bytes;
  if (output_begin_ < output_.size()) return;
  output_.clear();
  output_begin_ = 0;
}

std::vector<std::byte> TlsSession::take_output() {
  MUSTER_CHECK(output_begin_ == 0, "half of the output was sent already");
  return std::exchange(output_, {});
}

Result<> TlsSession::check_peer_again() {
  if (!open_ || failure_ || !security_->uses_certificates()) return {};
  const auto trust = security_->implementation().trust->current();
  if (!trust || trust->generation == generation_)
    return {};  // no new peer is admitted without a list; members stay
  std::unique_ptr<X509_STORE_CTX, openssl::Release<X509_STORE_CTX_free>> context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), trust->store.get(), SSL_get0_peer_certificate(ssl_),
                      SSL_get_peer_cert_chain(ssl_));
  X509_STORE_CTX_set_default(context.get(), options_.side == TlsSide::listener ? "ssl_client" : "ssl_server");
  X509_STORE_CTX_set_flags(context.get(), X509_V_FLAG_NO_CHECK_TIME);  // a date ends no connection
  const bool good = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  if (!good)
    return fail_with(Code::refused, fmt::format("the certificate of {} is no longer good: {}", options_.peer,
                                                verify_words(context.get())));
  generation_ = trust->generation;
  return {};
}

}  // namespace muster::net
