// Ops: their settings, their schema, the row that describes each, and calling them. Autodiff, compilation,
// bindings and the reference page read the row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "muster/graph/run.h"
#include "muster/graph/value.h"

namespace muster::graph {

// What a branch or a loop computes; the graph is an immutable value.
struct Graph;
using GraphPtr = std::shared_ptr<const Graph>;

using Attribute =
    std::variant<std::int64_t, double, bool, std::string, std::vector<std::int64_t>, DType, GraphPtr>;

std::string to_string(const Attribute& attribute);

class Attributes {
 public:
  using Entry = std::pair<std::string, Attribute>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries);

  // Adds or replaces.
  void set(std::string_view name, Attribute value);
  const Attribute* find(std::string_view name) const;
  // The value under `name`, which must be a T if it is there at all.
  template <class T>
  T get(std::string_view name, T otherwise) const {
    const Attribute* found = find(name);
    if (found == nullptr) return otherwise;
    MUSTER_CHECK(std::holds_alternative<T>(*found), "an attribute was read as another type");
    return std::get<T>(*found);
  }
  const std::vector<Entry>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }

  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  std::vector<Entry> entries_;  // sorted by name
};

// "(transpose_b=true)", "" when there is none.
std::string to_string(const Attributes& attributes);

// What becomes of an argument of Python. Those that are not passed on are names that scripts give, and C++
// has none of them.
enum class Effect {
  passed,
  none,    // accepted: it changes nothing here
  refused  // all but the default: "use_lazy=True is not provided"
};

// An attribute as an argument of the op's functions, or of its optimizer.
struct Argument {
  std::string_view name;
  Attribute otherwise;    // the default, and with it the type
  bool required = false;  // no default: `otherwise` says only the type
  bool optional = false;  // None leaves the attribute away: `otherwise` says only the type
  bool casts = false;     // not for the kernel: the first input is cast to this dtype before
  Range range = {};       // of a number, or of each number of a list
  std::vector<std::string_view> choices = {};  // of a string; empty: any
  std::string_view python = {};                // its name in Python where that is another
  Effect effect = Effect::passed;
  bool by_name_only = false;  // in Python
};

// In which dtypes the functions hand their inputs to the op, whose rule asks for equal ones.
enum class Promotion {
  none,             // as they come
  floating,         // whole numbers and truth values as float32
  common,           // all in the dtype that they meet in
  common_floating,  // likewise, and whole numbers as float32
  common_choice,    // all but the first, which is a condition, in the dtype that they meet in
  counting          // truth values and small integers as int64
};

// A name in Python. `arguments` names the arguments there in their order: "dim:axis" is the op's `axis` under
// the name `dim`, one word is the op's argument of that name, or else the one at this place. Empty: all,
// under the op's own names.
struct Alias {
  std::string_view name;
  std::vector<std::string_view> arguments = {};
};

// A class of mindspore.ops: `settings` are the arguments of its constructor, `arguments` those of its call.
struct PrimitiveAlias {
  std::string_view name;
  std::vector<std::string_view> settings = {};
  std::vector<std::string_view> arguments = {};  // empty: the inputs
};

struct Schema {
  std::vector<std::string_view> inputs = {};  // the tensors; none: the op has no functions
  std::vector<Argument> attributes = {};
  Promotion promotion = Promotion::none;
  std::size_t results = 1;                      // the functions give so many of the outputs
  std::vector<Alias> methods = {};              // of Tensor, which is the first argument
  std::vector<Alias> mindspore = {};            // functions of mindspore.ops
  std::vector<PrimitiveAlias> primitives = {};  // classes of mindspore.ops

  bool has_functions() const { return !inputs.empty(); }
};

// One parameter beside each updated one, with the name "<name>.<parameter>", under which checkpoints hold it.
struct OptimizerState {
  std::string_view name;
  double initial = 0;
  std::string_view initial_from = {};  // the argument that it begins as, instead of `initial`
  std::string_view kept_with = {};     // the argument without which (false, or 0) it is not kept
  bool is_scalar = false;              // one float32, whatever the parameter is
};

// What the class of an optimizer takes, what it keeps for each parameter, and what its update reads. It is a
// part of the row of the update, and the only description of the class: nn::Adam in C++, muster.nn.Adam and
// mindspore.nn.Adam in Python are made from it.
struct OptimizerSchema {
  std::string_view name = {};  // of the class; empty: the op is no update of an optimizer
  std::string_view documentation = {};
  // In Python's order. `learning_rate`, `weight_decay` and `loss_scale` are those of every optimizer:
  // numbers, lists and schedules, cells. The others are attributes of the update.
  std::vector<Argument> arguments = {};
  std::vector<OptimizerState> states = {};
  // What the update reads behind parameter, gradient and learning rate: states, which are left away where
  // they are not kept, and "global_step", the number of steps done. Empty: the states in their order.
  std::vector<std::string_view> inputs = {};
  // Whether weight decay is a part of the formula, instead of joining the gradient. Where it changes with the
  // step, it is the last input then, a float32 ().
  bool decays_itself = false;
  // What must hold between arguments. Null: nothing.
  Result<> (*check)(const Attributes& arguments) = nullptr;

  bool exists() const { return !name.empty(); }
};

// One parameter of a function that calls the op.
struct FunctionParameter {
  std::string_view name;
  std::size_t input = 0;  // of this input where `attribute` is null
  const Argument* attribute = nullptr;
};

// What rules and kernels are called with is private to graph (kernel.h, onnx/rule.h).
class DimensionMap;
class OnnxCall;
struct GradientQuery;
struct Kernel;
struct Signature;

// How outputs may share memory with inputs.
enum class Sharing {
  none,          // outputs have memory of their own
  view,          // output 0 is input 0 under another shape: nothing runs
  reuse,         // output 0 may be written over input 0 after the last use of that
  in_place,      // output 0 is input 0, written by the op: the update of a parameter
  side_by_side,  // outputs lie in one piece of memory, in order, without gaps; each output is its input where
                 // this op is its only user
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
  // Floating-point operations of one run, a multiply-add being two. Null: unknown.
  double (*flops)(const Signature&) = nullptr;
  // Fast ones first; the last is the reference and works for everything that `infer` allows.
  std::vector<Kernel> kernels;
  Sharing sharing = Sharing::none;
  // Other inputs that are written, beside input 0 of an in_place op: the state of an optimizer.
  std::vector<std::size_t> written = {};
  // A call in which other ranks take part: it runs even when its outputs are not used.
  bool collective = false;
  MixedPrecision precision = MixedPrecision::given;
  // It takes inputs of different floating dtypes as they come: float32 parameters beside a bfloat16 input.
  bool mixes = false;
  // What its functions take and where scripts find it; empty: only other ops and passes use the row.
  Schema schema = {};
  // The optimizer whose update it is.
  OptimizerSchema optimizer = {};
  // What it is in an ONNX graph. Null: it cannot be exported.
  Result<> (*onnx)(OnnxCall&) = nullptr;
  // Which dimensions of its inputs and outputs are the same ones, so that workers may each compute a part of
  // them (sharding/dimensions.h). Null: every worker computes all of it.
  void (*dimensions)(DimensionMap&) = nullptr;

  // Whether a call writes input `index`.
  bool writes(std::size_t index) const {
    return (index == 0 && sharing == Sharing::in_place) ||
           std::find(written.begin(), written.end(), index) != written.end();
  }
  bool has_effect() const { return sharing == Sharing::in_place || !written.empty() || collective; }
};

// All arguments of the op in order, or those that `names` picks (Alias::arguments). `skipped` arguments of
// the op stand before the first name. Throws for a name that is not in the schema.
std::vector<FunctionParameter> parameters_of(const Op& op, const std::vector<std::string_view>& names = {},
                                             std::size_t skipped = 0);

// "at least 0", "one of 'sum', 'mean'" where `value` is not what `argument` allows, else nothing.
std::optional<std::string> allowed_instead(const Argument& argument, const Attribute& value);
// Throws "leaky_relu: alpha is -1; it must be at least 0" where `value` is out of the range of `argument`.
void require_in_range(const Op& op, const Argument& argument, const Attribute& value);

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

// The dtype that tensors of these two meet in: floating wins over whole, whole over bool, the wider over the
// narrower; unsigned meets signed in a signed one that holds both (int64 for uint32).
DType promoted(DType a, DType b);

// The row `name`, which has to be there.
const Op& required_op(std::string_view name);

// The results of the op for inputs of any dtypes (Schema::promotion). Throws where an attribute that its
// schema lists is out of its range; `attributes` without it means its default.
Values call_op(const Op& op, std::span<const Value> inputs, const Attributes& attributes = {});

// `value` as `dtype` if it is floating and has another; undefined and failed ones as they are.
Value floating_as(const Value& value, DType dtype);
Values floating_as(std::span<const Value> values, DType dtype);

}  // namespace muster::graph
