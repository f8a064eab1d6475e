// A recovery point as one file: from what a training goes on that a person starts again
// (docs/formats/training-state.md). Tensors that lie in a checkpoint beside it are known by their hashes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/checkpoint/point.h"
#include "muster/checkpoint/storage.h"

namespace muster::checkpoint {

inline constexpr std::string_view state_extension = ".state";

// Which worker of how many a state belongs to.
struct StateOwnership {
  std::uint64_t world_size = 1;
  std::uint64_t rank = 0;

  friend bool operator==(const StateOwnership&, const StateOwnership&) = default;
};

// "run.state" of a worker alone, "run.rank_1.state" of one among several. `path` may have the extension, one
// of a checkpoint, or none.
std::string state_path(const std::string& path, const StateOwnership& owner);
// Of the names in a folder those that are states of any worker beside `name`, in the order of their ranks.
std::vector<std::string> states_beside(std::string_view name, std::span<const std::string> names);
// Where the one before it stays in a job: a worker may be killed before it has written the newest.
std::string previous_state_path(const std::string& path, const StateOwnership& owner);
// The checkpoint beside a state; `ending`: its extension.
std::string checkpoint_of_state(const std::string& path, std::string_view ending = ".ckpt");

struct SavedState {
  Point point = {};
  StateOwnership owner = {};
};

// Tensors of a point that a checkpoint beside its state holds.
struct TensorsBeside {
  std::vector<std::string> names = {};
  std::string ending = ".ckpt";  // of the checkpoint
};
// Durable, as checkpoint::save.
Result<> save_state(const std::string& path, const Point& point, const StateOwnership& owner,
                    const TensorsBeside& beside = {}, Files& files = real_files());
// Where the training was and whose state it is, as the file's head says.
struct StateHead {
  PointId id = {};
  StateOwnership owner = {};
  std::string training = {};  // the section of that name, whose hash is not checked
};
Result<StateHead> state_head(const std::string& path, const Storage& storage = real_storage());
// All of the point, every hash checked. Errors name the file.
Result<SavedState> load_state(const std::string& path, const Storage& storage = real_storage());

}  // namespace muster::checkpoint
