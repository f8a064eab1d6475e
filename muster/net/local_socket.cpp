// The unix side of net/socket.h: abstract names, credentials, descriptors that travel.
#include <fmt/format.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "muster/base/base.h"
#include "muster/net/accepting.h"
#include "muster/net/descriptor_limit.h"
#include "muster/net/socket.h"
#include "muster/net/socket_address.h"

namespace muster::net {
namespace {

constexpr int of_others_max = 64;  // connections of other users that one look closes

// An abstract name: a zero byte, then the characters, no terminator.
Result<SocketAddress> local_address(const std::string& name) {
  SocketAddress made;
  auto& address = reinterpret_cast<sockaddr_un&>(made.storage);
  if (name.empty() || name.size() + 1 > sizeof(address.sun_path))
    return fail(Code::invalid_argument, fmt::format("'{}' is no name of a local socket", name));
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  made.size_bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return made;
}

Result<> check_same_user(int fd, const std::string& peer) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
    return fail_errno("cannot read a peer's credentials", errno);
  if (credentials.uid != ::geteuid())
    return fail(Code::refused, fmt::format("{} belongs to user {}, this process to user {}", peer,
                                           credentials.uid, ::geteuid()));
  return {};
}

// A message of one byte with room for one descriptor beside it.
struct DescriptorMessage {
  char byte = 'f';
  iovec piece{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  DescriptorMessage() {
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
  }
  DescriptorMessage(const DescriptorMessage&) = delete;
  DescriptorMessage& operator=(const DescriptorMessage&) = delete;
};

}  // namespace

Result<Socket> Socket::connect_local(const std::string& name, const Wait& wait) {
  MUSTER_TRY(const SocketAddress target, local_address(name));
  const std::string peer = fmt::format("local socket {}", name);
  ProcessDescriptor fd(open_socket(AF_UNIX));
  if (!fd) return fail_errno("cannot make a socket", errno);
  // The name exists before a peer is told of it, so only a full queue is worth another attempt.
  while (::connect(fd.get(), target.get(), target.size_bytes) != 0) {
    if (errno != EAGAIN && errno != EINTR)
      return fail_errno(fmt::format("cannot connect to {}", peer), errno);
    if (real_clock().now() >= wait.deadline || (wait.stop != nullptr && wait.stop->raised()))
      return fail(Code::timeout, fmt::format("cannot connect to {}: its queue is full", peer));
    std::array<pollfd, 1> nothing{};
    const TimePoint soon = real_clock().now() + std::chrono::milliseconds(5);
    MUSTER_TRY([[maybe_unused]] const auto readiness,
               poll_until(nothing, {.deadline = soon, .stop = wait.stop}));
  }
  MUSTER_TRY_VOID(check_same_user(fd.get(), peer));
  return Socket(std::move(fd), peer);
}

Result<> Socket::send_fd(int fd, const Wait& wait) {
  DescriptorMessage carrier;
  cmsghdr* header = CMSG_FIRSTHDR(&carrier.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
  while (::sendmsg(fd_.get(), &carrier.message, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) {
    if (errno != EAGAIN && errno != EINTR)
      return fail_errno(fmt::format("cannot send a descriptor to {}", peer_), errno);
    MUSTER_TRY_VOID(wait_for(POLLOUT, wait));
  }
  return {};
}

Result<ProcessDescriptor> Socket::receive_fd(const Wait& wait) {
  DescriptorMessage carrier;
  for (;;) {
    const ssize_t received = ::recvmsg(fd_.get(), &carrier.message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (received == 1) break;
    if (received == 0) return fail(Code::peer_lost, fmt::format("{} closed the connection", peer_));
    if (errno != EAGAIN && errno != EINTR)
      return fail_errno(fmt::format("cannot receive a descriptor from {}", peer_), errno);
    MUSTER_TRY_VOID(wait_for(POLLIN, wait));
  }
  const cmsghdr* header = CMSG_FIRSTHDR(&carrier.message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int)))
    return fail(Code::corrupt, fmt::format("{} sent no descriptor", peer_));
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof(int));
  return ProcessDescriptor(fd);
}

Result<LocalListener> LocalListener::open() {
  const std::string name = fmt::format("muster-{:016x}{:016x}", entropy(), entropy());
  MUSTER_TRY(const SocketAddress address, local_address(name));
  raise_descriptor_limit();
  ProcessDescriptor fd(open_socket(AF_UNIX));
  if (!fd) return fail_errno("cannot make a socket", errno);
  if (::bind(fd.get(), address.get(), address.size_bytes) != 0 || ::listen(fd.get(), 4096) != 0)
    return fail_errno("cannot listen on a local socket", errno);
  return LocalListener(std::move(fd), name);
}

Arrival LocalListener::accept() {
  const std::string peer = "a local process";
  for (int of_others = 0; of_others < of_others_max; ++of_others) {
    const Accepted accepted = accept_next(fd_.get(), nullptr);
    if (accepted.fd < 0) return {.lacks_descriptor = accepted.lacks_descriptor};
    ProcessDescriptor fd(accepted.fd);
    if (check_same_user(fd.get(), peer)) return {.socket = Socket(std::move(fd), peer)};
  }
  return {};
}

}  // namespace muster::net
