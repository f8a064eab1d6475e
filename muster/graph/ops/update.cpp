// sgd and momentum: updates of parameters, in place.
#include "muster/graph/ops/ops.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {

using kernels::SgdSettings;

Result<> require(std::string_view op, std::string_view what, const TensorType& given,
                 const TensorType& wanted) {
  if (given == wanted) return {};
  return bad("{}: the {} must be {}, not {}", op, what, to_string(wanted), to_string(given));
}

// parameter, gradient, learning_rate, and with momentum: accumulation and (sgd) its started flag.
Types infer(std::string_view op, const Signature& signature) {
  const TensorType& parameter = signature.inputs[0];
  MUSTER_TRY_VOID(require_floating(op, parameter));
  MUSTER_TRY_VOID(require(op, "gradient", signature.inputs[1], parameter));
  MUSTER_TRY_VOID(require(op, "learning rate", signature.inputs[2], {DType::float32, {}}));
  if (signature.inputs.size() > 3)
    MUSTER_TRY_VOID(require(op, "accumulation", signature.inputs[3], parameter));
  if (signature.inputs.size() > 4)
    MUSTER_TRY_VOID(require(op, "flag of the first step", signature.inputs[4], {DType::float32, {}}));
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

Prepared prepare(const Signature& signature) {
  const Attributes& attributes = signature.attributes;
  return prepared(Settings{{.momentum = attributes.get("momentum", 0.0),
                            .dampening = attributes.get("dampening", 0.0),
                            .weight_decay = attributes.get("weight_decay", 0.0),
                            .gradient_scale = 1 / attributes.get("loss_scale", 1.0),
                            .nesterov = attributes.get("nesterov", false)},
                           signature.inputs[0].shape.elements()});
}

template <class T>
kernels::SgdArguments<T> arguments(const KernelCall& call) {
  return {.parameter = call.output<T>(),
          .gradient = call.input<T>(1),
          .learning_rate = static_cast<T>(*call.input<float>(2)),
          .count = call.setting<Settings>().count,
          .threads = call.threads};
}

template <class T>
bool plain(const Signature& signature) {
  return first_is<T>(signature) && signature.inputs.size() == 3;
}

template <class T>
bool with_state(const Signature& signature) {
  return first_is<T>(signature) && signature.inputs.size() == 5;
}

template <class T>
void run_plain(const KernelCall& call) {
  kernels::sgd(call.setting<Settings>().sgd, arguments<T>(call));
}

template <class T>
void run_sgd(const KernelCall& call) {
  kernels::SgdArguments<T> given = arguments<T>(call);
  auto* fresh = reinterpret_cast<float*>(call.inputs[4]);
  given.accumulation = reinterpret_cast<T*>(call.inputs[3]);
  given.first = *fresh > 0;
  *fresh = 0;
  kernels::sgd(call.setting<Settings>().sgd, given);
}

template <class T>
void run_momentum(const KernelCall& call) {
  kernels::SgdArguments<T> given = arguments<T>(call);
  given.accumulation = reinterpret_cast<T*>(call.inputs[3]);
  kernels::sgd(call.setting<Settings>().sgd, given);
}

}  // namespace

const Op& sgd_op() {
  static const Op op{
      .name = "sgd",
      .documentation =
          "In place: g = gradient / loss_scale + weight_decay p; p -= learning_rate g. With accumulation v "
          "and "
          "the flag of the first step (both written): v = momentum v + (1 - dampening) g, v = g at first, "
          "and "
          "p -= learning_rate (nesterov ? g + momentum v : v).",
      .inputs_min = 3,
      .inputs_max = 5,
      .infer = infer_sgd,
      .kernels = {{"reference", plain<float>, prepare, run_plain<float>},
                  {"reference", plain<double>, prepare, run_plain<double>},
                  {"reference", with_state<float>, prepare, run_sgd<float>},
                  {"reference", with_state<double>, prepare, run_sgd<double>}},
      .sharing = Sharing::in_place,
      .written = {3, 4},
  };
  return op;
}

const Op& momentum_op() {
  static const Op op{
      .name = "momentum",
      .documentation =
          "In place: g = gradient / loss_scale + weight_decay p; v = momentum v + g; "
          "p -= learning_rate (nesterov ? g + momentum v : v). v is written too.",
      .inputs_min = 4,
      .inputs_max = 4,
      .infer = infer_momentum,
      .kernels = {reference<float>(prepare, run_momentum<float>),
                  reference<double>(prepare, run_momentum<double>)},
      .sharing = Sharing::in_place,
      .written = {3},
  };
  return op;
}

}  // namespace muster::graph
