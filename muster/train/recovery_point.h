// A training into a recovery point and back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/checkpoint/checkpoint.h"
#include "muster/nn/nn.h"
#include "muster/train/callback.h"
#include "muster/train/metric.h"
#include "muster/train/snapshot_memory.h"
#include "muster/train/state.h"

namespace muster::train {

// What a training consists of beside its position, borrowed.
struct TrainingParts {
  // Those that another worker has are left to that one.
  std::span<const graph::ParameterPtr> parameters = {};
  std::span<const CallbackPtr> callbacks = {};
  const NamedMetrics& metrics;
  std::optional<std::int64_t> batches = {};  // steps of a pass over the data, where that is known
  // Whether the workers make each step together, so that all of one stage have the same parameters.
  bool is_together = false;
  // What in the parameters is each worker's own, in words; empty: nothing that they do not say themselves.
  std::string own = {};
};

// Where a training is, beside its parts.
struct TrainingPosition {
  StateValues values = {};           // counters by name
  std::vector<Tensor> outputs = {};  // of the last step
};

// Of a position: TrainingParts::batches.
inline constexpr const char* batches_name = "batches";

// Copies of everything, made in `memory`; the number of runs that random numbers come from too.
Result<checkpoint::Point> capture(const checkpoint::PointId& id, const TrainingParts& parts,
                                  const TrainingPosition& position, SnapshotMemory& memory);
// Where the training was.
Result<TrainingPosition> position_in(const checkpoint::Point& point);
// Whether other workers have parameters that this one has not.
bool is_divided(const checkpoint::Point& point);
// Gives the point another place.
void put_position(const StateValues& values, checkpoint::Point& point);
// Whose states of callbacks a point holds. Another worker's tell when to do what; metrics are each one's own.
enum class StateOwner { this_worker, another_worker };

// Sets the parts, and the number of runs, to what they were. An error names what does not fit.
Result<> restore(const checkpoint::Point& point, const TrainingParts& parts,
                 StateOwner owner = StateOwner::this_worker);
// The states of callbacks and metrics alone.
Result<> restore_states(const checkpoint::Point& point, const TrainingParts& parts);

// What in the parts is this worker's own, so that no other one can go on from it: "callback 2 keeps a state
// of its own"; empty: nothing is.
Result<std::string> own_state_in(const TrainingParts& parts);

// The states of callbacks and metrics that have no tensors, as one text, and back.
Result<std::string> states_as_text(const TrainingParts& parts);
Result<> load_states(const std::string& text, const TrainingParts& parts);

// The states of metrics alone, as a point holds them, and one of them again.
Result<checkpoint::Point> point_of_metrics(const NamedMetrics& metrics);
State state_of_metric(const checkpoint::Point& point, const std::string& name);

// The parameters of all cells that are there, each once.
std::vector<graph::ParameterPtr> parameters_of(std::span<const nn::CellPtr> cells);

}  // namespace muster::train
