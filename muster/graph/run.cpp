#include "muster/graph/run.h"

#include <utility>
#include <vector>

#include "muster/graph/random_streams.h"
#include "muster/graph/thread_state.h"

namespace muster::graph {
namespace {
// In the trace or the scope that this thread is in.
std::int64_t unused_stream() {
  ThreadState& state = thread_state();
  if (state.trace != nullptr) return state.trace->next_random_stream();
  return state.random_streams.back()++;
}

// Whether `inner` is a part of the run of `outer`, whose streams it goes on with.
bool is_part(const RunContext& inner, const RunContext* outer) {
  return outer != nullptr && inner.seed == outer->seed && inner.step == outer->step;
}
}  // namespace

void set_context_provider(ContextProvider provider) { process_state().context_provider = provider; }

RunContext default_context() {
  if (const RunContext* const context = thread_state().context) return *context;
  const ContextProvider provider = process_state().context_provider;
  return provider == nullptr ? RunContext{} : provider().value();
}

ContextScope::ContextScope(const RunContext& context)
    : context_(context), outer_(std::exchange(thread_state().context, &context_)) {
  std::vector<std::int64_t>& streams = thread_state().random_streams;
  streams.push_back(is_part(context_, outer_) ? streams.back() : 0);
}
ContextScope::~ContextScope() {
  ThreadState& state = thread_state();
  const std::int64_t given = state.random_streams.back();
  state.random_streams.pop_back();
  if (is_part(context_, outer_)) state.random_streams.back() = given;
  state.context = outer_;
}

std::int64_t next_random_stream() {
  MicroBatchScope* const scope = thread_state().micro_batch;
  if (scope == nullptr) return unused_stream();
  std::vector<std::int64_t>& known = scope->streams_;
  if (scope->next_ == known.size()) known.push_back(unused_stream());
  return known[scope->next_++];
}

void begin_random_streams(std::int64_t first) { thread_state().random_streams.back() = first; }

MicroBatchScope::MicroBatchScope() {
  MUSTER_CHECK(thread_state().micro_batch == nullptr, "a part of a batch was to be split again");
  thread_state().micro_batch = this;
}
MicroBatchScope::~MicroBatchScope() { thread_state().micro_batch = nullptr; }

void MicroBatchScope::begin(std::int64_t part) {
  part_ = part;
  next_ = 0;
}

std::int64_t current_micro_batch() {
  const MicroBatchScope* const scope = thread_state().micro_batch;
  return scope == nullptr ? 0 : scope->part();
}

}  // namespace muster::graph
