// Phase of a job: what the scheduler does with an event depends on it. A phase keeps what only it needs, and
// is made anew each time:
//
//   Forming -> Running <-> Recovering, and from each of them -> Telling
//
// What all share, and the phase that is current, is in Job. A phase that goes on to the next one (Job::enter)
// lives to the end of the step, so that it may return.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/cluster/scheduler/peer.h"

namespace muster::cluster {

class Job;

using JobState = message::Status::State;

// Whether a process that waits for a seat still does.
enum class Verdict { waits, decided };

class Phase {
 public:
  explicit Phase(Job& job) : job_(job) {}
  virtual ~Phase() = default;

  virtual JobState state() const = 0;
  // For people: what is waited for, or why the job has ended.
  virtual std::string text() const { return {}; }

  // When `check` is due, beside the beats, at which it is called as well.
  virtual TimePoint deadline() const { return TimePoint::max(); }
  virtual void check() {}
  // After each event.
  virtual void settle() {}
  // The scheduler itself was stopped for so long.
  virtual void forgive(Duration) {}

  // A process comes new: the member that has its node id, or null, and how the process is told so.
  virtual const Member* holder(const Member& member) const;
  virtual std::string duplicate_id(const Member& holder) const;
  // Without recovery. Why it is not admitted.
  [[nodiscard]] virtual std::optional<std::string> admit(PeerId id, Registrant registrant);
  // Those who wait for the first epoch, in the order of registration.
  virtual std::vector<PeerId> registered() const { return {}; }
  // With recovery, as long as it has no seat.
  virtual Verdict place(const Newcomer& newcomer);
  // A process that was accepted before, on another connection.
  virtual void came_back(PeerId before, PeerId id, Peer& peer, const Message& message) = 0;

  // Whether a process that spoke of `epoch` has missed what it has to know; and says that.
  virtual bool has_missed(const Peer&, std::uint64_t) const { return false; }
  virtual void tell_epoch(PeerId) {}
  virtual void rejoined(PeerId, Peer&, const message::Rejoin&, std::uint64_t) {}
  virtual void link_lost(const Peer&, const message::LinkLost&, std::uint64_t) {}

  // It was done, and has left.
  virtual void done(PeerId id, const Peer& peer);
  // It is dead; a job that does not recover ends by that.
  virtual void died(PeerId id, Peer& peer, const std::string& how);
  virtual void forgotten(PeerId, const Peer&) {}
  virtual void lose_epoch(Failure) {}
  virtual void note_vacancy() {}

  // Whether this phase tells people itself of a connection that was rejected.
  virtual bool shows_rejection([[maybe_unused]] bool is_news) { return false; }
  // What a failure now is due to beside itself.
  virtual std::string missing() const { return {}; }
  // It knows that the job has ended, or cannot be told.
  virtual void told(PeerId) {}
  virtual bool is_over() const { return false; }

 protected:
  Job& job_;
};

}  // namespace muster::cluster
