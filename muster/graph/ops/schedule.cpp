// decayed_rate and listed_rate: the learning rate of a step.
#include <algorithm>
#include <array>
#include <cmath>

#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/training.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace schedule_rows {

enum class Rule { exponential, natural_exponential, inverse, cosine, polynomial, warm_up };
constexpr std::array<std::string_view, 6> rule_names{"exponential", "natural_exponential", "inverse",
                                                     "cosine",      "polynomial",          "warm_up"};

std::optional<Rule> rule_from(std::string_view name) {
  const auto found = std::find(rule_names.begin(), rule_names.end(), name);
  if (found == rule_names.end()) return std::nullopt;
  return static_cast<Rule>(found - rule_names.begin());
}

struct Schedule {
  Rule rule = Rule::exponential;
  double rate = 0;        // at the beginning; cosine: the greatest
  double end = 0;         // cosine, polynomial
  double decay_rate = 0;  // exponential, natural_exponential, inverse
  double steps = 1;       // over which it decays or warms up
  double power = 1;       // polynomial
  bool stairs = false;    // polynomial: the steps to decay over grow instead

  double at(double step) const;
};

double polynomial(const Schedule& given, double step) {
  const double steps =
      given.stairs ? given.steps * std::max(std::ceil(step / given.steps), 1.0) : given.steps;
  const double done = given.stairs ? step / steps : std::min(step, steps) / steps;
  return (given.rate - given.end) * std::pow(1 - done, given.power) + given.end;
}

double Schedule::at(double step) const {
  const double part = stairs ? std::floor(step / steps) : step / steps;
  switch (rule) {
    case Rule::exponential:
      return rate * std::pow(decay_rate, part);
    case Rule::natural_exponential:  // its steps count whole, as in the library whose name it has
      return rate * std::exp(-decay_rate * (stairs ? part * steps : step));
    case Rule::inverse:
      return rate / (1 + decay_rate * part);
    case Rule::cosine:
      return end + 0.5 * (rate - end) * (1 + std::cos(M_PI * std::min(step, steps) / steps));
    case Rule::polynomial:
      return polynomial(*this, step);
    case Rule::warm_up:
      break;
  }
  return rate * std::min(step, steps) / steps;
}

Result<> require_step(std::string_view op, const TensorType& step) {
  const bool whole = step.dtype == DType::int32 || step.dtype == DType::int64;
  if (whole && step.shape.elements() == 1) return {};
  return bad("{}: the step must be one int32 or int64, not {}", op, to_string(step));
}

Types scalar() { return std::vector<TensorType>{{DType::float32, {}}}; }

Types infer_decayed(const Signature& signature) {
  MUSTER_TRY_VOID(require_step("decayed_rate", signature.inputs[0]));
  const std::string rule = signature.attributes.get<std::string>("rule", "");
  if (!rule_from(rule)) return bad("decayed_rate: there is no rule '{}'", rule);
  return scalar();
}

Prepared prepare_decayed(const Signature& signature) {
  const Attributes& attributes = signature.attributes;
  return prepared(Schedule{.rule = *rule_from(attributes.get<std::string>("rule", "")),
                           .rate = attributes.get("rate", 0.0),
                           .end = attributes.get("end", 0.0),
                           .decay_rate = attributes.get("decay_rate", 0.0),
                           .steps = static_cast<double>(attributes.get("steps", std::int64_t{1})),
                           .power = attributes.get("power", 1.0),
                           .stairs = attributes.get("stairs", false)});
}

template <class L>
void run_decayed(const KernelCall& call) {
  const double step = static_cast<double>(*call.input<L>(0));
  *call.output<float>() = static_cast<float>(call.setting<Schedule>().at(step));
}

Types infer_listed(const Signature& signature) {
  const TensorType& rates = signature.inputs[0];
  if (rates.dtype != DType::float32 || rates.shape.rank() != 1 || rates.shape[0] == 0)
    return bad("listed_rate: the rates must be float32 (n,), not {}", to_string(rates));
  MUSTER_TRY_VOID(require_step("listed_rate", signature.inputs[1]));
  return scalar();
}

template <class L>
void run_listed(const KernelCall& call) {
  const std::int64_t rates = call.setting<std::int64_t>();
  const auto step = static_cast<std::int64_t>(*call.input<L>(1));
  if (step < 0 || step >= rates) {
    *call.failure = Error{Code::invalid_argument,
                          fmt::format("there are {} learning rates in the list, none for step {} (counted "
                                      "from 0): give one for each step",
                                      rates, step)};
    return;
  }
  *call.output<float>() = call.input<float>(0)[step];
}

Prepared rates_of(const Signature& signature) { return prepared(signature.inputs[0].shape[0]); }

template <std::size_t index, class L>
bool step_is(const Signature& signature) {
  return signature.inputs[index].dtype == dtype_of<L>;
}

}  // namespace schedule_rows
}  // namespace

const Op& decayed_rate_op() {
  using namespace schedule_rows;
  static const Op op{
      .name = "decayed_rate",
      .documentation =
          "The learning rate, float32 (), of a step s (one int32 or int64), computed in double. With q = s / "
          "steps (its floor with stairs), c = min(s, steps) / steps: exponential: rate decay_rate^q; "
          "natural_exponential: rate exp(-decay_rate s), with stairs q steps for s; inverse: rate / (1 + "
          "decay_rate q); cosine: end + (rate - end) (1 + cos(pi c)) / 2; polynomial: (rate - end) (1 - "
          "c)^power + end, with stairs s / (steps max(ceil(s / steps), 1)) for c; warm_up: rate c.",
      .infer = infer_decayed,
      .kernels = {{"reference", step_is<0, std::int32_t>, prepare_decayed, run_decayed<std::int32_t>},
                  {"reference", step_is<0, std::int64_t>, prepare_decayed, run_decayed<std::int64_t>}},
  };
  return op;
}

const Op& listed_rate_op() {
  using namespace schedule_rows;
  static const Op op{
      .name = "listed_rate",
      .documentation =
          "The learning rate, float32 (), that rates float32 (n,) have for a step (one int32 or int64). A "
          "step beyond the list is an error.",
      .inputs_min = 2,
      .inputs_max = 2,
      .infer = infer_listed,
      .kernels = {{"reference", step_is<1, std::int32_t>, rates_of, run_listed<std::int32_t>},
                  {"reference", step_is<1, std::int64_t>, rates_of, run_listed<std::int64_t>}},
  };
  return op;
}

std::vector<const Op*> rows_of_schedule() { return {&decayed_rate_op(), &listed_rate_op()}; }

}  // namespace muster::graph
