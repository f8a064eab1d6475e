// Private to graph: arguments of the rules and kernels of a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "muster/graph/op.h"
#include "muster/graph/run.h"
#include "muster/graph/value.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {

// The types around one node, as a shape rule or a kernel sees them.
struct Signature {
  std::span<const TensorType> inputs;
  std::span<const TensorType> outputs;  // empty for a shape rule
  const Attributes& attributes;
  // Of the inputs as they come, where a kernel may ask for others and give others; empty: all are plain.
  std::span<const FormatPtr> formats = {};
  int threads = 1;  // that the kernel will run with
};

// One kernel call. Everything is resolved before the run; a kernel computes and returns.
struct KernelCall {
  std::byte* const* inputs = nullptr;
  std::byte* const* outputs = nullptr;
  const void* settings = nullptr;  // made by the kernel's `prepare`
  std::byte* scratch = nullptr;
  int threads = 1;
  Communicator* communicator = nullptr;
  const RunContext* context = nullptr;
  std::optional<Error>* failure = nullptr;  // a kernel that cannot go on says why here

  template <class T>
  const T* input(std::size_t index) const {
    return reinterpret_cast<const T*>(inputs[index]);
  }
  template <class T>
  T* output(std::size_t index = 0) const {
    return reinterpret_cast<T*>(outputs[index]);
  }
  template <class T>
  const T& setting() const {
    return *static_cast<const T*>(settings);
  }
};

struct Prepared {
  std::shared_ptr<const void> settings;
  std::size_t scratch_bytes = 0;
  std::vector<FormatPtr> input_formats = {};   // what the kernel reads; empty: all plain
  std::vector<FormatPtr> output_formats = {};  // what it writes; likewise
  bool declined = false;                       // the next kernel must do it
};

struct Kernel {
  std::string_view name;  // "reference", "avx512 dot"
  bool (*usable)(const Signature&);
  Prepared (*prepare)(const Signature&);
  void (*run)(const KernelCall&);
  bool (*available)() = nullptr;  // null: on every machine
  // The dtypes that it takes where its rule does. For others it computes in a wider one (computed_in):
  // inputs are widened before, and results rounded after.
  DTypes takes = {DType::float32, DType::float64, DType::int32, DType::int64,
                  DType::uint8,   DType::uint32,  DType::int8,  DType::bool_};
  // Of updates, which a plan joins into one pass over all parameters: the elements [begin, end) of input 0
  // alone, on the calling thread, others at the same time. `finish` follows when all are done. Null
  // elsewhere.
  void (*run_part)(const KernelCall&, std::int64_t begin, std::int64_t end) = nullptr;
  void (*finish)(const KernelCall&) = nullptr;
};

// A node whose gradient is wanted. The values are traced, or in eager mode concrete.
struct GradientQuery {
  std::span<const Value> inputs;
  std::span<const Value> outputs;
  std::span<const Value> output_gradients;  // undefined where none flows
  const Attributes& attributes;
};

}  // namespace muster::graph
