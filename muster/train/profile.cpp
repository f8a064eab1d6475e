#include "muster/train/profile_recorder.h"

#include <ctime>
#include <thread>
#include <utility>

#include "muster/train/activity_scope.h"
#include "muster/train/process.h"

namespace muster::train {
namespace {

constexpr std::size_t spans_max = 1'000'000;

// Of this thread, by its processor.
Duration worked_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

Result<> start_profile() {
  ProfileState& state = process().profile;
  if (state.active != nullptr)
    return fail(Code::invalid_argument, "a profile is recorded already: stop that one first");
  if (state.recorder == nullptr) state.recorder = new ProfileRecorder;
  if (process().session == nullptr) lead_activity();
  state.recorder->start();
  state.active = state.recorder;
  return {};
}

Result<Profile> stop_profile() {
  ProfileRecorder* const recorder = process().profile.active.exchange(nullptr);
  if (recorder == nullptr) return fail(Code::invalid_argument, "no profile is recorded: start one first");
  return recorder->stop();
}

void ProfileRecorder::start() {
  const std::lock_guard lock(mutex_);
  profile_ = {};
  ops_.clear();
  works_.clear();
  phase_ = activity_of_main_thread().phase;
  profile_.begin = phase_begin_ = real_clock().now();
  worked_.reset();
  if (is_of_main_thread()) worked_ = worked_time();
  is_recording_ = true;
}

Profile ProfileRecorder::stop() {
  const std::lock_guard lock(mutex_);
  profile_.end = real_clock().now();
  end_phase(profile_.end);
  is_recording_ = false;
  return std::exchange(profile_, {});
}

void ProfileRecorder::enter(cluster::WorkPhase phase) {
  const std::lock_guard lock(mutex_);
  if (!is_recording_ || phase == phase_) return;
  const TimePoint now = real_clock().now();
  end_phase(now);
  phase_ = phase;
  phase_begin_ = now;
}

void ProfileRecorder::end_phase(TimePoint now) {
  const auto phase = static_cast<std::uint32_t>(phase_);
  profile_.phases.at(phase) += now - phase_begin_;
  if (is_of_main_thread()) {
    const Duration worked = worked_time();
    if (worked_) profile_.worked.at(phase) += worked - *worked_;
    worked_ = worked;
  }
  keep({.index = phase, .begin = phase_begin_, .end = now});
}

bool ProfileRecorder::is_of_main_thread() const {
  return process().activity.thread.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

void ProfileRecorder::keep(const Profile::Span& span) {
  if (profile_.spans.size() < spans_max)
    profile_.spans.push_back(span);
  else
    ++profile_.dropped;
}

void ProfileRecorder::ran(const Step& step, TimePoint begin, TimePoint end, const Describe& describe) {
  const std::lock_guard lock(mutex_);
  if (!is_recording_) return;
  const auto [known, is_new] = ops_.try_emplace({step.plan, step.index, step.op.data()}, profile_.ops.size());
  if (is_new) {
    works_.push_back(describe());
    const Description& work = works_.back();
    profile_.ops.push_back(
        {.what = work.text, .op = std::string(step.op), .talks = step.talks, .held_bytes = work.held_bytes});
    if (work.held_bytes > profile_.peak.held_bytes)
      profile_.peak = {work.text, work.held_bytes, work.parameters_bytes, work.held};
  } else if (step.plan == nullptr) {
    works_[known->second] = describe();  // an op by itself has other shapes in each call
  }
  const Description& work = works_[known->second];
  Profile::Op& op = profile_.ops[known->second];
  const bool is_elsewhere = !is_of_main_thread();
  ++op.calls;
  op.total += end - begin;
  if (is_elsewhere) op.elsewhere += end - begin;
  op.flops += work.flops;
  op.bytes += work.bytes;
  keep({.index = static_cast<std::uint32_t>(known->second),
        .is_op = true,
        .is_elsewhere = is_elsewhere,
        .begin = begin,
        .end = end});
}

}  // namespace muster::train
