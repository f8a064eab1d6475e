// Private to train: predicted beside measured. Where MUSTER_EXPLAIN_COSTS is 1, rank 0 predicts its steps
// when they are traced, and behind ten of them prints what each group of ops was predicted to take, and took.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "muster/train/predictions.h"

namespace muster::train {

// Threads: any.
class CostWatch final : public graph::RunObserver, public graph::GraphObserver {
 public:
  static constexpr std::size_t steps_skipped = 2;  // they trace, and touch memory for the first time
  static constexpr std::size_t steps_watched = 10;

  // Of which rank of how many workers; who gets the table.
  CostWatch(std::uint32_t workers, std::function<void(const std::string&)> tell)
      : workers_(workers), tell_(std::move(tell)) {}

  Result<bool> compiling(graph::Graph& graph, std::span<const Tensor> inputs,
                         const graph::PlanOptions& options) override;
  void ran(const Step& step, TimePoint begin, TimePoint end, const Describe& describe) override;

 private:
  struct Spent {
    Duration time{};
    std::size_t steps = 0;
  };
  using SpentByOp = std::map<std::string, Spent, std::less<>>;
  // An update that comes once in each step.
  struct Beat {
    std::size_t count = 0;
    TimePoint since{};
    SpentByOp spent = {};  // at that time
  };

  std::string table(const Beat& beat, TimePoint now) const;

  std::mutex mutex_;
  std::uint32_t workers_;
  std::function<void(const std::string&)> tell_;
  bool is_done_ = false;
  SpentByOp spent_;
  std::map<std::pair<const void*, std::size_t>, Beat> beats_;  // by plan and step
  std::map<std::string, graph::Prediction> predicted_;         // by the name of the function
  std::string problems_;
};

// Behind init().
void watch_costs();

}  // namespace muster::train
