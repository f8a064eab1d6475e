// Profile: where the time of this process goes, while it is recorded.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"
#include "muster/cluster/cluster.h"
#include "muster/graph/graph.h"

namespace muster::train {

struct Profile {
  static constexpr int phases_count = 6;  // of cluster::WorkPhase

  struct Op {
    std::string what;    // "conv2d [onednn] -> aBcd16b"
    std::string op;      // "conv2d"
    bool talks = false;  // with other workers: the time that it was waited for
    std::int64_t calls = 0;
    Duration total{};
    Duration elsewhere{};  // of `total`: on other threads than the main one
    // Of all calls; a multiply-add counts as two, 0: the op's row does not count.
    double flops = 0;
    std::size_t bytes = 0;  // read and written
    // Values of its plan that were there while it ran, without inputs and parameters; of the last call.
    std::size_t held_bytes = 0;
  };
  // The op beside which most was held.
  struct Peak {
    std::string what = {};  // of the op; empty: no plan ran
    std::size_t held_bytes = 0;
    std::size_t parameters_bytes = 0;  // of its plan, an optimizer's state among them
    std::vector<graph::RunObserver::Description::Held> largest = {};
  };
  // What the main thread did, or an op, which then lies inside of what it did unless it ran elsewhere.
  struct Span {
    std::uint32_t index = 0;  // of `ops`, or the cluster::WorkPhase
    bool is_op = false;
    bool is_elsewhere = false;  // on another thread
    TimePoint begin{};
    TimePoint end{};
  };

  TimePoint begin{};
  TimePoint end{};
  // Of the main thread; together they are the whole time. Ops are mostly in `computing`.
  std::array<Duration, phases_count> phases{};
  // Of these the time that a processor worked for it: beside that it slept, or waited for a file, a lock,
  // Python's interpreter or a core.
  std::array<Duration, phases_count> worked{};
  std::vector<Op> ops = {};
  std::vector<Span> spans = {};
  Peak peak = {};
  std::int64_t dropped = 0;  // spans behind the first million, which count in the totals alone
};

// From now on; an error where one is recorded already.
Result<> start_profile();
// Ends it. An error where none is recorded.
Result<Profile> stop_profile();
// The same, and writes it: rank<N>.json in the folder, which is made; its path. `muster profile FOLDER` shows
// it, with those of other ranks.
Result<std::string> stop_profile(const std::string& folder);

}  // namespace muster::train
