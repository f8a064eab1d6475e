#include "muster/nn/indexing.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace muster::nn {
namespace {

using graph::apply;
using graph::Value;
using Sizes = std::vector<std::int64_t>;

tl::unexpected<Error> bad(std::string message) { return fail(Code::invalid_argument, std::move(message)); }

// What is known after each entry was read: a block of x, its shape without the axes that integers took and
// with new ones, and the tensors that index some of its axes.
struct Reading {
  Sizes begin, size, strides;  // for each axis of x
  Sizes shape;                 // of the block as the result shows it
  struct Picker {
    Value indices;
    std::size_t axis = 0;      // in `shape`
    std::int64_t of_axis = 0;  // in x
  };
  std::vector<Picker> pickers;
  // Integers and tensors with nothing between them put their result in their place, others at the front.
  bool picked = false;
  bool gap = false;
  bool apart = false;
};

class Reader {
 public:
  explicit Reader(const Shape& shape) : shape_(shape) {}

  Result<Reading> read(std::span<const Index> indices) {
    MUSTER_TRY_VOID(count(indices));
    bool any_ellipsis = false;
    for (const Index& entry : indices) {
      any_ellipsis = any_ellipsis || std::holds_alternative<Ellipsis>(entry);
      MUSTER_TRY_VOID(std::visit([this](const auto& one) { return take(one); }, entry));
    }
    if (!any_ellipsis) MUSTER_TRY_VOID(take(Ellipsis{}));
    return std::move(reading_);
  }

 private:
  // How many axes all entries take, and so what an ellipsis stands for.
  Result<> count(std::span<const Index> indices) {
    std::size_t taken = 0;
    std::size_t ellipses = 0;
    for (const Index& entry : indices) {
      if (std::holds_alternative<Ellipsis>(entry)) {
        ++ellipses;
      } else if (const auto* value = std::get_if<Value>(&entry)) {
        if (!value->defined()) return bad("an index has no value");
        taken += value->dtype() == DType::bool_ ? value->shape().rank() : 1;
      } else if (!std::holds_alternative<NewAxis>(entry)) {
        ++taken;
      }
    }
    if (ellipses > 1) return bad("an index may have one ellipsis (...), not several");
    if (taken > shape_.rank())
      return bad(fmt::format("{} indices for a tensor of {} axes, of shape {}", taken, shape_.rank(),
                             to_string(shape_)));
    open_ = shape_.rank() - taken;
    return {};
  }

  void keep(std::int64_t begin, std::int64_t size, std::int64_t stride) {
    reading_.begin.push_back(begin);
    reading_.size.push_back(size);
    reading_.strides.push_back(stride);
    ++axis_;
  }
  void between() { reading_.gap = reading_.picked; }
  void pick() {
    reading_.apart = reading_.apart || reading_.gap;
    reading_.picked = true;
  }

  Result<> take(std::int64_t index) {
    const std::int64_t size = shape_[axis_];
    if (index < -size || index >= size)
      return bad(fmt::format("index {} is out of range for axis {} of {}, which has {}", index, axis_,
                             to_string(shape_), size));
    pick();
    keep(index < 0 ? index + size : index, 1, 1);
    return {};
  }

  Result<> take(const Slice& slice) {
    if (slice.step == 0) return bad(fmt::format("the step of the slice of axis {} is 0", axis_));
    const std::int64_t size = shape_[axis_];
    const bool forward = slice.step > 0;
    const auto clamped = [&](std::optional<std::int64_t> place, std::int64_t otherwise) {
      if (!place) return otherwise;
      const std::int64_t from_front = *place < 0 ? *place + size : *place;
      return forward ? std::clamp<std::int64_t>(from_front, 0, size)
                     : std::clamp<std::int64_t>(from_front, -1, size - 1);
    };
    const std::int64_t begin = clamped(slice.begin, forward ? 0 : size - 1);
    const std::int64_t end = clamped(slice.end, forward ? size : -1);
    const std::int64_t length = forward ? end - begin : begin - end;
    const std::int64_t step = forward ? slice.step : -slice.step;
    const std::int64_t count = length <= 0 ? 0 : (length - 1) / step + 1;
    between();
    reading_.shape.push_back(count);
    keep(count == 0 ? 0 : begin, count, slice.step);
    return {};
  }

  Result<> take(NewAxis) {
    between();
    reading_.shape.push_back(1);
    return {};
  }

  Result<> take(Ellipsis) {
    between();
    for (std::size_t i = 0; i < open_; ++i) MUSTER_TRY_VOID(take(Slice{}));
    open_ = 0;
    return {};
  }

  Result<> take(const Value& value) {
    if (value.dtype() == DType::bool_) return take_mask(value);
    if (is_floating(value.dtype()))
      return bad(fmt::format("a tensor that indexes axis {} must hold integers or bool, not {}", axis_,
                             to_string(value.dtype())));
    take_integers(value);
    return {};
  }

  void take_integers(const Value& value) {
    pick();
    reading_.pickers.push_back({value, reading_.shape.size(), static_cast<std::int64_t>(axis_)});
    reading_.shape.push_back(shape_[axis_]);
    keep(0, shape_[axis_], 1);
  }

  Result<> take_mask(const Value& mask) {
    if (mask.is_traced()) {
      graph::note_untraceable();
      return fail(
          Code::invalid_argument,
          fmt::format("a mask (bool {}) picks as many elements as it has trues, which a graph cannot "
                      "know while it is made: use ops.select (where), or index outside of traced code",
                      to_string(mask.shape())));
    }
    if (mask.shape().rank() == 0) return bad("a mask without axes is not provided as an index");
    for (std::size_t i = 0; i < mask.shape().rank(); ++i)
      if (mask.shape()[i] != shape_[axis_ + i])
        return bad(fmt::format("a mask {} does not fit axis {} of {}, which has {}", to_string(mask.shape()),
                               axis_ + i, to_string(shape_), shape_[axis_ + i]));
    MUSTER_TRY(const Tensor elements, mask.read());
    for (const Tensor& places : true_places(elements)) take_integers(places);
    return {};
  }

  // For each axis of the mask the indices of its trues, row by row.
  static std::vector<Tensor> true_places(const Tensor& mask) {
    const auto trues = mask.span<bool>();
    const std::int64_t count = std::count(trues.begin(), trues.end(), true);
    std::vector<Tensor> places;
    std::int64_t inner = mask.elements();
    for (const std::int64_t size : mask.shape()) {
      inner = size == 0 ? 0 : inner / size;
      auto* place = places.emplace_back(DType::int64, Shape{count}).data<std::int64_t>();
      for (std::size_t i = 0; i < trues.size(); ++i)
        if (trues[i]) *place++ = static_cast<std::int64_t>(i) / inner % size;
    }
    return places;
  }

  const Shape& shape_;
  Reading reading_;
  std::size_t axis_ = 0;  // of x, the next
  std::size_t open_ = 0;  // axes that no entry names
};

// The block as a view, when its elements lie in one piece: all axes are full behind the first that has more
// than one element.
std::optional<Tensor> view(const Tensor& x, const Reading& reading) {
  std::int64_t step = x.elements();
  std::int64_t at = 0;
  bool inside = false;
  for (std::size_t axis = 0; axis < reading.size.size(); ++axis) {
    const bool full = reading.size[axis] == x.shape()[axis];
    if ((inside && !full) || (reading.size[axis] > 1 && reading.strides[axis] != 1)) return std::nullopt;
    step = x.shape()[axis] == 0 ? 0 : step / x.shape()[axis];
    at += reading.begin[axis] * step;
    inside = inside || reading.size[axis] != 1;
  }
  return Tensor(x.dtype(), Shape(reading.shape), x.buffer(),
                x.offset_bytes() + static_cast<std::size_t>(at) * size_bytes(x.dtype()));
}

Value reshaped(const Value& x, const Sizes& sizes) {
  if (x.shape().sizes() == sizes) return x;
  return apply("reshape", {x}, {{"shape", sizes}});
}

Value block(const Value& x, const Reading& reading) {
  // A tape notes ops: a view past them would have no gradient.
  if (x.is_concrete() && !graph::is_tracing() && !graph::is_taping())
    if (auto part = view(x.tensor(), reading)) return *std::move(part);
  const bool whole =
      reading.size == x.shape().sizes() && std::all_of(reading.strides.begin(), reading.strides.end(),
                                                       [](std::int64_t stride) { return stride == 1; });
  const Value part =
      whole ? x
            : apply("slice", {x},
                    {{"begin", reading.begin}, {"size", reading.size}, {"strides", reading.strides}});
  return reshaped(part, reading.shape);
}

// The shape that index tensors have together.
Result<Sizes> joined(const std::vector<Reading::Picker>& pickers) {
  Sizes sizes;
  for (const auto& picker : pickers) {
    const Shape& shape = picker.indices.shape();
    if (shape.rank() > sizes.size()) sizes.insert(sizes.begin(), shape.rank() - sizes.size(), 1);
    for (std::size_t back = 1; back <= shape.rank(); ++back) {
      std::int64_t& size = sizes[sizes.size() - back];
      const std::int64_t other = shape[shape.rank() - back];
      if (size != other && size != 1 && other != 1)
        return bad(fmt::format("index tensors {} and {} do not fit together",
                               to_string(pickers.front().indices.shape()), to_string(shape)));
      size = size == 1 ? other : size;
    }
  }
  return sizes;
}

Value as_int64(const Value& indices) {
  if (indices.dtype() == DType::int64) return indices;
  return apply("cast", {indices}, {{"dtype", DType::int64}});
}

// Moves the axes that are indexed to [target, target + count).
Value brought_together(const Value& x, const std::vector<Reading::Picker>& pickers, std::size_t target) {
  Sizes perm;
  for (std::size_t axis = 0; axis < x.shape().rank(); ++axis) {
    const bool indexed =
        std::any_of(pickers.begin(), pickers.end(), [&](const auto& picker) { return picker.axis == axis; });
    if (!indexed) perm.push_back(static_cast<std::int64_t>(axis));
  }
  auto place = perm.begin() + static_cast<std::ptrdiff_t>(target);
  for (const auto& picker : pickers) place = perm.insert(place, static_cast<std::int64_t>(picker.axis)) + 1;
  if (std::is_sorted(perm.begin(), perm.end())) return x;
  return apply("transpose", {x}, {{"perm", perm}});
}

Value picked(Value x, const Reading& reading) {
  const auto& pickers = reading.pickers;
  const Sizes together = joined(pickers).value();
  const std::size_t target = reading.apart ? 0 : pickers.front().axis;
  x = brought_together(x, pickers, target);
  std::vector<Value> indices;
  Sizes sizes, axes;
  for (const auto& picker : pickers) {
    const Value numbers = as_int64(picker.indices);
    indices.push_back(numbers.shape().sizes() == together
                          ? numbers
                          : apply("broadcast_to", {numbers}, {{"shape", together}}));
    sizes.push_back(reading.shape[picker.axis]);
    axes.push_back(picker.of_axis);
  }
  const bool plain = pickers.size() == 1 && axes[0] == static_cast<std::int64_t>(target);
  const Value place = plain ? indices[0] : apply("flat_index", indices, {{"sizes", sizes}, {"axes", axes}});
  Sizes merged = x.shape().sizes();
  const auto first = merged.begin() + static_cast<std::ptrdiff_t>(target);
  std::int64_t elements = 1;
  for (const std::int64_t size : sizes) elements *= size;
  *first = elements;
  merged.erase(first + 1, first + static_cast<std::ptrdiff_t>(sizes.size()));
  return apply("gather", {reshaped(x, merged), place}, {{"axis", static_cast<std::int64_t>(target)}});
}

}  // namespace

graph::Value index(const graph::Value& x, std::span<const Index> indices) {
  if (!x.defined()) return apply("reshape", {x});  // the error of an input without a value
  const Reading reading = Reader(x.shape()).read(indices).value();
  const Value part = block(x, reading);
  return reading.pickers.empty() ? part : picked(part, reading);
}

namespace {

Value in_dtype_of(const Value& values, const Value& x) {
  return values.dtype() == x.dtype() ? values : apply("cast", {values}, {{"dtype", x.dtype()}});
}

// As numpy assigns: axes of size 1 in front may be left over.
Value broadcast(const Value& values, const Shape& shape) {
  Sizes sizes = values.shape().sizes();
  while (sizes.size() > shape.rank() && sizes.front() == 1) sizes.erase(sizes.begin());
  const Value fitting = reshaped(values, sizes);
  return fitting.shape() == shape ? fitting : apply("broadcast_to", {fitting}, {{"shape", shape.sizes()}});
}

// The number of each element, row by row.
Tensor numbered(const Shape& shape) {
  Tensor made(DType::int64, shape);
  std::iota(made.data<std::int64_t>(), made.data<std::int64_t>() + made.elements(), std::int64_t{0});
  return made;
}

bool is_known(const Index& entry) {
  const auto* value = std::get_if<Value>(&entry);
  return value == nullptr || value->is_concrete();
}

// Where the elements lie that indices name. What is known while a graph is made is no part of it.
Value places_of(const Shape& shape, std::span<const Index> indices) {
  if (!std::ranges::all_of(indices, is_known)) return index(numbered(shape), indices);
  const graph::AtOnceScope at_once;
  return index(numbered(shape), indices);
}

Value chosen_by(const Value& mask, const Value& x, const Value& values) {
  if (mask.shape().rank() > x.shape().rank() ||
      !std::equal(mask.shape().begin(), mask.shape().end(), x.shape().begin()))
    throw Exception(Code::invalid_argument,
                    fmt::format("a mask {} does not fit {}", to_string(mask.shape()), to_string(x.shape())));
  Sizes sizes = mask.shape().sizes();
  sizes.resize(x.shape().rank(), 1);
  return apply("select", {broadcast(reshaped(mask, sizes), x.shape()), broadcast(values, x.shape()), x});
}

}  // namespace

graph::Value with_elements(const graph::Value& x, std::span<const Index> indices,
                           const graph::Value& values) {
  if (!x.defined() || !values.defined()) return apply("reshape", {x.defined() ? values : x});
  const Value fitting = in_dtype_of(values, x);
  const auto* mask = indices.size() == 1 ? std::get_if<Value>(&indices[0]) : nullptr;
  if (mask != nullptr && mask->defined() && mask->dtype() == DType::bool_ && mask->is_traced())
    return chosen_by(*mask, x, fitting);
  const Value places = places_of(x.shape(), indices);
  const bool once = std::ranges::none_of(indices, [](const Index& entry) {
    const auto* value = std::get_if<Value>(&entry);
    return value != nullptr && value->dtype() != DType::bool_;
  });
  const Value made = apply(
      "put", {reshaped(x, {-1}), reshaped(places, {-1}), reshaped(broadcast(fitting, places.shape()), {-1})},
      {{"once", once}});
  return reshaped(made, x.shape().sizes());
}

}  // namespace muster::nn
