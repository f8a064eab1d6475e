// add, sub, mul, div: element by element, with numpy's broadcasting.
#include <algorithm>

#include "muster/graph/ops/ops.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {

using kernels::Binary;

constexpr std::string_view name_of(Binary kind) {
  switch (kind) {
    case Binary::add:
      return "add";
    case Binary::sub:
      return "sub";
    case Binary::mul:
      return "mul";
    case Binary::div:
      break;
  }
  return "div";
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  std::vector<std::int64_t> sizes(std::max(a.rank(), b.rank()));
  for (std::size_t back = 1; back <= sizes.size(); ++back) {
    const std::int64_t left = back <= a.rank() ? a[a.rank() - back] : 1;
    const std::int64_t right = back <= b.rank() ? b[b.rank() - back] : 1;
    if (left != right && left != 1 && right != 1) return std::nullopt;
    sizes[sizes.size() - back] = left == 1 ? right : left;
  }
  return Shape(std::move(sizes));
}

template <Binary kind>
Types infer(const Signature& signature) {
  const TensorType& a = signature.inputs[0];
  const TensorType& b = signature.inputs[1];
  MUSTER_TRY_VOID(require_equal_dtypes(name_of(kind), signature));
  const bool integer = a.dtype == DType::int32 || a.dtype == DType::int64;
  if (!integer && !is_floating(a.dtype))
    return bad("{}: float32, float64, int32 or int64 is needed, not {}", name_of(kind),
               muster::to_string(a.dtype));
  const auto shape = broadcast(a.shape, b.shape);
  if (!shape)
    return bad("{}: {} and {} do not fit together", name_of(kind), muster::to_string(a.shape),
               muster::to_string(b.shape));
  return std::vector<TensorType>{{a.dtype, *shape}};
}

Value times(const Value& a, const Value& b) { return apply("mul", {a, b}); }
Value over(const Value& a, const Value& b) { return apply("div", {a, b}); }
Value minus(const Value& x) {
  const Value minus_one =
      apply("fill", std::span<const Value>{},
            {{"dtype", x.dtype()}, {"shape", std::vector<std::int64_t>{}}, {"value", -1.0}});
  return times(x, minus_one);
}

// Undoes the broadcasting of `like` in `gradient`.
Value summed(const Value& gradient, const Value& like) {
  if (gradient.is_failed() || gradient.shape() == like.shape()) return gradient;
  return apply("sum_to", {gradient}, {{"shape", like.shape().sizes()}});
}

template <Binary kind>
std::vector<Value> gradient(const GradientQuery& query) {
  const Value& a = query.inputs[0];
  const Value& b = query.inputs[1];
  const Value& g = query.output_gradients[0];
  switch (kind) {
    case Binary::add:
      return {summed(g, a), summed(g, b)};
    case Binary::sub:
      return {summed(g, a), summed(minus(g), b)};
    case Binary::mul:
      return {summed(times(g, b), a), summed(times(g, a), b)};
    case Binary::div:
      break;
  }
  return {summed(over(g, b), a), summed(minus(times(g, over(query.outputs[0], b))), b)};
}

bool equal_shapes(const Signature& signature) {
  return signature.inputs[0].shape == signature.inputs[1].shape;
}

template <class T>
bool usable_flat(const Signature& signature) {
  return first_is<T>(signature) && equal_shapes(signature);
}

template <Binary kind, class T>
void run_flat(const KernelCall& call) {
  kernels::binary(kind, call.input<T>(0), call.input<T>(1), call.output<T>(), call.setting<std::int64_t>());
}

struct Shapes {
  Shape a, b, out;
};

Prepared shapes(const Signature& signature) {
  return prepared(Shapes{signature.inputs[0].shape, signature.inputs[1].shape, signature.outputs[0].shape});
}

template <Binary kind, class T>
void run_broadcast(const KernelCall& call) {
  const auto& [a, b, out] = call.setting<Shapes>();
  kernels::binary_broadcast(kind, call.input<T>(0), a, call.input<T>(1), b, call.output<T>(), out);
}

template <Binary kind, class... T>
std::vector<Kernel> kernel_list() {
  std::vector<Kernel> list;
  (list.push_back({"flat", usable_flat<T>, count, run_flat<kind, T>}), ...);
  (list.push_back(reference<T>(shapes, run_broadcast<kind, T>)), ...);
  return list;
}

template <Binary kind>
Op row(std::string_view documentation) {
  return {
      .name = name_of(kind),
      .documentation = documentation,
      .inputs_min = 2,
      .inputs_max = 2,
      .infer = infer<kind>,
      .gradient = gradient<kind>,
      .kernels = kernel_list<kind, float, double, std::int32_t, std::int64_t>(),
      .sharing = Sharing::reuse,
  };
}

}  // namespace

const Op& add_op() {
  static const Op op = row<Binary::add>("a + b, shapes broadcast; float32, float64, int32, int64.");
  return op;
}
const Op& sub_op() {
  static const Op op = row<Binary::sub>("a - b, shapes broadcast; float32, float64, int32, int64.");
  return op;
}
const Op& mul_op() {
  static const Op op = row<Binary::mul>("a b, shapes broadcast; float32, float64, int32, int64.");
  return op;
}
const Op& div_op() {
  static const Op op = row<Binary::div>(
      "a / b, shapes broadcast; float32, float64, int32, int64. Integers round towards zero, x / 0 is 0.");
  return op;
}

}  // namespace muster::graph
