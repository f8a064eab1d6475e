#include "muster/train/context.h"

#include <fmt/format.h>

#include "muster/graph/graph.h"

#include "muster/train/process.h"

namespace muster::train {
namespace {

Context& chosen() { return process().choices.context; }

template <class T>
void change(T& field, T value) {
  if (field == value) return;
  field = value;
  ++chosen().version;
}

}  // namespace

std::string_view to_string(ParallelMode mode) {
  return mode == ParallelMode::data_parallel ? "data_parallel" : "stand_alone";
}

Result<ParallelMode> parallel_mode_from_string(std::string_view name) {
  if (name == "stand_alone") return ParallelMode::stand_alone;
  if (name == "data_parallel") return ParallelMode::data_parallel;
  const bool known = name == "semi_auto_parallel" || name == "auto_parallel" || name == "hybrid_parallel";
  return fail(known ? Code::not_provided : Code::invalid_argument,
              fmt::format("parallel_mode '{}' is not {}; choose 'stand_alone' or 'data_parallel'", name,
                          known ? "provided yet" : "known"));
}

Result<> check_device_target(std::string_view name) {
  if (name == "CPU") return {};
  const bool known = name == "GPU" || name == "Ascend";
  return fail(
      known ? Code::not_provided : Code::invalid_argument,
      fmt::format("device_target '{}' is not {}; choose 'CPU'", name, known ? "provided yet" : "known"));
}

const Context& context() { return process().choices.context; }
void set_mode(Mode mode) {
  change(chosen().mode, mode);
  graph::set_eager(mode == Mode::eager);
}
void set_parallel_mode(ParallelMode mode) { change(chosen().parallel_mode, mode); }
void set_gradients_mean(bool mean) { change(chosen().gradients_mean, mean); }

void detect_anomaly(bool detects) { graph::set_anomaly_detection(detects); }
bool detects_anomaly() { return graph::detects_anomalies(); }

Result<> set_buckets(const nn::Buckets& buckets) {
  MUSTER_TRY_VOID(nn::check_buckets(buckets));
  change(chosen().buckets, buckets);
  return {};
}

void set_shares_batch(bool shares, const std::string& mesh, std::uint32_t mesh_stages) {
  change(chosen().shares_batch, shares);
  change(chosen().mesh, mesh);
  change(chosen().mesh_stages, mesh_stages);
}

Result<> set_zero(const Zero& zero) {
  if (zero.level < 0 || zero.level > 3 || zero.threshold_bytes < 0)
    return fail(
        Code::invalid_argument,
        fmt::format("Zero: level is {} and threshold {} bytes: levels go from 0 to 3, thresholds from 0",
                    zero.level, zero.threshold_bytes));
  change(chosen().zero, zero);
  return {};
}

void reset_parallel_context() {
  const Context defaults;
  set_parallel_mode(defaults.parallel_mode);
  set_gradients_mean(defaults.gradients_mean);
  change(chosen().buckets, defaults.buckets);
  change(chosen().zero, defaults.zero);
  set_shares_batch(defaults.shares_batch, defaults.mesh);
  process().planner = nullptr;
}

}  // namespace muster::train
