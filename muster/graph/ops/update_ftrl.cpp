// ftrl: the update of nn::FTRL.
#include <cmath>

#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/training.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace update_ftrl_rows {

struct Settings {
  kernels::UpdateScale scale;
  double power = -0.5;
  double l1 = 0;
  double l2 = 0;
  std::int64_t count = 0;
};

Types infer(const Signature& signature) {
  MUSTER_TRY_VOID(require_update("ftrl", signature, {"accumulator", "linear coefficient"}));
  return same_as_first(signature);
}

Prepared prepare(const Signature& signature) {
  const Attributes& attributes = signature.attributes;
  Prepared made = prepared(Settings{.scale = scale_of(attributes),
                                    .power = attributes.get("lr_power", -0.5),
                                    .l1 = attributes.get("l1", 0.0),
                                    .l2 = attributes.get("l2", 0.0),
                                    .count = signature.inputs[0].shape.elements()});
  return in_order_of_parameter(std::move(made), signature);
}

// n^-power: a root, unless another power was asked for.
template <class T>
T powered(T n, T power) {
  return power == T{-0.5} ? std::sqrt(n) : std::pow(n, -power);
}

template <class T>
void run_part(const KernelCall& call, std::int64_t begin, std::int64_t end) {
  const auto& settings = call.setting<Settings>();
  const auto rate = static_cast<T>(*call.input<float>(2));
  if (rate == 0) return;  // the formula divides by it: nothing moves
  const auto scale = static_cast<T>(settings.scale.gradient_scale);
  const auto decay = static_cast<T>(settings.scale.weight_decay);
  const auto power = static_cast<T>(settings.power);
  const auto l1 = static_cast<T>(settings.l1), l2 = static_cast<T>(settings.l2);
  T* const p = reinterpret_cast<T*>(call.inputs[0]);
  const T* const gradient = call.input<T>(1);
  T* const sum = reinterpret_cast<T*>(call.inputs[3]);
  T* const linear = reinterpret_cast<T*>(call.inputs[4]);
  for (std::int64_t i = begin; i < end; ++i) {
    const T g = gradient[i] * scale + decay * p[i];
    const T before = powered(sum[i], power);
    sum[i] += g * g;
    const T root = powered(sum[i], power);
    linear[i] += g - (root - before) / rate * p[i];
    const T u = linear[i];
    p[i] = std::abs(u) > l1 ? (std::copysign(l1, u) - u) / (root / rate + 2 * l2) : T{0};
  }
}

template <class T>
void run(const KernelCall& call) {
  const std::int64_t ends[] = {call.setting<Settings>().count};
  kernels::for_each_part(ends, call.threads, [&](std::size_t, std::int64_t begin, std::int64_t end) {
    run_part<T>(call, begin, end);
  });
}

}  // namespace update_ftrl_rows
}  // namespace

std::vector<const Op*> rows_of_update_ftrl() {
  using namespace update_ftrl_rows;
  static const Op ftrl{
      .name = "ftrl",
      .documentation =
          "The update of FTRL, in place: parameter, gradient, learning_rate (), accumulator n and linear "
          "coefficient u, which are written too.",
      .inputs_min = 5,
      .inputs_max = 5,
      .infer = infer,
      .kernels = {in_parts(reference<float>(prepare, run<float>), run_part<float>),
                  in_parts(reference<double>(prepare, run<double>), run_part<double>)},
      .sharing = Sharing::in_place,
      .written = {3, 4},
      .optimizer = {.name = "FTRL",
                    .documentation =
                        "g = gradient / loss_scale + weight_decay p; m = n + g^2; u = u + g - (m^-lr_power - "
                        "n^-lr_power) / learning_rate p; n = m; p = (sign(u) l1 - u) / (n^-lr_power / "
                        "learning_rate + 2 l2) where |u| > l1, else 0. n begins at `initial_accum`, u at 0. "
                        "A learning rate of 0 changes nothing. McMahan et al., KDD 2013.",
                    .arguments = {{.name = "initial_accum", .otherwise = 0.1, .range = {.min = 0}},
                                  {.name = "learning_rate", .otherwise = 0.001},
                                  {.name = "lr_power", .otherwise = -0.5, .range = {.max = 0}},
                                  {.name = "l1", .otherwise = 0.0, .range = {.min = 0}},
                                  {.name = "l2", .otherwise = 0.0, .range = {.min = 0}},
                                  {.name = "use_locking", .otherwise = false, .effect = Effect::none},
                                  {.name = "loss_scale", .otherwise = 1.0},
                                  {.name = "weight_decay", .otherwise = 0.0}},
                    .states = {{.name = "moments", .initial_from = "initial_accum"}, {.name = "linear"}}},
  };
  return {&ftrl};
}

}  // namespace muster::graph
