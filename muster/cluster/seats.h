// Seats: the ranks of a job, from its first roster on, and the process that holds each. A rank belongs to a
// seat for the job's life; the processes that hold it change. Plain values, no time passes here.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "muster/cluster/messages.h"

namespace muster::cluster {

struct Seat {
  Member member = {};  // who sits here, or sat here last
  ProcessKey key = {};
  PeerId peer = 0;          // 0: none
  bool is_unknown = false;  // who sat here: no log says it
  bool is_claimed = false;  // nothing but its process's own word says that this was its seat
  // Of a vacant seat:
  std::optional<std::uint64_t> kept_calls = {};  // whose ends its folder has, as the last process told
  std::string how = {};                          // "it was killed by signal 9 (KILL)"
  std::uint64_t step = no_step;                  // the last one known
  TimePoint wait_until = {};                     // for a process to come
  std::string_view variable = {};                // that says how long

  bool is_vacant() const { return peer == 0 && !member.has_left; }
};

class Seats {
 public:
  Seats() = default;
  // The members of `roster`, on their ranks; all are vacant. `keys` in the order of `keys()`.
  explicit Seats(const Roster& roster, const std::vector<ProcessKey>& keys = {});
  // Of members that no log names.
  Seats(std::uint32_t worker_num, std::uint32_t server_num);
  static Seat unknown(Role role, std::uint32_t rank);

  std::vector<Seat>& all() { return seats_; }
  const std::vector<Seat>& all() const { return seats_; }
  // In all(); their number where there is no such seat.
  std::size_t place(Role role, std::uint32_t rank) const;
  Seat* find(Role role, std::uint32_t rank);
  Seat* find(Role role, std::string_view node_id);
  Seat* find(const ProcessKey& key);
  Seat* find_unknown(Role role, std::uint32_t rank);
  Seat* find_peer(PeerId peer);  // that sits there
  std::vector<const Seat*> vacant() const;

  // The seat for a new process, taken or not, or why there is none. One with a node id gets its own; one
  // without gets the only vacant seat of its role, or one whose process had none either.
  std::variant<Seat*, std::string> choose(const Member& member);

  // "cluster epoch 7: waiting for node 2 (it was killed by signal 9 (KILL) at step 812) - start it again with
  // MS_NODE_ID=2". Empty when no seat is vacant.
  std::string waiting_text(std::uint64_t next_epoch) const;
  // The members as the next roster has them.
  std::vector<Member> members(Role role) const;
  // Of all, workers first.
  std::vector<ProcessKey> keys() const;

 private:
  std::vector<Seat> seats_;  // workers, then servers, by rank
};

// "node id '2' (MS_NODE_ID) is taken by a live worker at 10.0.0.7, pid 4711".
std::string taken_by(const Member& member);

// Why a process is turned away where all seats of its role are taken.
std::string surplus(Role role, std::uint32_t count);

// The rank that a node id asks for: "0", "7", but not "07", so that two ids never mean one rank.
std::optional<std::uint32_t> rank_asked(std::string_view node_id, std::uint32_t count);

}  // namespace muster::cluster
