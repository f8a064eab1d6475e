#include "muster/collective/ucx_link.h"

#include <fmt/format.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <thread>
#include <utility>

#include "muster/collective/frames.h"

namespace muster::collective {
namespace {

// Of a worker with many devices; each takes some tens of bytes.
constexpr std::uint64_t ucx_address_limit_bytes = 64 << 10;
// So often the pump finds nothing to do before it leaves a link alone, so that a busy link stays with it.
constexpr int quiet_turns_max = 64;
// Before a wait: what comes meanwhile may be of no interest.
constexpr int turns_before_wait = 64;
// Who goes tries for so long to get rid of what was sent.
constexpr Duration ending_longest = std::chrono::milliseconds(500);
constexpr auto ending_pause = std::chrono::microseconds(100);

std::vector<std::byte> frame_of(FrameType type, std::span<const std::byte> payload) {
  return net::encode_frame({.type = static_cast<std::uint16_t>(type)}, payload);
}

}  // namespace

// ---- Beginning --------------------------------------------------------------------------------------------

UcxConnection::UcxConnection(net::Socket socket)
    : socket_(std::move(socket)),
      bell_(net::Bell::create().value()),
      from_socket_(ucx_address_limit_bytes),
      pump_(UcxPump::shared()) {
  const std::lock_guard lock(mutex_);
  if (const auto begun = begin(); !begun) error_ = begun.error();
  keep_going();
}

Result<> UcxConnection::begin() {
  MUSTER_TRY(const UcxLibrary* library, ucx_library());
  MUSTER_TRY(stream_, UcxStream::open(*library));
  return send_on_socket(frame_of(FrameType::ucx_address, stream_->address()));
}

// A forked child has neither the pump nor UCX's threads: what it inherited is left as it is.
UcxConnection::~UcxConnection() {
  if (fork_count_ != net::fork_count()) {
    static_cast<void>(stream_.release());
    static_cast<void>(new std::shared_ptr<UcxPump>(std::move(pump_)));
    return;
  }
  pump_->remove(*this);
  const std::lock_guard lock(mutex_);
  const TimePoint last = real_clock().now() + ending_longest;
  while (ending_ != Ending::none && !go_on_ending() && real_clock().now() < last)
    std::this_thread::sleep_for(ending_pause);
  ::shutdown(socket_.fd(), SHUT_RDWR);  // before the port goes
}

// So little goes at once, or the socket is of no use.
Result<> UcxConnection::send_on_socket(const std::vector<std::byte>& frame) {
  return socket_.send_all(frame, {.deadline = real_clock().now()});
}

// ---- The socket -------------------------------------------------------------------------------------------

void UcxConnection::hear_socket() {
  while (!is_socket_over_ && !error_) {
    std::array<std::byte, 4096> bytes;
    const iovec piece{.iov_base = bytes.data(), .iov_len = bytes.size()};
    const auto came = socket_.receive_some({&piece, 1});
    is_socket_over_ = !came;
    if (!came || *came == 0) break;
    from_socket_.append(std::span(bytes).first(*came));
    if (const auto taken = take_frames(); !taken) error_ = taken.error();
  }
  connect();
}

Result<> UcxConnection::take_frames() {
  for (;;) {
    MUSTER_TRY(const std::optional<net::Frame> frame, from_socket_.next());
    if (!frame) return {};
    MUSTER_TRY_VOID(take(*frame));
  }
}

// Not to one that is gone already; and one after the other, since UCX over TCP does not bear well that both
// sides connect at once.
void UcxConnection::connect() {
  if (!far_address_ || error_ || (is_socket_over_ && !end_)) return;
  if (stream_->address() < *far_address_ && !stream_->is_heard()) return;
  const auto address = *std::exchange(far_address_, {});
  if (const auto connected = stream_->connect(address); !connected) error_ = connected.error();
}

Result<> UcxConnection::take(const net::Frame& frame) {
  const auto type = static_cast<FrameType>(frame.header.type);
  if (type == FrameType::ucx_address && !stream_->is_connected()) {
    far_address_ = frame.payload;
    return {};
  }
  net::ByteReader reader(frame.payload);
  const auto messages = reader.number<std::uint64_t>();
  if (type != FrameType::ucx_end || end_ || !reader.finish("the end of a stream"))
    return fail(Code::corrupt, fmt::format("{} sent a frame of type {:#06x} of {} bytes beside UCX",
                                           socket_.peer(), frame.header.type, frame.payload.size()));
  end_ = messages;
  return {};
}

// What the socket says is that of the whole link.
std::optional<Error> UcxConnection::failure() const {
  if (error_) return error_;
  return stream_->failure();
}

// Without a word about its end the other side is gone, or has reset the link: nothing more comes than what is
// here.
bool UcxConnection::is_at_end() const {
  if (stream_->can_receive()) return false;
  return end_ ? stream_->received_messages() >= *end_ : is_socket_over_;
}

// ---- The stream -------------------------------------------------------------------------------------------

// Goes on with opening it, as long as the other side lives: it is looked at before each step, since UCX 1.13
// does not bear that it dies meanwhile.
bool UcxConnection::opens() {
  if (!stream_->is_open()) {
    hear_socket();
    if (is_socket_over_ && !end_) return false;
    stream_->progress();
  }
  return stream_->is_open();
}

void UcxConnection::stop_waiting() {
  if (std::exchange(is_waited_for_, false)) bell_.silence();
}

Result<std::size_t> UcxConnection::send_some(std::span<const iovec> pieces) {
  const std::lock_guard lock(mutex_);
  stop_waiting();
  if (const auto gone = failure()) return fail(*gone);
  opens();
  std::size_t sent = stream_->send_some(pieces);
  if (sent == 0 && opens() && stream_->progress()) sent = stream_->send_some(pieces);
  if (sent == 0) hear_socket();
  if (const auto gone = failure()) return fail(*gone);
  if (sent == 0 && is_socket_over_ && !end_)
    return fail(Code::peer_lost, fmt::format("{} closed it", socket_.peer()));
  if (sent > 0) keep_going();
  return sent;
}

Result<std::size_t> UcxConnection::receive_some(std::span<const iovec> pieces) {
  const std::lock_guard lock(mutex_);
  stop_waiting();
  if (!stream_) return fail(*error_);
  opens();
  std::size_t received = stream_->receive_some(pieces);
  if (received > 0) return received;
  // What the other side sent before its socket ended has come, or never will.
  hear_socket();
  received = stream_->receive_some(pieces);
  if (received > 0) return received;
  if (error_) return fail(*error_);
  if (is_at_end()) return fail(Code::peer_lost, fmt::format("{} closed it", socket_.peer()));
  if (const auto gone = failure()) return fail(*gone);
  return 0;
}

// Any thread takes in what comes, so that a thread that waits for nothing but the end of the link leaves UCX
// alone.
void UcxConnection::add_to(WaitList& waits, Interest interest) {
  if (!interest.reading && !interest.writing) return waits.add(socket_.fd(), {});
  const std::lock_guard lock(mutex_);
  const Look found = look(interest);
  waits.add(socket_.fd(), {.reading = !is_socket_over_});
  if (found == Look::ready) return waits.mark_ready();
  if (found == Look::armed)
    waits.add_beside(stream_->fd());
  else
    keep_going();
  waits.add_beside(bell_.fd());
  is_waited_for_ = true;
}

// UCX's descriptor stays readable while a connection over TCP waits for the other process, and UCX has no
// event for some things that it waits for itself: then the pump looks. It is never ready without a reason,
// since no thread would look at the deadline of the wait.
UcxConnection::Look UcxConnection::look(Interest interest) {
  hear_socket();
  for (int turn = 0; turn < turns_before_wait; ++turn) {
    if (failure()) return Look::ready;
    if (opens()) stream_->progress();
    if (interest.reading && (stream_->can_receive() || is_at_end())) return Look::ready;
    if (interest.writing && (stream_->can_send() || (is_socket_over_ && !end_))) return Look::ready;
    if (failure()) return Look::ready;
    pollfd polled{.fd = stream_->fd(), .events = POLLIN, .revents = 0};
    if (stream_->arm() && ::poll(&polled, 1, 0) == 0) return Look::armed;
  }
  return Look::left_to_pump;
}

// ---- The end ----------------------------------------------------------------------------------------------

// The system tells a reset of an open connection from one of a connection that was closed before, once; but a
// closed one has said so.
bool UcxConnection::is_broken() {
  const std::lock_guard lock(mutex_);
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(socket_.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (stream_) hear_socket();
  return !end_ && error != EPIPE;
}

void UcxConnection::finish_sending() { end(Ending::sending); }

void UcxConnection::close() { end(Ending::both); }

void UcxConnection::end(Ending ending) {
  const std::lock_guard lock(mutex_);
  if (ending_ == Ending::both) return;
  ending_ = ending;
  if (!go_on_ending()) keep_going();
}

// The end is said when all that was sent before it has left.
bool UcxConnection::go_on_ending() {
  if (!stream_ || is_end_said_) {
    ::shutdown(socket_.fd(), ending_ == Ending::both ? SHUT_RDWR : SHUT_WR);
    return true;
  }
  if (stream_->sent_messages() > 0 && !(opens() && stream_->settle()) && !failure() && !is_socket_over_)
    return false;
  net::ByteWriter payload;
  payload.number(stream_->sent_messages());
  static_cast<void>(send_on_socket(frame_of(FrameType::ucx_end, payload.bytes())));
  is_end_said_ = true;
  ::shutdown(socket_.fd(), ending_ == Ending::both ? SHUT_RDWR : SHUT_WR);
  return true;
}

bool UcxConnection::is_delivered() {
  const std::lock_guard lock(mutex_);
  if (!go_on_ending()) return false;
  pollfd polled{.fd = socket_.fd(), .events = 0, .revents = 0};
  if (::poll(&polled, 1, 0) != 0) return true;  // reset, or closed both ways
  int bytes = 0;
  return ::ioctl(socket_.fd(), SIOCOUTQ, &bytes) != 0 || bytes == 0;
}

// ---- The pump ---------------------------------------------------------------------------------------------

void UcxConnection::keep_going() {
  quiet_turns_ = 0;
  if (!std::exchange(is_pumped_, true)) pump_->add(*this);
}

// Who waits is told of whatever moved: this thread may have taken it.
bool UcxConnection::pump() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return true;
  if (!stream_) return is_pumped_ = false;
  const std::uint64_t received = stream_->received_messages();
  const bool could_send = stream_->can_send();
  bool is_done = opens() && stream_->settle();
  if (ending_ != Ending::none) is_done = go_on_ending();
  const bool moved =
      received != stream_->received_messages() || could_send != stream_->can_send() || failure();
  if (moved && is_waited_for_) bell_.ring();
  is_done = is_done || failure() || is_socket_over_;
  quiet_turns_ = is_done ? quiet_turns_ + 1 : 0;
  return is_pumped_ = quiet_turns_ < quiet_turns_max;
}

}  // namespace muster::collective
