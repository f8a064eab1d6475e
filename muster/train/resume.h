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

// A state of the training on a disk, with its file.
struct Resumption {
  checkpoint::Point point = {};
  std::string path = {};
  checkpoint::StateOwnership owner = {};  // who saved it: of another number of workers, too
};

// Which state is meant, the same on all workers. Ordered as they came.
struct ResumeKey {
  std::int64_t training = 0;  // of those with one prefix in one folder
  std::int64_t epoch = 0;
  std::int64_t step = 0;

  friend auto operator<=>(const ResumeKey&, const ResumeKey&) = default;
};
// Steps of jobs of unlike numbers of workers have no order: how far their trainings were tells which is
// newer, where their keys do not.
struct FoundKey {
  ResumeKey key = {};
  std::int64_t runs = 0;  // of plans, counted; 0: the keys tell
};
bool is_newer(const FoundKey& one, const FoundKey& other);

// What this worker could go on from, the oldest first, and where it looked, for people.
struct ResumeOffer {
  std::vector<ResumeKey> keys = {};
  std::string where = {};
  std::optional<FoundKey> of_others = {};  // the newest of a job of another number of workers
  std::int64_t runs = 0;                   // of the newest of `keys`
  std::int64_t free_number = 0;            // what a training that begins in this folder would be called
};
struct ResumeChoice {
  ResumeKey key = {};
  // Of a job of another number of workers: who has it, and gives it to all. Nothing: each has its own.
  std::optional<std::uint32_t> giver = {};
  std::int64_t free_number = 0;  // on all workers
};
// The newest that all workers have, or that any has of another number of workers; nothing where there is
// none. A collective call if `together`. The error names the workers that lack what others have.
Result<std::optional<ResumeChoice>> agree_on_resume(const ResumeOffer& mine, bool together);

checkpoint::StateOwnership state_owner();
// Whether it is the state of a job of another number of workers, as far as it can be read.
bool owner_is_another(const std::string& state,
                      const checkpoint::Storage& storage = checkpoint::real_storage());
// Where another number of workers cannot go on.
Error not_as_many(const std::string& file, const checkpoint::StateOwnership& owner);
// The state of this worker that belongs to `path`, a checkpoint or a state. Errors name the file, what is
// wrong with it and what to do.
Result<Resumption> load_resumption(const std::string& path);
// Of this file, whosever it is.
Result<Resumption> load_resumption_at(const std::string& file);
// All states beside `path`, a checkpoint or a state, in the order of their ranks.
std::vector<std::string> states_beside(const std::string& path);
// The first of them that is of a job of another number of workers.
std::optional<std::string> state_of_others(const std::string& path);
// The state that the giver has at `file`, or why it cannot be loaded, on all workers. A collective call.
Result<Resumption> shared_resumption(const std::string& file, std::uint32_t giver);

// The seeds that random numbers and shuffles come from. Taken where the script has chosen none; another
// choice is an error.
void put_seeds(StateValues& values);
Result<> take_seeds(const StateValues& values, const std::string& path);

// Of a state that was saved by another script.
Error unfitting(Error error, const std::string& path);

}  // namespace muster::train
