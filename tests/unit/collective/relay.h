// A way between ranks that breaks: it passes on what two sides say to each other, and resets connections.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <list>
#include <optional>
#include <thread>
#include <vector>

#include "muster/net/net.h"

namespace muster::collective {

// Passes on what comes to its port to another port of this host. Threads: those calls may come from any.
class Relay {
 public:
  // How many bytes a new connection lives for; nothing: for ever.
  using Life = std::function<std::optional<std::size_t>()>;

  Relay(std::uint16_t target, Life life)
      : target_(target),
        life_(std::move(life)),
        listener_(net::TcpListener::open({.ip = "127.0.0.1", .port = 0}).value()),
        thread_([this] { work(); }) {}
  ~Relay() {
    over_ = true;
    thread_.join();
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  std::uint16_t port() const { return listener_.address().port; }
  int cuts() const { return cuts_; }
  // Whose side of all connections is reset: of those who called, of who was called, or of both. Who is not
  // told finds its connection silent.
  enum class Side { caller, called, both };
  void cut(Side side) {
    wanted_ = static_cast<int>(side);
    while (wanted_ >= 0) std::this_thread::yield();
  }

 private:
  static constexpr int look_interval_ms = 5;
  struct Way {  // from one socket into the other
    std::vector<std::byte> held;
    bool ended = false;
  };
  struct Pair {
    std::optional<net::Socket> caller, called;
    Way there, back;
    std::optional<std::size_t> life;
  };

  static void reset(std::optional<net::Socket>& socket) {
    if (!socket) return;
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket->fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    socket.reset();
  }

  void work() {
    while (!over_) {
      std::vector<pollfd> polled{{.fd = listener_.fd(), .events = POLLIN, .revents = 0}};
      for (const Pair& pair : pairs_) {
        if (!pair.caller || !pair.called) continue;
        add(polled, *pair.caller, pair.there, pair.back);
        add(polled, *pair.called, pair.back, pair.there);
      }
      ::poll(polled.data(), polled.size(), look_interval_ms);
      while (auto caller = listener_.accept().socket) take(*std::move(caller));
      if (wanted_ >= 0) cut_now(static_cast<Side>(wanted_.load()));
      pairs_.remove_if([this](Pair& pair) { return pass(pair); });
    }
  }

  static void add(std::vector<pollfd>& polled, const net::Socket& socket, const Way& from, const Way& to) {
    const int events = (from.held.empty() && !from.ended ? POLLIN : 0) | (to.held.empty() ? 0 : POLLOUT);
    polled.push_back(
        {.fd = events == 0 ? -1 : socket.fd(), .events = static_cast<short>(events), .revents = 0});
  }

  void take(net::Socket caller) {
    auto called = net::Socket::begin_connecting({.ip = "127.0.0.1", .port = target_});
    if (!called) {
      std::optional<net::Socket> refused(std::move(caller));
      reset(refused);
      return;
    }
    pairs_.push_back({.caller = std::move(caller),
                      .called = *std::move(called),
                      .there = {},
                      .back = {},
                      .life = life_()});
  }

  void cut_now(Side side) {
    for (Pair& pair : pairs_) {
      if (side != Side::called) reset(pair.caller);
      if (side != Side::caller) reset(pair.called);
    }
    ++cuts_;
    wanted_ = -1;
  }

  // Whether nothing is left of it.
  bool pass(Pair& pair) {
    const bool alive =
        move(pair, pair.caller, pair.called, pair.there) && move(pair, pair.called, pair.caller, pair.back);
    if (!alive && pair.caller && pair.called) {
      reset(pair.caller);
      reset(pair.called);
    }
    return !pair.caller && !pair.called;
  }

  bool move(Pair& pair, std::optional<net::Socket>& from, std::optional<net::Socket>& to, Way& way) {
    if (!from || !to) return true;  // one side does not know that the other is gone
    if (way.held.empty() && !way.ended) {
      way.held.resize(64 << 10);
      const iovec piece{.iov_base = way.held.data(), .iov_len = way.held.size()};
      const auto received = from->receive_some({&piece, 1});
      way.held.resize(received.value_or(0));
      way.ended = !received;
    }
    if (way.held.empty()) {
      if (way.ended) to->finish_sending();
      return !way.ended || !pair.there.ended || !pair.back.ended;
    }
    const std::size_t now = std::min(way.held.size(), pair.life.value_or(way.held.size()));
    const iovec piece{.iov_base = way.held.data(), .iov_len = now};
    const auto sent = now == 0 ? Result<std::size_t>(0) : to->send_some({&piece, 1});
    if (!sent) return false;
    way.held.erase(way.held.begin(), way.held.begin() + static_cast<std::ptrdiff_t>(*sent));
    if (pair.life) *pair.life -= *sent;
    if (pair.life != std::size_t{0}) return true;
    ++cuts_;
    return false;
  }

  const std::uint16_t target_;
  const Life life_;
  net::TcpListener listener_;
  std::list<Pair> pairs_;
  std::atomic<bool> over_{false};
  std::atomic<int> wanted_{-1};
  std::atomic<int> cuts_{0};
  std::thread thread_;
};

}  // namespace muster::collective
