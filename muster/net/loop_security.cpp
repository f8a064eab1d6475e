// The TLS side of the loop's connections.
#include <fmt/format.h>

#include <array>

#include "muster/net/loop_implementation.h"

namespace muster::net {
namespace {

constexpr auto handshake_time = std::chrono::seconds(3);
constexpr auto peer_check_interval = std::chrono::seconds(1);

}  // namespace

std::string Connection::Implementation::name() const {
  return peer_name_.empty() ? to_string(peer_) : peer_name_;
}

// An accepted connection. Its events are not set yet, so that nothing can be reported at once.
void Connection::Implementation::be_accepted(std::shared_ptr<const ListenerSecurity> security) {
  listener_security_ = std::move(security);
  if (listener_security_->security)
    start_tls(listener_security_->security, {.side = TlsSide::listener, .peer = name()});
}

void Connection::Implementation::start_tls(std::shared_ptr<const Security> security,
                                           TlsSession::Options options) {
  auto session = TlsSession::create(std::move(security), std::move(options));
  if (!session) {
    state_ = State::finishing;  // nothing that comes is looked at
    return fail_later(session.error());
  }
  tls_ = *std::move(session);
  if (state_ == State::opening) state_ = State::open;
  finish_timer_.expires_after(handshake_time);
  finish_timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (error || self->tls_->is_open() || self->state_ != State::open) return;
    self->close({Code::timeout, fmt::format("{} did not finish the TLS handshake within {} s", self->name(),
                                            handshake_time.count())});
  });
  go_on_with_handshake();
}

void Connection::Implementation::go_on_with_handshake() {
  if (tls_->is_open()) return;
  const auto through = tls_->shake_hands();
  if (!through) return close_for(through.error());
  queue_tls_output();
  if (!*through) return;
  finish_timer_.cancel();
  tell_opened();
  for (const auto& frame : std::exchange(before_handshake_, {})) send(frame, false);
}

void Connection::Implementation::queue_tls_output() {
  if (tls_->output().empty()) return;
  queue(std::make_shared<const std::vector<std::byte>>(tls_->take_output()));
}

void Connection::Implementation::decrypt(std::span<const std::byte> bytes) {
  tls_->set_input(bytes);
  go_on_with_handshake();
  std::array<std::byte, 16 << 10> plain;
  while (state_ == State::open) {
    const auto read = tls_->read(plain);
    if (!read) {
      close_for(read.error());
      break;
    }
    queue_tls_output();  // e.g. the answer to new keys
    if (*read == 0 || !is_still_believed()) break;
    deliver_frames(std::span(plain).first(*read));
  }
  tls_->set_input({});  // the buffer is the whole loop's
}

// Whom a new revocation list names is cut off, at the latest with the next thing it says.
bool Connection::Implementation::is_still_believed() {
  const TimePoint now = real_clock().now();
  if (now < next_peer_check_) return true;
  next_peer_check_ = now + peer_check_interval;
  const auto good = tls_->check_peer_again();
  if (!good) turn_away(good.error(), {});
  return good.has_value();
}

// A failed session leaves words for the other side; one that speaks plain gets plain ones.
void Connection::Implementation::close_for(const Error& error) {
  std::vector<std::byte> words = tls_->take_output();
  const bool answers_plain = tls_->spoke_plain() && listener_security_ && listener_security_->plain_refusal;
  if (answers_plain) words = listener_security_->plain_refusal("it does not use TLS, and this job does");
  turn_away(error, std::move(words));
}

bool Connection::Implementation::refuses_tls(std::span<const std::byte> bytes) {
  if (std::exchange(has_received_, true)) return false;
  const bool begins = begins_tls(bytes);
  if (!begins && bytes.front() != tls_alert_record) return false;
  turn_away({Code::refused, fmt::format("{} uses TLS, and this process does not: it has to be configured on "
                                        "every process or on none",
                                        name())},
            begins ? answer_to_tls() : std::vector<std::byte>());
  return true;
}

// The owner hears of it at once; the last words still go, as after `finish`.
void Connection::Implementation::turn_away(const Error& error, std::vector<std::byte> last_words) {
  if (state_ == State::closed || state_ == State::finishing) return;
  state_ = State::finishing;
  const auto events = std::exchange(events_, std::make_shared<ConnectionEvents>());
  if (!last_words.empty()) queue(std::make_shared<const std::vector<std::byte>>(std::move(last_words)));
  wait_to_finish();
  if (events->closed) events->closed(error);
}

}  // namespace muster::net
