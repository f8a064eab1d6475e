#include "muster/collective/reconnector.h"

#include <fmt/format.h>

namespace muster::collective {
namespace {

constexpr auto pause_between_tries = std::chrono::milliseconds(20);

}  // namespace

Reconnector::Reconnector(Target target, const Hello& hello, const Clock& clock)
    : clock_(clock),
      target_(std::move(target)),
      hello_(hello),
      give_up_at_(clock_.now() + unreachable_longest),
      next_try_(clock_.now()),
      began_(next_try_) {}

void Reconnector::add_to(WaitList& waits) const {
  if (!socket_) return;
  const short events = stage_ == Stage::connecting ? POLLOUT
                       : stage_ == Stage::securing ? socket_->awaited_events()
                                                   : short{POLLIN};
  waits.add(socket_->fd(), {.reading = (events & POLLIN) != 0, .writing = (events & POLLOUT) != 0});
}

Result<std::optional<Reconnector::Answer>> Reconnector::step() {
  if (!socket_ && clock_.now() < next_try_) return std::nullopt;
  const auto through = socket_ ? advance() : begin().and_then([this] { return advance(); });
  if (!through) {
    MUSTER_TRY_VOID(fall_back(through.error()));
    return std::nullopt;
  }
  if (!*through) return std::nullopt;
  return Answer{.socket = *std::exchange(socket_, {}), .welcome = welcome_, .generation = hello_.generation};
}

Result<> Reconnector::begin() {
  began_ = clock_.now();
  stage_ = Stage::connecting;
  answer_.clear();
  if (hello_.intent == Intent::resume) ++hello_.generation;
  MUSTER_TRY(socket_, net::Socket::begin_connecting(address()));
  return {};
}

// Once it is connected, the peer is there: it may compute, and answer when it is through.
Result<bool> Reconnector::advance() {
  if (stage_ == Stage::connecting) {
    MUSTER_TRY(const bool connected, socket_->finish_connecting(address()));
    if (!connected && clock_.now() < give_up_at_) return false;
    if (!connected) return fail(Code::timeout, fmt::format("no answer from {}", target_.name));
    if (target_.security)
      MUSTER_TRY_VOID(socket_->begin_tls(
          {.security = target_.security, .expected = target_.endpoint.identity, .peer_name = target_.name}));
    stage_ = Stage::securing;
  }
  if (stage_ == Stage::securing) {
    MUSTER_TRY(const bool secured, socket_->shake_hands());
    if (!secured) return false;
    // So little goes at once, or the connection is of no use.
    MUSTER_TRY_VOID(socket_->send_all(encode_hello(hello_), {.deadline = clock_.now()}));
    stage_ = Stage::awaiting;
  }
  return hear_answer();
}

// Not one byte more than the answer: what follows belongs to the stream.
Result<bool> Reconnector::hear_answer() {
  std::size_t wanted = net::frame_header_size_bytes;
  for (;;) {
    if (answer_.size() >= net::frame_header_size_bytes) {
      MUSTER_TRY(
          const net::FrameHeader header,
          net::decode_header(std::span(answer_).first<net::frame_header_size_bytes>(), refusal_limit_bytes));
      wanted = net::frame_header_size_bytes + header.payload_size_bytes;
      if (answer_.size() == wanted) {
        net::Frame frame{header, {answer_.begin() + net::frame_header_size_bytes, answer_.end()}};
        MUSTER_TRY_VOID(net::check_payload(header, frame.payload));
        MUSTER_TRY(welcome_, check_welcome(frame, hello_.origin, target_.name));
        return true;
      }
    }
    const std::size_t have = answer_.size();
    answer_.resize(wanted);
    const iovec piece{.iov_base = answer_.data() + have, .iov_len = wanted - have};
    const auto received = socket_->receive_some({&piece, 1});
    answer_.resize(have + received.value_or(0));
    if (!received) return fail(received.error());
    if (*received == 0) return false;
  }
}

Result<> Reconnector::fall_back(const Error& error) {
  socket_.reset();
  const TimePoint now = clock_.now();
  next_try_ = now + pause_between_tries;
  if (error.code == Code::not_found)
    return fail(Code::peer_lost, error.message);  // no process listens there now
  const bool may_pass =
      error.code == Code::timeout || error.code == Code::io || error.code == Code::peer_lost;
  if (!may_pass) return fail(error);
  if (now - began_ >= unreachable_longest && stage_ != Stage::connecting)
    give_up_at_ = now + unreachable_longest;
  if (now < give_up_at_) return {};
  const std::chrono::duration<double> waited = unreachable_longest;
  return fail(Code::peer_lost,
              fmt::format("it could not be reached again for {:.3g} s: {}", waited.count(), error.message));
}

}  // namespace muster::collective
