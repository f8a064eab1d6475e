// lamb: the update of nn::Lamb.
#include <cmath>

#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/training.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace update_lamb_rows {

constexpr std::size_t inputs_without_decay = 6;

struct Settings {
  kernels::UpdateScale scale;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-6;
  std::int64_t count = 0;
  bool has_decay_input = false;
};

Types infer(const Signature& signature) {
  MUSTER_TRY_VOID(require_update("lamb", signature, {"mean", "mean square"}));
  const TensorType& step = signature.inputs[5];
  if (step.dtype != DType::int32 || step.shape.elements() != 1)
    return bad("lamb: the number of steps must be one int32, not {}", to_string(step));
  if (signature.inputs.size() > inputs_without_decay)
    MUSTER_TRY_VOID(require_alike("lamb", "weight decay", signature.inputs[6], {DType::float32, {}}));
  return same_as_first(signature);
}

Prepared prepare(const Signature& signature) {
  const Attributes& attributes = signature.attributes;
  const std::int64_t count = signature.inputs[0].shape.elements();
  Prepared made = prepared(Settings{.scale = scale_of(attributes),
                                    .beta1 = attributes.get("beta1", 0.9),
                                    .beta2 = attributes.get("beta2", 0.999),
                                    .eps = attributes.get("eps", 1e-6),
                                    .count = count,
                                    .has_decay_input = signature.inputs.size() > inputs_without_decay},
                           static_cast<std::size_t>(count) * size_bytes(signature.inputs[0].dtype));
  return in_order_of_parameter(std::move(made), signature);
}

// In lanes whose sums are added at the end, so that elements need not wait for each other.
template <class T>
double norm(const T* values, std::int64_t count) {
  constexpr std::int64_t lanes = 8;
  double sums[lanes] = {};
  const std::int64_t whole = count / lanes * lanes;
  for (std::int64_t i = 0; i < whole; i += lanes)
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const auto value = static_cast<double>(values[i + lane]);
      sums[lane] += value * value;
    }
  for (std::int64_t i = whole; i < count; ++i)
    sums[i - whole] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  double sum = 0;
  for (const double part : sums) sum += part;
  return std::sqrt(sum);
}

// The moments of the elements [begin, end), and into `direction` where they point.
template <class T>
void gather(const KernelCall& call, T* direction, std::int64_t begin, std::int64_t end) {
  const auto& settings = call.setting<Settings>();
  const double steps = *call.input<std::int32_t>(5) + 1;
  const auto beta1 = static_cast<T>(settings.beta1), rest1 = static_cast<T>(1 - settings.beta1);
  const auto beta2 = static_cast<T>(settings.beta2), rest2 = static_cast<T>(1 - settings.beta2);
  const auto unbiased1 = static_cast<T>(1 - std::pow(settings.beta1, steps));
  const auto unbiased2 = static_cast<T>(1 - std::pow(settings.beta2, steps));
  const auto eps = static_cast<T>(settings.eps), scale = static_cast<T>(settings.scale.gradient_scale);
  const auto decay = settings.has_decay_input ? static_cast<T>(*call.input<float>(6))
                                              : static_cast<T>(settings.scale.weight_decay);
  const T* const p = call.input<T>(0);
  const T* const gradient = call.input<T>(1);
  T* const mean = reinterpret_cast<T*>(call.inputs[3]);
  T* const square = reinterpret_cast<T*>(call.inputs[4]);
  for (std::int64_t i = begin; i < end; ++i) {
    const T g = gradient[i] * scale;
    mean[i] = beta1 * mean[i] + rest1 * g;
    square[i] = beta2 * square[i] + rest2 * g * g;
    direction[i] = mean[i] / unbiased1 / (std::sqrt(square[i] / unbiased2) + eps) + decay * p[i];
  }
}

template <class T>
void run(const KernelCall& call) {
  const std::int64_t count = call.setting<Settings>().count;
  const std::int64_t ends[] = {count};
  T* const p = reinterpret_cast<T*>(call.inputs[0]);
  T* const direction = reinterpret_cast<T*>(call.scratch);
  kernels::for_each_part(ends, call.threads, [&](std::size_t, std::int64_t begin, std::int64_t end) {
    gather(call, direction, begin, end);
  });
  const double length = norm(p, count), along = norm(direction, count);
  const double trust = length > 0 && along > 0 ? length / along : 1;
  const auto rate = static_cast<T>(static_cast<double>(*call.input<float>(2)) * trust);
  kernels::for_each_part(ends, call.threads, [&](std::size_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) p[i] -= rate * direction[i];
  });
}

}  // namespace update_lamb_rows
}  // namespace

std::vector<const Op*> rows_of_update_lamb() {
  using namespace update_lamb_rows;
  static const Op lamb{
      .name = "lamb",
      .documentation =
          "The update of Lamb, in place: parameter, gradient, learning_rate (), mean m and mean square v, "
          "which are written too, steps done before (one int32), and the weight decay () where it is no "
          "attribute.",
      .inputs_min = inputs_without_decay,
      .inputs_max = inputs_without_decay + 1,
      .infer = infer,
      .kernels = {reference<float>(prepare, run<float>), reference<double>(prepare, run<double>)},
      .sharing = Sharing::in_place,
      .written = {3, 4},
      .optimizer = {.name = "Lamb",
                    .documentation =
                        "m = beta1 m + (1 - beta1) gradient; v = beta2 v + (1 - beta2) gradient^2; u = m / "
                        "(1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay p, where t counts "
                        "the steps from 1; p = p - learning_rate |p| / |u| u. Where one of the norms |p| and "
                        "|u| is 0, p = p - learning_rate u. You et al., ICLR 2020.",
                    .arguments = {{.name = "learning_rate", .otherwise = 1e-3, .required = true},
                                  {.name = "beta1", .otherwise = 0.9, .range = {.above = 0, .below = 1}},
                                  {.name = "beta2", .otherwise = 0.999, .range = {.above = 0, .below = 1}},
                                  {.name = "eps", .otherwise = 1e-6, .range = {.above = 0}},
                                  {.name = "weight_decay", .otherwise = 0.0}},
                    .states = {{.name = "lamb_m"}, {.name = "lamb_v"}},
                    .inputs = {"lamb_m", "lamb_v", "global_step"},
                    .decays_itself = true},
  };
  return {&lamb};
}

}  // namespace muster::graph
