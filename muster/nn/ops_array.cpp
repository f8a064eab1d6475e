#include "muster/nn/ops_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "muster/nn/ops.h"

namespace muster::nn::ops {
namespace {

using graph::apply;
using graph::apply_all;

// The error of an input without a value, or that the input is already.
Value unknown(const Value& x) { return apply("reshape", {x}); }

template <class... Arguments>
[[noreturn]] void bad(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  throw Exception(Code::invalid_argument, fmt::format(text, std::forward<Arguments>(arguments)...));
}

// `axis` from the front, when it is one of `places`.
std::optional<std::size_t> from_front(std::int64_t axis, std::size_t places) {
  const auto count = static_cast<std::int64_t>(places);
  if (axis < -count || axis >= count) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + count : axis);
}

Value no_axis(std::string_view op, const Value& x, std::int64_t axis) {
  bad("{}: {} has no axis {}", op, to_string(x.shape()), axis);
}

Sizes counted(std::size_t count) {
  Sizes list(count);
  std::iota(list.begin(), list.end(), std::int64_t{0});
  return list;
}

template <class T>
void write_range(const Range& range, const Tensor& out) {
  for (std::int64_t i = 0; i < out.elements(); ++i)
    out.data<T>()[i] = static_cast<T>(range.begin + static_cast<double>(i) * range.step);
}

}  // namespace

// ---- Making ----------------------------------------------------------------------------------------------

Value full(const Shape& shape, double value, DType dtype) {
  return apply("fill", std::span<const Value>{},
               {{"dtype", dtype}, {"shape", shape.sizes()}, {"value", value}});
}
Value zeros(const Shape& shape, DType dtype) { return full(shape, 0, dtype); }
Value ones(const Shape& shape, DType dtype) { return full(shape, 1, dtype); }

Value full_like(const Value& x, double value, std::optional<DType> dtype) {
  if (!x.defined()) return unknown(x);
  return full(x.shape(), value, dtype.value_or(x.dtype()));
}
Value zeros_like(const Value& x, std::optional<DType> dtype) { return full_like(x, 0, dtype); }
Value ones_like(const Value& x, std::optional<DType> dtype) { return full_like(x, 1, dtype); }

Value arange(const Range& range, DType dtype) {
  const double count = std::ceil((range.end - range.begin) / range.step);
  constexpr double limit = 9e15;  // whole numbers of double
  if (range.step == 0 || !(std::abs(count) < limit))
    bad("arange: no range goes from {} to {} in steps of {}", range.begin, range.end, range.step);
  Tensor exact(DType::float64, {static_cast<std::int64_t>(std::max(count, 0.0))});
  write_range<double>(range, exact);
  return dtype == DType::float64 ? exact : exact.cast(dtype);
}

// ---- Shapes ----------------------------------------------------------------------------------------------

Value squeeze(const Value& x, std::optional<Sizes> axes) {
  if (!x.defined()) return unknown(x);
  const Shape& shape = x.shape();
  std::vector<bool> gone(shape.rank());
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) gone[axis] = !axes && shape[axis] == 1;
  for (const std::int64_t axis : axes.value_or(Sizes{})) {
    const auto at = from_front(axis, shape.rank());
    if (!at) return no_axis("squeeze", x, axis);
    if (shape[*at] != 1)
      bad("squeeze: axis {} of {} has {} elements, not 1", axis, to_string(shape), shape[*at]);
    gone[*at] = true;
  }
  Sizes sizes;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis)
    if (!gone[axis]) sizes.push_back(shape[axis]);
  return reshape(x, Shape(std::move(sizes)));
}

Value expand_dims(const Value& x, std::int64_t axis) {
  if (!x.defined()) return unknown(x);
  const auto at = from_front(axis, x.shape().rank() + 1);
  if (!at) bad("expand_dims: {} has no place for a new axis {}", to_string(x.shape()), axis);
  Sizes sizes = x.shape().sizes();
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(*at), 1);
  return reshape(x, Shape(std::move(sizes)));
}

Value flatten(const Value& x, std::int64_t start, std::int64_t end) {
  if (!x.defined()) return unknown(x);
  const Shape& shape = x.shape();
  if (shape.rank() == 0) return reshape(x, {1});
  const auto first = from_front(start, shape.rank());
  const auto last = from_front(end, shape.rank());
  if (!first || !last) return no_axis("flatten", x, first ? end : start);
  if (*first > *last) bad("flatten: axis {} of {} lies behind axis {}", start, to_string(shape), end);
  Sizes sizes(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(*first));
  std::int64_t product = 1;
  for (std::size_t axis = *first; axis <= *last; ++axis) product *= shape[axis];
  sizes.push_back(product);
  sizes.insert(sizes.end(), shape.begin() + static_cast<std::ptrdiff_t>(*last) + 1, shape.end());
  return reshape(x, Shape(std::move(sizes)));
}

// ---- Moving ----------------------------------------------------------------------------------------------

Value transpose(const Value& x, std::optional<Sizes> perm) {
  if (!x.defined()) return unknown(x);
  const std::size_t rank = x.shape().rank();
  if (!perm) {
    perm = counted(rank);
    std::reverse(perm->begin(), perm->end());
  }
  for (std::int64_t& axis : *perm) {
    const auto at = from_front(axis, rank);
    if (!at) return no_axis("transpose", x, axis);
    axis = static_cast<std::int64_t>(*at);
  }
  return apply("transpose", {x}, {{"perm", *perm}});
}

Value swapaxes(const Value& x, std::int64_t axis0, std::int64_t axis1) {
  if (!x.defined()) return unknown(x);
  const auto first = from_front(axis0, x.shape().rank());
  const auto second = from_front(axis1, x.shape().rank());
  if (!first || !second) return no_axis("swapaxes", x, first ? axis1 : axis0);
  Sizes perm = counted(x.shape().rank());
  std::swap(perm[*first], perm[*second]);
  return apply("transpose", {x}, {{"perm", perm}});
}

Value flip(const Value& x, const Sizes& axes) {
  if (!x.defined()) return unknown(x);
  const Shape& shape = x.shape();
  Sizes begin(shape.rank(), 0), strides(shape.rank(), 1);
  for (const std::int64_t axis : axes) {
    const auto at = from_front(axis, shape.rank());
    if (!at) return no_axis("flip", x, axis);
    begin[*at] = std::max<std::int64_t>(shape[*at] - 1, 0);
    strides[*at] = -1;
  }
  return apply("slice", {x}, {{"begin", begin}, {"size", shape.sizes()}, {"strides", strides}});
}

Value broadcast_to(const Value& x, const Shape& shape) {
  if (!x.defined()) return unknown(x);
  Shape wanted = shape;
  for (std::size_t back = 1; back <= std::min(shape.rank(), x.shape().rank()); ++back)
    if (wanted[wanted.rank() - back] == -1) wanted[wanted.rank() - back] = x.shape()[x.shape().rank() - back];
  for (const std::int64_t size : wanted)
    if (size < 0)
      bad("broadcast_to: {} has a negative size; -1 keeps a size that {} has", to_string(shape),
          to_string(x.shape()));
  return apply("broadcast_to", {x}, {{"shape", wanted.sizes()}});
}

// (a, b) repeated (2, 3) times is (1, a, 1, b) broadcast to (2, a, 3, b), under the shape (2a, 3b).
Value tile(const Value& x, const Sizes& repeats) {
  if (!x.defined()) return unknown(x);
  const std::size_t rank = std::max(x.shape().rank(), repeats.size());
  Sizes apart, repeated, joined;
  for (std::size_t back = rank; back >= 1; --back) {
    const std::int64_t size = back <= x.shape().rank() ? x.shape()[x.shape().rank() - back] : 1;
    const std::int64_t times = back <= repeats.size() ? repeats[repeats.size() - back] : 1;
    if (times < 0) bad("tile: an axis cannot be repeated {} times", times);
    apart.insert(apart.end(), {1, size});
    repeated.insert(repeated.end(), {times, size});
    joined.push_back(times * size);
  }
  const Value spread = apply("broadcast_to", {reshape(x, Shape(apart))}, {{"shape", repeated}});
  return reshape(spread, Shape(joined));
}

Value slice(const Value& x, const Sizes& begin, const Sizes& size) {
  if (!x.defined()) return unknown(x);
  Sizes sizes = size;
  for (std::size_t axis = 0; axis < std::min({sizes.size(), begin.size(), x.shape().rank()}); ++axis)
    if (sizes[axis] == -1) sizes[axis] = x.shape()[axis] - begin[axis];
  return apply("slice", {x}, {{"begin", begin}, {"size", sizes}});
}

namespace {

// Takes away what negative paddings say, and leaves the others.
Value cropped(const Value& x, Paddings& paddings) {
  Sizes begin, size;
  for (std::size_t axis = 0; axis < paddings.size(); ++axis) {
    auto& [before, behind] = paddings[axis];
    const std::int64_t front = std::max<std::int64_t>(-before, 0);
    begin.push_back(front);
    size.push_back(x.shape()[axis] - front - std::max<std::int64_t>(-behind, 0));
    before = std::max<std::int64_t>(before, 0);
    behind = std::max<std::int64_t>(behind, 0);
  }
  if (size == x.shape().sizes()) return x;
  return apply("slice", {x}, {{"begin", begin}, {"size", size}});
}

Value padded_with(const Value& x, Paddings paddings, double value) {
  const Value inner = cropped(x, paddings);
  Sizes shape = inner.shape().sizes();
  Sizes begin;
  for (std::size_t axis = 0; axis < paddings.size(); ++axis) {
    begin.push_back(paddings[axis].first);
    shape[axis] += paddings[axis].first + paddings[axis].second;
  }
  return apply("pad", {inner}, {{"shape", shape}, {"begin", begin}, {"value", value}});
}

// Which element of an axis of `size` stands at `place`, which may lie outside.
std::int64_t mirrored(std::int64_t place, std::int64_t size, PadMode mode) {
  const std::int64_t edge = mode == PadMode::reflect ? 1 : 0;  // the edge element is not repeated
  if (mode == PadMode::replicate) return std::clamp<std::int64_t>(place, 0, size - 1);
  if (mode == PadMode::circular) return (place + size) % size;
  if (place < 0) return -place - 1 + edge;
  if (place >= size) return 2 * size - place - 1 - edge;
  return place;
}

// The axis read in an order in which its elements come again.
Value padded_with_itself(const Value& x, std::size_t axis, std::pair<std::int64_t, std::int64_t> padding,
                         PadMode mode) {
  const auto [before, behind] = padding;
  const std::int64_t size = x.shape()[axis];
  const std::int64_t limit = mode == PadMode::reflect ? size - 1 : size;
  const bool too_much = mode == PadMode::replicate ? size == 0 : std::max(before, behind) > limit;
  if (before < 0 || behind < 0 || too_much)
    bad("pad: axis {} of {} cannot be padded by {} and {} with its own elements", axis, to_string(x.shape()),
        before, behind);
  Tensor order(DType::int64, {before + size + behind});
  for (std::int64_t i = 0; i < order.elements(); ++i)
    order.data<std::int64_t>()[i] = mirrored(i - before, size, mode);
  return apply("gather", {x, order}, {{"axis", static_cast<std::int64_t>(axis)}});
}

}  // namespace

Value pad(const Value& x, const Paddings& paddings, PadMode mode, double value) {
  if (!x.defined()) return unknown(x);
  if (paddings.size() != x.shape().rank())
    bad("pad: {} has {} axes, paddings for {} were given", to_string(x.shape()), x.shape().rank(),
        paddings.size());
  if (mode == PadMode::constant) return padded_with(x, paddings, value);
  Value result = x;
  for (std::size_t axis = 0; axis < paddings.size(); ++axis)
    if (paddings[axis] != std::pair<std::int64_t, std::int64_t>{})
      result = padded_with_itself(result, axis, paddings[axis], mode);
  return result;
}

// ---- Joining and cutting ---------------------------------------------------------------------------------

Value concat(std::span<const Value> tensors, std::int64_t axis) {
  if (tensors.empty()) bad("concat: there are no tensors to join");
  return apply("concat", tensors, {{"axis", axis}});
}

Value stack(std::span<const Value> tensors, std::int64_t axis) {
  if (tensors.empty()) bad("stack: there are no tensors to join");
  std::vector<Value> wider;
  for (const Value& tensor : tensors) {
    if (tensor.defined() && tensors[0].defined() && tensor.shape() != tensors[0].shape())
      bad("stack: {} and {} differ in shape", to_string(tensors[0].shape()), to_string(tensor.shape()));
    wider.push_back(expand_dims(tensor, axis));
  }
  return apply("concat", wider, {{"axis", axis}});
}

Values split(const Value& x, const Sizes& sizes, std::int64_t axis) {
  const std::span<const Value> only(&x, 1);
  return apply_all("split", only, {{"axis", axis}, {"sizes", sizes}});
}

Values split_by(const Value& x, std::int64_t size, std::int64_t axis) {
  if (!x.defined()) return unknown(x);
  const auto at = from_front(axis, x.shape().rank());
  if (!at) return no_axis("split", x, axis);
  if (size <= 0) bad("split: parts of {} elements cannot be made", size);
  Sizes sizes;
  for (std::int64_t rest = x.shape()[*at]; rest > 0; rest -= size) sizes.push_back(std::min(size, rest));
  if (sizes.empty()) sizes.push_back(0);
  return split(x, sizes, axis);
}

Values unstack(const Value& x, std::int64_t axis) {
  if (!x.defined()) return unknown(x);
  const auto at = from_front(axis, x.shape().rank());
  if (!at) return no_axis("unstack", x, axis);
  const std::int64_t count = x.shape()[*at];
  if (count == 0) bad("unstack: axis {} of {} has no elements", axis, to_string(x.shape()));
  Values parts = split(x, Sizes(static_cast<std::size_t>(count), 1), axis);
  for (Value& part : parts) part = squeeze(part, Sizes{axis});
  return parts;
}

// ---- Picking ---------------------------------------------------------------------------------------------

Value embedding(const Value& ids, const Value& weight) {
  if (weight.defined() && weight.shape().rank() != 2)
    bad("embedding: a weight (words, features) is needed, not {}", to_string(weight.shape()));
  return gather(weight, ids);
}

Value one_hot(const Value& indices, std::int64_t depth, const OneHot& options) {
  const Value on = options.on.defined() ? options.on : ones({});
  const Value off = options.off.defined() ? options.off : zeros_like(on);
  return apply("one_hot", {indices, on, off}, {{"depth", depth}, {"axis", options.axis}});
}

Topk topk(const Value& x, std::int64_t k, const TopkOptions& options) {
  const auto both = [](const Value& failed) { return Topk{failed, failed}; };
  if (!x.defined()) return both(unknown(x));
  const auto at = from_front(options.axis, x.shape().rank());
  if (!at) return both(no_axis("topk", x, options.axis));
  const bool last = *at + 1 == x.shape().rank();
  const Value rows = last ? x : swapaxes(x, options.axis, -1);
  const Values found = apply_all("topk", {&rows, 1}, {{"k", k}, {"largest", options.largest}});
  if (last) return {found[0], found[1]};
  return {swapaxes(found[0], options.axis, -1), swapaxes(found[1], options.axis, -1)};
}

// ---- Sums and products -----------------------------------------------------------------------------------

Value matmul(const Value& a, const Value& b, bool transpose_a, bool transpose_b) {
  const bool known = a.defined() && b.defined();
  const std::size_t a_rank = known ? a.shape().rank() : 0;
  const std::size_t b_rank = known ? b.shape().rank() : 0;
  const bool is_whole = known && muster::is_whole(a.dtype()) && muster::is_whole(b.dtype());
  if (is_whole && a_rank > 1 && b_rank > 1) return batch_matmul(a, b, transpose_a, transpose_b);
  if (a_rank == 0 || b_rank == 0 || (a_rank == 2 && b_rank == 2))
    return apply("matmul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
  if (a_rank == 1)
    return squeeze(matmul(expand_dims(a, 0), b, false, transpose_b), Sizes{b_rank == 1 ? -1 : -2});
  if (b_rank == 1) return squeeze(matmul(a, expand_dims(b, -1), transpose_a, false), Sizes{-1});
  if (b_rank > 2 || transpose_a) return batch_matmul(a, b, transpose_a, transpose_b);
  // One matrix for all rows is one product.
  Sizes sizes = a.shape().sizes();
  const std::int64_t columns = sizes.back();
  sizes.pop_back();
  const std::int64_t rows = Shape(sizes).elements();
  const Value product = matmul(reshape(a, {rows, columns}), b, false, transpose_b);
  sizes.push_back(product.shape()[1]);
  return reshape(product, Shape(std::move(sizes)));
}

}  // namespace muster::nn::ops
