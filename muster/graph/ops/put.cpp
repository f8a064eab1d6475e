// put: a row of elements with some of them replaced.
#include <cstring>

#include "muster/graph/ops/array.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace put_rows {

Types infer_put(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  const TensorType& places = signature.inputs[1];
  const TensorType& values = signature.inputs[2];
  if (places.dtype != DType::int64)
    return bad("put: the places must be int64, not {}", muster::to_string(places.dtype));
  if (x.shape.rank() != 1 || places.shape.rank() != 1 || values.shape != places.shape)
    return bad("put: {}, {} and {} are not a row, places in it, and a value for each",
               muster::to_string(x.shape), muster::to_string(places.shape), muster::to_string(values.shape));
  if (values.dtype != x.dtype)
    return bad("put: the values must be {}, not {}", muster::to_string(x.dtype),
               muster::to_string(values.dtype));
  return same_as_first(signature);
}

Value zeros_like(const Value& x) {
  return apply("fill", {}, {{"shape", x.shape().sizes()}, {"value", 0.0}, {"dtype", x.dtype()}});
}

// 0 for the values that others were put over.
Value without_lost(const Value& flow, const Value& places, const Value& x) {
  Tensor numbers(DType::int64, places.shape());
  for (std::int64_t i = 0; i < numbers.elements(); ++i) numbers.data<std::int64_t>()[i] = i;
  const Value none =
      apply("fill", {}, {{"shape", x.shape().sizes()}, {"value", 0.0}, {"dtype", DType::int64}});
  const Value last = apply("gather", {apply("put", {none, places, numbers}), places});
  return apply("select", {apply("equal", {last, numbers}), flow, zeros_like(flow)});
}

std::vector<Value> gradient_put(const GradientQuery& query) {
  const Value& flow = query.output_gradients[0];
  const Value& places = query.inputs[1];
  const Value of_values = apply("gather", {flow, places});
  const bool once = query.attributes.get("once", false);
  return {apply("put", {flow, places, zeros_like(query.inputs[2])}, query.attributes), Value(),
          once ? of_values : without_lost(of_values, places, flow)};
}

struct PutSettings {
  std::int64_t size = 0;
  std::int64_t count = 0;
};

Prepared prepare_put(const Signature& signature) {
  return prepared(PutSettings{signature.inputs[0].shape.elements(), signature.inputs[1].shape.elements()});
}

// `Bits` is any type of the size of an element.
template <class Bits>
void run_put(const KernelCall& call) {
  const auto& [size, count] = call.setting<PutSettings>();
  const auto* places = call.input<std::int64_t>(1);
  if (const auto wrong = kernels::index_out_of_range(places, count, size)) {
    *call.failure = {Code::invalid_argument,
                     fmt::format("put: place {} is not one of {} elements", places[*wrong], size)};
    return;
  }
  Bits* y = call.output<Bits>();
  const Bits* values = call.input<Bits>(2);
  std::memcpy(y, call.inputs[0], static_cast<std::size_t>(size) * sizeof(Bits));
  for (std::int64_t i = 0; i < count; ++i) y[places[i] < 0 ? places[i] + size : places[i]] = values[i];
}

template <class Bits>
bool usable_put(const Signature& signature) {
  return size_bytes(signature.inputs[0].dtype) == sizeof(Bits);
}

template <class Bits>
Kernel put_kernel() {
  return with_bfloat16({"reference", usable_put<Bits>, prepare_put, run_put<Bits>});
}

std::vector<Op> rows() {
  return {{.name = "put",
           .documentation =
               "A copy of the row x in which values[i] stands at places[i] (int64): where several are put to "
               "one place, the last. `once`: no place comes twice. Any dtype.",
           .inputs_min = 3,
           .inputs_max = 3,
           .infer = infer_put,
           .gradient = gradient_put,
           .kernels = {put_kernel<std::uint8_t>(), put_kernel<std::uint16_t>(), put_kernel<std::uint32_t>(),
                       put_kernel<std::uint64_t>()}}};
}

}  // namespace put_rows
}  // namespace

std::vector<const Op*> rows_of_put() {
  static const std::vector<Op> family = put_rows::rows();
  return addresses(family);
}

}  // namespace muster::graph
