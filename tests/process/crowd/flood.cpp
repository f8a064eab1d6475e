#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <random>
#include <thread>

#include "crowd.h"
#include "muster/net/socket_address.h"

namespace muster::crowd {
namespace {

using std::chrono::milliseconds;

int open_socket() { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

std::vector<std::vector<std::byte>> malformed_frames() {
  std::vector<std::vector<std::byte>> frames;
  const auto text = [&](std::string_view words) {
    const auto* bytes = reinterpret_cast<const std::byte*>(words.data());
    frames.emplace_back(bytes, bytes + words.size());
  };
  const auto sound = net::encode_frame({.type = 0x0100}, std::vector<std::byte>(40));
  const auto changed = [&](std::size_t at) {
    frames.push_back(sound);
    frames.back()[at] ^= std::byte{1};
  };
  text("GET / HTTP/1.1\r\nHost: scheduler\r\nUser-Agent: a scanner of ports\r\n\r\n");
  text("\x16\x03\x01\x02\x01\x01\xfc\x03\x03 a hello of TLS, or what looks like it, to a port without it");
  changed(0);                                                 // no magic
  changed(4);                                                 // another version
  changed(57);                                                // a wrong checksum of the header
  changed(70);                                                // and of the payload
  frames.push_back(sound);                                    // a Register that is none
  frames.push_back(net::encode_frame({.type = 0x01ee}, {}));  // of no type
  const auto large = net::encode_header({.type = 0x0100, .payload_size_bytes = std::uint64_t{1} << 40});
  frames.emplace_back(large.begin(), large.end());
  const auto cut = net::encode_header({.type = 0x0100, .payload_size_bytes = 60'000});
  frames.emplace_back(cut.begin(), cut.end());  // what it announces never comes
  return frames;
}

class Flood {
 public:
  explicit Flood(const FloodOptions& options) : options_(options) {
    auto target = net::to_socket_address(options.target);
    if (target) target_ = *target;
  }

  int run() {
    const TimePoint begin = real_clock().now();
    const TimePoint end =
        begin + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(options_.seconds));
    silent_.resize(options_.silent, -1);
    for (TimePoint now = begin; now < end; now = real_clock().now()) {
      keep_silent_ones();
      const double due = options_.frames_per_second * std::chrono::duration<double>(now - begin).count();
      for (int count = 0; count < 200 && static_cast<double>(frames_) < due; ++count) send_one();
      close_old(now);
      if (static_cast<double>(frames_) >= due) std::this_thread::sleep_for(milliseconds(1));
    }
    const double seconds = std::chrono::duration<double>(real_clock().now() - begin).count();
    fmt::print("frames {} ({:.0f}/s), not taken {}, silent connections {} opened again {}\n", frames_,
               static_cast<double>(frames_) / seconds, refused_, silent_.size(), opened_again_);
    return 0;
  }

 private:
  struct Sent {
    int fd;
    TimePoint until;
  };

  // From one of many addresses, since an address has too few ports for this.
  int connect_from(std::uint32_t host) {
    const int fd = open_socket();
    if (fd < 0) return -1;
    sockaddr_in from{};
    from.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl((127u << 24) | (1u << 16) | (host % 60'000));
    const int on = 1;
    ::setsockopt(fd, IPPROTO_IP, 24 /* IP_BIND_ADDRESS_NO_PORT */, &on, sizeof on);
    ::bind(fd, reinterpret_cast<const sockaddr*>(&from), sizeof from);
    if (::connect(fd, target_.get(), target_.size_bytes) == 0 || errno == EINPROGRESS) return fd;
    ::close(fd);
    return -1;
  }

  void send_one() {
    ++frames_;
    const int fd = connect_from(2 + static_cast<std::uint32_t>(frames_ % 200));
    const auto& frame = kinds_[frames_ % kinds_.size()];
    if (fd < 0 || ::send(fd, frame.data(), frame.size(), MSG_NOSIGNAL) < 0) ++refused_;
    if (fd >= 0) sent_.push_back({fd, real_clock().now() + milliseconds(50)});
  }

  void close_old(TimePoint now) {
    while (!sent_.empty() && (sent_.front().until <= now || sent_.size() > 4000)) {
      ::close(sent_.front().fd);
      sent_.pop_front();
    }
  }

  void keep_silent_ones() {
    for (std::size_t looked = 0; looked < std::min<std::size_t>(20, silent_.size()); ++looked) {
      int& fd = silent_[next_silent_++ % silent_.size()];
      char byte = 0;
      if (fd >= 0 && ::recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN) continue;
      if (fd >= 0) ::close(fd), ++opened_again_;
      fd = connect_from(1000);
    }
  }

  const FloodOptions options_;
  net::SocketAddress target_;
  const std::vector<std::vector<std::byte>> kinds_ = malformed_frames();
  std::vector<int> silent_;
  std::deque<Sent> sent_;
  std::size_t next_silent_ = 0;
  std::uint64_t frames_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t opened_again_ = 0;
};

}  // namespace

int run_flood(const FloodOptions& options) {
  net::raise_descriptor_limit();
  return Flood(options).run();
}

int run_sink(const net::Address& address, double seconds) {
  net::raise_descriptor_limit();
  const auto bound = net::to_socket_address(address);
  const int listener = open_socket();
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!bound || ::bind(listener, bound->get(), bound->size_bytes) != 0 || ::listen(listener, 4096) != 0)
    return 1;
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{.events = EPOLLIN, .data = {.fd = listener}};
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
  fmt::print("listens\n");
  std::fflush(stdout);
  const TimePoint end =
      real_clock().now() + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  std::array<epoll_event, 128> events;
  std::vector<char> buffer(64 << 10);
  while (real_clock().now() < end) {
    const int count = ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), 100);
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd != listener) {
        if (::recv(fd, buffer.data(), buffer.size(), 0) <= 0) ::close(fd);
        continue;
      }
      const int peer = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (peer < 0) continue;
      epoll_event added{.events = EPOLLIN, .data = {.fd = peer}};
      ::epoll_ctl(epoll, EPOLL_CTL_ADD, peer, &added);
    }
  }
  return 0;
}

}  // namespace muster::crowd
