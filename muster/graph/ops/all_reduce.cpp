#include <algorithm>
#include <cstring>

#include "muster/graph/ops/array.h"
#include "muster/graph/ops/call_group.h"
#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/primitive.h"
#include "muster/graph/ops/weight_order.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace all_reduce_rows {

std::string reduction_name(const Attributes& attributes) {
  return attributes.get<std::string>("reduction", "sum");
}

Types infer(const Signature& signature) {
  const std::string name = reduction_name(signature.attributes);
  const auto reduction = reduction_from_string(name);
  if (!reduction)
    return bad(
        "all_reduce: no reduction is called '{}': take sum, mean, max, min, product, band, bor or bxor",
        name);
  MUSTER_TRY_VOID(require_equal_dtypes("all_reduce", signature));
  const DType dtype = signature.inputs[0].dtype;
  if (!can_reduce(dtype, *reduction))
    return bad("all_reduce: there is no {} of {}", name, muster::to_string(dtype));
  return std::vector<TensorType>(signature.inputs.begin(), signature.inputs.end());
}

std::vector<Value> gradient(const GradientQuery& query) {
  const std::string reduction = reduction_name(query.attributes);
  std::vector<Value> gradients(query.inputs.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!query.output_gradients[i].defined()) continue;
    if (reduction != "sum" && reduction != "mean")
      throw Exception(Code::not_provided,
                      fmt::format("the gradient cannot pass through all_reduce with '{}'", reduction));
    gradients[i] = apply("all_reduce", {query.output_gradients[i]}, query.attributes);
  }
  return gradients;
}

struct Settings {
  CallGroup group;
  Reduction reduction = Reduction::sum;
  DType dtype = DType::float32;
  std::vector<std::size_t> sizes_bytes;
  std::size_t total_bytes = 0;
};

Prepared prepare(const Signature& signature) {
  Settings settings{.group = call_group(signature.attributes),
                    .reduction = *reduction_from_string(reduction_name(signature.attributes)),
                    .dtype = signature.inputs[0].dtype,
                    .sizes_bytes = {},
                    .total_bytes = 0};
  for (const TensorType& type : signature.inputs) {
    settings.sizes_bytes.push_back(type.size_bytes());
    settings.total_bytes += type.size_bytes();
  }
  const std::size_t scratch = settings.sizes_bytes.size() > 1 ? settings.total_bytes : 0;
  return prepared(std::move(settings), scratch);
}

bool gapless(std::byte* const* addresses, const std::vector<std::size_t>& sizes_bytes) {
  for (std::size_t i = 1; i < sizes_bytes.size(); ++i)
    if (addresses[i] != addresses[i - 1] + sizes_bytes[i - 1]) return false;
  return true;
}

// Side by side from `to` on; what lies there already stays.
void copy_in(const KernelCall& call, const Settings& settings, std::byte* to) {
  for (std::size_t i = 0; i < settings.sizes_bytes.size(); to += settings.sizes_bytes[i++])
    if (call.inputs[i] != to) std::memcpy(to, call.inputs[i], settings.sizes_bytes[i]);
}

void copy_out(const KernelCall& call, const Settings& settings, const std::byte* from) {
  for (std::size_t i = 0; i < settings.sizes_bytes.size(); from += settings.sizes_bytes[i++])
    std::memcpy(call.outputs[i], from, settings.sizes_bytes[i]);
}

// A group of one: every reduction of one value is that value.
void copy_through(const KernelCall& call, const Settings& settings) {
  for (std::size_t i = 0; i < settings.sizes_bytes.size(); ++i)
    if (call.outputs[i] != call.inputs[i])
      std::memcpy(call.outputs[i], call.inputs[i], settings.sizes_bytes[i]);
}

// Always exactly one collective, whatever the layout here: other ranks may have another one. A plan lays the
// outputs side by side, and most inputs where their outputs are.
void run(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  const auto group = find_group(settings.group, call);
  if (!group) {
    *call.failure = group.error();
    return;
  }
  if (*group == nullptr || (*group)->size() == 1) return copy_through(call, settings);
  const bool out_gapless = gapless(call.outputs, settings.sizes_bytes);
  std::byte* const out = out_gapless ? call.outputs[0] : call.scratch;
  const std::byte* in = out;
  if (gapless(call.inputs, settings.sizes_bytes))
    in = call.inputs[0];
  else
    copy_in(call, settings, out);
  const std::size_t elements = settings.total_bytes / size_bytes(settings.dtype);
  Result<> reduced = (*group)->all_reduce(in, out, elements, settings.dtype, settings.reduction);
  if (!reduced)
    *call.failure = std::move(reduced).error();
  else if (!out_gapless)
    copy_out(call, settings, out);
}

bool has_ordered_weights(const Signature& signature) {
  return signature.attributes.get("weight_order", false) &&
         std::any_of(signature.inputs.begin(), signature.inputs.end(), travels_in_weight_order);
}

// Inside a plan kernels give and take weights in the order in which they travel, or reorders stand between.
bool reorders_around(const Signature& signature) {
  return !signature.formats.empty() && has_ordered_weights(signature) && primitives_available();
}

Prepared prepare_ordered(const Signature& signature) {
  Prepared made = prepare(signature);
  made.input_formats.resize(signature.inputs.size());
  for (std::size_t i = 0; i < signature.inputs.size(); ++i) {
    const TensorType& type = signature.inputs[i];
    if (!travels_in_weight_order(type)) continue;
    made.input_formats[i] = primitive_library()->format_named(type.shape, type.dtype, weight_order_name);
    made.declined = made.declined || made.input_formats[i] == nullptr;
  }
  made.output_formats = made.input_formats;
  return made;
}

// Where the caller does not reorder, the kernel does. The memory is its own: a plan gives no scratch to
// outputs that lie side by side.
struct ReorderingSettings {
  Settings sizes;
  std::vector<TensorType> types;
  std::shared_ptr<Buffer> travelling;
};

Prepared prepare_reordering(const Signature& signature) {
  const Prepared sizes = prepare(signature);
  ReorderingSettings settings{.sizes = *static_cast<const Settings*>(sizes.settings.get()),
                              .types = {signature.inputs.begin(), signature.inputs.end()},
                              .travelling = nullptr};
  settings.travelling = Buffer::allocate(settings.sizes.total_bytes);
  return prepared(std::move(settings), 0);
}

void run_reordering(const KernelCall& call) {
  const auto& [sizes, types, travelling] = call.setting<ReorderingSettings>();
  if (call.communicator == nullptr || call.communicator->size() == 1) return copy_through(call, sizes);
  std::byte* const begin = travelling->data();
  const auto each = [&](auto&& move) {
    std::byte* place = begin;
    for (std::size_t i = 0; i < types.size(); place += sizes.sizes_bytes[i++]) move(i, place);
  };
  each([&](std::size_t i, std::byte* place) {
    if (travels_in_weight_order(types[i]))
      to_weight_order(types[i], call.inputs[i], place);
    else
      std::memcpy(place, call.inputs[i], sizes.sizes_bytes[i]);
  });
  const std::size_t elements = sizes.total_bytes / size_bytes(sizes.dtype);
  Result<> reduced = call.communicator->all_reduce(begin, begin, elements, sizes.dtype, sizes.reduction);
  if (!reduced) {
    *call.failure = std::move(reduced).error();
    return;
  }
  each([&](std::size_t i, const std::byte* place) {
    if (travels_in_weight_order(types[i]))
      from_weight_order(types[i], place, call.outputs[i]);
    else
      std::memcpy(call.outputs[i], place, sizes.sizes_bytes[i]);
  });
}

}  // namespace all_reduce_rows
}  // namespace

const Op& all_reduce_op() {
  using namespace all_reduce_rows;
  static const Op op{
      .name = "all_reduce",
      .documentation =
          "Each input reduced over all ranks (`reduction`: 'sum', 'mean', 'max', 'min', 'product', and of "
          "integers and bools 'band', 'bor', 'bxor'), one output for each; one "
          "collective for all of them. Every rank must call it. Alone it copies. With `bucket_bytes` or "
          "`bucket_splits` a plan makes several collectives of it, each as soon as its inputs are made, at "
          "most so large or cut before these positions in the order in which the inputs are made. With "
          "`weight_order` inputs with the shape of convolution weights travel in the order that kernels give "
          "them in; the results are the same. With a `group` of some ranks, those alone call it.",
      .inputs_min = 1,
      .inputs_max = 65536,
      .outputs = 0,
      .infer = infer,
      .gradient = gradient,
      .kernels = {{"weight order", reorders_around, prepare_ordered, run},
                  {"weight order, reference", has_ordered_weights, prepare_reordering, run_reordering},
                  {"reference", any, prepare, run}},
      .sharing = Sharing::side_by_side,
      .collective = true,
  };
  return op;
}

std::vector<const Op*> rows_of_all_reduce() { return {&all_reduce_op()}; }

}  // namespace muster::graph
