// Schema of an op: what its functions in C++ and Python take, and under which names scripts find it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/graph/attributes.h"

namespace muster::graph {

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
  Attribute otherwise;             // the default, and with it the type
  bool required = false;           // no default: `otherwise` says only the type
  bool optional = false;           // None leaves the attribute away: `otherwise` says only the type
  bool casts = false;              // not for the kernel: the first input is cast to this dtype before
  std::optional<double> min = {};  // of a number, or of each number of a list
  std::optional<double> max = {};
  std::optional<double> above = {};  // likewise, the bound itself left out
  std::optional<double> below = {};
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

// One parameter of a function that calls the op.
struct FunctionParameter {
  std::string_view name;
  std::size_t input = 0;  // of this input where `attribute` is null
  const Argument* attribute = nullptr;
};

struct Op;

// All arguments of the op in order, or those that `names` picks (Alias::arguments). `skipped` arguments of
// the op stand before the first name. Throws for a name that is not in the schema.
std::vector<FunctionParameter> parameters_of(const Op& op, const std::vector<std::string_view>& names = {},
                                             std::size_t skipped = 0);

// "at least 0", "in (0, 1)", "" for a number that may be any.
std::string range_of(const Argument& argument);
// "at least 0", "one of 'sum', 'mean'" where `value` is not what `argument` allows, else nothing.
std::optional<std::string> allowed_instead(const Argument& argument, const Attribute& value);
// Throws "leaky_relu: alpha is -1; it must be at least 0" where `value` is out of the range of `argument`.
void require_in_range(const Op& op, const Argument& argument, const Attribute& value);

}  // namespace muster::graph
