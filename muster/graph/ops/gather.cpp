// gather, its reverse scatter_add, and flat_index, which makes one index of several.
#include <algorithm>

#include "muster/graph/ops/array.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace gather_rows {

using kernels::GatherSize;

struct Places {
  std::size_t axis = 0;
  std::size_t batch_dims = 0;
};

Result<Places> places_of(std::string_view op, const Attributes& attributes, const Shape& x,
                         const TensorType& indices) {
  if (!is_index(indices.dtype))
    return bad("{}: the indices must be int32 or int64, not {}", op, muster::to_string(indices.dtype));
  MUSTER_TRY(const std::size_t axis, axis_of(op, attributes, x));
  const std::int64_t batch_dims = attributes.get("batch_dims", std::int64_t{0});
  const auto limit = static_cast<std::int64_t>(std::min(axis, indices.shape.rank()));
  if (batch_dims < 0 || batch_dims > limit)
    return bad("{}: batch_dims {} must lie in [0, {}] for axis {} of {} and indices {}", op, batch_dims,
               limit, axis, muster::to_string(x), muster::to_string(indices.shape));
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch_dims); ++i)
    if (x[i] != indices.shape[i])
      return bad("{}: {} and the indices {} differ in batch axis {}", op, muster::to_string(x),
                 muster::to_string(indices.shape), i);
  return Places{axis, static_cast<std::size_t>(batch_dims)};
}

Shape gathered(const Shape& x, const Shape& indices, const Places& places) {
  Sizes sizes(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(places.axis));
  sizes.insert(sizes.end(), indices.begin() + static_cast<std::ptrdiff_t>(places.batch_dims), indices.end());
  sizes.insert(sizes.end(), x.begin() + static_cast<std::ptrdiff_t>(places.axis) + 1, x.end());
  return Shape(std::move(sizes));
}

Types infer_gather(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  const TensorType& indices = signature.inputs[1];
  MUSTER_TRY(const Places places, places_of("gather", signature.attributes, x.shape, indices));
  return std::vector<TensorType>{{x.dtype, gathered(x.shape, indices.shape, places)}};
}

Shape scattered_shape(const Attributes& attributes) { return Shape(sizes_of(attributes, "shape")); }

Types infer_scatter_add(const Signature& signature) {
  const TensorType& indices = signature.inputs[0];
  const TensorType& updates = signature.inputs[1];
  MUSTER_TRY_VOID(require_number("scatter_add", updates));
  const Shape shape = scattered_shape(signature.attributes);
  for (const std::int64_t size : shape)
    if (size < 0) return bad("scatter_add: {} has a negative size", muster::to_string(shape));
  MUSTER_TRY(const Places places, places_of("scatter_add", signature.attributes, shape, indices));
  const Shape wanted = gathered(shape, indices.shape, places);
  if (updates.shape != wanted)
    return bad("scatter_add: the updates for {} and indices {} must be {}, not {}", muster::to_string(shape),
               muster::to_string(indices.shape), muster::to_string(wanted), muster::to_string(updates.shape));
  return std::vector<TensorType>{{updates.dtype, shape}};
}

Attributes placed(const Attributes& attributes) {
  return {{"axis", attributes.get("axis", std::int64_t{0})},
          {"batch_dims", attributes.get("batch_dims", std::int64_t{0})}};
}

std::vector<Value> gradient_gather(const GradientQuery& query) {
  Attributes attributes = placed(query.attributes);
  attributes.set("shape", query.inputs[0].shape().sizes());
  return {apply("scatter_add", {query.inputs[1], query.output_gradients[0]}, attributes), Value()};
}

std::vector<Value> gradient_scatter_add(const GradientQuery& query) {
  return {Value(), apply("gather", {query.output_gradients[0], query.inputs[0]}, placed(query.attributes))};
}

struct Settings {
  GatherSize size;
  std::size_t axis = 0;
  std::size_t element_bytes = 0;
};

Prepared prepare(const Attributes& attributes, const TensorType& x, const TensorType& indices) {
  const auto places = places_of("gather", attributes, x.shape, indices);
  const auto [axis, batch_dims] = *places;
  return prepared(
      Settings{.size = {.batches = elements_between(x.shape, 0, batch_dims),
                        .outer = elements_between(x.shape, batch_dims, axis),
                        .size = x.shape[axis],
                        .inner = elements_between(x.shape, axis + 1, x.shape.rank()),
                        .count = elements_between(indices.shape, batch_dims, indices.shape.rank())},
               .axis = axis,
               .element_bytes = size_bytes(x.dtype)});
}

Prepared prepare_gather(const Signature& signature) {
  return prepare(signature.attributes, signature.inputs[0], signature.inputs[1]);
}
Prepared prepare_scatter_add(const Signature& signature) {
  return prepare(signature.attributes, signature.outputs[0], signature.inputs[0]);
}

Error outside(std::string_view op, std::int64_t index, std::int64_t position, std::size_t axis,
              std::int64_t size) {
  return {Code::invalid_argument,
          fmt::format("{}: index {} (number {} of the indices) is out of range for axis {}, which has {}", op,
                      index, position, axis, size)};
}

template <class I>
bool indices_are_good(const KernelCall& call, std::string_view op, const I* indices,
                      const Settings& settings) {
  const auto wrong =
      kernels::index_out_of_range(indices, settings.size.batches * settings.size.count, settings.size.size);
  if (wrong) *call.failure = outside(op, indices[*wrong], *wrong, settings.axis, settings.size.size);
  return !wrong;
}

template <class I>
void run_gather(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  if (indices_are_good(call, "gather", call.input<I>(1), settings))
    kernels::gather(settings.size, call.inputs[0], call.input<I>(1), call.outputs[0], settings.element_bytes,
                    call.threads);
}

template <class T, class I>
void run_scatter_add(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  if (indices_are_good(call, "scatter_add", call.input<I>(0), settings))
    kernels::scatter_add(settings.size, call.input<I>(0), call.input<T>(1), call.output<T>(), call.threads);
}

template <class I>
bool second_is(const Signature& signature) {
  return signature.inputs[1].dtype == dtype_of<I>;
}

template <class T, class I>
bool usable_scatter_add(const Signature& signature) {
  return second_is<T>(signature) && first_is<I>(signature);
}

template <class... T>
std::vector<Kernel> scatter_add_kernels() {
  std::vector<Kernel> list;
  (list.push_back({"reference", usable_scatter_add<T, std::int32_t>, prepare_scatter_add,
                   run_scatter_add<T, std::int32_t>}),
   ...);
  (list.push_back({"reference", usable_scatter_add<T, std::int64_t>, prepare_scatter_add,
                   run_scatter_add<T, std::int64_t>}),
   ...);
  return list;
}

// ---- flat_index ------------------------------------------------------------------------------------------

Types infer_flat_index(const Signature& signature) {
  const TensorType& first = signature.inputs[0];
  const Sizes sizes = sizes_of(signature.attributes, "sizes");
  if (!is_index(first.dtype))
    return bad("flat_index: the indices must be int32 or int64, not {}", muster::to_string(first.dtype));
  for (const TensorType& input : signature.inputs)
    if (input != first)
      return bad("flat_index: the indices {} and {} must be alike", to_string(first), to_string(input));
  if (sizes.size() != signature.inputs.size())
    return bad("flat_index: {} indices for {} axes", signature.inputs.size(), sizes.size());
  return std::vector<TensorType>{{DType::int64, first.shape}};
}

struct FlatSettings {
  Sizes sizes;
  Sizes axes;  // for messages
  std::int64_t count = 0;
};

Prepared prepare_flat_index(const Signature& signature) {
  FlatSettings settings{sizes_of(signature.attributes, "sizes"), sizes_of(signature.attributes, "axes"),
                        signature.outputs[0].shape.elements()};
  for (std::size_t i = settings.axes.size(); i < settings.sizes.size(); ++i)
    settings.axes.push_back(static_cast<std::int64_t>(i));
  return prepared(std::move(settings));
}

template <class I>
void run_flat_index(const KernelCall& call) {
  const auto& [sizes, axes, elements] = call.setting<FlatSettings>();
  std::vector<const I*> indices;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    indices.push_back(call.input<I>(i));
    if (const auto wrong = kernels::index_out_of_range(indices[i], elements, sizes[i])) {
      *call.failure =
          outside("index", indices[i][*wrong], *wrong, static_cast<std::size_t>(axes[i]), sizes[i]);
      return;
    }
  }
  kernels::flat_index<I>(indices, sizes, call.output<std::int64_t>(), elements);
}

}  // namespace gather_rows
}  // namespace

namespace {
namespace gather_rows {

Result<> onnx_gather(OnnxCall& call) {
  if (call.attributes().get("batch_dims", std::int64_t{0}) != 0)
    return call.refuse("ONNX's Gather has no batch_dims: gather_elements can often take its place");
  return call.give("Gather", call.all_inputs(), {{"axis", call.attributes().get("axis", std::int64_t{0})}});
}

}  // namespace gather_rows
}  // namespace

const Op& gather_op() {
  using namespace gather_rows;
  static const Op op{
      .name = "gather",
      .documentation =
          "y[b..., o..., i..., n...] = x[b..., o..., indices[b..., i...], n...]: the axis `axis` of x (0, "
          "negative ones count from the end) is replaced by the axes of the indices behind the `batch_dims` "
          "(0) leading axes, which both share. x of any dtype, indices int32 or int64; negative indices "
          "count from the end, others outside of the axis are an error. Its gradient is scatter_add.",
      .inputs_min = 2,
      .inputs_max = 2,
      .infer = infer_gather,
      .gradient = gradient_gather,
      .kernels =
          {for_any_dtype({"reference", second_is<std::int32_t>, prepare_gather, run_gather<std::int32_t>}),
           for_any_dtype({"reference", second_is<std::int64_t>, prepare_gather, run_gather<std::int64_t>})},
      .schema = {.inputs = {"input_params", "input_indices"},
                 .attributes = {{.name = "axis", .otherwise = std::int64_t{0}},
                                {.name = "batch_dims", .otherwise = std::int64_t{0}}},
                 .methods = {{"gather"}, {"index_select", {"axis", "index:input_indices"}}},
                 .mindspore = {{"gather"}, {"index_select", {"input", "axis", "index:input_indices"}}},
                 .primitives = {{"Gather", {"batch_dims"}, {"input_params", "input_indices", "axis"}}}},
      .onnx = onnx_gather,
      .dimensions = gather_dimensions,
  };
  return op;
}

const Op& scatter_add_op() {
  using namespace gather_rows;
  static const Op op{
      .name = "scatter_add",
      .documentation =
          "scatter_add(indices, updates): a tensor of `shape`, 0 where no index points, else the sum of the "
          "updates that point there, in their order; axis, batch_dims and indices as for gather, whose "
          "gradient it is. float32, float64, int32 or int64.",
      .inputs_min = 2,
      .inputs_max = 2,
      .infer = infer_scatter_add,
      .gradient = gradient_scatter_add,
      .kernels = scatter_add_kernels<float, double, std::int32_t, std::int64_t>(),
      .dimensions = scatter_add_dimensions,
  };
  return op;
}

const Op& flat_index_op() {
  using namespace gather_rows;
  static const Op op{
      .name = "flat_index",
      .documentation =
          "Indices (one tensor for each of `sizes`, all alike, int32 or int64, negative ones from the end) "
          "as one index into a tensor of `sizes` row by row, int64. An index out of range is an error that "
          "names its axis, as `axes` numbers them.",
      .inputs_min = 1,
      .inputs_max = 64,
      .infer = infer_flat_index,
      .kernels = {reference<std::int32_t>(prepare_flat_index, run_flat_index<std::int32_t>),
                  reference<std::int64_t>(prepare_flat_index, run_flat_index<std::int64_t>)},
      .dimensions = elementwise,
  };
  return op;
}

std::vector<const Op*> rows_of_gather() { return {&gather_op(), &scatter_add_op(), &flat_index_op()}; }

}  // namespace muster::graph
