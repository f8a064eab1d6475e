// scatter_elements and scatter_nd, which write at indices, and gather_nd, which reads there.
#include <algorithm>
#include <cstring>

#include "muster/graph/ops/array.h"
#include "muster/graph/ops/rules.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace scatter_rows {

// What becomes of an element that an index points to; in the order of the indices.
enum class Mode { update, add, sub, mul, div, max, min };
const std::vector<std::string_view> mode_names = {"update", "add", "sub", "mul", "div", "max", "min"};

Mode mode_of(const Attributes& attributes) {
  const std::string name = attributes.get("mode", std::string("update"));
  const auto found = std::find(mode_names.begin(), mode_names.end(), name);
  return static_cast<Mode>(found - mode_names.begin());
}

Result<> check_common(std::string_view op, const Signature& signature) {
  const TensorType &x = signature.inputs[0], &index = signature.inputs[1], &updates = signature.inputs[2];
  if (!is_index(index.dtype))
    return bad("{}: the indices must be int32 or int64, not {}", op, muster::to_string(index.dtype));
  if (updates.dtype != x.dtype)
    return bad("{}: the updates must be {} as x is, not {}", op, muster::to_string(x.dtype),
               muster::to_string(updates.dtype));
  if (mode_of(signature.attributes) == Mode::update) return {};
  return require_number(op, x);
}

// ---- The places ------------------------------------------------------------------------------------------

// Where the k-th index points: `rows` elements of x side by side from there.
struct Places {
  std::string_view op;
  Mode mode = Mode::update;
  bool wide = false;  // indices of 64 bits
  DType dtype = DType::float32;
  std::int64_t count = 0;     // of places
  std::int64_t rows = 1;      // elements at each
  std::int64_t elements = 0;  // of x
  Sizes sizes;                // of x along the axes that the indices name
  Sizes axes;                 // those axes, for messages
  Sizes strides;              // of x along them
  Sizes index;                // scatter_elements: sizes of the index
  Sizes walk;                 // and the strides of x along its axes, 0 along the named one
};

std::int64_t index_at(const KernelCall& call, const Places& places, std::int64_t k) {
  return places.wide ? call.input<std::int64_t>(1)[k] : call.input<std::int32_t>(1)[k];
}

// The distance that index number k makes along named axis i; false: it is out of range, which is noted.
bool add_distance(const KernelCall& call, const Places& places, std::int64_t k, std::size_t i,
                  std::int64_t& place) {
  const std::int64_t given = index_at(call, places, k), size = places.sizes[i];
  if (given < -size || given >= size) {
    *call.failure =
        Error{Code::invalid_argument,
              fmt::format("{}: index {} (number {} of the indices) is out of range for axis {}, which has {}",
                          places.op, given, k, places.axes[i], size)};
    return false;
  }
  place += (given < 0 ? given + size : given) * places.strides[i];
  return true;
}

// Calls visit(k, place) for each index of scatter_elements, or each tuple of indices of scatter_nd.
template <class Visit>
void visit_places(const KernelCall& call, const Places& places, Visit visit) {
  Sizes at(places.index.size(), 0);
  std::int64_t base = 0;
  const auto depth = static_cast<std::int64_t>(places.sizes.size());
  for (std::int64_t k = 0; k < places.count; ++k) {
    std::int64_t place = base;
    for (std::int64_t i = 0; i < depth; ++i)
      if (!add_distance(call, places, k * depth + i, static_cast<std::size_t>(i), place)) return;
    visit(k, place);
    for (std::size_t i = at.size(); i-- > 0;) {
      base += places.walk[i];
      if (++at[i] < places.index[i]) break;
      base -= places.walk[i] * places.index[i];
      at[i] = 0;
    }
  }
}

template <class T>
T joined(Mode mode, T old, T given) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;  // whole numbers wrap around
    const auto a = static_cast<Unsigned>(old), b = static_cast<Unsigned>(given);
    if (mode == Mode::add) return static_cast<T>(a + b);
    if (mode == Mode::sub) return static_cast<T>(a - b);
    if (mode == Mode::mul) return static_cast<T>(a * b);
    if (mode == Mode::div) return given == 0 ? T{0} : given == -1 ? static_cast<T>(0 - a) : old / given;
  }
  switch (mode) {
    case Mode::add:
      return old + given;
    case Mode::sub:
      return old - given;
    case Mode::mul:
      return old * given;
    case Mode::div:
      return old / given;
    case Mode::max:
      return given != given || given > old ? given : old;
    case Mode::min:
      return given != given || given < old ? given : old;
    case Mode::update:
      break;
  }
  return given;
}

template <class T>
void join(const KernelCall& call, const Places& places) {
  const T* updates = call.input<T>(2);
  T* y = call.output<T>();
  visit_places(call, places, [&](std::int64_t k, std::int64_t place) {
    for (std::int64_t r = 0; r < places.rows; ++r)
      y[place + r] = joined(places.mode, y[place + r], updates[k * places.rows + r]);
  });
}

// In the order of the indices, on one thread: the results are the same in each run.
void run(const KernelCall& call) {
  const Places& places = call.setting<Places>();
  const std::size_t bytes = size_bytes(places.dtype);
  if (call.outputs[0] != call.inputs[0])
    std::memcpy(call.outputs[0], call.inputs[0], static_cast<std::size_t>(places.elements) * bytes);
  if (places.mode == Mode::update) {
    const std::size_t row = static_cast<std::size_t>(places.rows) * bytes;
    visit_places(call, places, [&](std::int64_t k, std::int64_t place) {
      std::memcpy(call.outputs[0] + static_cast<std::size_t>(place) * bytes,
                  call.inputs[2] + static_cast<std::size_t>(k) * row, row);
    });
    return;
  }
  switch (places.dtype) {
    case DType::float32:
      return join<float>(call, places);
    case DType::float64:
      return join<double>(call, places);
    case DType::int32:
      return join<std::int32_t>(call, places);
    default:
      return join<std::int64_t>(call, places);
  }
}

bool only_moves(const Signature& signature) { return mode_of(signature.attributes) == Mode::update; }

// ---- Gradients -------------------------------------------------------------------------------------------

// The gradients of x and of the updates, for y = scatter(x, index, updates).
template <Value (*picked)(const GradientQuery&, const Value&)>
std::vector<Value> gradient_of_scatter(const GradientQuery& query) {
  const Value &x = query.inputs[0], &index = query.inputs[1], &updates = query.inputs[2];
  const Value &y = query.outputs[0], &dy = query.output_gradients[0];
  const auto scattered = [&](const Value& into, const Value& what, std::string_view mode) {
    Attributes attributes = query.attributes;
    attributes.set("mode", std::string(mode));
    return apply(query.attributes.find("axis") != nullptr ? "scatter_elements" : "scatter_nd_update",
                 {into, index, what}, attributes);
  };
  const auto there = [&](const Value& value) { return picked(query, value); };
  const Mode mode = mode_of(query.attributes);
  switch (mode) {
    case Mode::update:
      return {scattered(dy, filled_like(updates, 0), "update"), Value(), there(dy)};
    case Mode::add:
      return {dy, Value(), there(dy)};
    case Mode::sub:
      return {dy, Value(), negated(there(dy))};
    case Mode::mul: {
      // Of one update the others, and where it is 0 what it multiplies.
      const Value is_zero = apply("equal", {updates, scalar_like(updates, 0)});
      const Value safe = apply("select", {is_zero, filled_like(updates, 1), updates});
      const Value others = apply("select", {is_zero, there(x), over(there(y), safe)});
      return {scattered(dy, updates, "mul"), Value(), times(there(dy), others)};
    }
    case Mode::div:
      return {scattered(dy, updates, "div"), Value(), negated(over(times(there(dy), there(y)), updates))};
    case Mode::max:
    case Mode::min: {
      // Those that are the extreme share its gradient.
      const Value is_x = as_numbers(apply("equal", {x, y}), x);
      const Value is_update = as_numbers(apply("equal", {updates, there(y)}), x);
      const Value share = over(dy, scattered(is_x, is_update, "add"));
      return {times(is_x, share), Value(), times(is_update, there(share))};
    }
  }
  return {};
}

Value picked_elements(const GradientQuery& query, const Value& from) {
  return apply("gather_elements", {from, query.inputs[1]},
               {{"axis", query.attributes.get("axis", std::int64_t{0})}});
}
Value picked_nd(const GradientQuery& query, const Value& from) {
  return apply("gather_nd", {from, query.inputs[1]});
}

// ---- scatter_elements ------------------------------------------------------------------------------------

Types infer_elements(const Signature& signature) {
  const TensorType &x = signature.inputs[0], &index = signature.inputs[1], &updates = signature.inputs[2];
  MUSTER_TRY_VOID(check_common("scatter_elements", signature));
  MUSTER_TRY(const std::size_t axis, axis_of("scatter_elements", signature.attributes, x.shape));
  bool fits = x.shape.rank() == index.shape.rank();
  for (std::size_t i = 0; fits && i < x.shape.rank(); ++i) fits = i == axis || index.shape[i] <= x.shape[i];
  if (!fits || updates.shape != index.shape)
    return bad(
        "scatter_elements: the index {} must have the rank of x {} and be no longer along axes other "
        "than {}, and the updates {} have its shape",
        muster::to_string(index.shape), muster::to_string(x.shape), axis, muster::to_string(updates.shape));
  return same_as_first(signature);
}

Prepared prepare_elements(const Signature& signature) {
  const TensorType &x = signature.inputs[0], &index = signature.inputs[1];
  const std::size_t axis = *axis_of("scatter_elements", signature.attributes, x.shape);
  Places places{.op = "scatter_elements",
                .mode = mode_of(signature.attributes),
                .wide = index.dtype == DType::int64,
                .dtype = x.dtype,
                .count = index.shape.elements(),
                .elements = x.shape.elements(),
                .sizes = {x.shape[axis]},
                .axes = {static_cast<std::int64_t>(axis)},
                .strides = {elements_between(x.shape, axis + 1, x.shape.rank())},
                .index = index.shape.sizes(),
                .walk = {}};
  for (std::size_t i = 0; i < x.shape.rank(); ++i)
    places.walk.push_back(i == axis ? 0 : elements_between(x.shape, i + 1, x.shape.rank()));
  return prepared(std::move(places));
}

// ---- scatter_nd_update and gather_nd ---------------------------------------------------------------------

// The shape of what the indices (..., depth) point to in x.
Result<Shape> pointed_shape(std::string_view op, const Shape& x, const TensorType& indices) {
  if (!is_index(indices.dtype))
    return bad("{}: the indices must be int32 or int64, not {}", op, muster::to_string(indices.dtype));
  const auto depth = indices.shape.rank() == 0 ? -1 : indices.shape.sizes().back();
  if (depth < 1 || depth > static_cast<std::int64_t>(x.rank()))
    return bad("{}: the last axis of the indices {} must have 1 to {} places, one for each axis of {}", op,
               muster::to_string(indices.shape), x.rank(), muster::to_string(x));
  Sizes sizes(indices.shape.begin(), indices.shape.end() - 1);
  sizes.insert(sizes.end(), x.begin() + depth, x.end());
  return Shape(std::move(sizes));
}

Types infer_nd(const Signature& signature) {
  const TensorType &x = signature.inputs[0], &indices = signature.inputs[1], &updates = signature.inputs[2];
  MUSTER_TRY_VOID(check_common("scatter_nd_update", signature));
  MUSTER_TRY(const Shape wanted, pointed_shape("scatter_nd_update", x.shape, indices));
  if (updates.shape != wanted)
    return bad("scatter_nd_update: the updates for {} and the indices {} must be {}, not {}",
               muster::to_string(x.shape), muster::to_string(indices.shape), muster::to_string(wanted),
               muster::to_string(updates.shape));
  return same_as_first(signature);
}

Types infer_gather_nd(const Signature& signature) {
  MUSTER_TRY(Shape shape, pointed_shape("gather_nd", signature.inputs[0].shape, signature.inputs[1]));
  return std::vector<TensorType>{{signature.inputs[0].dtype, std::move(shape)}};
}

Places nd_places(std::string_view op, const Signature& signature) {
  const TensorType &x = signature.inputs[0], &indices = signature.inputs[1];
  const std::int64_t depth = indices.shape.sizes().back();
  Places places{.op = op,
                .mode = mode_of(signature.attributes),
                .wide = indices.dtype == DType::int64,
                .dtype = x.dtype,
                .count = indices.shape.elements() / depth,
                .rows = elements_between(x.shape, static_cast<std::size_t>(depth), x.shape.rank()),
                .elements = x.shape.elements(),
                .sizes = Sizes(x.shape.begin(), x.shape.begin() + depth),
                .axes = {},
                .strides = {},
                .index = {},
                .walk = {}};
  for (std::int64_t i = 0; i < depth; ++i) {
    places.axes.push_back(i);
    places.strides.push_back(elements_between(x.shape, static_cast<std::size_t>(i) + 1, x.shape.rank()));
  }
  return places;
}

Prepared prepare_nd(const Signature& signature) {
  return prepared(nd_places("scatter_nd_update", signature));
}
Prepared prepare_gather_nd(const Signature& signature) { return prepared(nd_places("gather_nd", signature)); }

void run_gather_nd(const KernelCall& call) {
  const Places& places = call.setting<Places>();
  const std::size_t bytes = size_bytes(places.dtype), row = static_cast<std::size_t>(places.rows) * bytes;
  visit_places(call, places, [&](std::int64_t k, std::int64_t place) {
    std::memcpy(call.outputs[0] + static_cast<std::size_t>(k) * row,
                call.inputs[0] + static_cast<std::size_t>(place) * bytes, row);
  });
}

std::vector<Value> gradient_gather_nd(const GradientQuery& query) {
  const Value nothing_yet = filled_like(query.inputs[0], 0);
  return {apply("scatter_nd_update", {nothing_yet, query.inputs[1], query.output_gradients[0]},
                {{"mode", std::string("add")}}),
          Value()};
}

std::vector<Kernel> kernel_list(Prepared (*prepare)(const Signature&)) {
  return {for_any_dtype({"moves", only_moves, prepare, run}),
          taking(arithmetic, {"reference", any_signature, prepare, run})};
}

Result<> gather_nd_onnx(OnnxCall& call) { return call.give("GatherND", call.all_inputs()); }

std::vector<Op> rows() {
  const Argument mode{.name = "mode", .otherwise = std::string("update"), .choices = mode_names};
  return {
      {.name = "scatter_elements",
       .documentation =
           "x with the updates at the indices along `axis`: y[index[i, j], j] = updates[i, j] for axis 0 of "
           "two. The index (int32 or int64, negative ones from the end) has the rank of x and is no longer "
           "along the other axes, the updates have its shape. `mode` says how an update meets what is there: "
           "'update' replaces it, 'add', 'sub', 'mul', 'div', 'max' and 'min' (float32, float64, int32 or "
           "int64) join both, in the order of the indices.",
       .inputs_min = 3,
       .inputs_max = 3,
       .infer = infer_elements,
       .gradient = gradient_of_scatter<picked_elements>,
       .kernels = kernel_list(prepare_elements),
       .schema = {.inputs = {"x", "index", "updates"},
                  .attributes = {{.name = "axis", .otherwise = std::int64_t{0}, .required = true}, mode}}},
      {.name = "scatter_nd_update",
       .documentation =
           "x with the updates at the indices (..., k), which name places along the first k axes of x (int32 "
           "or int64, negative ones from the end); the updates have the axes of the indices but the last, "
           "then the other axes of x. `mode` as for scatter_elements.",
       .inputs_min = 3,
       .inputs_max = 3,
       .infer = infer_nd,
       .gradient = gradient_of_scatter<picked_nd>,
       .kernels = kernel_list(prepare_nd),
       .schema = {.inputs = {"x", "indices", "updates"}, .attributes = {mode}}},
      {.name = "gather_nd",
       .documentation =
           "What x has at the indices (..., k), which name places along its first k axes (int32 or int64, "
           "negative ones from the end): of the axes of the indices but the last, then the other axes of x. "
           "x of any dtype. The gradient adds up where a place was picked several times.",
       .inputs_min = 2,
       .inputs_max = 2,
       .infer = infer_gather_nd,
       .gradient = gradient_gather_nd,
       .kernels = {for_any_dtype({"reference", any_signature, prepare_gather_nd, run_gather_nd})},
       .schema = {.inputs = {"x", "indices"},
                  .methods = {{"gather_nd"}},
                  .mindspore = {{"gather_nd", {"input_x:x", "indices"}}},
                  .primitives = {{"GatherNd"}}},
       .onnx = gather_nd_onnx}};
}

}  // namespace scatter_rows
}  // namespace

std::vector<const Op*> rows_of_scatter() {
  using namespace scatter_rows;
  static const std::vector<Op> family = rows();
  return addresses(family);
}

}  // namespace muster::graph
