// Peer: a process of the job as the scheduler knows it. Plain values; the phases change them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "muster/cluster/messages.h"
#include "muster/cluster/stuck_watch.h"

namespace muster::cluster {

// Who a process has registered as.
struct Registrant {
  Member member;
  ProcessKey key = {};
  bool strict = false;  // MUSTER_STRICT
  Traits traits = {};
  MembershipReport memory = {};  // of when it came new
};

// A process that waits for a seat: a process that may be dead or alive holds it.
struct Newcomer : Registrant {
  PeerId id = 0;
  TimePoint since = {};
};

// What the process is to the job.
//
//   present --Leave--> left --registers once more--> returned
//   present <--an epoch begins-- ready               (ready: while recovering only; it may leave as well)
//   present --its end ends the job--> dead           (where the job recovers, a dead process is forgotten)
enum class PeerState : std::uint8_t {
  present,
  ready,     // has said where it will be reached in the next epoch
  left,      // was done, or has failed
  returned,  // has left, and may not have heard that this was noted
  dead,
};

// Whether its connection is open. A process that lives makes a closed one again.
enum class PeerConnection : std::uint8_t {
  open,
  closed,
  awaited,  // by a restarted scheduler, and never seen by it
};

// Whether its process has ended. That is known of a watched one; what another process reports of it is
// disproved by its next word.
enum class ProcessState : std::uint8_t { lives, reported, exited };

struct PeerProcess {
  ProcessState state = ProcessState::lives;
  WaitStatus status = {};      // with which it ended
  TimePoint reported_at = {};  // of one that is reported to have ended
  PeerId watch_id = 0;         // the connection under which it is watched; 0: it is not
};

// What the process has said last of itself.
struct PeerReport {
  std::uint64_t epoch = 0;
  std::uint64_t step = no_step;
  std::optional<Progress> progress = {};
  Activity activity = {};
  std::optional<ProcessStats> stats = {};
  PaceMeter pace = {};
  StuckWatch::Mark mark = {};
  bool asks_to_leave = false;  // its script is done
};

struct Peer : Registrant {
  PeerState state = PeerState::present;
  PeerConnection connection = PeerConnection::open;
  PeerProcess process = {};
  PeerReport said = {};
  bool has_rank = false;                        // member.rank is its own
  TimePoint heard = {};                         // or forgiven
  TimePoint spoke = {};                         // truly
  std::optional<TimePoint> doubted_until = {};  // its last words, or itself, may still come
  std::uint64_t epoch_accepted = 0;             // it was not there before: an earlier word is not its own
  std::uint64_t epoch_member = 0;               // the first that it has part in
  TimePoint epoch_told = {};                    // what it has to know of the epoch

  bool has_left() const { return state == PeerState::left || state == PeerState::returned; }
  bool is_connected() const { return connection == PeerConnection::open; }
  bool is_watched() const { return process.watch_id != 0; }
  bool seems_ended() const { return process.state != ProcessState::lives; }
  // Whether it needs no word more: it has left, or cannot be reached.
  bool is_gone() const { return !is_connected() || state == PeerState::left || state == PeerState::dead; }
};

// "worker 1 (node '1' at 10.0.0.7, pid 4711)".
std::string describe(const Peer& peer);

}  // namespace muster::cluster
