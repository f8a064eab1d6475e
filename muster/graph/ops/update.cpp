// sgd and momentum: updates of parameters, in place.
#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/training.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace update_rows {

using kernels::SgdSettings;

// parameter, gradient, learning_rate, and with momentum: accumulation and (sgd) its started flag.
Types infer(std::string_view op, const Signature& signature) {
  const TensorType& parameter = signature.inputs[0];
  MUSTER_TRY_VOID(require_floating(op, parameter));
  MUSTER_TRY_VOID(require_alike(op, "gradient", signature.inputs[1], parameter));
  MUSTER_TRY_VOID(require_alike(op, "learning rate", signature.inputs[2], {DType::float32, {}}));
  if (signature.inputs.size() > 3)
    MUSTER_TRY_VOID(require_alike(op, "accumulation", signature.inputs[3], parameter));
  if (signature.inputs.size() > 4)
    MUSTER_TRY_VOID(require_alike(op, "flag of the first step", signature.inputs[4], {DType::float32, {}}));
  return same_as_first(signature);
}

Types infer_sgd(const Signature& signature) {
  if (signature.inputs.size() == 4) return bad("sgd: with momentum it needs accumulation and flag");
  return infer("sgd", signature);
}
Types infer_momentum(const Signature& signature) { return infer("momentum", signature); }

struct Settings {
  SgdSettings sgd;
  std::int64_t count = 0;
};

Prepared prepare_with(const Signature& signature, bool nesterov) {
  const Attributes& attributes = signature.attributes;
  Prepared made = prepared(Settings{{.momentum = attributes.get("momentum", 0.0),
                                     .dampening = attributes.get("dampening", 0.0),
                                     .weight_decay = attributes.get("weight_decay", 0.0),
                                     .gradient_scale = 1 / attributes.get("loss_scale", 1.0),
                                     .nesterov = nesterov},
                                    signature.inputs[0].shape.elements()});
  return in_order_of_parameter(std::move(made), signature);
}

Prepared prepare_sgd(const Signature& signature) {
  return prepare_with(signature, signature.attributes.get("nesterov", false));
}
Prepared prepare_momentum(const Signature& signature) {
  return prepare_with(signature, signature.attributes.get("use_nesterov", false));
}

// With momentum input 3 is the accumulation; sgd alone has a flag of the first step behind it.
enum class State { none, accumulation, accumulation_and_flag };

float* flag(const KernelCall& call) { return reinterpret_cast<float*>(call.inputs[4]); }

template <class T, State state>
kernels::SgdArguments<T> arguments(const KernelCall& call) {
  return {.parameter = call.output<T>(),
          .gradient = call.input<T>(1),
          .learning_rate = static_cast<T>(*call.input<float>(2)),
          .accumulation = state == State::none ? nullptr : reinterpret_cast<T*>(call.inputs[3]),
          .first = state == State::accumulation_and_flag && *flag(call) > 0,
          .count = call.setting<Settings>().count,
          .threads = call.threads};
}

template <State state>
void finish(const KernelCall& call) {
  if constexpr (state == State::accumulation_and_flag) *flag(call) = 0;
}

template <class T, State state>
void run(const KernelCall& call) {
  kernels::sgd(call.setting<Settings>().sgd, arguments<T, state>(call));
  finish<state>(call);
}

template <class T, State state>
void run_part(const KernelCall& call, std::int64_t begin, std::int64_t end) {
  kernels::sgd_part(call.setting<Settings>().sgd, arguments<T, state>(call), begin, end);
}

constexpr std::size_t inputs_of(State state) {
  return state == State::none ? 3 : (state == State::accumulation ? 4 : 5);
}

template <class T, State state>
bool usable(const Signature& signature) {
  return first_is<T>(signature) && signature.inputs.size() == inputs_of(state);
}

template <class T, State state>
Kernel kernel() {
  constexpr auto prepare = state == State::accumulation ? prepare_momentum : prepare_sgd;
  return in_parts({"reference", usable<T, state>, prepare, run<T, state>}, run_part<T, state>, finish<state>);
}

Result<> check_sgd(const Attributes& arguments) {
  const double momentum = arguments.get("momentum", 0.0), dampening = arguments.get("dampening", 0.0);
  if (!arguments.get("nesterov", false) || (momentum > 0 && dampening == 0)) return {};
  return bad("SGD: nesterov needs momentum above 0 and dampening 0, not {} and {}", momentum, dampening);
}

}  // namespace update_rows
}  // namespace

const Op& sgd_op() {
  using namespace update_rows;
  static const Op op{
      .name = "sgd",
      .documentation =
          "The update of SGD, in place: parameter, gradient, learning_rate (), and with momentum the "
          "accumulation v and the flag of the first step, which are written too.",
      .inputs_min = 3,
      .inputs_max = 5,
      .infer = infer_sgd,
      .kernels = {kernel<float, State::none>(), kernel<double, State::none>(),
                  kernel<float, State::accumulation_and_flag>(),
                  kernel<double, State::accumulation_and_flag>()},
      .sharing = Sharing::in_place,
      .written = {3, 4},
      .optimizer = {.name = "SGD",
                    .documentation = "g = gradient / loss_scale + weight_decay p; p = p - learning_rate g. "
                                     "With momentum, v = momentum v + (1 - dampening) g, which begins at g, "
                                     "takes the place of g; with nesterov, g + momentum v does.",
                    .arguments = {{.name = "learning_rate", .otherwise = 0.1},
                                  {.name = "momentum", .otherwise = 0.0, .range = {.min = 0}},
                                  {.name = "dampening", .otherwise = 0.0, .range = {.min = 0}},
                                  {.name = "weight_decay", .otherwise = 0.0},
                                  {.name = "nesterov", .otherwise = false},
                                  {.name = "loss_scale", .otherwise = 1.0}},
                    .states = {{.name = "accum", .kept_with = "momentum"},
                               {.name = "stat", .initial = 1, .kept_with = "momentum", .is_scalar = true}},
                    .check = check_sgd},
  };
  return op;
}

const Op& momentum_op() {
  using namespace update_rows;
  static const Op op{
      .name = "momentum",
      .documentation =
          "The update of Momentum, in place: parameter, gradient, learning_rate (), and the accumulation v, "
          "which is written too.",
      .inputs_min = 4,
      .inputs_max = 4,
      .infer = infer_momentum,
      .kernels = {kernel<float, State::accumulation>(), kernel<double, State::accumulation>()},
      .sharing = Sharing::in_place,
      .written = {3},
      .optimizer =
          {.name = "Momentum",
           .documentation = "g = gradient / loss_scale + weight_decay p; v = momentum v + g; p = p - "
                            "learning_rate v. With use_nesterov, p = p - learning_rate (g + momentum v).",
           .arguments = {{.name = "learning_rate", .otherwise = 0.1, .required = true},
                         {.name = "momentum", .otherwise = 0.9, .required = true, .range = {.min = 0}},
                         {.name = "weight_decay", .otherwise = 0.0},
                         {.name = "loss_scale", .otherwise = 1.0},
                         {.name = "use_nesterov", .otherwise = false}},
           .states = {{.name = "moments"}}},
  };
  return op;
}

std::vector<const Op*> rows_of_update() { return {&sgd_op(), &momentum_op()}; }

}  // namespace muster::graph
