#include "muster/graph/run.h"

#include <utility>
#include <vector>

#include "muster/graph/micro_batch_scope.h"
#include "muster/graph/trace.h"

namespace muster::graph {
namespace {
ContextProvider context_provider = nullptr;
thread_local const RunContext* innermost = nullptr;
// Random streams that each scope has given, the innermost last: eager code under one context draws what its
// trace would draw.
thread_local std::vector<std::int64_t> scope_streams;

thread_local MicroBatchScope* micro_batch_scope = nullptr;

// In the trace or the scope that this thread is in.
std::int64_t unused_stream() {
  thread_local std::int64_t without_scope = 0;
  if (Trace* const trace = Trace::current()) return trace->next_random_stream();
  return scope_streams.empty() ? without_scope++ : scope_streams.back()++;
}

// Whether `inner` is a part of the run of `outer`, whose streams it goes on with.
bool is_part(const RunContext& inner, const RunContext* outer) {
  return outer != nullptr && inner.seed == outer->seed && inner.step == outer->step;
}
}  // namespace

void set_context_provider(ContextProvider provider) { context_provider = provider; }

RunContext default_context() {
  if (innermost != nullptr) return *innermost;
  return context_provider == nullptr ? RunContext{} : context_provider().value();
}

ContextScope::ContextScope(const RunContext& context)
    : context_(context), outer_(std::exchange(innermost, &context_)) {
  scope_streams.push_back(is_part(context_, outer_) ? scope_streams.back() : 0);
}
ContextScope::~ContextScope() {
  const std::int64_t given = scope_streams.back();
  scope_streams.pop_back();
  if (is_part(context_, outer_)) scope_streams.back() = given;
  innermost = outer_;
}

std::int64_t next_random_stream() {
  if (micro_batch_scope == nullptr) return unused_stream();
  std::vector<std::int64_t>& known = micro_batch_scope->streams_;
  if (micro_batch_scope->next_ == known.size()) known.push_back(unused_stream());
  return known[micro_batch_scope->next_++];
}

MicroBatchScope::MicroBatchScope() {
  MUSTER_CHECK(micro_batch_scope == nullptr, "a part of a batch was to be split again");
  micro_batch_scope = this;
}
MicroBatchScope::~MicroBatchScope() { micro_batch_scope = nullptr; }

void MicroBatchScope::begin(std::int64_t part) {
  part_ = part;
  next_ = 0;
}

std::int64_t current_micro_batch() { return micro_batch_scope == nullptr ? 0 : micro_batch_scope->part(); }

}  // namespace muster::graph
