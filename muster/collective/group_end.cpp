#include "muster/collective/group_communicator.h"

#include <fmt/format.h>

namespace muster::collective {
namespace {

// Before what others say of the group's end counts.
constexpr Duration patience_in_message = std::chrono::milliseconds(20);
constexpr Duration patience_of_idle = std::chrono::milliseconds(60);
constexpr Duration patience_with_busy_thread = std::chrono::seconds(1);

}  // namespace

// Peers that still wait for this rank learn at once that it will not come.
GroupCommunicator::~GroupCommunicator() {
  if (fork_count_ != net::fork_count()) return;
  stop_.raise();
  if (acceptor_) acceptor_->shut();
  links_.close();
  if (!local_) return;
  local_->abort({Code::peer_lost, fmt::format("rank {} left the group", rank())});
  local_pairs_->leave();
  if (alarms_) alarms_->left.ring();
}

bool GroupCommunicator::end(const Error& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return false;
    failure_ = reason;
  }
  failed_.store(true, std::memory_order_release);
  stop_.raise();
  if (acceptor_)
    acceptor_->shut();  // first: who finds its connection reset calls, and learns so that it is no accident
  return true;
}

// Who hears of it passes it on: the ranks of this host by the alarm, others by their connections.
void GroupCommunicator::abort(Error reason) {
  if (!end(reason)) return;
  links_.reset();
  if (local_) local_->abort(reason);
  remote_pairs_.reset();
  if (local_) local_pairs_->abort(reason);
  if (alarms_) alarms_->ended.ring();
}

// Collective calls need all ranks, messages do not: others may still be at it.
void GroupCommunicator::leave(Error reason) {
  if (!end(reason)) return;
  links_.close();
  if (local_) local_->abort(reason);
  if (alarms_) alarms_->left.ring();
  remote_pairs_.finish();
  if (local_) local_pairs_->leave();
}

// What leave() would have told, had the rank come to it: calls need it, what it has sent is still there.
void GroupCommunicator::lose(std::uint32_t rank, const Error& reason) {
  if (!local_ || !local_->has(rank)) return abort(reason);
  local_->abort(reason);
  local_pairs_->lose(local_->place_of(rank));
  if (alarms_) alarms_->left.ring();
}

// ---- On the thread of the watch ---------------------------------------------------------------------------

void GroupCommunicator::watch(WaitList& waits) {
  links_.watch(waits);
  if (!alarms_) return;
  waits.add(alarms_->ended.fd(), {.reading = true});
  if (!calls_are_over_) waits.add(alarms_->left.fd(), {.reading = true});
}

Result<bool> GroupCommunicator::attend() {
  const auto calls_have_more = links_.attend();  // this serves the acceptor
  const bool messages_have_more = remote_pairs_.attend();
  if (local_)
    if (auto reason = local_pairs_->ended()) return hear_of_end({.error = *std::move(reason)});
  if (!calls_have_more && calls_have_more.error().error.code == Code::peer_lost)
    return hear_of_end(calls_have_more.error());
  if (!calls_have_more) return fail(calls_have_more.error().error);
  return hear_of_leaving() || *calls_have_more || messages_have_more;
}

// A rank of this host that leaves has made all calls that it made together with this one: no other call will
// succeed, and those of other hosts who wait for this rank in it are told so. Whether a call is still under
// way.
bool GroupCommunicator::hear_of_leaving() {
  if (calls_are_over_ || !local_ || !local_->aborted()) return false;
  const std::uint64_t call = in_call_.load();
  if (kind_in(call) != CallKind::none) return true;
  calls_are_over_ = true;
  acceptor_->end_calls(local_->abort_reason().message);
  links_.close();
  return false;
}

// A rank that waits for a message may get a better reason than that some rank is gone. And one that does
// nothing just now leaves it to those who do to tell why they end: it would only pass on that it ends, too.
Result<bool> GroupCommunicator::hear_of_end(const LinkError& lost) {
  const TimePoint now = origin_.clock.now();
  const std::uint64_t looks = looks_.load(std::memory_order_relaxed);
  if (!lost_since_) {
    lost_since_ = now;
    looks_when_lost_ = looks;
  }
  const Duration since = now - *lost_since_;
  const InFlightCall call = in_flight_call();
  const bool is_in_message = call.kind == CallKind::send || call.kind == CallKind::receive;
  const Duration patience = call.kind == CallKind::none ? patience_of_idle
                            : is_in_message             ? patience_in_message
                                                        : Duration::zero();
  // A message with that very rank wakes now, too: the rank may have said there why it ends.
  const bool may_hear_it = is_in_message && lost.lost_rank == call.number && looks < looks_when_lost_ + 2;
  if (since < patience || (may_hear_it && since < patience_with_busy_thread)) return true;
  abort(lost.error);
  return false;
}

// No connection with the same certificate can take the place of those that end here: the group is over, and
// for the next one it is checked again.
void GroupCommunicator::check_peers() {
  const auto good = links_.check_peers().and_then([this] { return remote_pairs_.check_peers(); });
  if (good) return;
  log::error(good.error().message);
  abort(good.error());
}

std::optional<Error> GroupCommunicator::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

tl::unexpected<Error> GroupCommunicator::fail_group(const Error& error) {
  abort(error);
  links_.forget();
  return fail(*failure());
}

Result<> GroupCommunicator::usable() {
  MUSTER_TRY_VOID(usable_for_messages());
  if (local_ && local_->aborted()) return fail_group(local_->abort_reason());
  return {};
}

Result<> GroupCommunicator::usable_for_messages() {
  if (fork_count_ != net::fork_count())
    return fail(Code::refused, "a forked child cannot use its parent's communicator");
  if (failed_.load(std::memory_order_acquire)) return fail(*failure());
  return {};
}

}  // namespace muster::collective
