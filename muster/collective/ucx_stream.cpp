#include "muster/collective/ucx_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace muster::collective {

// ---- Pieces -----------------------------------------------------------------------------------------------

PieceCursor::PieceCursor(std::span<const iovec> pieces) : pieces_(pieces) {
  for (const iovec& piece : pieces) left_ += piece.iov_len;
}

template <class Copy>
std::size_t PieceCursor::walk(std::size_t size_bytes, const Copy& copy) {
  const std::size_t total = std::min(size_bytes, left_);
  for (std::size_t done = 0; done < total;) {
    const iovec& piece = pieces_.front();
    const std::size_t now = std::min(piece.iov_len - offset_, total - done);
    if (now > 0) copy(static_cast<std::byte*>(piece.iov_base) + offset_, done, now);
    done += now;
    offset_ += now;
    if (offset_ < piece.iov_len) continue;
    pieces_ = pieces_.subspan(1);
    offset_ = 0;
  }
  left_ -= total;
  return total;
}

std::size_t PieceCursor::read(std::span<std::byte> to) {
  return walk(to.size(), [&](const std::byte* piece, std::size_t at, std::size_t size_bytes) {
    std::memcpy(to.data() + at, piece, size_bytes);
  });
}

std::size_t PieceCursor::write(std::span<const std::byte> from) {
  return walk(from.size(), [&](std::byte* piece, std::size_t at, std::size_t size_bytes) {
    std::memcpy(piece, from.data() + at, size_bytes);
  });
}

// ---- Beginning and end ------------------------------------------------------------------------------------

Result<std::unique_ptr<UcxStream>> UcxStream::open(const UcxLibrary& library) {
  std::unique_ptr<UcxStream> made(new UcxStream);
  MUSTER_TRY(made->port_, library.open(*made));
  return made;
}

UcxStream::~UcxStream() {
  if (!port_) return;
  for (const Held& held : held_)
    if (held.staying != nullptr) port_->release(held.staying);
  for (const auto& [number, held] : early_)
    if (held.staying != nullptr) port_->release(held.staying);
  port_.reset();
}

// The first credit, of nothing, tells the other side that this one is there.
Result<> UcxStream::connect(std::span<const std::byte> address) {
  MUSTER_TRY_VOID(port_->connect(address));
  is_connected_ = true;
  needs_flush_ = true;
  port_->send(UcxPort::Kind::credit, credit_);
  return {};
}

// ---- Sending ----------------------------------------------------------------------------------------------

std::size_t UcxStream::send_some(std::span<const iovec> pieces) {
  PieceCursor rest(pieces);
  std::size_t total = 0;
  while (rest.left() > 0) {
    const std::size_t added = append(rest);
    if (added == 0) break;
    total += added;
    post();
  }
  return total;
}

// A message lies in one piece: the last one before the ring's end may be shorter.
std::size_t UcxStream::append(PieceCursor& pieces) {
  forget_taken();
  const std::size_t free = ring_size_bytes - (ring_end_ - ring_begin_);
  const std::size_t wanted = std::min(pieces.left(), message_limit_bytes);
  if (free < wanted) return 0;
  const std::size_t at = ring_end_ % ring_size_bytes;
  const std::span<std::byte> place(ring_.get() + at, std::min(wanted, ring_size_bytes - at));
  const std::size_t size_bytes = pieces.read(place);
  ring_end_ += size_bytes;
  outgoing_.push_back({.message = {.number = next_number_++, .bytes = place}, .end = ring_end_});
  return size_bytes;
}

void UcxStream::post() {
  is_open_ = is_open();
  if (!is_open_) return;
  while (posted_ < next_number_ && !port_->failure()) {
    Outgoing& next = outgoing_[posted_ - first_number_];
    const std::size_t queued_bytes =
        std::max(next.end - ring_begin_, (posted_ - first_number_ + 1) * part_bytes);
    if (queued_bytes > port_->queue_bytes()) return;
    port_->send(UcxPort::Kind::data, next.message);
    needs_flush_ = true;
    ++posted_;
  }
}

void UcxStream::forget_taken() {
  while (first_number_ < std::min(acknowledged_, posted_) && !outgoing_.front().message.is_under_way) {
    ring_begin_ = outgoing_.front().end;
    outgoing_.pop_front();
    ++first_number_;
  }
}

void UcxStream::take_credit(std::uint64_t number) {
  is_heard_ = true;
  acknowledged_ = std::max(acknowledged_, number);
}

// ---- Receiving --------------------------------------------------------------------------------------------

std::size_t UcxStream::receive_some(std::span<const iovec> pieces) {
  PieceCursor target(pieces);
  const std::size_t wanted = target.left();
  target_ = &target;
  take_held();
  // Not on and on: the other direction has its turn, too.
  while (is_open_ && target.left() > 0 && wanted - target.left() < credited_bytes && port_->progress())
    take_held();
  target_ = nullptr;
  send_credit();
  return wanted - target.left();
}

// The bytes of a message that comes while no thread receives stay in UCX's memory where they may.
UcxStream::Held UcxStream::hold(std::span<const std::byte> bytes, std::size_t taken_bytes, bool stays) {
  Held held{.rest = bytes.subspan(taken_bytes), .size_bytes = bytes.size()};
  if (stays) {
    held.staying = bytes.data();
  } else {
    held.copied.assign(held.rest.begin(), held.rest.end());
    held.rest = held.copied;
  }
  return held;
}

bool UcxStream::take_data(std::uint64_t number, std::span<const std::byte> bytes, bool may_stay) {
  if (number < received_ || early_.contains(number)) return false;
  if (number > received_) {
    early_.emplace(number, hold(bytes, 0, may_stay));
    return may_stay;
  }
  const bool stays = take_next(bytes, may_stay);
  for (auto next = early_.find(received_); next != early_.end(); next = early_.find(received_)) {
    held_.push_back(std::move(next->second));
    early_.erase(next);
    ++received_;
  }
  return stays;
}

bool UcxStream::take_next(std::span<const std::byte> bytes, bool may_stay) {
  ++received_;
  const std::size_t taken = target_ != nullptr && held_.empty() ? target_->write(bytes) : 0;
  if (taken == bytes.size()) {
    count_taken(bytes.size());
    return false;
  }
  held_.push_back(hold(bytes, taken, may_stay));
  return may_stay;
}

void UcxStream::take_held() {
  while (!held_.empty() && target_->left() > 0) {
    Held& held = held_.front();
    held.rest = held.rest.subspan(target_->write(held.rest));
    if (!held.rest.empty()) return;
    if (held.staying != nullptr) port_->release(held.staying);
    count_taken(held.size_bytes);
    held_.pop_front();
  }
}

void UcxStream::count_taken(std::size_t size_bytes) {
  ++taken_;
  uncredited_bytes_ += size_bytes;
}

void UcxStream::send_credit() {
  const bool is_due = taken_ - credited_ >= credited_messages || uncredited_bytes_ >= credited_bytes;
  if (!is_due || !is_open_ || credit_.is_under_way || port_->failure()) return;
  credit_.number = credited_ = taken_;
  uncredited_bytes_ = 0;
  needs_flush_ = true;
  port_->send(UcxPort::Kind::credit, credit_);
}

// ---- Going on ---------------------------------------------------------------------------------------------

bool UcxStream::progress() {
  const bool moved = port_->progress();
  forget_taken();
  post();
  send_credit();
  return moved;
}

bool UcxStream::settle() {
  progress();
  if (port_->failure()) return true;
  if (!is_open_) return next_number_ == 0;
  if (needs_flush_ && !flush_.is_under_way) {
    needs_flush_ = false;
    port_->flush(flush_);
  }
  return posted_ == next_number_ && !needs_flush_ && !flush_.is_under_way && !credit_.is_under_way;
}

}  // namespace muster::collective
