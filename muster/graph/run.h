// Environment of a run: what it needs from outside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {

// What runs tell of their steps, on the threads that run them.
class RunObserver {
 public:
  struct Step {
    const void* plan = nullptr;  // of which it is a step; null: an op that runs by itself
    std::size_t index = 0;       // in the plan
    std::string_view op;
    bool talks = false;  // with other workers
  };
  // What one run of a step is and does.
  struct Description {
    std::string text;       // as in Plan::to_string: "conv2d [onednn] -> aBcd16b"
    double flops = 0;       // a multiply-add counts as two; 0 where the row of the op does not count
    std::size_t bytes = 0;  // of what it reads and writes
    // Of a plan's values that are there while it runs: made before it or in it, and read in it, behind it, or
    // by who called. Inputs and parameters are none.
    struct Held {
      std::string what;  // "conv2d float32 (32, 64, 56, 56)"
      std::size_t bytes = 0;
    };
    std::size_t held_bytes = 0;
    std::vector<Held> held = {};       // the largest of them
    std::size_t parameters_bytes = 0;  // of the plan, an optimizer's state among them
  };
  using Describe = std::function<Description()>;
  virtual ~RunObserver() = default;
  // Behind a step; of a call that goes on beside others, behind the time that it was waited for.
  virtual void ran(const Step& step, TimePoint begin, TimePoint end, const Describe& describe) = 0;
};

// What a call of some workers goes through: the group of that name, "" being all; with a tag, what sends and
// receives messages that have it. Borrowed for the length of a call.
using GroupLookup = Result<Communicator*> (*)(std::string_view name, std::optional<std::int64_t> tag);

// What may end a run from outside, as Ctrl-C does: an error ends it.
using Interruption = Result<> (*)();

// Plans reduce, send and receive from one thread each at a time, which need not be the one that runs the
// plan, nor be the same.
struct RunContext {
  std::uint64_t seed = 0;                // of all random numbers: initial parameters, dropout
  Communicator* communicator = nullptr;  // of reductions; null: a group of one
  GroupLookup group = nullptr;           // of ops with a `group`, and of messages; null: there are none
  // The workers over which one copy of a placed network is divided: placed nodes run on the rank of their
  // Placement. Null, or a group of one: everything runs here.
  Communicator* stages = nullptr;
  int threads = 1;
  // Where random numbers stand: runs with another step draw others. Sample i of a batch here is sample
  // first_sample + i * sample_stride of the batch of all workers, so that nothing depends on their number.
  std::uint64_t step = 0;
  std::uint64_t first_sample = 0;
  std::uint64_t sample_stride = 1;
  RunObserver* observer = nullptr;  // borrowed; null: no times are taken
  // Asked between the ops of a plan as long as the run can be dropped whole, before anything that others see
  // is written; null: nothing ends it.
  Interruption interrupted = nullptr;
  // Asked once by a run that updates parameters: when the collective calls before its first update are done.
  // An error ends the run, and nothing was updated; null: nothing is asked.
  Interruption commit = nullptr;
};

// What an op that runs outside any graph gets when the caller gives nothing: the context of the scope around,
// else the provider's answer, else the defaults above. `train` provides this process's part in the job; an
// error of the provider is thrown as an Exception. Set before computing.
using ContextProvider = Result<RunContext> (*)();
void set_context_provider(ContextProvider provider);
RunContext default_context();

// While it lives, `context` is this thread's default. Scopes nest.
class ContextScope {
 public:
  explicit ContextScope(const RunContext& context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  RunContext context_;
  const RunContext* outer_;
};

}  // namespace muster::graph
