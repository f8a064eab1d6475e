#include "muster/train/aborted_step.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "muster/nn/nn.h"
#include "muster/train/process.h"

namespace muster::train {
namespace {

LoopBody& body() { return process().body; }

void make_void(const Error& reason) {
  if (body().is_aborted.exchange(true)) return;
  log::info(reason.message);
  nn::pause_updates(true);
}

// The first call of a body that has changed nothing yet: another process can make the same step.
bool may_wait() { return !body().has_called && graph::parameter_writes() == body().writes; }

// After a call that failed with `error`: whether it is to be made again. Otherwise the body is void.
Result<bool> goes_on(RecoveringCall& call, Error error) {
  while (true) {
    MUSTER_TRY(const bool again, call.tries_again(error));
    if (!again) return fail(std::move(error));
    auto start = call.agree();
    if (!start) {
      error = std::move(start).error();
      continue;
    }
    if (start->is_live) return true;
    body().start = *std::move(start);
    make_void(error);
    return false;
  }
}

}  // namespace

void begin_body(RecoveringCall& call, std::uint64_t steps) {
  LoopBody& begun = body();
  begun.thread = std::this_thread::get_id();
  begun.steps = steps;
  begun.writes = graph::parameter_writes();
  begun.has_called = false;
  begun.start.reset();
  begun.call = &call;
}

BodyEnd end_body() {
  body().call = nullptr;
  nn::pause_updates(false);
  return {.is_aborted = body().is_aborted.exchange(false),
          .start = std::exchange(body().start, std::nullopt)};
}

bool step_is_aborted() { return body().is_aborted; }

bool in_body() { return body().call != nullptr && body().thread == std::this_thread::get_id(); }

void zero_if_aborted(std::span<std::byte> out) {
  if (step_is_aborted()) std::ranges::fill(out, std::byte{0});
}

Result<> or_abort(Result<> done) {
  RecoveringCall* const call = body().call;
  if (done || call == nullptr || (!step_is_aborted() && !call->recovery().lost_epoch(done.error())))
    return done;
  make_void(done.error());
  return {};
}

Result<> call_in_body(const std::function<Result<>()>& make) {
  if (body().call == nullptr) return make();
  if (step_is_aborted()) return {};
  if (!in_body()) return or_abort(make());
  RecoveringCall& call = *body().call;
  using In = checkpoint::Standing::State;
  call.set_memory(may_wait() ? RecoveringCall::Memory{.state = In::live, .steps = body().steps}
                             : RecoveringCall::Memory{});
  const bool is_first = !std::exchange(body().has_called, true);
  Result<> done = call.is_rendezvous_due()
                      ? Result<>(fail(Code::peer_lost, "a worker was lost and has come back"))
                      : make();
  while (true) {
    if (done && is_first) done = call.commit();
    if (done) return done;
    MUSTER_TRY(const bool again, goes_on(call, done.error()));
    if (!again) return {};
    done = make();
  }
}

}  // namespace muster::train
