// Operations of `map` on the values of a row; processes in which code of the user's own may run.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/tensor/tensor.h"

namespace muster::data {

// What an operation's random numbers for one row are drawn from: RandomStream(draw.row, draw.operation). It
// is made of the seed, the epoch, the sample and the operation's place in the pipeline, and of nothing else:
// no rank, no worker, no order of execution.
struct Draw {
  std::uint64_t row = 0;
  std::uint64_t operation = 0;
};

// One transform. Python functions implement this interface too: `apply` of one iterator is only ever called
// on one thread at a time, and never from two threads when the operation is not one of `transforms.h` or
// `vision.h`.
class Operation {
 public:
  virtual ~Operation() = default;
  // As users know it, for messages: "Rescale".
  virtual std::string name() const = 0;
  // New values for the input columns of one row, as many as map names output columns (without a name for
  // them: as many as came in). The inputs may be shared: never write them.
  virtual Result<std::vector<Tensor>> apply(std::span<const Tensor> values, Draw draw) const = 0;
};

using OperationPtr = std::shared_ptr<const Operation>;

// What the language of the user's code wants of the processes that run it, which are forked. As it stands:
// C++. An interpreter has to know of a fork, and its exceptions travel as bytes.
class WorkerHost {
 public:
  virtual ~WorkerHost() = default;
  // fork(), on a thread of a pass.
  virtual pid_t fork() const;
  // In the worker: before its first row, behind its last one.
  virtual void begin(int /*worker*/) const {}
  virtual void end() const {}
  // Before each row: for the random generators that the user's code draws from.
  virtual void seed(std::uint64_t /*number*/) const {}
  // A signal at which a worker writes to stderr where its code is; 0: there is none.
  virtual int stack_signal() const { return 0; }
  // What the worker sends of an error beside code and message, and the error that the pass ends with.
  virtual std::string pack(const Error& /*error*/) const { return {}; }
  virtual Error unpack(Error error, std::string_view packed, const std::string& where) const;
};

// Processes that run code of the user's own: forked by each pass, ended with it. A pass asks them for rows in
// turn, so which process makes a row depends on nothing but `count`, and rows come in the order of one
// process.
struct ProcessOptions {
  int count = 0;                                // 0: the code runs in this process
  std::size_t row_bytes_max = 0;                // what goes to a process or comes back for a row; 0: 1 GiB
  std::shared_ptr<const WorkerHost> host = {};  // null: C++
};

}  // namespace muster::data
