// Handshakes with peers that connected to this rank and have not yet identified themselves: while the group
// forms, and later when a peer makes a broken connection again. Such a peer may be anything, so nothing that
// it does, and no number of them, is ever an error: the oldest of too many is dropped, and where no
// descriptor is free a new one has to wait.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/collective/hello.h"
#include "muster/net/net.h"

namespace muster::collective {

class Handshakes {
 public:
  struct Listeners {  // borrowed
    net::TcpListener& tcp;
    net::LocalListener* local = nullptr;  // none: no rank is expected from this host
  };
  struct Candidate {  // whose hello is sound; nothing in it was checked
    net::Socket socket;
    bool local = false;
    Hello hello;
  };

  struct Terms {
    const Clock& clock;  // borrowed
    FrameOrigin own;
    std::size_t members = 0;  // how many may come at once besides unauthorized peers
    std::shared_ptr<const net::Security> security = {};  // null: plain
    net::UnauthenticatedLimits limits = {.count = 256};  // of unauthorized peers
  };
  static Result<Handshakes> create(Listeners listeners, Terms terms);

  // What to wait for: when this is readable, or the deadline has passed, `hear` has work.
  int fd() const { return awaited_.fd(); }
  TimePoint deadline() const;
  // Accepts and hears every peer that is there, without waiting.
  std::vector<Candidate> hear();
  // Tells an unauthenticated peer why it is not let in, as far as that goes.
  void refuse(net::Socket& socket, const std::string& reason);
  // No peer is heard any more: closes the connections of all unauthenticated peers.
  void close();

 private:
  Handshakes(Listeners listeners, Terms terms, net::PollSet awaited);
  struct Pending {
    net::UnauthenticatedPeers::Id id;
    net::Socket socket;
    bool local = false;
    bool is_begun = false;  // its handshake
    bool is_secured = false;
    bool is_refused = false;  // it is only given time to hear why
    std::vector<std::byte> bytes;
  };
  void hear_pending(std::vector<Candidate>& candidates);
  void hold_to_limit();
  void drop_overdue();
  void drop(net::UnauthenticatedPeers::Id id);
  Result<> open();
  void close_for(Duration pause);
  template <class ListenerOfAKind>
  void take_from(ListenerOfAKind& listener, bool local);
  void take(net::Socket socket, bool local);
  // For a peer that waits; false: it has to wait on.
  bool make_room();
  // Whether the unauthenticated peer is done with: a candidate, refused or gone.
  bool hear(Pending& pending, std::vector<Candidate>& candidates);
  bool hear_hello(Pending& pending, std::vector<Candidate>& candidates);
  // A step of the handshake; false while it is not through, or will never be.
  bool believe(Pending& pending);
  bool secure(Pending& pending);
  void answer_tls(Pending& pending);
  static bool drain(Pending& pending);

  Listeners listeners_;
  Terms terms_;
  net::PollSet awaited_;
  std::vector<Pending> pending_;
  net::UnauthenticatedSlots places_;
  net::UnauthenticatedPeers rules_;
  net::UnauthenticatedPeers::Id last_id_ = 0;
  std::optional<TimePoint> closed_until_;  // no descriptor was free, or too many come
  bool is_flooded_ = false;                // some were driven out, the last time that it looked
  net::LineLimit rejection_lines_;
  net::LineLimit refusal_lines_;
  net::LineLimit lack_lines_;
};

}  // namespace muster::collective
