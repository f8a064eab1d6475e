// Private to train: recorder of a profile.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "muster/train/profile.h"

namespace muster::train {

// Threads: any.
class ProfileRecorder final : public graph::RunObserver {
 public:
  void start();
  Profile stop();

  void enter(cluster::WorkPhase phase);
  void ran(const Step& step, TimePoint begin, TimePoint end, const Describe& describe) override;

 private:
  void keep(const Profile::Span& span);
  void end_phase(TimePoint now);
  bool is_of_main_thread() const;

  std::mutex mutex_;
  bool is_recording_ = false;
  Profile profile_;
  cluster::WorkPhase phase_ = cluster::WorkPhase::script;
  TimePoint phase_begin_{};
  std::optional<Duration> worked_;  // of the main thread, when the phase began
  // The op too: a plan may lie where another one has been.
  std::map<std::tuple<const void*, std::size_t, const char*>, std::size_t> ops_;
  std::vector<Description> works_;  // of the last call, by op of the profile
};

}  // namespace muster::train
