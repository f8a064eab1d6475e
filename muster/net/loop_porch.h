// Where those who have just connected wait until they have said something: a descriptor and a few bytes each.
// A connection, with all that belongs to one, is made only for who began as somebody does who belongs here;
// the others are turned away at the first look. Private to net/loop*; on the loop's thread.
#pragma once

#include <deque>
#include <unordered_map>

#include "muster/net/loop_implementation.h"
#include "muster/net/strangers.h"

namespace muster::net {

class Porch {
 public:
  struct Options {
    Screening screening = {};
    bool expects_tls = false;
    std::uint64_t payload_limit_bytes = 0;
  };
  // Somebody who may come in, and what it has said.
  struct Visitor {
    ProcessDescriptor fd;
    SocketAddress from;
    Guests::Id id = 0;
  };
  using LetIn = std::function<void(Visitor visitor, std::span<const std::byte> said)>;

  // `let_in` may not destroy the porch, but may close it.
  static Result<std::unique_ptr<Porch>> open(Loop& loop, std::shared_ptr<GuestRoom> room, Options options,
                                             LetIn let_in);
  ~Porch() { close(); }
  Porch(const Porch&) = delete;
  Porch& operator=(const Porch&) = delete;

  void arrive(int fd, const SocketAddress& from);
  // Somebody was turned away a moment ago: more may follow.
  bool is_besieged() const { return tells_; }
  void close();

 private:
  struct Waiting {
    ProcessDescriptor fd;
    SocketAddress from;
    std::vector<std::byte> said = {};
  };
  enum class Verdict { waits, comes_in, leaves };

  Porch(Loop& loop, std::shared_ptr<GuestRoom> room, Options options, LetIn let_in, ProcessDescriptor epoll);
  void wait();
  void serve();
  void listen_to(Guests::Id id);
  void drop(Guests::Id id, const std::string& why);
  Verdict judge(std::span<const std::byte> said, const SocketAddress& from);
  bool may_be_answered();
  void turn_away(const SocketAddress& from, const std::string& reason);
  void tell_later();

  Loop& loop_;
  const std::shared_ptr<GuestRoom> room_;
  const Options options_;
  const LetIn let_in_;
  std::unordered_map<Guests::Id, Waiting> waiting_;
  ProcessDescriptor epoll_;  // of those who wait: the loop watches it instead of each of them
  asio::posix::stream_descriptor watched_;
  StrangerTally tally_;
  asio::steady_timer tell_timer_;
  bool tells_ = false;
  bool closed_ = false;
  TimePoint answers_since_ = {};
  int answers_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for handlers that come too late
};

}  // namespace muster::net
