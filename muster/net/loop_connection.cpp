#include <fmt/format.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>

#include "muster/net/descriptor_limit.h"
#include "muster/net/loop_implementation.h"

namespace muster::net {
namespace {

constexpr auto finish_time = std::chrono::seconds(1);
constexpr std::size_t discarded_limit_bytes = 256 << 10;
constexpr std::size_t unauthenticated_read_size_bytes = 4 << 10;  // at a time: members come first
// Of an unauthenticated peer to whom more than that is to be sent, the kernel takes no more than this.
constexpr std::size_t unauthenticated_answer_size_bytes = 256 << 10;
constexpr int unauthenticated_send_buffer_size_bytes = 64 << 10;

Error lost(const Address& peer, const asio::error_code& error) {
  if (error == asio::error::eof)
    return {Code::peer_lost, fmt::format("{} closed the connection", to_string(peer))};
  return {Code::peer_lost, fmt::format("{}: {}", to_string(peer), error.message())};
}

}  // namespace

Connection::Implementation::Implementation(Loop& loop, ProcessDescriptor fd, const Address& peer, int family,
                                           ConnectionLimits limits)
    : loop_(loop),
      socket_(loop.implementation().context, std::move(fd), family),
      peer_(peer),
      limits_(limits),
      decoder_(limits.payload_size_bytes),
      finish_timer_(loop.implementation().context) {}

void Connection::Implementation::set_events(ConnectionEvents events) {
  events_ = std::make_shared<ConnectionEvents>(std::move(events));
}

void Connection::Implementation::connect(const SocketAddress& address, ConnectionSecurity security) {
  peer_name_ = security.peer_name;
  asio::ip::tcp::endpoint endpoint;
  std::memcpy(endpoint.data(), address.get(), address.size_bytes);
  endpoint.resize(address.size_bytes);
  const auto connected = [self = shared_from_this(),
                          security = std::move(security)](const asio::error_code& error) {
    if (self->state_ != State::opening) return;
    if (error) return self->close(connect_error(self->peer_, error.value()));
    if (!security.security) {
      self->start();
      return self->tell_opened();
    }
    self->start_tls(security.security,
                    {.side = TlsSide::connector, .peer = self->name(), .expected = security.expected});
    self->start();
  };
  socket_.socket.async_connect(endpoint, connected);
}

void Connection::Implementation::tell_opened() {
  if (std::exchange(was_opened_, true) || state_ != State::open) return;
  const auto events = events_;
  if (events->opened) events->opened();
}

void Connection::Implementation::start() {
  if (state_ == State::opening) state_ = State::open;
  asio::error_code ignored;
  socket_.socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  if (!std::exchange(reading_, true)) read();
}

void Connection::Implementation::fail_later(Error error) {
  asio::post(socket_.socket.get_executor(),
             [self = shared_from_this(), error = std::move(error)] { self->close(error); });
}

void Connection::Implementation::read() {
  socket_.socket.async_wait(asio::ip::tcp::socket::wait_read,
                            [self = shared_from_this()](const asio::error_code& error) {
                              if (self->state_ == State::closed) return;
                              if (error) return self->close(lost(self->peer_, error));
                              self->read_some();
                              if (self->state_ != State::closed) self->read();
                            });
}

void Connection::Implementation::read_some() {
  std::span<std::byte> buffer(loop_.implementation().read_buffer);
  if (is_unauthenticated()) buffer = buffer.first(unauthenticated_read_size_bytes);
  const ssize_t size = ::recv(socket_.socket.native_handle(), buffer.data(), buffer.size(), 0);
  if (size > 0) return deliver(buffer.first(static_cast<std::size_t>(size)));
  if (size == 0) return close(end_of_stream());
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return;
  close(lost(peer_, asio::error_code(errno, asio::error::get_system_category())));
}

Error Connection::Implementation::end_of_stream() const {
  if (!tls_ || tls_->is_open()) return lost(peer_, asio::error::eof);
  return {Code::peer_lost, fmt::format("{} closed the connection during the TLS handshake", name())};
}

void Connection::Implementation::deliver(std::span<const std::byte> bytes) {
  if (state_ != State::open) {  // what comes after `finish` is read only to let the peer close first
    discarded_size_bytes_ += bytes.size();
    if (discarded_size_bytes_ > discarded_limit_bytes) abandon();
    return;
  }
  if (tls_) {
    decrypt(bytes);
  } else if (!refuses_tls(bytes)) {
    deliver_frames(bytes);
  }
  report_held();
}

void Connection::Implementation::report_held() {
  const auto pool = pool_;
  if (!pool || state_ != State::open) return;
  pool->hold(unauthenticated_id_, decoder_.held_size_bytes() + (tls_ ? tls_->held_size_bytes() : 0));
}

void Connection::Implementation::deliver_frames(std::span<const std::byte> bytes) {
  decoder_.append(bytes);
  while (state_ == State::open) {
    auto frame = decoder_.next();
    if (!frame) return close(frame.error());
    if (!*frame) return;
    const auto events = events_;  // the callback may destroy the connection
    if (events->received) events->received(**std::move(frame));
  }
}

void Connection::Implementation::enter(std::shared_ptr<UnauthenticatedPool> pool,
                                       UnauthenticatedPeers::Id id) {
  pool_ = std::move(pool);
  decoder_.set_payload_limit(std::min(limits_.payload_size_bytes, pool_->limits().payload_size_bytes));
  unauthenticated_id_ = id;
  pool_->seat(id, shared_from_this());
}

void Connection::Implementation::admit() {
  if (!is_unauthenticated()) return;
  pool_->leave(unauthenticated_id_);
  pool_.reset();
  decoder_.set_payload_limit(limits_.payload_size_bytes);
}

void Connection::Implementation::send(std::shared_ptr<const std::vector<std::byte>> frame, bool is_shared) {
  if (state_ != State::open) return;
  if (!tls_) return queue(std::move(frame), is_shared);
  if (!tls_->is_open()) return before_handshake_.push_back(std::move(frame));
  // What went wrong is reported by the read.
  if (tls_->write(*frame)) queue_tls_output();
}

void Connection::Implementation::queue(std::shared_ptr<const std::vector<std::byte>> frame, bool is_shared) {
  unsent_size_bytes_ += frame->size();
  if (unsent_size_bytes_ > limits_.unsent_size_bytes)
    return fail_later(
        {Code::peer_lost, fmt::format("{} does not read what is sent to it", to_string(peer_))});
  unsent_.push_back({std::move(frame), is_shared});
  if (is_unauthenticated()) {
    asio::error_code ignored;
    if (unsent_size_bytes_ > unauthenticated_answer_size_bytes)
      socket_.socket.set_option(asio::socket_base::send_buffer_size(unauthenticated_send_buffer_size_bytes),
                                ignored);
    // Not now: it may have to go, and its owner is busy with it.
    asio::post(socket_.socket.get_executor(), [self = shared_from_this()] { self->report_unread(); });
  }
  if (!writing_) write();
}

// What it has not read and no other connection holds: here, and in the kernel.
void Connection::Implementation::report_unread() {
  const auto pool = pool_;
  if (!pool || state_ == State::closed) return;
  std::size_t size_bytes = unread_in_kernel();
  for (const Unsent& unsent : unsent_)
    if (!unsent.is_shared) size_bytes += unsent.bytes->size();
  pool->leave_unread(unauthenticated_id_, size_bytes);
}

std::size_t Connection::Implementation::unread_in_kernel() {
  int size_bytes = 0;
  const bool is_known = ::ioctl(socket_.socket.native_handle(), SIOCOUTQ, &size_bytes) == 0;
  return is_known ? static_cast<std::size_t>(std::max(size_bytes, 0)) : 0;
}

void Connection::Implementation::write() {
  if (unsent_.empty()) {
    if (state_ == State::finishing) shut_down();
    return;
  }
  writing_ = true;
  asio::async_write(socket_.socket, asio::buffer(*unsent_.front().bytes),
                    [self = shared_from_this()](const asio::error_code& error, std::size_t) {
                      self->writing_ = false;
                      if (self->state_ == State::closed) return;
                      // A failed write is reported by the read, behind what the peer said last.
                      if (error) return self->unsent_.clear();
                      self->unsent_size_bytes_ -= self->unsent_.front().bytes->size();
                      self->unsent_.pop_front();
                      self->write();
                      self->report_unread();
                    });
}

void Connection::Implementation::finish() {
  if (state_ == State::opening) return abandon();
  if (state_ != State::open) return;
  if (tls_) tls_->finish();
  if (tls_) queue_tls_output();
  state_ = State::finishing;
  set_events({});
  wait_to_finish();
}

void Connection::Implementation::wait_to_finish() {
  finish_timer_.expires_after(finish_time);
  finish_timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (!error) self->abandon();
  });
  if (!writing_) write();
}

// The peer reads an end of stream behind the last frame. Closing at once instead could discard that frame, if
// something unread had arrived here.
void Connection::Implementation::shut_down() {
  asio::error_code ignored;
  socket_.socket.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}

void Connection::Implementation::close(const Error& error) {
  if (std::exchange(state_, State::closed) == State::closed) return;
  if (is_unauthenticated()) {
    pool_->leave(unauthenticated_id_);
    // What an unauthenticated peer had the time to read and did not, the kernel need not keep either.
    asio::error_code ignored;
    if (unread_in_kernel() > 0) socket_.socket.set_option(asio::socket_base::linger(true, 0), ignored);
  }
  pool_.reset();
  finish_timer_.cancel();
  socket_.close();
  unsent_.clear();
  const auto events = std::exchange(events_, std::make_shared<ConnectionEvents>());
  if (events->closed) events->closed(error);
}

void Connection::Implementation::abandon() {
  set_events({});
  close({Code::aborted, "closed by its owner"});
}

void Connection::Implementation::leave_to_itself() {
  if (state_ != State::finishing) abandon();
}

Connection::Connection(std::shared_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}

Connection::~Connection() { implementation_->leave_to_itself(); }

std::unique_ptr<Connection> Connection::connect(Loop& loop, const Address& address, ConnectionLimits limits,
                                                ConnectionEvents events, ConnectionSecurity security) {
  const auto target = to_socket_address(address);
  const int family = target ? target->family() : AF_INET;
  const int fd = open_socket(family);
  const int error = errno;
  auto implementation =
      std::make_shared<Implementation>(loop, ProcessDescriptor(fd), address, family, limits);
  implementation->set_events(std::move(events));
  if (!target)
    implementation->fail_later(target.error());
  else if (fd < 0)
    implementation->fail_later(fail_errno("cannot open a socket", error).value());
  else
    implementation->connect(*target, std::move(security));
  return std::make_unique<Connection>(std::move(implementation));
}

void Connection::set_events(ConnectionEvents events) {
  implementation_->set_events(std::move(events));
  implementation_->start();
}
void Connection::send(std::shared_ptr<const std::vector<std::byte>> frame) {
  implementation_->send(std::move(frame), false);
}
void Connection::send_shared(std::shared_ptr<const std::vector<std::byte>> frame) {
  implementation_->send(std::move(frame), true);
}
void Connection::finish() { implementation_->finish(); }
void Connection::admit() { implementation_->admit(); }
bool Connection::is_unauthenticated() const { return implementation_->is_unauthenticated(); }
const Address& Connection::peer() const { return implementation_->peer(); }
const PeerNames* Connection::peer_names() const { return implementation_->peer_names(); }
const PeerNames* Connection::refused_names() const { return implementation_->refused_names(); }

}  // namespace muster::net
