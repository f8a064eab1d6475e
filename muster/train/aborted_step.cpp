#include "muster/train/aborted_step.h"

#include <atomic>
#include <thread>
#include <utility>

#include "muster/nn/nn.h"

namespace muster::train {
namespace {

// A plan may send on one thread while it receives on another.
std::atomic<RecoveringCall*> body_of = nullptr;
std::atomic<bool> is_aborted = false;

// Of the main thread.
struct Body {
  std::thread::id thread = {};
  std::uint64_t steps = 0;
  std::uint64_t writes = 0;  // to parameters, when it began
  bool has_called = false;   // others
  std::optional<RecoveringCall::Start> start = {};
};
Body body;

void make_void(const Error& reason) {
  if (is_aborted.exchange(true)) return;
  log::info(reason.message);
  nn::pause_updates(true);
}

// The first call of a body that has changed nothing yet: another process can make the same step.
bool may_wait() { return !body.has_called && graph::parameter_writes() == body.writes; }

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
    body.start = *std::move(start);
    make_void(error);
    return false;
  }
}

}  // namespace

void begin_body(RecoveringCall& call, std::uint64_t steps) {
  body = {.thread = std::this_thread::get_id(), .steps = steps, .writes = graph::parameter_writes()};
  body_of = &call;
}

BodyEnd end_body() {
  body_of = nullptr;
  nn::pause_updates(false);
  return {.is_aborted = is_aborted.exchange(false), .start = std::exchange(body.start, std::nullopt)};
}

bool step_is_aborted() { return is_aborted; }

bool in_body() { return body_of != nullptr && body.thread == std::this_thread::get_id(); }

Result<> or_abort(Result<> done) {
  RecoveringCall* const call = body_of;
  if (done || call == nullptr || (!is_aborted && !call->recovery().lost_epoch(done.error()))) return done;
  make_void(done.error());
  return {};
}

Result<> call_in_body(const std::function<Result<>()>& make) {
  if (body_of == nullptr) return make();
  if (step_is_aborted()) return {};
  if (!in_body()) return or_abort(make());
  RecoveringCall& call = *body_of;
  using In = checkpoint::Standing::State;
  call.set_memory(may_wait() ? RecoveringCall::Memory{.state = In::live, .steps = body.steps}
                             : RecoveringCall::Memory{});
  const bool is_first = !std::exchange(body.has_called, true);
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
