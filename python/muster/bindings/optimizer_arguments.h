// What Python gives to optimizers: rates, decays, parameters and groups of them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "muster/nn/nn.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

// A number or a tensor of one, else nothing.
std::optional<double> scalar_from(nb::handle object);
// `what` is "SGD(learning_rate)", for messages, which are TypeErrors and ValueErrors.
nn::LearningRate learning_rate_from(nb::handle object, const std::string& what);
nn::WeightDecay weight_decay_from(nb::handle object, const std::string& what);
// What an attribute of that name, which a script sets, says of the updates: an argument that the schema
// passes on is changed, from the next step on. Other names are none of the optimizer's.
void set_argument_from(nn::RowOptimizer& optimizer, std::string_view name, nb::handle value);
// A list of Parameters, or of groups.
nn::ParameterGroups updated_from(nb::handle iterable, const std::string& what);
// An optimizer, or what stands for one of mindspore.experimental.optim. `what` takes it: "Model".
std::shared_ptr<nn::Optimizer> optimizer_from(nb::handle object, const std::string& what);

}  // namespace muster::python
