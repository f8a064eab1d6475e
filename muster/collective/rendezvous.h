// Rendezvous of the ranks of a group: every rank connects to those lower ranks of other hosts with which it
// has a lane, and to the first rank of its own host, and accepts the others. That costs a rank no more than
// its lanes and the ranks of its host do.
//
// Byte by byte: docs/formats/collective.md.
#pragma once

#include <optional>
#include <vector>

#include "muster/base/base.h"
#include "muster/collective/collective.h"
#include "muster/collective/exchange.h"
#include "muster/collective/handshakes.h"
#include "muster/collective/hello.h"
#include "muster/collective/layout.h"
#include "muster/collective/link_choice.h"
#include "muster/collective/local_group.h"

namespace muster::collective {

// What the ranks of a host wake each other's watches with: rung once something has happened, and never
// silenced.
struct Alarms {
  net::Bell left;   // a rank makes no more calls
  net::Bell ended;  // the group has ended
};

struct Connections {
  std::vector<Connected> links;     // in the order of the lanes
  std::optional<LocalGroup> local;  // absent for a rank that is alone on its host
  std::optional<Alarms> alarms;     // absent, too, where all ranks are on one host
  // Of ranks that had met before this one had: a message needs a connection of its own.
  std::vector<Handshakes::Candidate> early;
};

class Rendezvous {
 public:
  // All but the options are borrowed, and their clock. `shape` is this host's.
  Rendezvous(const Group& group, const Layout& layout, Listener& listener, LocalShape shape,
             const Options& options);
  Result<Connections> meet();

 private:
  // A connection of a lane.
  struct Linked {
    net::Socket socket;
    bool is_welcomed = false;
    LinkKind kind = LinkKind::socket;  // once it is
  };
  Result<> make_memory();
  Result<> connect_to_hosts();
  Result<Linked> connect_to(std::uint32_t rank);
  // For a connection that the other side has let go.
  Result<Linked> call_again(std::uint32_t rank);
  Result<> connect_to_first();
  Result<> accept_all();
  Result<> welcome(Handshakes::Candidate candidate);
  bool comes_early(const Handshakes::Candidate& candidate) const;
  bool hand_over_memory(net::Socket& socket);
  Result<> take_memory();
  std::string reason_to_refuse(const Handshakes::Candidate& candidate) const;
  Result<LinkKind> link_with(const Hello& hello) const;
  Result<Welcome> await_welcome(net::Socket& socket, std::uint32_t rank);
  Result<> await_all_welcomes();
  Result<> secure(net::Socket& socket, std::uint32_t rank) const;
  Result<> send_hello(net::Socket& socket, std::uint32_t to);
  Hello hello(std::uint32_t to) const;

  bool is_first() const { return shape_.local_rank == 0; }
  std::string name(std::uint32_t rank) const;
  bool is_awaited(std::uint32_t rank) const;
  // Of the lane to a rank; as many as there are lanes, when there is none.
  std::size_t lane_to(std::uint32_t rank) const;
  std::vector<std::uint32_t> missing() const;
  FrameOrigin origin() const { return {.epoch = group_.epoch, .job_id = group_.job_id}; }

  const Group& group_;
  const Layout& layout_;
  Listener& listener_;
  LocalShape shape_;
  const Clock& clock_;
  net::Wait wait_;
  Duration timeout_;
  const std::shared_ptr<const net::Security> security_;  // null: plain
  LinkOffer offer_ = LinkOffer::socket_only;
  std::optional<LocalGroup> local_;
  std::optional<Alarms> alarms_;
  std::optional<net::Socket> first_;           // to the first rank of this host, when that is another
  std::vector<std::optional<Linked>> linked_;  // by lane
  std::vector<bool> has_memory_;               // by place on the host, at the first rank of a host
  std::size_t awaited_ = 0;                    // ranks that have yet to come
  std::optional<Handshakes> handshakes_;       // while it meets
  std::vector<Handshakes::Candidate> early_;   // for the group that is being made
};

}  // namespace muster::collective
