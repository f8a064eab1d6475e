#include "muster/collective/frame_stream.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::collective {
namespace {

constexpr auto pause_between_retries = std::chrono::milliseconds(100);

}  // namespace

FrameStream::FrameStream(std::uint32_t rank, Purpose purpose, std::unique_ptr<Link> link,
                         ReconnectAcceptor& acceptor)
    : rank_(rank),
      purpose_(purpose),
      name_(acceptor.name(rank)),
      acceptor_(acceptor),
      link_(std::move(link)) {}

FrameStream::FrameStream(std::uint32_t rank, Purpose purpose, ReconnectAcceptor& acceptor)
    : rank_(rank),
      purpose_(purpose),
      name_(acceptor.name(rank)),
      acceptor_(acceptor),
      broken_since_(acceptor.clock().now()),
      next_retry_(*broken_since_) {}

// ---- The stream -------------------------------------------------------------------------------------------

void FrameStream::add(FrameType type, std::span<const std::byte> payload, const FrameSource& source) {
  outgoing_.add_outgoing(type, payload, source);
}

// What a peer that ended the group said last is read first: a connection that cannot be sent to breaks only
// when there is nothing more to read.
bool FrameStream::send_some() {
  if (!is_whole() || send_error_ || all_sent()) return false;
  std::array<iovec, FrameList::piece_limit> storage;
  const bool replaying = replayed_ < list_begin_;
  const auto sent = link_->send_some(replaying ? rest_of_kept(storage) : outgoing_.rest(storage));
  if (!sent) {
    send_error_ = sent.error();
    return true;
  }
  if (replaying)
    replayed_ += *sent;
  else
    for (std::size_t left = *sent; left > 0;) left -= outgoing_.take(left);
  return *sent > 0;
}

Result<std::size_t> FrameStream::receive_some(std::span<const iovec> pieces) {
  if (!is_whole()) return 0;
  auto received = link_->receive_some(pieces);
  if (received) {
    received_ += *received;
    return received;
  }
  if (received.error().code != Code::peer_lost) return received;
  break_off(received.error());
  return 0;
}

// ---- What is kept -----------------------------------------------------------------------------------------

void FrameStream::finish_step(bool heard) {
  const std::size_t came = received_ - received_before_;
  received_before_ = received_;
  const bool sent = outgoing_.frames() > 0;
  unanswered_bytes_ = sent ? came : unanswered_bytes_ + came;
  if (heard) {
    kept_.clear();
    kept_begin_ = list_begin_;
  }
  for (std::size_t frame = 0; frame < outgoing_.frames(); ++frame)
    kept_.push_back({.header = outgoing_.header(frame), .payload = outgoing_.payload(frame), .holder = {}});
  list_begin_ += outgoing_.position();
  replayed_ = list_begin_;
  outgoing_.clear();
}

void FrameStream::forget_before(std::uint64_t position) {
  std::size_t gone = 0;
  for (; gone < kept_.size(); ++gone) {
    const std::uint64_t end = kept_begin_ + kept_[gone].header.size() + kept_[gone].payload.size();
    if (end > position) break;
    kept_begin_ = end;
  }
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(gone));
}

// Those that are copied already came before the others.
void FrameStream::own_kept(Copies& copies) {
  for (auto kept = kept_.rbegin(); kept != kept_.rend() && !kept->holder; ++kept) {
    Copies::Copy copy = copies.of(kept->payload);
    kept->payload = copy.bytes;
    kept->holder = std::move(copy.holder);
  }
}

std::span<const iovec> FrameStream::rest_of_kept(std::array<iovec, FrameList::piece_limit>& storage) const {
  std::size_t used = 0;
  std::uint64_t at = kept_begin_;
  const auto add = [&](std::span<const std::byte> bytes) {
    const std::uint64_t end = at + bytes.size();
    if (end > replayed_ && used < storage.size()) {
      const auto rest = bytes.subspan(replayed_ > at ? replayed_ - at : 0);
      storage[used++] = {.iov_base = const_cast<std::byte*>(rest.data()), .iov_len = rest.size()};
    }
    at = end;
  };
  for (const Kept& kept : kept_) {
    add(kept.header);
    add(kept.payload);
  }
  return std::span(storage).first(used);
}

// ---- The connection ---------------------------------------------------------------------------------------

ReconnectAcceptor::Stream FrameStream::here() const {
  return {.rank = rank_, .purpose = purpose_, .generation = generation_, .received_bytes = received_};
}

void FrameStream::break_off(const Error& cause) {
  if (!is_whole()) return;
  broken_since_ = acceptor_.clock().now();
  cause_ = send_error_.value_or(cause).message;
  next_retry_ = *broken_since_;
  link_->reset();  // the other side may not know yet
}

bool FrameStream::is_reset_by_accident() {
  const std::lock_guard lock(replacing_);
  is_closed_ = !link_->is_broken();
  return !is_closed_;
}

Result<> FrameStream::give_up_sending() {
  if (!send_error_ || !is_whole()) return {};
  if (send_error_->code != Code::peer_lost) return fail(*send_error_);
  break_off(*send_error_);
  return {};
}

// The lower rank cannot tell whether the other one knows, or lives: it asks to be called until it is.
Result<bool> FrameStream::mend() {
  if (is_whole()) return false;
  if (auto reconnection = acceptor_.has_news() ? acceptor_.take_reconnection(here()) : std::nullopt) {
    if (!acceptor_.welcome(*reconnection, received_)) return true;  // it will call again
    MUSTER_TRY_VOID(adopt(make_link(std::move(reconnection->socket), reconnection->kind),
                          reconnection->generation, reconnection->received_bytes));
    return true;
  }
  // The answer to our hello was lost, and the other side knows what we cannot see.
  if (reconnector_ && acceptor_.calls(rank_) && acceptor_.has_news() &&
      acceptor_.take_reconnect_request(
          {.rank = rank_, .purpose = purpose_, .generation = reconnector_->generation()})) {
    generation_ = reconnector_->generation();
    reconnector_.reset();
  }
  if (!reconnector_) {
    if (acceptor_.clock().now() < next_retry_) return false;
    reconnector_.emplace(acceptor_.reconnector(here()));
  }
  MUSTER_TRY(auto answer, reconnector_->step());
  if (!answer) return false;
  if (acceptor_.calls(rank_)) {
    MUSTER_TRY_VOID(adopt(make_link(std::move(answer->socket), answer->welcome.link), answer->generation,
                          answer->welcome.received_bytes));
    return true;
  }
  reconnector_.reset();
  next_retry_ = acceptor_.clock().now() + pause_between_retries;
  return true;
}

Result<> FrameStream::look_at_news() {
  if (!is_whole() || !acceptor_.has_news()) return {};
  if (acceptor_.take_reconnect_request(here()))
    break_off({Code::peer_lost, fmt::format("{} found it broken", name_)});
  if (auto reconnection = acceptor_.take_reconnection(here())) {
    break_off({Code::peer_lost, fmt::format("{} found it broken", name_)});
    if (acceptor_.welcome(*reconnection, received_))
      return adopt(make_link(std::move(reconnection->socket), reconnection->kind), reconnection->generation,
                   reconnection->received_bytes);
  }
  return {};
}

Result<bool> FrameStream::attend() {
  MUSTER_TRY_VOID(look_at_news());
  if (!is_whole()) MUSTER_TRY_VOID(mend());
  while (send_some()) continue;
  return !is_whole() || !all_sent();
}

Result<> FrameStream::adopt(std::unique_ptr<Link> link, std::uint32_t generation, std::uint64_t taken_bytes) {
  MUSTER_TRY_VOID(rewind(taken_bytes));
  const std::chrono::duration<double> took = acceptor_.clock().now() - *broken_since_;
  if (generation_ > 0 || link_)
    log::warning(
        fmt::format("the connection to {} broke ({}) and was made again after {:.3g} s: it goes on at byte "
                    "{}, and nothing is lost",
                    name_, cause_, took.count(), taken_bytes));
  generation_ = generation;
  reconnector_.reset();
  broken_since_.reset();
  send_error_.reset();
  const std::lock_guard lock(replacing_);
  link_ = std::move(link);
  is_closed_ = false;
  if (ended_) link_->reset();
  if (left_ && !ended_) link_->close();
  return {};
}

// With TLS the other side may have taken bytes that were not yet counted as sent.
Result<> FrameStream::rewind(std::uint64_t taken_bytes) {
  if (taken_bytes < kept_begin_ || taken_bytes > list_begin_ + outgoing_.size_bytes())
    return fail(Code::corrupt,
                fmt::format("{} says that it has taken {} bytes; bytes {} to {} can be sent again", name_,
                            taken_bytes, kept_begin_, list_begin_ + outgoing_.size_bytes()));
  replayed_ = std::min(taken_bytes, list_begin_);
  outgoing_.seek(taken_bytes - replayed_);
  return {};
}

void FrameStream::add_to(WaitList& waits, Interest interest) const {
  if (is_whole())
    link_->add_to(waits, {.reading = interest.reading, .writing = interest.writing && !send_error_});
  else if (reconnector_)
    reconnector_->add_to(waits);
}

TimePoint FrameStream::next_step() const {
  if (is_whole()) return TimePoint::max();
  return reconnector_ ? reconnector_->next_step() : next_retry_;
}

void FrameStream::watch(WaitList& waits) {
  const std::lock_guard lock(replacing_);
  if (link_ && !ended_ && !is_closed_) link_->add_to(waits, {});
}

void FrameStream::finish_sending() {
  const std::lock_guard lock(replacing_);
  if (link_) link_->finish_sending();
}

void FrameStream::close() {
  const std::lock_guard lock(replacing_);
  if (link_ && !ended_) link_->close();
  is_closed_ = true;
  left_ = true;
}

bool FrameStream::is_delivered() {
  const std::lock_guard lock(replacing_);
  return link_ == nullptr || link_->is_delivered();
}

Result<> FrameStream::check_peer() {
  const std::lock_guard lock(replacing_);
  if (!link_) return {};  // the peer that connects is checked then
  const auto good = link_->check_peer();
  if (good) return {};
  return fail(good.error().code, fmt::format("{} may take part no more: {}", name_, good.error().message));
}

void FrameStream::reset() {
  const std::lock_guard lock(replacing_);
  ended_ = true;
  if (link_) link_->reset();
}

}  // namespace muster::collective
