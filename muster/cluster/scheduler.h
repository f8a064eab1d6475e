// The scheduler as a pure state machine: events and the time in, actions out. No sockets, no clock, no
// threads; the real loop (scheduler_process.cpp) and the simulator (tests/sim/cluster) drive the same code.
//
// forming -> running -> ended. Every worker leaves done: the job ended well. Any death, any worker that
// leaves failed, too few processes in time, or an interruption: it ended by that failure, the first one,
// which every node is told.
//
// A job that recovers goes back and forth between running and recovering: a death ends the epoch, its seat is
// vacant until a process takes it, and with the last one the next epoch begins. What must be known after the
// scheduler's own death is recorded before any node is told (saved_job.h).
#pragma once

#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "muster/cluster/fingerprint.h"
#include "muster/cluster/forming.h"
#include "muster/cluster/messages.h"
#include "muster/cluster/observers.h"
#include "muster/cluster/saved_job.h"
#include "muster/cluster/scheduler/peer.h"
#include "muster/cluster/seats.h"
#include "muster/cluster/stuck_watch.h"

namespace muster::cluster {

namespace scheduler_event {
struct Received {
  PeerId peer = 0;
  Message message;
};
// The connection is gone, after everything that had arrived on it was delivered.
struct Closed {
  PeerId peer = 0;
};
// The watched process has ended.
struct Exited {
  PeerId peer = 0;
  WaitStatus status = {};
};
// A connection ended by more than a plain close: what came is no Muster, TLS was refused, nothing came in
// time. Closed follows, unless it was turned away before it had a number; of those, many alike may be one
// event.
struct Rejected {
  PeerId peer = 0;
  std::string address = {};
  std::string reason = {};
  std::uint64_t count = 1;
  std::optional<Member> claims = {};  // who it says it is, e.g. with a certificate that is not believed
};
struct Interrupted {};
// The time `deadline()` has come.
struct Tick {};
}  // namespace scheduler_event
using SchedulerEvent =
    std::variant<scheduler_event::Received, scheduler_event::Closed, scheduler_event::Exited,
                 scheduler_event::Rejected, scheduler_event::Interrupted, scheduler_event::Tick>;

namespace scheduler_action {
struct Send {
  PeerId peer = 0;
  Message message;
};
// The same message to many: it is worth encoding once.
struct Share {
  PeerId peer = 0;
  std::shared_ptr<const Message> message = {};  // never null
};
// Flush, then close.
struct Close {
  PeerId peer = 0;
};
struct Watch {
  PeerId peer = 0;
  std::int32_t pid = 0;
};
struct Log {
  log::Level level = log::Level::info;
  std::string text = {};
};
// Must be durable before the actions that follow.
struct Record {
  cluster::Record record;
};
// Nothing more to do: everyone who could be told knows.
struct End {
  std::optional<Failure> failure = {};
};
}  // namespace scheduler_action
using SchedulerAction = std::variant<scheduler_action::Send, scheduler_action::Share, scheduler_action::Close,
                                     scheduler_action::Watch, scheduler_action::Log, scheduler_action::Record,
                                     scheduler_action::End>;
using SchedulerActions = std::vector<SchedulerAction>;

struct SchedulerConfig {
  std::uint32_t worker_num = 1;
  std::uint32_t server_num = 0;
  std::chrono::milliseconds topo_timeout{};
  std::chrono::milliseconds node_timeout{};
  std::uint64_t job_id = 0;  // drawn by the caller, not 0
  std::uint64_t epoch = 1;
  std::uint64_t seed = 0;
  std::int32_t pid = 0;
  std::string process_space = {};
  bool recovers = false;
  bool strict = false;                       // MUSTER_STRICT: processes that differ are an error
  bool restarts_failed = false;              // a process that fails is started again, like one that died
  std::optional<Duration> stuck_limit = {};  // see StuckWatch
  std::uint64_t ended_job_id = 0;            // of the job before, which ended well
  std::optional<SavedJob> saved = {};        // an unfinished job to go on with; its job id and seed hold
  std::string address = {};                  // host:port, where nodes look for it; empty: not checked
  bool fresh = false;                        // MUSTER_FRESH: whatever unfinished job is found is given up
  // Where the epochs of a job begin whose log is lost: drawn from the clock, so that neither those of its
  // other lives nor those of a scheduler that still has the log are the same.
  std::uint64_t adopted_epoch = 1;
};

class SchedulerMachine {
 public:
  SchedulerMachine(SchedulerConfig config, TimePoint now);

  SchedulerActions step(const SchedulerEvent& event, TimePoint now);
  // When the next Tick is due; later than that at the latest, earlier does no harm.
  TimePoint deadline() const;

  bool ended() const { return phase_ == Phase::ended; }
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  enum class Phase { forming, running, recovering, telling, ended };
  using PeerMap = std::map<PeerId, Peer>;
  enum class Verdict { waits, decided };

  void received(PeerId id, const Message& message);
  bool can_say(const Peer& peer, const Message& message) const;
  // Of a connection that this machine itself has noted: forget() takes it out of everything.
  Peer& peer_at(PeerId id);
  const Peer& peer_at(PeerId id) const;
  void handle(PeerId id, Peer& peer, const message::Beat& beat, std::uint64_t epoch);
  void handle(PeerId id, Peer& peer, const message::Leave& leave);
  message::Beat answer_to(PeerId id, Peer& peer, const message::Beat& beat, std::uint64_t epoch);
  void handle(const Peer& reporter, const message::PeerGone& gone);
  void closed(PeerId id);
  void exited(const scheduler_event::Exited& event);
  void exited(PeerId id, Peer& peer, const WaitStatus& status);
  void reported(PeerId id, Peer& peer, const WaitStatus& status);
  void disprove_report(Peer& peer);
  void check(TimePoint now);
  void check_peers();
  void forgive_own_pause(Duration pause);

  // scheduler_forming.cpp
  void register_node(PeerId id, const Message& message, const message::Register& request);
  std::optional<std::string> reason_to_refuse(const Message& message, const message::Register& request) const;
  std::optional<std::string> unusable(const message::Register& request) const;
  std::optional<std::string> no_room(const Member& member) const;
  std::string duplicate_id(const Member& holder) const;
  void turn_down(PeerId id, const Member& member, const std::string& reason);
  Peer& accept(PeerId id, Registrant registrant);
  void greet(PeerId id, Peer& peer);
  std::optional<std::string> impersonation(const Member& member, const ProcessKey& key) const;
  void watch(PeerId id, Peer& peer);
  bool is_complete() const;
  void form_if_complete();
  void begin_epoch(std::shared_ptr<const Roster> roster);
  void take(std::shared_ptr<const Roster> roster);
  std::vector<Member> rank_members(Role role, std::uint32_t count);
  void note_rejected(const scheduler_event::Rejected& event);
  FormingView view() const;
  std::string whole_table() const;
  void check_forming();
  std::vector<FingerprintSource> sources(Role role) const;
  std::vector<std::string> differences() const;
  bool check_traits();
  bool is_strict() const;
  std::optional<std::string> misfit(const Newcomer& newcomer) const;

  // scheduler_recovery.cpp: what only a job that recovers does.
  void resume();
  void note_progress(Peer& peer, const Progress& progress);
  void handle(PeerId id, Peer& peer, const message::Rejoin& rejoin, std::uint64_t epoch);
  void handle(const Peer& peer, const message::LinkLost& lost, std::uint64_t epoch);
  void lose(PeerId id, const std::string& how);
  void forget(PeerId id);
  void lose_epoch(Failure reason);
  void tell_of_epoch(PeerId id, Peer& peer);
  void catch_up(PeerId id, Peer& peer, std::uint64_t epoch);
  void register_recovering(PeerId id, const Message& message, const message::Register& request);
  void come_back(PeerId old_id, PeerId id, const Message& message, const message::Register& request);
  void settle();
  Verdict place(const Newcomer& newcomer);
  Verdict place_before_roster(const Newcomer& newcomer);
  Verdict contest(PeerId stale_id, const Newcomer& newcomer);
  Verdict turn_away(const Newcomer& newcomer, const std::string& reason);
  Peer& sit(const Newcomer& newcomer, Seat& seat, bool ready);
  void form_next_if_complete();
  std::uint64_t collectives_of_left() const;
  bool lacks_ends(const Seat& seat) const;
  std::optional<std::uint32_t> who_may_need(PeerId id) const;
  void announce_waiting();
  std::string waiting_text() const;
  std::string refused_meanwhile() const;
  void check_recovery();
  TimePoint recovery_deadline() const;
  Duration contest_time() const;
  bool someone_is_doubted() const;
  PeerId find_process(const Member& member, const ProcessKey& key) const;

  // scheduler_adoption.cpp: which job it is, where the scheduler's log or the workers' points are lost.
  void expect_member(Seat& seat);
  bool adopts_job_of_member(PeerId id, const Message& message, const message::Register& request);
  void give_newcomers_seats();
  bool is_rebuilding() const { return roster_ == nullptr && phase_ != Phase::forming; }
  bool waits_for_seat(PeerId id, const Message& message);
  void claim(const Newcomer& self, const Message& message, const message::Register& request, Seat& seat);
  void learn_members(const Message& message, const message::Register& request);
  bool was_given_up(const Member& member, std::size_t place) const;
  Failure lost_with_log() const;
  void void_claim(Seat& seat);
  void rebuild_if_complete();
  std::uint64_t next_epoch() const { return std::max(epoch_ + 1, epoch_min_); }
  bool settle_job();
  bool takes_rank_of_its_points(PeerId id, std::vector<std::optional<PeerId>>& places) const;
  bool waits_for_members(const FoundJob& job);
  bool gives_up_found_jobs();
  void adopt(const FoundJob& job, const std::vector<const Peer*>& finders);
  std::vector<const FoundJob*> unfinished(const MembershipReport& memory) const;
  std::vector<const Peer*> finders() const;
  std::string who_found_what() const;
  bool refuses_foreign_points(PeerId id, const Member& member, const MembershipReport& memory);
  bool somebody_holds_the_job();
  void record_job();

  // scheduler_watch.cpp: what the job is at, for people who look at it and for those who wait.
  void note_activity(Peer& peer, const message::Beat& beat, std::uint64_t epoch);
  void check_stuck();
  std::optional<WorkPhase> slowest_phase() const;
  std::string who_waits_for_whom() const;
  Duration silence_of(const Peer& peer) const;
  std::string silence_text(const Peer& peer) const;
  bool serve_observer(PeerId id, const Message& message);
  void tell_status(PeerId id);
  void forget_observer(PeerId id);
  void tell_doctors();
  message::Status status() const;

  void doubt(Peer& peer, Duration time);
  void declare_dead(PeerId id, Peer& peer, const std::string& how);
  Failure death_of(const Peer& peer, const std::string& how) const;
  void fail(Failure failure);
  void end_job();
  void end_if_all_told();

  std::uint32_t wanted(Role role) const;
  void send(PeerId id, MessageBody body);
  std::shared_ptr<const Message> message_of(MessageBody body) const;
  void share(PeerId id, std::shared_ptr<const Message> message);
  void refuse(PeerId id, const std::string& reason);
  // The same words, as `Words` (Waiting or Stuck), to every node that is connected, and into the log.
  template <class Words>
  void tell_all(const std::string& text) {
    log(log::Level::warning, text);
    const auto message = message_of(Words{text});
    for (const auto& [id, peer] : peers_)
      if (peer.is_connected() && !peer.has_left()) share(id, message);
  }
  void record(Record record);
  void log(log::Level level, std::string text);

  SchedulerConfig config_;
  Phase phase_ = Phase::forming;
  std::uint64_t epoch_;        // the newest that has begun; while recovering, the lost one
  bool is_recorded_;           // whose job it is; nothing else before that
  PeerMap peers_;              // those that were accepted, and those that a restarted scheduler expects
  std::vector<PeerId> order_;  // of registration
  std::map<std::pair<Role, std::string>, PeerId> by_name_;
  std::unordered_map<std::uint64_t, PeerId> by_incarnation_;  // of all peers that have one
  std::map<Role, std::uint32_t> present_;
  Seats seats_;  // from the first roster on
  std::uint32_t workers_left_ = 0;
  std::optional<std::uint32_t> left_in_epoch_ = {};  // a worker that the roster still has as one who is there
  std::shared_ptr<const Roster> roster_;
  std::shared_ptr<const Message> roster_ready_;  // which says it
  std::optional<Failure> failure_;
  Attempts attempts_;
  std::vector<std::string> differences_told_ = {};

  StuckWatch stuck_;
  Observers observers_;
  std::shared_ptr<const Message> status_;  // as it was told last; null when that is a while ago
  TimePoint status_until_ = {};
  // Of a member that is awaited: numbers that no connection will have.
  PeerId next_awaited_ = std::numeric_limits<PeerId>::max();
  std::vector<Newcomer> newcomers_;
  std::map<PeerId, PeerId> watched_as_;  // watch id -> the process's connection now
  Failure lost_reason_;                  // of the epoch, while recovering
  TimePoint lost_at_ = {};
  std::uint64_t finished_calls_ = 0;
  bool has_points_ = false;                        // some worker, of this job
  std::uint64_t epoch_min_ = 0;                    // of the next epoch
  std::uint64_t claimed_calls_ = 0;                // finished, of the roster that is rebuilt
  std::uint64_t claimed_collectives_ = 0;          // likewise
  std::uint64_t known_epoch_ = 0;                  // the newest of which a claimant has the roster
  std::vector<std::uint64_t> known_members_ = {};  // its incarnations, by seat; 0: not known
  std::vector<std::uint64_t> given_up_ = {};       // jobs
  std::optional<TimePoint> members_due_ = {};      // of a found job that is in use
  std::optional<TimePoint> link_lost_until_ = {};  // a death may explain it
  Failure link_lost_reason_;
  std::uint32_t links_lost_in_a_row_ = 0;  // without a step between them
  bool vacancies_changed_ = false;
  bool starts_ = true;

  TimePoint now_;
  TimePoint start_;
  TimePoint next_check_;         // of everything that is looked at every beat
  Announcements announcements_;  // while forming
  TimePoint next_progress_;      // report, while recovering
  TimePoint next_rejection_line_ = {};
  std::set<PeerId> untold_;  // while telling: who does not know yet that the job has ended
  TimePoint told_until_;     // when waiting for those who do not answer ends
  std::optional<TimePoint> next_doubt_;
  SchedulerActions actions_;
};

}  // namespace muster::cluster
