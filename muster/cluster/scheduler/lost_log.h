// Lost log: the job that its living members say they are of, where the scheduler has no log of it. What they
// say replaces the log: seat by seat until all members of the newest epoch are known, or the next one begins.
#pragma once

#include <cstdint>
#include <vector>

#include "muster/cluster/messages.h"
#include "muster/cluster/seats.h"

namespace muster::cluster {

class Job;
struct Newcomer;

class LostLog {
 public:
  // The first of its members is here. Its seat is its own, the others' are unknown until they come, or count
  // as lost. The job is running from here on.
  LostLog(Job& job, const Message& message, const message::Register& first);

  // A living member takes the seat that no log names as its own.
  void claim(const Newcomer& self, const Message& message, const message::Register& request, Seat& seat);
  // The newest roster that any member has says whose the seats are.
  void learn_members(const Message& message, const message::Register& request);
  // After each event: whether the job is known again.
  bool is_rebuilt();

 private:
  bool was_given_up(const Member& member, std::size_t place) const;
  Failure reason() const;
  void void_claim(Seat& seat);
  void rebuild();

  Job& job_;
  std::uint64_t claimed_calls_ = 0;  // finished, of the roster that is rebuilt
  std::uint64_t claimed_collectives_ = 0;
  std::uint64_t known_epoch_ = 0;                  // the newest of which a claimant has the roster
  std::vector<std::uint64_t> known_members_ = {};  // its incarnations, by seat; 0: not known
};

}  // namespace muster::cluster
