#include "muster/tensor/kernels/broadcast.h"

namespace muster::kernels {
namespace {

// Whether loop `outer` goes on where loop `inner` ends, in every operand, so that both are one.
bool one_loop(const std::vector<std::vector<std::int64_t>>& strides, std::size_t outer, std::size_t inner,
              std::int64_t inner_size) {
  for (const auto& steps : strides)
    if (steps[outer] != steps[inner] * inner_size) return false;
  return true;
}

}  // namespace

std::vector<std::int64_t> broadcast_strides(const Shape& shape, const Shape& out) {
  std::vector<std::int64_t> strides(out.rank(), 0);
  std::int64_t step = 1;
  for (std::size_t back = 1; back <= shape.rank(); ++back) {
    const std::int64_t size = shape[shape.rank() - back];
    if (size != 1) strides[out.rank() - back] = step;
    step *= size;
  }
  return strides;
}

BroadcastLoops broadcast_loops(const Shape& out, std::span<const Shape> operands) {
  std::vector<std::vector<std::int64_t>> full;
  for (const Shape& shape : operands) full.push_back(broadcast_strides(shape, out));
  BroadcastLoops loops{.count = out.elements(), .sizes = {}, .strides = {}};
  loops.strides.resize(operands.size());
  std::size_t last = 0;  // the axis that the last loop ends with
  for (std::size_t axis = 0; axis < out.rank(); ++axis) {
    if (out[axis] == 1) continue;
    if (!loops.sizes.empty() && one_loop(full, last, axis, out[axis])) {
      loops.sizes.back() *= out[axis];
      for (std::size_t k = 0; k < full.size(); ++k) loops.strides[k].back() = full[k][axis];
    } else {
      loops.sizes.push_back(out[axis]);
      for (std::size_t k = 0; k < full.size(); ++k) loops.strides[k].push_back(full[k][axis]);
    }
    last = axis;
  }
  if (!loops.sizes.empty()) return loops;
  loops.sizes.push_back(1);
  for (auto& steps : loops.strides) steps.push_back(0);
  return loops;
}

}  // namespace muster::kernels
