// Messages between scheduler and nodes. Byte by byte: docs/formats/cluster.md.
//
//   node                          scheduler
//   Register            ->        a node of a recovering job does so again on each new connection
//                       <-        Accept, or Refuse (the connection then ends)
//                       <-        Waiting, while others are missing
//                       <-        RosterReady
//   Beat                ->
//                       <-        Beat
//   PeerGone            ->        a process of the node's host has ended
//   LinkLost            ->        the data plane broke, whether or not a process has died
//   Parameters          ->        what the parameters are after some step, to be compared between workers
//                       <-        EpochLost: a recovering job goes on in the next epoch
//   Rejoin              ->        where the node is reached then
//                       <-        RosterReady, of the next epoch
//   Leave               ->
//                       <-        LeaveAck
//                       <-        Ended: the job has ended, well or by a failure
//   EndedAck            ->
//                       <-        Stuck: nothing goes on, and who waits for whom; or it goes on again
//                       <-        AskStacks: where is your main thread?
//   Stacks              ->
//
//   observer (muster status, muster doctor; it never registers)
//   StatusRequest       ->
//                       <-        Status, and the connection ends
//   Echo                ->
//                       <-        Echo, the same
//   MeetDoctors         ->
//                       <-        Doctors, again whenever one comes or goes
//   StacksRequest       ->
//                       <-        ProcessStacks, one for each process, then StacksEnd, and the connection
//                       ends
//   EndedEarly          ->        a launcher: a worker has ended well, and may never have registered
//                       <-        Status
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "muster/cluster/activity.h"
#include "muster/cluster/membership_report.h"
#include "muster/cluster/parameter_report.h"
#include "muster/cluster/process_key.h"
#include "muster/cluster/process_stats.h"
#include "muster/cluster/roster.h"

namespace muster::cluster {

inline constexpr std::uint64_t no_step = std::numeric_limits<std::uint64_t>::max();

// Of one registration.
inline constexpr std::size_t traits_max = 32;

namespace message {

// The header's job and epoch, and `member.rank`, are 0 unless the node has a roster.
struct Register {
  Member member;
  std::uint32_t worker_num = 0;
  std::uint32_t server_num = 0;
  bool recovers = false;
  bool epoch_lost = false;  // the header's epoch: a scheduler that has lost its memory of that hears it here
  bool strict = false;      // MUSTER_STRICT: a trait that differs is an error
  Traits traits = {};       // at most traits_max
  ProcessSecret secret = {};
  MembershipReport memory = {};
  friend bool operator==(const Register&, const Register&) = default;
};

// The node is part of the job. Beats are expected every `beat_interval`.
struct Accept {
  std::chrono::milliseconds beat_interval{};
  std::int32_t pid = 0;  // the scheduler's
  std::string process_space = {};
  friend bool operator==(const Accept&, const Accept&) = default;
};

struct Refuse {
  Failure failure;
  friend bool operator==(const Refuse&, const Refuse&) = default;
};

struct Waiting {
  std::string text = {};
  friend bool operator==(const Waiting&, const Waiting&) = default;
};

struct RosterReady {
  std::shared_ptr<const Roster> roster = {};  // never null
  friend bool operator==(const RosterReady& a, const RosterReady& b) { return *a.roster == *b.roster; }
};

// `step` is the last one done in this epoch; the scheduler's answer has no_step.
struct Beat {
  std::uint64_t step = no_step;
  Progress progress = {};
  Activity activity = {};
  bool leaves = false;  // a node asks whether it may: its script is done; the scheduler's answer: it may
  // The scheduler's answer: a worker that has left well since the epoch began, and comes to no rendezvous of
  // it; and to a node that asks to leave, a worker that may still need it.
  std::optional<std::uint32_t> left = {};
  std::optional<std::uint32_t> waits_for = {};
  std::optional<ProcessStats> stats = {};  // of a node
  friend bool operator==(const Beat&, const Beat&) = default;
};

struct PeerGone {
  Role role = Role::worker;
  std::uint32_t rank = 0;
  std::uint64_t incarnation = 0;
  WaitStatus status = {};
  friend bool operator==(const PeerGone&, const PeerGone&) = default;
};

// Done (status 0) or failed.
struct Leave {
  std::int32_t status = 0;
  std::uint64_t step = no_step;
  std::string reason = {};
  friend bool operator==(const Leave&, const Leave&) = default;
};

struct LeaveAck {
  friend bool operator==(const LeaveAck&, const LeaveAck&) = default;
};

struct Ended {
  std::optional<Failure> failure = {};
  friend bool operator==(const Ended&, const Ended&) = default;
};

struct EndedAck {
  friend bool operator==(const EndedAck&, const EndedAck&) = default;
};

// The header's epoch is over; the answer is Rejoin, whenever this is said.
struct EpochLost {
  Failure reason;
  friend bool operator==(const EpochLost&, const EpochLost&) = default;
};

// The header's epoch is the lost one.
struct Rejoin {
  DataEndpoint endpoint;
  Progress progress = {};
  friend bool operator==(const Rejoin&, const Rejoin&) = default;
};

struct LinkLost {
  std::string reason = {};
  friend bool operator==(const LinkLost&, const LinkLost&) = default;
};

// For people, of a job in which no step is finished any more, or where it goes on after all.
struct Stuck {
  std::string text = {};
  friend bool operator==(const Stuck&, const Stuck&) = default;
};

struct StatusRequest {
  friend bool operator==(const StatusRequest&, const StatusRequest&) = default;
};

// The job as its scheduler sees it now.
struct Status {
  enum class State : std::uint8_t { forming, running, recovering, ended };
  // Any peer that asks gets this: nothing by which members know each other.
  struct Node {
    Role role = Role::worker;
    std::string node_id = {};
    std::uint32_t rank = 0;
    std::string address = {};
    std::int32_t pid = 0;
    bool has_rank = false;
    bool is_connected = false;
    bool has_left = false;
    std::uint64_t epoch = 0;  // that it knows of
    std::uint64_t step = no_step;
    Activity activity = {};
    std::chrono::milliseconds silence{};  // since its last word
    std::optional<ProcessStats> stats = {};
    Pace pace = {};
    friend bool operator==(const Node&, const Node&) = default;
  };

  State state = State::forming;
  bool recovers = false;
  std::uint32_t worker_num = 0;
  std::uint32_t server_num = 0;
  std::chrono::milliseconds age{};           // of the scheduler
  std::chrono::milliseconds without_step{};  // since something was finished; 0 unless running
  std::string text = {};                     // what is waited for, or why it ended; may be empty
  std::vector<SlowRank> slow = {};           // ranks that the others wait for in each step
  std::vector<Node> nodes = {};
  friend bool operator==(const Status&, const Status&) = default;
};

// Measures the way between two processes. The answer has the same number and filling, and the wall clock of
// who answers, which its driver writes.
struct Echo {
  std::uint64_t number = 0;
  std::uint64_t wall_clock_us = 0;
  std::string filling = {};
  friend bool operator==(const Echo&, const Echo&) = default;
};

// A `muster doctor` that can be reached by others for a while.
struct Doctor {
  std::string host = {};  // its name, for people
  std::string address = {};
  std::uint16_t port = 0;
  friend bool operator==(const Doctor&, const Doctor&) = default;
};

struct MeetDoctors {
  Doctor self;
  friend bool operator==(const MeetDoctors&, const MeetDoctors&) = default;
};

// All that are there, the one who is told too.
struct Doctors {
  std::vector<Doctor> doctors = {};
  friend bool operator==(const Doctors&, const Doctors&) = default;
};

// Of workers, which should all say the same.
struct Parameters {
  ParameterReport report;
  friend bool operator==(const Parameters&, const Parameters&) = default;
};

struct EndedEarly {
  std::string node_id = {};
  friend bool operator==(const EndedEarly&, const EndedEarly&) = default;
};

// Of the worker or server of that rank. Without one, of all, but no more than stacks_processes_max: those
// who wait for no other come first.
struct StacksRequest {
  Role role = Role::worker;
  std::optional<std::uint32_t> rank = {};
  friend bool operator==(const StacksRequest&, const StacksRequest&) = default;
};

// The node takes the stacks of its process, and keeps them in the folder of its run. They are sent where that
// is asked for.
struct AskStacks {
  bool is_answered = true;
  friend bool operator==(const AskStacks&, const AskStacks&) = default;
};

struct Stacks {
  std::string text = {};
  friend bool operator==(const Stacks&, const Stacks&) = default;
};

struct ProcessStacks {
  Role role = Role::worker;
  std::uint32_t rank = 0;
  bool has_rank = false;
  std::int32_t pid = 0;
  std::string node_id = {};
  std::string address = {};
  std::string doing = {};    // as its last heartbeat said
  std::string problem = {};  // why there are none; empty: there are
  std::string text = {};
  friend bool operator==(const ProcessStacks&, const ProcessStacks&) = default;
};

struct StacksEnd {
  std::uint32_t left_out = 0;  // processes that were not asked, since there are so many
  friend bool operator==(const StacksEnd&, const StacksEnd&) = default;
};

}  // namespace message

using MessageBody =
    std::variant<message::Register, message::Accept, message::Refuse, message::Waiting, message::RosterReady,
                 message::Beat, message::PeerGone, message::Leave, message::LeaveAck, message::Ended,
                 message::EndedAck, message::EpochLost, message::Rejoin, message::LinkLost, message::Stuck,
                 message::StatusRequest, message::Status, message::Echo, message::MeetDoctors,
                 message::Doctors, message::Parameters, message::EndedEarly, message::StacksRequest,
                 message::AskStacks, message::Stacks, message::ProcessStacks, message::StacksEnd>;

// Every message says which job and which epoch of it the sender means; both are 0 before it was accepted.
struct Message {
  std::uint64_t job_id = 0;
  std::uint64_t epoch = 0;
  MessageBody body;
  friend bool operator==(const Message&, const Message&) = default;
};

// Between beats of a node: several fit into the time after which it counts as dead.
inline std::chrono::milliseconds beat_interval_for(std::chrono::milliseconds node_timeout) {
  return std::clamp(node_timeout / 5, std::chrono::milliseconds(50), std::chrono::milliseconds(500));
}

// How long a process that seems to have ended is given to let the rest of its words arrive.
inline constexpr std::chrono::milliseconds last_words_time{100};

// How often people are told again what is waited for.
inline constexpr std::chrono::milliseconds progress_interval = std::chrono::seconds(30);

// For messages to people.
inline double in_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// One connection of a scheduler, numbered by the driver and never used again.
using PeerId = std::uint64_t;

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace muster::cluster
