#include "muster/nn/losses.h"

#include <fmt/format.h>

#include <utility>

namespace muster::nn {

CrossEntropyLoss::CrossEntropyLoss(CrossEntropyOptions options)
    : Cell("CrossEntropyLoss"), options_(std::move(options)) {}

Values CrossEntropyLoss::construct(std::span<const Value> inputs) {
  if (inputs.size() != 2)
    return Value::failed(
        Code::invalid_argument,
        fmt::format("{} takes logits and labels, {} tensors were given", description(), inputs.size()));
  std::vector<Value> given(inputs.begin(), inputs.end());
  if (options_.weight.defined()) given.push_back(options_.weight);
  return graph::apply("softmax_cross_entropy", given,
                      {{"reduction", options_.reduction},
                       {"ignore_index", options_.ignore_index},
                       {"label_smoothing", options_.label_smoothing}});
}

}  // namespace muster::nn
