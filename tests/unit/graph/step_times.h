// How long the steps of runs took, by what they are.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "muster/graph/run.h"

namespace muster::graph {

struct StepTime {
  std::string what;
  std::chrono::nanoseconds taken{};
};

class StepTimes : public RunObserver {
 public:
  void ran(const Step&, TimePoint begin, TimePoint end, const Describe& describe) override {
    all.push_back({describe().text, end - begin});
  }
  std::vector<StepTime> all;
};

}  // namespace muster::graph
