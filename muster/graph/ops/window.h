// Private to graph: the attributes of windows that slide over images, which convolutions and pooling share.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "muster/graph/ops/image.h"
#include "muster/graph/ops/ops.h"

namespace muster::graph {

// A list attribute that must hold as many numbers as `otherwise`, each at least `least`.
Result<std::vector<std::int64_t>> numbers(std::string_view op, std::string_view name,
                                          const Attributes& attributes, std::vector<std::int64_t> otherwise,
                                          std::int64_t least);

// "conv2d: x must be (N, C, H, W), not (2, 3)", or nothing.
Result<> require_images(std::string_view op, std::string_view what, const TensorType& type);

// `attributes` with only those of `names` that are there, for the op on the way back.
Attributes only(const Attributes& attributes, std::initializer_list<std::string_view> names);

}  // namespace muster::graph
