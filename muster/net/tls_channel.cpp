#include "muster/net/tls_channel.h"

#include <algorithm>

#include "muster/net/socket.h"

namespace muster::net {
namespace {

// What is encrypted or read at a time: several records to a call of the kernel.
constexpr std::size_t chunk_size_bytes = 128 << 10;
constexpr std::size_t handshake_chunk_size_bytes = 4 << 10;  // an unauthenticated peer must not cost more

}  // namespace

// ---- Ciphertext -------------------------------------------------------------------------------------------

Result<> TlsChannel::flush(Socket& socket) {
  while (!session_->output().empty()) {
    const auto rest = session_->output();
    const iovec piece{.iov_base = const_cast<std::byte*>(rest.data()), .iov_len = rest.size()};
    MUSTER_TRY(const std::size_t sent, socket.send_plain({&piece, 1}));
    if (sent == 0) break;
    session_->sent(sent);
  }
  return {};
}

std::size_t TlsChannel::wanted_bytes() const {
  if (reads_ahead_) return session_->is_open() ? chunk_size_bytes : handshake_chunk_size_bytes;
  return record_left_bytes_ > 0 ? record_left_bytes_ : record_header_.size() - record_header_size_;
}

// A record is a header of five bytes, the last two of which are the length of what follows.
void TlsChannel::follow_records(std::span<const std::byte> bytes) {
  if (reads_ahead_) return;
  if (record_left_bytes_ > 0) {
    record_left_bytes_ -= bytes.size();
    return;
  }
  std::ranges::copy(bytes, record_header_.begin() + static_cast<std::ptrdiff_t>(record_header_size_));
  record_header_size_ += bytes.size();
  if (record_header_size_ < record_header_.size()) return;
  record_header_size_ = 0;
  record_left_bytes_ =
      std::to_integer<std::size_t>(record_header_[3]) << 8 | std::to_integer<std::size_t>(record_header_[4]);
}

Result<bool> TlsChannel::take_input(Socket& socket) {
  if (session_->input_left_bytes() > 0) return true;
  const std::size_t wanted = wanted_bytes();
  if (buffer_.size() < wanted) buffer_.resize(wanted);
  const iovec piece{.iov_base = buffer_.data(), .iov_len = wanted};
  MUSTER_TRY(const std::size_t received, socket.receive_plain({&piece, 1}));
  if (received == 0) return false;
  const auto bytes = std::span(buffer_).first(received);
  follow_records(bytes);
  session_->set_input(bytes);
  return true;
}

// ---- Plain bytes ------------------------------------------------------------------------------------------

Result<bool> TlsChannel::shake_hands(Socket& socket) {
  const std::lock_guard lock(mutex_);
  for (;;) {
    const auto through = session_->shake_hands();
    const auto flushed = flush(socket);  // of a failed one: an alert that says why
    if (!through) return fail(through.error());
    if (!flushed) return fail(flushed.error());
    if (*through) return session_->output().empty();
    MUSTER_TRY(const bool came, take_input(socket));
    if (!came) return false;
  }
}

// Bytes count as sent when all of their ciphertext is: until then the caller brings the same ones again.
Result<std::size_t> TlsChannel::send_some(Socket& socket, std::span<const iovec> pieces) {
  const std::lock_guard lock(mutex_);
  MUSTER_TRY_VOID(flush(socket));
  if (!session_->output().empty()) return 0;
  if (unreported_bytes_ > 0) return std::exchange(unreported_bytes_, 0);
  std::size_t size = 0;
  for (const iovec& piece : pieces) {
    const std::size_t now = std::min(piece.iov_len, chunk_size_bytes - size);
    MUSTER_TRY_VOID(session_->write({static_cast<const std::byte*>(piece.iov_base), now}));
    size += now;
    if (size == chunk_size_bytes) break;
  }
  MUSTER_TRY_VOID(flush(socket));
  if (session_->output().empty()) return size;
  unreported_bytes_ = size;
  return 0;
}

Result<std::size_t> TlsChannel::read_into(std::span<std::byte> bytes, Socket& socket) {
  std::size_t size = 0;
  while (size < bytes.size()) {
    const auto read = session_->read(bytes.subspan(size));
    if (!read) {
      static_cast<void>(flush(socket));  // an alert, as far as it goes
      return fail(read.error());
    }
    size += *read;
    if (*read > 0) continue;
    auto came = take_input(socket);
    if (!came && size == 0) return fail(came.error());
    if (!came || !*came) break;  // an end that is found again
  }
  return size;
}

Result<std::size_t> TlsChannel::receive_some(Socket& socket, std::span<const iovec> pieces) {
  const std::lock_guard lock(mutex_);
  std::size_t size = 0;
  for (const iovec& piece : pieces) {
    const auto read = read_into({static_cast<std::byte*>(piece.iov_base), piece.iov_len}, socket);
    if (!read && size == 0) return fail(read.error());
    size += read.value_or(0);
    if (read.value_or(0) < piece.iov_len) break;
  }
  MUSTER_TRY_VOID(flush(socket));  // e.g. the answer to new keys
  return size;
}

void TlsChannel::finish(Socket& socket) {
  const std::lock_guard lock(mutex_);
  session_->finish();
  static_cast<void>(flush(socket));
}

bool TlsChannel::has_output() const {
  const std::lock_guard lock(mutex_);
  return !session_->output().empty();
}

std::size_t TlsChannel::held_size_bytes() const {
  const std::lock_guard lock(mutex_);
  return buffer_.size() + session_->held_size_bytes();
}

Result<> TlsChannel::check_peer_again() {
  const std::lock_guard lock(mutex_);
  return session_->check_peer_again();
}

}  // namespace muster::net
