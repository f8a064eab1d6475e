// gather_elements, which picks one element for each index, and its gradient, which adds up at the indices.
#include <cstring>

#include "muster/graph/ops/array.h"
#include "muster/graph/ops/rules.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace gather_elements_rows {

// The axis, where `index` fits to `x`: the same rank, and no longer along the other axes.
Result<std::size_t> fitting_axis(std::string_view op, const Attributes& attributes, const Shape& x,
                                 const TensorType& index) {
  if (!is_index(index.dtype))
    return bad("{}: the index must be int32 or int64, not {}", op, muster::to_string(index.dtype));
  MUSTER_TRY(const std::size_t axis, axis_of(op, attributes, x));
  bool fits = x.rank() == index.shape.rank();
  for (std::size_t i = 0; fits && i < x.rank(); ++i) fits = i == axis || index.shape[i] <= x[i];
  if (!fits)
    return bad("{}: the index {} must have the rank of x {} and be no longer along axes other than {}", op,
               muster::to_string(index.shape), muster::to_string(x), axis);
  return axis;
}

Types infer(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  const TensorType& index = signature.inputs[1];
  MUSTER_TRY_VOID(fitting_axis("gather_elements", signature.attributes, x.shape, index));
  return std::vector<TensorType>{{x.dtype, index.shape}};
}

Types infer_grad(const Signature& signature) {
  const TensorType& dy = signature.inputs[0];
  const TensorType& index = signature.inputs[1];
  if (!is_floating(dy.dtype) || dy.shape != index.shape)
    return bad("gather_elements_grad: dy {} must be floating and have the shape of the index {}",
               to_string(dy), to_string(index));
  const Shape shape(sizes_of(signature.attributes, "shape"));
  MUSTER_TRY_VOID(fitting_axis("gather_elements_grad", signature.attributes, shape, index));
  return std::vector<TensorType>{{dy.dtype, shape}};
}

Attributes axis_attribute(const GradientQuery& query) {
  return {{"axis", query.attributes.get("axis", std::int64_t{0})}};
}

std::vector<Value> gradient(const GradientQuery& query) {
  Attributes attributes = axis_attribute(query);
  attributes.set("shape", query.inputs[0].shape().sizes());
  const auto scattered = [&](const Value& dy) {
    return apply("gather_elements_grad", {dy, query.inputs[1]}, attributes);
  };
  return {in_floats(query.output_gradients[0], scattered), Value()};
}

std::vector<Value> gradient_of_grad(const GradientQuery& query) {
  return {apply("gather_elements", {query.output_gradients[0], query.inputs[1]}, axis_attribute(query)),
          Value()};
}

struct Settings {
  std::string_view op;
  Sizes index;    // its sizes
  Sizes strides;  // of x, in elements
  std::size_t axis = 0;
  std::int64_t size = 0;  // of x along the axis
  std::int64_t count = 0;
  std::int64_t elements = 0;  // of x
};

Prepared settings_for(std::string_view op, const Signature& signature, const Shape& x) {
  const TensorType& index = signature.inputs[1];
  const std::size_t axis = *fitting_axis(op, signature.attributes, x, index);
  Settings made{.op = op, .index = index.shape.sizes(), .strides = {}, .axis = axis, .size = x[axis]};
  for (std::size_t i = 0; i < x.rank(); ++i) made.strides.push_back(elements_between(x, i + 1, x.rank()));
  made.count = index.shape.elements();
  made.elements = x.elements();
  return prepared(std::move(made));
}

Prepared prepare(const Signature& signature) {
  return settings_for("gather_elements", signature, signature.inputs[0].shape);
}
Prepared prepare_grad(const Signature& signature) {
  return settings_for("gather_elements_grad", signature, signature.outputs[0].shape);
}

// Calls visit(k, place): the k-th index points to that place of x. An index out of range ends it.
template <class I, class Visit>
void visit_places(const KernelCall& call, const Settings& settings, Visit visit) {
  const I* index = call.input<I>(1);
  Sizes at(settings.index.size(), 0);
  std::int64_t base = 0;  // of `at` in x, without the axis
  for (std::int64_t k = 0; k < settings.count; ++k) {
    const std::int64_t given = index[k];
    if (given < -settings.size || given >= settings.size) {
      *call.failure = Error{
          Code::invalid_argument,
          fmt::format("{}: index {} (number {} of the indices) is out of range for axis {}, which has {}",
                      settings.op, given, k, settings.axis, settings.size)};
      return;
    }
    visit(k, base + (given < 0 ? given + settings.size : given) * settings.strides[settings.axis]);
    for (std::size_t i = at.size(); i-- > 0;) {
      const std::int64_t stride = i == settings.axis ? 0 : settings.strides[i];
      base += stride;
      if (++at[i] < settings.index[i]) break;
      base -= stride * settings.index[i];
      at[i] = 0;
    }
  }
}

// `Bits` is any type of the size of an element.
template <class Bits, class I>
void run(const KernelCall& call) {
  const Bits* x = call.input<Bits>(0);
  Bits* y = call.output<Bits>();
  visit_places<I>(call, call.setting<Settings>(),
                  [&](std::int64_t k, std::int64_t place) { y[k] = x[place]; });
}

// In the order of the indices, on one thread: the sums are the same in each run.
template <class T, class I>
void run_grad(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  const T* dy = call.input<T>(0);
  T* dx = call.output<T>();
  std::fill(dx, dx + settings.elements, T{0});
  visit_places<I>(call, settings, [&](std::int64_t k, std::int64_t place) { dx[place] += dy[k]; });
}

template <class Bits, class I>
bool usable(const Signature& signature) {
  return size_bytes(signature.inputs[0].dtype) == sizeof(Bits) && signature.inputs[1].dtype == dtype_of<I>;
}

template <class T, class I>
bool usable_grad(const Signature& signature) {
  return first_is<T>(signature) && signature.inputs[1].dtype == dtype_of<I>;
}

template <class I>
void add_kernels(std::vector<Kernel>& list) {
  list.push_back(for_any_dtype({"reference", usable<std::uint8_t, I>, prepare, run<std::uint8_t, I>}));
  list.push_back(for_any_dtype({"reference", usable<std::uint16_t, I>, prepare, run<std::uint16_t, I>}));
  list.push_back(for_any_dtype({"reference", usable<std::uint32_t, I>, prepare, run<std::uint32_t, I>}));
  list.push_back(for_any_dtype({"reference", usable<std::uint64_t, I>, prepare, run<std::uint64_t, I>}));
}

std::vector<Kernel> kernel_list() {
  std::vector<Kernel> list;
  add_kernels<std::int32_t>(list);
  add_kernels<std::int64_t>(list);
  return list;
}

template <class T, class I>
Kernel grad_kernel() {
  return {"reference", usable_grad<T, I>, prepare_grad, run_grad<T, I>};
}

Result<> to_onnx(OnnxCall& call) {
  return call.give("GatherElements", call.all_inputs(),
                   {{"axis", call.attributes().get("axis", std::int64_t{0})}});
}

std::vector<Op> rows() {
  const Argument axis{.name = "axis", .otherwise = std::int64_t{0}, .required = true};
  const std::vector<std::string_view> in_mindspore = {"input:x", "dim:axis", "index"};
  return {
      {.name = "gather_elements",
       .documentation =
           "For each index the element of x there along `axis`: y[i, j] = x[index[i, j], j] for axis 0 of "
           "two. The index (int32 or int64, negative ones from the end) has the rank of x and is no longer "
           "along the other axes; y has its shape and the dtype of x, whichever. The gradient adds up "
           "where an element was picked several times.",
       .inputs_min = 2,
       .inputs_max = 2,
       .infer = infer,
       .gradient = gradient,
       .kernels = kernel_list(),
       .schema = {.inputs = {"x", "index"},
                  .attributes = {axis},
                  .methods = {{"gather_elements", {"dim:axis", "index"}}},
                  .mindspore = {{"gather_elements", in_mindspore}, {"gather_d", {"x", "dim:axis", "index"}}},
                  .primitives = {{"GatherD", {}, {"x", "dim:axis", "index"}}}},
       .onnx = to_onnx,
       .dimensions = along_first_axis},
      {.name = "gather_elements_grad",
       .documentation = "dx of `shape` from dy and the index, for y = gather_elements(x, index): dy added up "
                        "at the indices, in their order.",
       .inputs_min = 2,
       .inputs_max = 2,
       .infer = infer_grad,
       .gradient = gradient_of_grad,
       .kernels = {grad_kernel<float, std::int32_t>(), grad_kernel<float, std::int64_t>(),
                   grad_kernel<double, std::int32_t>(), grad_kernel<double, std::int64_t>()},
       .dimensions = along_first_axis_of_shape}};
}

}  // namespace gather_elements_rows
}  // namespace

std::vector<const Op*> rows_of_gather_elements() {
  using namespace gather_elements_rows;
  static const std::vector<Op> family = rows();
  return addresses(family);
}

}  // namespace muster::graph
