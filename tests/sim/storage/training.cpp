#include "tests/sim/storage/training.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

namespace muster::train::sim {
namespace {

using checkpoint::Point;
using checkpoint::PointId;
using In = checkpoint::Standing::State;

constexpr const char* own_section = "own";
constexpr const char* steps_section = "steps";

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t value = (a ^ (b + 0x9E3779B97F4A7C15)) * 0xBF58476D1CE4E5B9;
  return value ^ value >> 29;
}

// What Model::train does with its call.
class Training {
 public:
  Training(Recovery& recovery, const Script& script, const Watch& watch, State& state)
      : recovery_(recovery), script_(script), watch_(watch), state_(state) {}

  Result<> run() {
    MUSTER_TRY(call_, RecoveringCall::begin(recovery_));
    while (true) {
      const Result<> done = call_->is_finished() ? take_end() : attempt();
      if (done) return done;
      MUSTER_TRY(const bool again, call_->tries_again(done.error()));
      if (!again) return done;
    }
  }

 private:
  std::uint64_t number() const { return call_->number(); }
  std::uint64_t steps_max() const { return script_.calls[number()]; }

  Result<> attempt() {
    if (is_fresh_) call_->set_memory({.state = In::fresh});
    call_->set_sharing(
        {.own_state = [this]() -> Result<std::string> { return script_.has_own_state ? "a number" : ""; },
         .capture = [this]() -> Result<Point> { return point_of(call_->step_id(steps_)); }});
    MUSTER_TRY(const RecoveringCall::Start start, call_->agree());
    if (start.finished) return take_end();
    if (start.point) take(*start.point, start.is_of_another);
    watch_.goes_on(number(), steps_, start);
    watch_.counts(number(), steps_, state_, true);
    if (std::exchange(is_fresh_, false)) {
      call_->set_memory({});
      call_->save(point_of(call_->start_id()));
    }
    while (steps_ < steps_max()) MUSTER_TRY_VOID(step());
    return finish();
  }

  Result<> step() {
    if (script_.keeps_memory) call_->set_memory({.state = In::live, .steps = steps_});
    if (call_->is_rendezvous_due()) return fail(Code::peer_lost, "a worker was lost and has come back");
    MUSTER_TRY(const auto rows, recovery_.gather({number(), steps_, state_.shared}));
    std::vector<std::uint64_t> given;
    for (const Recovery::Words& row : rows) {
      if (row[0] != number() || row[1] != steps_)
        return fail(Code::internal, fmt::format("step {} of call {} is made with step {} of call {}", steps_,
                                                number(), row[1], row[0]));
      given.push_back(row[2]);
    }
    if (script_.keeps_memory) MUSTER_TRY_VOID(call_->commit());
    call_->set_memory({});
    make_step(state_, given);
    call_->mark_step(++steps_);
    watch_.counts(number(), steps_, state_, true);
    if (steps_ % script_.save_steps != 0) return {};
    call_->save(point_of(call_->step_id(steps_)));
    return script_.keeps_memory ? Result<>{} : call_->exchange(steps_);
  }

  Result<> finish() {
    Point end = point_of(call_->end_id());
    if (call_->is_rendezvous_due()) {
      call_->save(std::move(end));
      return fail(Code::peer_lost, "a worker was lost and has come back");
    }
    return call_->finish(std::move(end), std::to_string(state_.own));
  }

  Result<> take_end() {
    MUSTER_TRY(const RecoveringCall::End end, call_->end());
    if (end.point) {
      take(*end.point, end.is_of_another);
      watch_.counts(number(), steps_max(), state_, !end.is_of_another);
    } else if (!end.is_of_another && !end.result.empty()) {
      state_.own = std::stoull(end.result);
    }
    return {};
  }

  void take(const Point& point, bool is_of_another) {
    is_fresh_ = false;
    state_.shared = static_cast<std::uint64_t>(*point.tensors.at(0).value.data<std::int64_t>());
    if (!is_of_another) state_.own = std::stoull(point.state.at(own_section));
    steps_ = std::stoull(point.state.at(steps_section));
  }

  Point point_of(const PointId& id) const {
    Point point{.id = id, .is_shared = !script_.has_own_state};
    if (script_.has_own_state) point.own = "a number";
    point.tensors.push_back({"network", Tensor::scalar(static_cast<std::int64_t>(state_.shared))});
    point.state[own_section] = std::to_string(state_.own);
    point.state[steps_section] = std::to_string(steps_);
    return point;
  }

  Recovery& recovery_;
  const Script& script_;
  const Watch& watch_;
  State& state_;
  std::unique_ptr<RecoveringCall> call_;
  bool is_fresh_ = true;
  std::uint64_t steps_ = 0;
};

}  // namespace

State first_state(const Script& script, std::uint32_t rank) {
  return {.own = script.has_own_state ? mix(rank, 7) : 0};
}

void make_step(State& state, const std::vector<std::uint64_t>& given) {
  for (const std::uint64_t of_one : given) state.shared = mix(state.shared, of_one);
  if (state.own != 0) state.own = mix(state.own, state.shared);
}

Result<> run_script(Recovery& recovery, const Script& script, std::uint32_t rank, const Watch& watch) {
  State state = first_state(script, rank);
  for (std::size_t call = 0; call < script.calls.size(); ++call)
    MUSTER_TRY_VOID(Training(recovery, script, watch, state).run());
  return {};
}

}  // namespace muster::train::sim
