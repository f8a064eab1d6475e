// ftrl: the update of nn::FTRL.
#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/training.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace update_ftrl_rows {

struct Settings {
  kernels::FtrlSettings kernel;
  std::int64_t count = 0;
};

Types infer(const Signature& signature) {
  MUSTER_TRY_VOID(require_update("ftrl", signature, {"accumulator", "linear coefficient"}));
  return same_as_first(signature);
}

Prepared prepare(const Signature& signature) {
  const Attributes& attributes = signature.attributes;
  Prepared made = prepared(Settings{.kernel = {.scale = scale_of(attributes),
                                               .power = attributes.get("lr_power", -0.5),
                                               .l1 = attributes.get("l1", 0.0),
                                               .l2 = attributes.get("l2", 0.0)},
                                    .count = signature.inputs[0].shape.elements()});
  return in_order_of_parameter(std::move(made), signature);
}

template <class T>
T* state(const KernelCall& call, std::size_t index) {
  return reinterpret_cast<T*>(call.inputs[index]);
}

template <class T>
void run_part(const KernelCall& call, std::int64_t begin, std::int64_t end) {
  const auto& settings = call.setting<Settings>();
  kernels::ftrl_part<T>(settings.kernel, {.sum = state<T>(call, 3), .linear = state<T>(call, 4)},
                        {.parameter = state<T>(call, 0),
                         .gradient = call.input<T>(1),
                         .learning_rate = static_cast<double>(*call.input<float>(2))},
                        begin, end);
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
