// Ops that make, move, join and pick elements. Axes may be negative: they count from the end. Every function
// works on any dtype unless it says otherwise, in a graph and outside, and errors are Exceptions that name
// the op and the shapes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/graph/graph.h"

namespace muster::nn::ops {

using graph::Value;
using graph::Values;
using Sizes = std::vector<std::int64_t>;

// ---- Making ----------------------------------------------------------------------------------------------

Value full(const Shape& shape, double value, DType dtype = DType::float32);
Value zeros(const Shape& shape, DType dtype = DType::float32);
Value ones(const Shape& shape, DType dtype = DType::float32);
// Like x in shape, and in dtype unless another is given.
Value full_like(const Value& x, double value, std::optional<DType> dtype = {});
Value zeros_like(const Value& x, std::optional<DType> dtype = {});
Value ones_like(const Value& x, std::optional<DType> dtype = {});
// begin, begin + step, ... before end: shape (ceil((end - begin) / step),).
struct Range {
  double begin = 0;
  double end = 0;
  double step = 1;
};
Value arange(const Range& range, DType dtype = DType::int64);

// ---- Shapes: nothing is copied ---------------------------------------------------------------------------

// Without the axes of size 1: all of them, or those given, which must have size 1.
Value squeeze(const Value& x, std::optional<Sizes> axes = {});
// With a new axis of size 1 at `axis`, which lies in [-rank - 1, rank].
Value expand_dims(const Value& x, std::int64_t axis);
// Axes start to end (included) as one.
Value flatten(const Value& x, std::int64_t start, std::int64_t end);

// ---- Moving ----------------------------------------------------------------------------------------------

// Axis i of the result is axis perm[i] of x; without perm the axes are reversed.
Value transpose(const Value& x, std::optional<Sizes> perm = {});
Value swapaxes(const Value& x, std::int64_t axis0, std::int64_t axis1);
// The elements along `axes` in reverse.
Value flip(const Value& x, const Sizes& axes);
// Repeated along axes of size 1 and new leading axes; a size of -1 keeps that of x.
Value broadcast_to(const Value& x, const Shape& shape);
// Repeated repeats[i] times along axis i; axes and repeats are aligned at the last.
Value tile(const Value& x, const Sizes& repeats);
// size[i] elements of axis i from begin[i] on; -1 means all that follow.
Value slice(const Value& x, const Sizes& begin, const Sizes& size);

// Elements before and behind each axis.
using Paddings = std::vector<std::pair<std::int64_t, std::int64_t>>;
enum class PadMode {
  constant,   // `value`
  reflect,    // mirrored at the edge element: 3 2 | 1 2 3
  symmetric,  // mirrored at the edge: 2 1 | 1 2 3
  replicate,  // the edge element again
  circular,   // the other end
};
// Negative paddings take elements away, in mode constant.
Value pad(const Value& x, const Paddings& paddings, PadMode mode = PadMode::constant, double value = 0);

// ---- Joining and cutting ---------------------------------------------------------------------------------

Value concat(std::span<const Value> tensors, std::int64_t axis = 0);
// Tensors of one shape along a new axis.
Value stack(std::span<const Value> tensors, std::int64_t axis = 0);
// Parts of `sizes` along axis; one failed value if that does not work.
Values split(const Value& x, const Sizes& sizes, std::int64_t axis = 0);
// Parts of `size`, the last one smaller if the axis is no multiple of it.
Values split_by(const Value& x, std::int64_t size, std::int64_t axis = 0);
// One tensor for each element of the axis, without that axis.
Values unstack(const Value& x, std::int64_t axis = 0);

// ---- Picking ---------------------------------------------------------------------------------------------

// The rows of weight (V, D) for ids (...): (..., D).
Value embedding(const Value& ids, const Value& weight);
// A new axis of `depth` with `on` at the index and `off` elsewhere; scalars of one dtype.
struct OneHot {
  Value on;   // 1 as float32 when undefined
  Value off;  // 0 like `on` when undefined
  std::int64_t axis = -1;
};
Value one_hot(const Value& indices, std::int64_t depth, const OneHot& options = {});
// The k greatest (smallest) along axis in order, and their places (int32).
struct TopkOptions {
  std::int64_t axis = -1;
  bool largest = true;
};
struct Topk {
  Value values;
  Value indices;
};
Topk topk(const Value& x, std::int64_t k, const TopkOptions& options = {});

}  // namespace muster::nn::ops
