// Private to train: place at which a training goes on that a person starts again (ADR 32).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/checkpoint/checkpoint.h"
#include "muster/train/state.h"

namespace muster::train {

// A state of the training that is on this worker's disk, with its file.
struct Resumption {
  checkpoint::Point point = {};
  std::string path = {};
};

// Which state is meant, the same on all workers. Ordered as they came.
struct ResumeKey {
  std::int64_t training = 0;  // of those with one prefix in one folder
  std::int64_t epoch = 0;
  std::int64_t step = 0;

  friend auto operator<=>(const ResumeKey&, const ResumeKey&) = default;
};

// What this worker could go on from, the oldest first, and where it looked, for people.
struct ResumeOffer {
  std::vector<ResumeKey> keys = {};
  std::string where = {};
};
// The newest that all workers have; nothing where none has any. A collective call if `together`. The error
// names the workers that lack what others have.
Result<std::optional<ResumeKey>> agree_on_resume(const ResumeOffer& mine, bool together);

checkpoint::StateOwnership state_owner();
// The state of this worker that belongs to `path`, a checkpoint or a state. Errors name the file, what is
// wrong with it and what to do.
Result<Resumption> load_resumption(const std::string& path);
// Of this file.
Result<Resumption> load_resumption_at(const std::string& file);

// The seeds that random numbers and shuffles come from. Taken where the script has chosen none; another
// choice is an error.
void put_seeds(StateValues& values);
Result<> take_seeds(const StateValues& values, const std::string& path);

// Of a state that was saved by another script.
Error unfitting(Error error, const std::string& path);

}  // namespace muster::train
