// Context that the script chose before or between steps: mode, device, parallel mode. One value for the
// process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "muster/base/base.h"
#include "muster/nn/nn.h"

namespace muster::train {

// graph: cells and functions are traced once and run as compiled plans. eager: they run op by op, at once.
enum class Mode { graph, eager };
enum class ParallelMode { stand_alone, data_parallel };

std::string_view to_string(ParallelMode mode);
// "stand_alone" or "data_parallel"; an error lists the choices.
Result<ParallelMode> parallel_mode_from_string(std::string_view name);

// ZeRO: what of a training the workers of a data-parallel job share instead of each having all of it. Results
// are those of data parallel, bit for bit.
struct Zero {
  // 0: nothing. 1: the state of optimizers. 2: that, and reduced gradients. 3: that, and parameters, which
  // are gathered for each use.
  std::int64_t level = 0;
  // Parameters of fewer bytes stay whole, as do those whose first axis the workers do not divide.
  std::int64_t threshold_bytes = std::int64_t{64} << 10;
  friend bool operator==(const Zero&, const Zero&) = default;
};

struct Context {
  Mode mode = Mode::graph;
  ParallelMode parallel_mode = ParallelMode::stand_alone;
  // Whether reduced gradients are divided by the world size. Off by default, as MindSpore has it.
  bool gradients_mean = false;
  // How gradients travel where a whole step is one plan.
  nn::Buckets buckets = {};
  Zero zero = {};
  // Whether all workers compute one batch together, as parts of a mesh (graph/ops/shard.cpp): each sees all
  // of its samples.
  bool shares_batch = false;
  std::string mesh = {};          // of it: "data=2,model=4"
  std::uint32_t mesh_stages = 1;  // of a network that is placed on as many such meshes
  // Raised by every change: a part of the signature of what was traced under it.
  std::uint64_t version = 0;
};

// Only "CPU" so far; an error says what was asked for and what there is.
Result<> check_device_target(std::string_view name);

// The process's context. Main thread only.
const Context& context();
void set_mode(Mode mode);
void set_parallel_mode(ParallelMode mode);
void set_gradients_mean(bool mean);
// An error, and no change, where they cannot be.
Result<> set_buckets(const nn::Buckets& buckets);
void set_shares_batch(bool shares, const std::string& mesh, std::uint32_t mesh_stages = 1);
// Counts for trainings that begin from now on.
Result<> set_zero(const Zero& zero);
// Whether the first op that gives NaN, or infinity from finite numbers, ends its run with an error that names
// the op, its cell, the step and the worker (graph::set_anomaly_detection): to find where a loss that is no
// number comes from. It takes several times as long. Off by default, but where MUSTER_DETECT_ANOMALY is 1.
void detect_anomaly(bool detects = true);
bool detects_anomaly();
// The parallel mode, the mean, the buckets and ZeRO, back to the defaults.
void reset_parallel_context();

}  // namespace muster::train
