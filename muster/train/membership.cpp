#include "muster/train/membership.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "muster/net/net.h"
#include "muster/train/front_end.h"
#include "muster/train/process.h"
#include "muster/train/step_lines.h"

namespace muster::train {
namespace {

constexpr auto patience_for_verdict = std::chrono::seconds(1);

}  // namespace

Membership::Membership(WorkerGroups& groups, cluster::Node& node, bool strict)
    : groups_(groups), node_(node), strict_(strict), fork_count_(net::fork_count()) {}

std::uint32_t Membership::workers_here(std::uint32_t count) const {
  const std::vector<cluster::Member>& workers = roster().workers;
  return static_cast<std::uint32_t>(
      std::count_if(workers.begin(), workers.begin() + count, [&](const cluster::Member& worker) {
        return cluster::host_of(worker) == cluster::host_of(workers[rank()]);
      }));
}

std::uint32_t Membership::workers_on_its_cores() const {
  return cluster::workers_on_cores_of(roster().workers[rank()], roster());
}

bool Membership::in_forked_child() const { return net::fork_count() != fork_count_; }

void Membership::report_step(std::uint64_t step) {
  node_.report_step(step);
  if (step > highest_step()) highest_step_.store(step, std::memory_order_relaxed);
  if (in_forked_child()) return;
  node_.report_slower(note_step_done(step));
  if (process().step_lines != nullptr) process().step_lines->made_step(step);
}

Error Membership::verdict(Error error) const {
  if (was_interrupted_.load(std::memory_order_acquire)) return interruption_;
  // Whatever is wrong with the way to the others, a new epoch makes a new one.
  const bool link_failed = error.code == Code::timeout || error.code == Code::refused ||
                           error.code == Code::corrupt || error.code == Code::io;
  if (link_failed && recovers() && !in_forked_child()) error.code = Code::peer_lost;
  if (error.code != Code::peer_lost) return error;
  return groups_.wait_until_over(patience_for_verdict).value_or(std::move(error));
}

void Membership::look_for_interruption_of_wait() {
  if (in_forked_child() || was_interrupted_.load(std::memory_order_relaxed)) return;
  const Result<> looked = look_for_interruption();
  if (looked) return;
  interruption_ = looked.error();
  was_interrupted_.store(true, std::memory_order_release);
  groups_.end({Code::peer_lost, fmt::format("worker {} was interrupted while it waited for the others ({})",
                                            rank(), interruption_.message)});
}

void Membership::leave(const Leaving& leaving) {
  if (reason_.empty() && leaving.exit_status != 0)
    reason_ = fmt::format("exited with status {}", leaving.exit_status);
  if (leaving.replaced)
    node_.replaced(*leaving.replaced);
  else
    node_.leave(leaving.exit_status, reason_, leaving.serve);
  // A rank that still waits for this worker would wait in vain; what it has sent still arrives.
  groups_.leave({Code::peer_lost,
                 fmt::format("worker {} has left the job, with status {}", rank(), leaving.exit_status)});
}

}  // namespace muster::train
