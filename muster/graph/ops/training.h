// Private to graph: the rows of training beside the formulas of networks: updates, schedules, losses.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "muster/graph/kernel.h"
#include "muster/tensor/kernels.h"

namespace muster::graph {

// What all updates share: "sgd: the gradient must be float32 (3,), not float32 (4,)", or nothing.
Result<> require_alike(std::string_view op, std::string_view what, const TensorType& given,
                       const TensorType& wanted);
// Of parameter, gradient, learning rate, then `states` like the parameter.
Result<> require_update(std::string_view op, const Signature& signature,
                        std::initializer_list<std::string_view> states);
kernels::UpdateScale scale_of(const Attributes& attributes);
// `made` for inputs in the order in which the parameter lies: an update looks at one element after another.
Prepared in_order_of_parameter(Prepared made, const Signature& signature);

// Of updates whose last input is a number that the gradient is multiplied by (adam_weight_decay).
inline constexpr std::string_view gradient_scale_attribute = "has_gradient_scale";

using RunPart = void (*)(const KernelCall&, std::int64_t begin, std::int64_t end);
// `kernel`, able to do its work in parts (Kernel::run_part).
Kernel in_parts(Kernel kernel, RunPart run_part, void (*finish)(const KernelCall&) = nullptr);

const Op& adagrad_op();
const Op& adam_op();
const Op& adam_weight_decay_op();
const Op& assign_op();
const Op& assign_add_op();
const Op& decayed_rate_op();
const Op& lars_op();
const Op& listed_rate_op();
const Op& nll_loss_op();
const Op& nll_loss_grad_op();
const Op& rms_prop_op();

}  // namespace muster::graph
