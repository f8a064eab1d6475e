#include "muster/graph/cost/pipeline.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace muster::graph {
namespace {

using Kind = PipelineStep::Kind;

class Pipeline {
 public:
  Pipeline(const std::vector<std::vector<PipelineStep>>& stages, const PipelineOptions& options)
      : steps_(stages), options_(options), places_(stages.size()) {
    made_.stages.resize(stages.size());
  }

  PipelineTimes run() {
    for (std::size_t stage = 0; stage < steps_.size(); ++stage) begin_step(stage);
    while (take_messages(), advance()) {
    }
    for (std::size_t stage = 0; stage < steps_.size(); ++stage)
      made_.stages[stage].waiting_s += made_.step_s - places_[stage].ended_at;
    return std::move(made_);
  }

 private:
  struct Place {
    std::size_t step = 0;
    double left_s = 0;  // of it
    double ended_at = 0;
  };
  using Way = std::pair<std::size_t, std::size_t>;  // from a stage to another

  const PipelineStep* step_of(std::size_t stage) const {
    const std::size_t step = places_[stage].step;
    return step < steps_[stage].size() ? &steps_[stage][step] : nullptr;
  }

  bool runs(std::size_t stage) const {
    const PipelineStep* const step = step_of(stage);
    return step != nullptr && step->kind != Kind::receive;
  }

  void begin_step(std::size_t stage) {
    if (const PipelineStep* const step = step_of(stage)) places_[stage].left_s = step->seconds;
    places_[stage].ended_at = made_.step_s;
  }

  void end_step(std::size_t stage) {
    ++places_[stage].step;
    begin_step(stage);
  }

  // All that were sent and are waited for.
  void take_messages() {
    for (bool any = true; std::exchange(any, false);)
      for (std::size_t stage = 0; stage < steps_.size(); ++stage) {
        const PipelineStep* const step = step_of(stage);
        if (step == nullptr || step->kind != Kind::receive) continue;
        std::size_t& sent = on_the_way_[{step->peer, stage}];
        if (sent == 0) continue;
        --sent;
        any = true;
        end_step(stage);
      }
  }

  // How fast what computes goes on.
  double rate() const {
    std::size_t computing = 0;
    for (std::size_t stage = 0; stage < steps_.size(); ++stage)
      if (runs(stage) && step_of(stage)->kind == Kind::compute) ++computing;
    const double threads = static_cast<double>(computing * options_.workers_of_stage) * options_.threads;
    return threads == 0 ? 1 : std::min(1.0, options_.cores / threads);
  }

  double rate_of(std::size_t stage, double computing) const {
    return step_of(stage)->kind == Kind::compute ? computing : 1;
  }

  // To the end of the next step that ends; false where nothing runs.
  bool advance() {
    const double computing = rate();
    double next_s = std::numeric_limits<double>::infinity();
    for (std::size_t stage = 0; stage < steps_.size(); ++stage)
      if (runs(stage)) next_s = std::min(next_s, places_[stage].left_s / rate_of(stage, computing));
    if (next_s == std::numeric_limits<double>::infinity()) return false;
    made_.step_s += next_s;
    for (std::size_t stage = 0; stage < steps_.size(); ++stage) {
      const PipelineStep* const step = step_of(stage);
      if (step == nullptr) continue;
      PipelineTimes::Stage& times = made_.stages[stage];
      (step->kind == Kind::receive   ? times.waiting_s
       : step->kind == Kind::compute ? times.computing_s
                                     : times.calls_s) += next_s;
      if (step->kind == Kind::receive) continue;
      Place& place = places_[stage];
      place.left_s -= next_s * rate_of(stage, computing);
      if (place.left_s > 1e-12) continue;
      if (step->kind == Kind::send) ++on_the_way_[{stage, step->peer}];
      end_step(stage);
    }
    return true;
  }

  const std::vector<std::vector<PipelineStep>>& steps_;
  PipelineOptions options_;
  std::vector<Place> places_;
  std::map<Way, std::size_t> on_the_way_;  // messages that were not received yet
  PipelineTimes made_;
};

}  // namespace

PipelineTimes run_beside(const std::vector<std::vector<PipelineStep>>& stages,
                         const PipelineOptions& options) {
  return Pipeline(stages, options).run();
}

}  // namespace muster::graph
