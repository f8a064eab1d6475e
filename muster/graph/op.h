// The op table: one row for each operator. Autodiff, compilation, bindings and the reference page read the
// row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/graph/attributes.h"
#include "muster/graph/optimizer_schema.h"
#include "muster/graph/run.h"
#include "muster/graph/schema.h"
#include "muster/graph/type.h"
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
  // Whether it takes bfloat16 where its rule does; for others bfloat16 is widened before and rounded after.
  bool takes_bfloat16 = false;
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

// How outputs may share memory with inputs.
enum class Sharing {
  none,          // outputs have memory of their own
  view,          // output 0 is input 0 under another shape: nothing runs
  reuse,         // output 0 may be written over input 0 when nobody needs that any more
  in_place,      // output 0 is input 0, written by the op: the update of a parameter
  side_by_side,  // outputs lie in one piece of memory, in order, without gaps; each output is its input where
                 // nobody else needs that one
};

// What automatic mixed precision does with the floating inputs of an op.
enum class MixedPrecision {
  given,  // nothing
  low,    // all become bfloat16: products, whose speed it is about
  full,   // all become float32: what loses digits or overflows
  widest  // all become float32 if one is
};

struct Op {
  std::string_view name;
  // Shapes, meaning, errors and source, for people.
  std::string_view documentation;
  std::size_t inputs_min = 1;
  std::size_t inputs_max = 1;
  std::size_t outputs = 1;  // 0: as many as inputs
  // The types of the outputs, or an error that names the op and the shapes.
  Result<std::vector<TensorType>> (*infer)(const Signature&) = nullptr;
  // Gradients of the inputs, undefined where there is none. Null: the op has no gradient.
  std::vector<Value> (*gradient)(const GradientQuery&) = nullptr;
  // Floating-point operations of one run, a multiply-add being two. Null: nobody has counted.
  double (*flops)(const Signature&) = nullptr;
  // Fast ones first; the last is the reference and works for everything that `infer` allows.
  std::vector<Kernel> kernels;
  Sharing sharing = Sharing::none;
  // Other inputs that are written, beside input 0 of an in_place op: the state of an optimizer.
  std::vector<std::size_t> written = {};
  // A call that others take part in: it must run even when nobody uses its outputs.
  bool collective = false;
  MixedPrecision precision = MixedPrecision::given;
  // It takes inputs of different floating dtypes as they come: float32 parameters beside a bfloat16 input.
  bool mixes = false;
  // What its functions take and where scripts find it; empty: only other ops and passes use the row.
  Schema schema = {};
  // The optimizer whose update it is.
  OptimizerSchema optimizer = {};

  // Whether a call writes input `index`.
  bool writes(std::size_t index) const {
    return (index == 0 && sharing == Sharing::in_place) ||
           std::find(written.begin(), written.end(), index) != written.end();
  }
  bool has_effect() const { return sharing == Sharing::in_place || !written.empty() || collective; }
};

// All rows, sorted by name.
std::span<const Op* const> ops();
const Op* find_op(std::string_view name);

// The one way to compute. Inside a trace the op becomes a node (tensors that are not traced become inputs
// read at each call, never constants); outside, it runs now, by `context` or else the default one.
Values apply_all(std::string_view op, std::span<const Value> inputs, const Attributes& attributes = {});
Values apply_all(std::string_view op, std::span<const Value> inputs, const Attributes& attributes,
                 const RunContext& context);
Values apply_all(const Op& op, std::span<const Value> inputs, const Attributes& attributes = {});
// The first output.
Value apply(std::string_view op, std::span<const Value> inputs, const Attributes& attributes = {});
Value apply(std::string_view op, std::span<const Value> inputs, const Attributes& attributes,
            const RunContext& context);
inline Value apply(std::string_view op, std::initializer_list<Value> inputs,
                   const Attributes& attributes = {}) {
  return apply(op, std::span<const Value>(inputs.begin(), inputs.size()), attributes);
}

// The vector instructions of this processor ("none": the reference kernels serve), and one line for each op
// with the kernels it may use here, best first: "matmul: avx512 dot, avx512 outer, avx512 packed, reference".
std::string kernels_in_use();

}  // namespace muster::graph
