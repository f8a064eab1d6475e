// adam, adam_weight_decay, rms_prop, adagrad: updates of parameters in place with a rate for each element;
// lars: the gradient as layer-wise adaptive rate scaling wants it.
#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/training.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace update_adaptive_rows {

using kernels::UpdateArguments;

// The settings of a kernel, and what its call needs beside.
template <class S>
struct Settings {
  S kernel;
  std::int64_t count = 0;
  // Amsgrad's greatest squares, a decay that changes with the step, the means of centered rms_prop.
  bool has_last_input = false;
  bool has_gradient_scale = false;  // behind all others, as fuse_gradient_scales leaves it
};

bool has_gradient_scale(const Signature& signature) {
  return signature.attributes.get(gradient_scale_attribute, false);
}

// How many inputs there are, but for the gradient's scale.
std::size_t inputs_of(const Signature& signature) {
  return signature.inputs.size() - (has_gradient_scale(signature) ? 1 : 0);
}

template <class S>
Prepared prepared_update(S kernel, const Signature& signature, std::size_t inputs_with_last) {
  Prepared made =
      prepared(Settings<S>{std::move(kernel), signature.inputs[0].shape.elements(),
                           inputs_of(signature) == inputs_with_last, has_gradient_scale(signature)});
  return in_order_of_parameter(std::move(made), signature);
}

template <class T, class S>
UpdateArguments<T> arguments(const KernelCall& call, const Settings<S>& settings) {
  return {.parameter = reinterpret_cast<T*>(call.inputs[0]),
          .gradient = call.input<T>(1),
          .learning_rate = static_cast<double>(*call.input<float>(2)),
          .count = settings.count,
          .threads = call.threads};
}

template <class T>
T* state(const KernelCall& call, std::size_t index) {
  return reinterpret_cast<T*>(call.inputs[index]);
}

// ---- Adam -------------------------------------------------------------------------------------------------

constexpr std::size_t adam_inputs = 6;  // and one more with amsgrad
constexpr std::size_t adam_weight_decay_inputs =
    5;  // and the decay, where it changes, and a gradient's scale

Types infer_adam(const Signature& signature) {
  MUSTER_TRY_VOID(require_update("adam", signature, {"mean", "mean square"}));
  const TensorType& step = signature.inputs[5];
  if (step.dtype != DType::int32 || step.shape.elements() != 1)
    return bad("adam: the number of steps must be one int32, not {}", to_string(step));
  if (signature.inputs.size() > adam_inputs)
    MUSTER_TRY_VOID(require_alike("adam", "greatest mean square", signature.inputs[6], signature.inputs[0]));
  return same_as_first(signature);
}

Types infer_adam_weight_decay(const Signature& signature) {
  MUSTER_TRY_VOID(require_update("adam_weight_decay", signature, {"mean", "mean square"}));
  if (inputs_of(signature) > adam_weight_decay_inputs)
    MUSTER_TRY_VOID(
        require_alike("adam_weight_decay", "weight decay", signature.inputs[5], {DType::float32, {}}));
  if (has_gradient_scale(signature))
    MUSTER_TRY_VOID(require_alike("adam_weight_decay", "gradient's scale", signature.inputs.back(),
                                  {DType::float32, {}}));
  return same_as_first(signature);
}

template <bool decoupled>
Prepared prepare_adam(const Signature& signature) {
  const Attributes& attributes = signature.attributes;
  return prepared_update(kernels::AdamSettings{.scale = scale_of(attributes),
                                               .beta1 = attributes.get("beta1", 0.9),
                                               .beta2 = attributes.get("beta2", 0.999),
                                               .eps = attributes.get("eps", decoupled ? 1e-6 : 1e-8),
                                               .nesterov = attributes.get("use_nesterov", false),
                                               .decoupled = decoupled},
                         signature, (decoupled ? adam_weight_decay_inputs : adam_inputs) + 1);
}

template <class T>
kernels::AdamState<T> adam_state(const KernelCall& call, const Settings<kernels::AdamSettings>& settings) {
  kernels::AdamState<T> states{.mean = state<T>(call, 3), .square = state<T>(call, 4)};
  if (settings.kernel.decoupled) return states;
  states.steps = *call.input<std::int32_t>(5);
  if (settings.has_last_input) states.greatest = state<T>(call, 6);
  return states;
}

// A decay that changes with the step is an input of the decoupled one, and so is a gradient's scale.
kernels::AdamSettings adam_settings(const KernelCall& call, const Settings<kernels::AdamSettings>& settings) {
  kernels::AdamSettings made = settings.kernel;
  if (made.decoupled && settings.has_last_input)
    made.scale.weight_decay = static_cast<double>(*call.input<float>(5));
  if (settings.has_gradient_scale)
    made.scale.gradient_scale = static_cast<double>(*call.input<float>(settings.has_last_input ? 6 : 5));
  return made;
}

template <class T>
void run_adam(const KernelCall& call) {
  const auto& settings = call.setting<Settings<kernels::AdamSettings>>();
  kernels::adam(adam_settings(call, settings), adam_state<T>(call, settings), arguments<T>(call, settings));
}

template <class T>
void run_adam_part(const KernelCall& call, std::int64_t begin, std::int64_t end) {
  const auto& settings = call.setting<Settings<kernels::AdamSettings>>();
  kernels::adam_part(adam_settings(call, settings), adam_state<T>(call, settings),
                     arguments<T>(call, settings), begin, end);
}

template <bool decoupled>
std::vector<Kernel> adam_kernels() {
  return {in_parts(reference<float>(prepare_adam<decoupled>, run_adam<float>), run_adam_part<float>),
          in_parts(reference<double>(prepare_adam<decoupled>, run_adam<double>), run_adam_part<double>)};
}

// ---- RMSProp, Adagrad, LARS -------------------------------------------------------------------------------

Types infer_rms_prop(const Signature& signature) {
  MUSTER_TRY_VOID(require_update("rms_prop", signature, {"mean square", "moment"}));
  if (signature.inputs.size() > 5)
    MUSTER_TRY_VOID(require_alike("rms_prop", "mean gradient", signature.inputs[5], signature.inputs[0]));
  return same_as_first(signature);
}

Prepared prepare_rms_prop(const Signature& signature) {
  const Attributes& attributes = signature.attributes;
  return prepared_update(kernels::RmsPropSettings{.scale = scale_of(attributes),
                                                  .decay = attributes.get("decay", 0.9),
                                                  .momentum = attributes.get("momentum", 0.0),
                                                  .eps = attributes.get("epsilon", 1e-10)},
                         signature, 6);
}

template <class T>
kernels::RmsPropState<T> rms_prop_state(const KernelCall& call,
                                        const Settings<kernels::RmsPropSettings>& settings) {
  return {.square = state<T>(call, 3),
          .moment = state<T>(call, 4),
          .mean = settings.has_last_input ? state<T>(call, 5) : nullptr};
}

template <class T>
void run_rms_prop(const KernelCall& call) {
  const auto& settings = call.setting<Settings<kernels::RmsPropSettings>>();
  kernels::rms_prop(settings.kernel, rms_prop_state<T>(call, settings), arguments<T>(call, settings));
}

template <class T>
void run_rms_prop_part(const KernelCall& call, std::int64_t begin, std::int64_t end) {
  const auto& settings = call.setting<Settings<kernels::RmsPropSettings>>();
  kernels::rms_prop_part(settings.kernel, rms_prop_state<T>(call, settings), arguments<T>(call, settings),
                         begin, end);
}

Types infer_adagrad(const Signature& signature) {
  MUSTER_TRY_VOID(require_update("adagrad", signature, {"sum of squares"}));
  return same_as_first(signature);
}

Prepared prepare_adagrad(const Signature& signature) {
  const Attributes& attributes = signature.attributes;
  return prepared_update(kernels::AdagradSettings{.scale = scale_of(attributes),
                                                  .eps = attributes.get("eps", 0.0),
                                                  .accumulate = attributes.get("update_slots", true)},
                         signature, 5);
}

template <class T>
void run_adagrad(const KernelCall& call) {
  const auto& settings = call.setting<Settings<kernels::AdagradSettings>>();
  kernels::adagrad(settings.kernel, state<T>(call, 3), arguments<T>(call, settings));
}

template <class T>
void run_adagrad_part(const KernelCall& call, std::int64_t begin, std::int64_t end) {
  const auto& settings = call.setting<Settings<kernels::AdagradSettings>>();
  kernels::adagrad_part(settings.kernel, state<T>(call, 3), arguments<T>(call, settings), begin, end);
}

Types infer_lars(const Signature& signature) {
  MUSTER_TRY_VOID(require_update("lars", signature, {}));
  return same_as_first(signature);
}

Prepared prepare_lars(const Signature& signature) {
  const Attributes& attributes = signature.attributes;
  return prepared(Settings<kernels::LarsSettings>{{.scale = scale_of(attributes),
                                                   .coefficient = attributes.get("coefficient", 0.001),
                                                   .eps = attributes.get("eps", 1e-5),
                                                   .clip = attributes.get("use_clip", false)},
                                                  signature.inputs[0].shape.elements()});
}

template <class T>
void run_lars(const KernelCall& call) {
  const auto& settings = call.setting<Settings<kernels::LarsSettings>>();
  kernels::lars(settings.kernel, arguments<T>(call, settings), call.output<T>());
}

}  // namespace update_adaptive_rows
}  // namespace

const Op& adam_op() {
  using namespace update_adaptive_rows;
  static const Op op{
      .name = "adam",
      .documentation =
          "The update of Adam, in place: parameter, gradient, learning_rate (), mean m, mean square v, steps "
          "done before (one int32), and with amsgrad the greatest mean square; m, v and that are written "
          "too.",
      .inputs_min = adam_inputs,
      .inputs_max = adam_inputs + 1,
      .infer = infer_adam,
      .kernels = adam_kernels<false>(),
      .sharing = Sharing::in_place,
      .written = {3, 4, 6},
      .optimizer =
          {.name = "Adam",
           .documentation =
               "g = gradient / loss_scale + weight_decay p; m = beta1 m + (1 - beta1) g; v = "
               "beta2 v + (1 - beta2) g^2; p = p - learning_rate sqrt(1 - beta2^t) / (1 - "
               "beta1^t) m / (sqrt(v) + eps), where t counts the steps from 1. use_nesterov "
               "takes beta1 m + (1 - beta1) g in place of m; use_amsgrad takes the greatest v "
               "so far in place of v. use_lazy and use_offload change nothing: gradients here are "
               "never sparse, and rows on parameter servers move only at their own updates. Kingma and Ba, "
               "ICLR 2015; Reddi et al., ICLR 2018.",
           .arguments =
               {{.name = "learning_rate", .otherwise = 1e-3},
                {.name = "beta1", .otherwise = 0.9, .range = {.above = 0, .below = 1}},
                {.name = "beta2", .otherwise = 0.999, .range = {.above = 0, .below = 1}},
                {.name = "eps", .otherwise = 1e-8, .range = {.above = 0}},
                {.name = "use_locking", .otherwise = false, .effect = Effect::none},
                {.name = "use_nesterov", .otherwise = false},
                {.name = "weight_decay", .otherwise = 0.0},
                {.name = "loss_scale", .otherwise = 1.0},
                {.name = "use_amsgrad", .otherwise = false},
                {.name = "use_lazy", .otherwise = false, .effect = Effect::none, .by_name_only = true},
                {.name = "use_offload", .otherwise = false, .effect = Effect::none, .by_name_only = true}},
           .states = {{.name = "moment1"}, {.name = "moment2"}, {.name = "vhat", .kept_with = "use_amsgrad"}},
           .inputs = {"moment1", "moment2", "global_step", "vhat"}},
  };
  return op;
}

const Op& adam_weight_decay_op() {
  using namespace update_adaptive_rows;
  static const Op op{
      .name = "adam_weight_decay",
      .documentation =
          "The update of AdamWeightDecay, in place: parameter, gradient, learning_rate (), mean m and mean "
          "square v, which are written too, the weight decay () where it is no attribute, and with "
          "`has_gradient_scale` what the gradient is multiplied by ().",
      .inputs_min = adam_weight_decay_inputs,
      .inputs_max = adam_weight_decay_inputs + 2,
      .infer = infer_adam_weight_decay,
      .kernels = adam_kernels<true>(),
      .sharing = Sharing::in_place,
      .written = {3, 4},
      .optimizer = {.name = "AdamWeightDecay",
                    .documentation =
                        "m = beta1 m + (1 - beta1) gradient; v = beta2 v + (1 - beta2) gradient^2; p = p - "
                        "learning_rate (m / (sqrt(v) + eps) + weight_decay p). There is no bias correction, "
                        "as in BERT. Loshchilov and Hutter, ICLR 2019.",
                    .arguments = {{.name = "learning_rate", .otherwise = 1e-3},
                                  {.name = "beta1", .otherwise = 0.9, .range = {.above = 0, .below = 1}},
                                  {.name = "beta2", .otherwise = 0.999, .range = {.above = 0, .below = 1}},
                                  {.name = "eps", .otherwise = 1e-6, .range = {.above = 0}},
                                  {.name = "weight_decay", .otherwise = 0.0}},
                    .states = {{.name = "adam_m"}, {.name = "adam_v"}},
                    .decays_itself = true},
  };
  return op;
}

const Op& rms_prop_op() {
  using namespace update_adaptive_rows;
  static const Op op{
      .name = "rms_prop",
      .documentation =
          "The update of RMSProp, in place: parameter, gradient, learning_rate (), mean square s, moment v, "
          "and when centered the mean gradient n; s, v and n are written too.",
      .inputs_min = 5,
      .inputs_max = 6,
      .infer = infer_rms_prop,
      .kernels = {in_parts(reference<float>(prepare_rms_prop, run_rms_prop<float>), run_rms_prop_part<float>),
                  in_parts(reference<double>(prepare_rms_prop, run_rms_prop<double>),
                           run_rms_prop_part<double>)},
      .sharing = Sharing::in_place,
      .written = {3, 4, 5},
      .optimizer = {.name = "RMSProp",
                    .documentation =
                        "g = gradient / loss_scale + weight_decay p; s = decay s + (1 - decay) g^2, where s "
                        "begins at 1; v = momentum v + learning_rate g / sqrt(s + epsilon); p = p - v. With "
                        "centered, n = decay n + (1 - decay) g, and s - n^2 takes the place of s in the "
                        "root. Hinton, lecture 6 of 'Neural networks for machine learning', 2012.",
                    .arguments = {{.name = "learning_rate", .otherwise = 0.1},
                                  {.name = "decay", .otherwise = 0.9, .range = {.min = 0}},
                                  {.name = "momentum", .otherwise = 0.0, .range = {.min = 0}},
                                  {.name = "epsilon", .otherwise = 1e-10, .range = {.above = 0}},
                                  {.name = "use_locking", .otherwise = false, .effect = Effect::none},
                                  {.name = "centered", .otherwise = false},
                                  {.name = "loss_scale", .otherwise = 1.0},
                                  {.name = "weight_decay", .otherwise = 0.0}},
                    .states = {{.name = "mean_grad", .kept_with = "centered"},
                               {.name = "mean_square", .initial = 1},
                               {.name = "moment"}},
                    .inputs = {"mean_square", "moment", "mean_grad"}},
  };
  return op;
}

const Op& adagrad_op() {
  using namespace update_adaptive_rows;
  static const Op op{
      .name = "adagrad",
      .documentation =
          "The update of Adagrad, in place: parameter, gradient, learning_rate (), and the sum of squares s, "
          "which is written too.",
      .inputs_min = 4,
      .inputs_max = 4,
      .infer = infer_adagrad,
      .kernels = {in_parts(reference<float>(prepare_adagrad, run_adagrad<float>), run_adagrad_part<float>),
                  in_parts(reference<double>(prepare_adagrad, run_adagrad<double>),
                           run_adagrad_part<double>)},
      .sharing = Sharing::in_place,
      .written = {3},
      .optimizer = {.name = "Adagrad",
                    .documentation =
                        "g = gradient / loss_scale + weight_decay p; s = s + g^2, where s begins at `accum`; "
                        "p = p - learning_rate g / sqrt(s). With update_slots=False s stays as it is. Duchi, "
                        "Hazan and Singer, JMLR 2011.",
                    .arguments = {{.name = "accum", .otherwise = 0.1, .range = {.min = 0}},
                                  {.name = "learning_rate", .otherwise = 0.001},
                                  {.name = "update_slots", .otherwise = true},
                                  {.name = "loss_scale", .otherwise = 1.0},
                                  {.name = "weight_decay", .otherwise = 0.0}},
                    .states = {{.name = "accum", .initial_from = "accum"}}},
  };
  return op;
}

const Op& lars_op() {
  using namespace update_adaptive_rows;
  static const Op op{
      .name = "lars",
      .documentation =
          "The gradient scaled for its layer: weight w, gradient, learning_rate (). g = gradient / "
          "loss_scale; r = coefficient |w| / (|g| + weight_decay |w| + eps), with use_clip r = min(r / "
          "learning_rate, 1); the result is r (g + weight_decay w). You, Gitman and Ginsburg, 2017 (arXiv "
          "1708.03888).",
      .inputs_min = 3,
      .inputs_max = 3,
      .infer = infer_lars,
      .kernels = {reference<float>(prepare_lars, run_lars<float>),
                  reference<double>(prepare_lars, run_lars<double>)},
  };
  return op;
}

std::vector<const Op*> rows_of_update_adaptive() {
  return {&adam_op(), &adam_weight_decay_op(), &rms_prop_op(), &adagrad_op(), &lars_op()};
}

}  // namespace muster::graph
