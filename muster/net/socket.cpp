#include "muster/net/socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "muster/base/base.h"
#include "muster/net/accepting.h"
#include "muster/net/descriptor_limit.h"
#include "muster/net/socket_address.h"
#include "muster/net/tls_channel.h"

namespace muster::net {
namespace {

// Loopback and fast networks need more in flight than the kernel's start value; it may grant less.
constexpr int socket_buffer_size_bytes = 4 << 20;
constexpr auto connect_pause = std::chrono::milliseconds(20);

void set_option(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof(value));
}

void tune_tcp(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_SNDBUF, socket_buffer_size_bytes);
  set_option(fd, SOL_SOCKET, SO_RCVBUF, socket_buffer_size_bytes);
}

// Between processes of one host no network has to be spared: what paces by what the other side took before,
// as BBR does, halves what goes.
void do_not_pace(int fd, const Address& peer) {
  constexpr std::string_view unpaced = "reno";  // every system has it
  if (is_loopback(peer.ip))
    ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, unpaced.data(), static_cast<socklen_t>(unpaced.size()));
}

bool not_listening_yet(int error) {
  return error == ECONNREFUSED || error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH ||
         error == ECONNRESET || error == EAGAIN;
}

Result<> expect_ready(Readiness readiness, const std::string& peer) {
  switch (readiness) {
    case Readiness::ready:
      return {};
    case Readiness::deadline:
      return fail(Code::timeout, fmt::format("no answer from {} before the deadline", peer));
    case Readiness::stopped:
      return fail(Code::aborted, fmt::format("stopped while waiting for {}", peer));
  }
  return fail(Code::internal, "unknown readiness");
}

// One attempt; 0 or the error number of connect().
Result<int> connect_once(int fd, const SocketAddress& target, const std::string& peer, const Wait& wait) {
  if (::connect(fd, target.get(), target.size_bytes) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  std::array<pollfd, 2> polled{pollfd{.fd = fd, .events = POLLOUT, .revents = 0}};
  MUSTER_TRY(const Readiness readiness, poll_until(polled, wait));
  MUSTER_TRY_VOID(expect_ready(readiness, peer));
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

// Waits a moment before the next attempt, or says why there is none.
Result<> pause_between_attempts(const std::string& peer, int error, const Wait& wait) {
  const TimePoint soon = real_clock().now() + connect_pause;
  std::array<pollfd, 1> polled{};
  MUSTER_TRY(const Readiness readiness,
             poll_until(polled, {.deadline = std::min(soon, wait.deadline), .stop = wait.stop}));
  if (readiness == Readiness::stopped) return expect_ready(readiness, peer);
  if (soon < wait.deadline) return {};
  return fail(Code::timeout, fmt::format("cannot connect to {} before the deadline: {}", peer,
                                         std::generic_category().message(error)));
}

// Whether the connection is gone, by the other side's doing or by the network's.
bool is_lost(int error) {
  constexpr std::array lost{EPIPE,     ECONNRESET,  ECONNABORTED, ETIMEDOUT,   ENETDOWN,
                            ENETRESET, ENETUNREACH, EHOSTDOWN,    EHOSTUNREACH};
  return std::find(lost.begin(), lost.end(), error) != lost.end();
}

std::string lost_connection(const std::string& peer, int error) {
  if (error == EPIPE || error == ECONNRESET) return fmt::format("{} closed the connection", peer);
  return fmt::format("the connection to {} broke: {}", peer, std::generic_category().message(error));
}

}  // namespace

Result<Socket> Socket::connect(const Address& address, const Wait& wait) {
  const std::string peer = to_string(address);
  MUSTER_TRY(const SocketAddress target, to_socket_address(address));
  for (;;) {
    ProcessDescriptor fd(open_socket(target.family()));
    if (!fd) return fail_errno("cannot make a socket", errno);
    tune_tcp(fd.get());
    do_not_pace(fd.get(), address);
    MUSTER_TRY(const int error, connect_once(fd.get(), target, peer, wait));
    if (error == 0) return Socket(std::move(fd), peer);
    if (!not_listening_yet(error)) return fail_errno(fmt::format("cannot connect to {}", peer), error);
    MUSTER_TRY_VOID(pause_between_attempts(peer, error, wait));
  }
}

Result<Socket> Socket::begin_connecting(const Address& address) {
  MUSTER_TRY(const SocketAddress target, to_socket_address(address));
  ProcessDescriptor fd(open_socket(target.family()));
  if (!fd) return fail_errno("cannot make a socket", errno);
  tune_tcp(fd.get());
  do_not_pace(fd.get(), address);
  const bool refused = ::connect(fd.get(), target.get(), target.size_bytes) != 0 && errno != EINPROGRESS;
  if (refused) return fail(connect_error(address, errno));
  return Socket(std::move(fd), to_string(address));
}

Result<bool> Socket::finish_connecting(const Address& address) {
  pollfd polled{.fd = fd(), .events = POLLOUT, .revents = 0};
  if (::poll(&polled, 1, 0) <= 0) return false;
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return fail(connect_error(address, error));
  return true;
}

Result<> Socket::wait_for(short events, const Wait& wait) const {
  std::array<pollfd, 2> polled{pollfd{.fd = fd(), .events = events, .revents = 0}};
  MUSTER_TRY(const Readiness readiness, poll_until(polled, wait));
  return expect_ready(readiness, peer_);
}

Result<std::size_t> Socket::send_some(std::span<const iovec> pieces) {
  return tls_ ? tls_->send_some(*this, pieces) : send_plain(pieces);
}

Result<std::size_t> Socket::receive_some(std::span<const iovec> pieces) {
  return tls_ ? tls_->receive_some(*this, pieces) : receive_plain(pieces);
}

Result<std::size_t> Socket::send_plain(std::span<const iovec> pieces) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());  // sendmsg only reads it
  message.msg_iovlen = pieces.size();
  for (;;) {
    const ssize_t sent = ::sendmsg(fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (errno == EAGAIN) return 0;
    if (is_lost(errno)) return fail(Code::peer_lost, lost_connection(peer_, errno));
    if (errno != EINTR) return fail_errno(fmt::format("cannot send to {}", peer_), errno);
  }
}

Result<std::size_t> Socket::receive_plain(std::span<const iovec> pieces) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());  // recvmsg only reads it
  message.msg_iovlen = pieces.size();
  for (;;) {
    const ssize_t received = ::recvmsg(fd(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (received > 0) return static_cast<std::size_t>(received);
    if (received == 0) return fail(Code::peer_lost, lost_connection(peer_, ECONNRESET));
    if (is_lost(errno)) return fail(Code::peer_lost, lost_connection(peer_, errno));
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) return fail_errno(fmt::format("cannot receive from {}", peer_), errno);
  }
}

Result<> Socket::send_all(std::span<const std::byte> bytes, const Wait& wait) {
  while (!bytes.empty()) {
    const iovec piece{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
    MUSTER_TRY(const std::size_t sent, send_some({&piece, 1}));
    if (sent == 0) MUSTER_TRY_VOID(wait_for(POLLOUT, wait));
    bytes = bytes.subspan(sent);
  }
  return {};
}

Result<> Socket::receive_all(std::span<std::byte> bytes, const Wait& wait) {
  while (!bytes.empty()) {
    const iovec piece{.iov_base = bytes.data(), .iov_len = bytes.size()};
    MUSTER_TRY(const std::size_t received, receive_some({&piece, 1}));
    if (received == 0) MUSTER_TRY_VOID(wait_for(POLLIN, wait));
    bytes = bytes.subspan(received);
  }
  return {};
}

void Socket::finish_sending() {
  if (tls_) tls_->finish(*this);
  ::shutdown(fd(), SHUT_WR);
}

void Socket::ReleaseTls::operator()(TlsChannel* channel) const { delete channel; }

Result<> Socket::begin_tls(SocketSecurity security) {
  int domain = 0;
  socklen_t size = sizeof(domain);
  ::getsockopt(fd(), SOL_SOCKET, SO_DOMAIN, &domain, &size);
  MUSTER_TRY(auto session,
             TlsSession::create(std::move(security.security),
                                {.side = security.listens ? TlsSide::listener : TlsSide::connector,
                                 .peer = security.peer_name.empty() ? peer_ : security.peer_name,
                                 .expected = std::move(security.expected),
                                 .serves_anyone = security.serves_anyone}));
  // Over unix sockets descriptors travel beside the bytes.
  tls_.reset(new TlsChannel(std::move(session), domain != AF_UNIX));
  return {};
}

Result<bool> Socket::shake_hands() { return tls_ ? tls_->shake_hands(*this) : Result<bool>(true); }
short Socket::awaited_events() const { return tls_ && tls_->has_output() ? POLLOUT : POLLIN; }
std::size_t Socket::held_size_bytes() const { return tls_ ? tls_->held_size_bytes() : 0; }
Result<> Socket::check_peer_again() const { return tls_ ? tls_->check_peer_again() : Result<>{}; }
bool Socket::spoke_plain() const { return tls_ && tls_->spoke_plain(); }
const PeerNames* Socket::peer_names() const { return tls_ ? tls_->peer_names() : nullptr; }

Result<> Socket::start_tls(SocketSecurity security, const Wait& wait) {
  MUSTER_TRY_VOID(begin_tls(std::move(security)));
  for (;;) {
    MUSTER_TRY(const bool through, shake_hands());
    if (through) return {};
    MUSTER_TRY_VOID(wait_for(awaited_events(), wait));
  }
}

void Socket::reset() {
  // For TCP, connecting to nowhere means: disconnect at once.
  const sockaddr nowhere{.sa_family = AF_UNSPEC, .sa_data = {}};
  ::connect(fd(), &nowhere, sizeof(nowhere));
}

Result<TcpListener> TcpListener::open(const Address& address) {
  MUSTER_TRY(SocketAddress bound, to_socket_address(address));
  raise_descriptor_limit();
  ProcessDescriptor fd(open_socket(bound.family()));
  if (!fd) return fail_errno("cannot make a socket", errno);
  if (address.port != 0) set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  tune_tcp(fd.get());  // accepted sockets inherit it
  if (::bind(fd.get(), bound.get(), bound.size_bytes) != 0 || ::listen(fd.get(), backlog) != 0)
    return fail_errno(fmt::format("cannot listen on {}", to_string(address)), errno);
  bound.size_bytes = sizeof(bound.storage);
  if (::getsockname(fd.get(), bound.get(), &bound.size_bytes) != 0)
    return fail_errno("cannot read the address of a listening socket", errno);
  MUSTER_TRY(Address actual, from_socket_address(bound));
  fill_descriptor_reserve();
  return TcpListener(std::move(fd), std::move(actual));
}

Result<Descriptor> TcpListener::duplicate() const {
  Descriptor copy(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) return fail_errno("cannot copy a listening socket", errno);
  return copy;
}

TcpListener TcpListener::adopt(Descriptor copy, Address address) {
  return TcpListener(ProcessDescriptor(copy.release()), std::move(address));
}

void TcpListener::shut() { ::shutdown(fd_.get(), SHUT_RDWR); }

Arrival TcpListener::accept() {
  SocketAddress from;
  const Accepted accepted = accept_next(fd_.get(), &from);
  if (accepted.fd < 0) return {.lacks_descriptor = accepted.lacks_descriptor};
  tune_tcp(accepted.fd);
  const auto peer = from_socket_address(from);
  if (peer) do_not_pace(accepted.fd, *peer);
  return {.socket = Socket(ProcessDescriptor(accepted.fd), peer ? to_string(*peer) : "somewhere:0")};
}

}  // namespace muster::net
