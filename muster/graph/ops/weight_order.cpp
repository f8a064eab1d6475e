#include "muster/graph/ops/weight_order.h"

#include <cstdint>

namespace muster::graph {
namespace {

constexpr std::int64_t block = 16;

// visit(index in row-major order, index in the order of weights) for each element.
template <class Visit>
void for_each_place(const Shape& shape, const Visit& visit) {
  const std::int64_t in = shape[1];
  const std::int64_t window = shape[2] * shape[3];
  std::int64_t ordered = 0;
  for (std::int64_t out_block = 0; out_block < shape[0]; out_block += block)
    for (std::int64_t in_block = 0; in_block < in; in_block += block)
      for (std::int64_t at = 0; at < window; ++at)
        for (std::int64_t i = in_block; i < in_block + block; ++i)
          for (std::int64_t o = out_block; o < out_block + block; ++o)
            visit((o * in + i) * window + at, ordered++);
}

}  // namespace

bool travels_in_weight_order(const TensorType& type) {
  const Shape& shape = type.shape;
  return type.dtype == DType::float32 && shape.rank() == 4 && shape.elements() > 0 && shape[0] % block == 0 &&
         shape[1] % block == 0;
}

void to_weight_order(const TensorType& type, const std::byte* plain, std::byte* ordered) {
  const auto* const from = reinterpret_cast<const float*>(plain);
  auto* const to = reinterpret_cast<float*>(ordered);
  for_each_place(type.shape, [=](std::int64_t a, std::int64_t b) { to[b] = from[a]; });
}

void from_weight_order(const TensorType& type, const std::byte* ordered, std::byte* plain) {
  const auto* const from = reinterpret_cast<const float*>(ordered);
  auto* const to = reinterpret_cast<float*>(plain);
  for_each_place(type.shape, [=](std::int64_t a, std::int64_t b) { to[a] = from[b]; });
}

}  // namespace muster::graph
