// Recovering: an epoch was lost. Its vacant seats are taken again, and with the last process that says where
// it will be reached the next epoch begins.
#pragma once

#include <cstdint>

#include "muster/cluster/scheduler/phase.h"

namespace muster::cluster {

class Recovering : public Phase {
 public:
  // Of a scheduler that was started again: the reason is its dead processes' own.
  explicit Recovering(Job& job) : Recovering(job, {}, {}) {}
  Recovering(Job& job, Failure reason, TimePoint lost_at);

  JobState state() const override { return JobState::recovering; }
  std::string text() const override;
  TimePoint deadline() const override;
  void check() override;
  void settle() override;
  void came_back(PeerId before, PeerId id, Peer& peer, const Message& message) override;
  bool has_missed(const Peer& peer, std::uint64_t epoch) const override;
  void tell_epoch(PeerId id) override;
  void rejoined(PeerId id, Peer& peer, const message::Rejoin& rejoin, std::uint64_t epoch) override;
  void note_vacancy() override { vacancies_changed_ = true; }
  bool shows_rejection(bool is_news) override;

 private:
  void form_next_if_complete();
  std::uint64_t collectives_of_left() const;
  std::string refused_meanwhile() const;
  void announce_waiting();

  const Failure reason_;
  const TimePoint lost_at_;
  TimePoint next_progress_;  // report
  bool vacancies_changed_ = false;
};

}  // namespace muster::cluster
