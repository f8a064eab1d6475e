#include "muster/collective/socket_link.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>

namespace muster::collective {

// The system tells one from the other once.
bool SocketLink::is_broken() {
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(socket_.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error != EPIPE;
}

bool SocketLink::is_delivered() const {
  pollfd polled{.fd = socket_.fd(), .events = 0, .revents = 0};
  if (::poll(&polled, 1, 0) != 0) return true;  // reset, or closed both ways
  int bytes = 0;
  return ::ioctl(socket_.fd(), SIOCOUTQ, &bytes) != 0 || bytes == 0;
}

void SocketLink::close() { ::shutdown(socket_.fd(), SHUT_RDWR); }

}  // namespace muster::collective
