// matmul, and dense: matmul, bias and activation in one pass, which the compiler makes from the three.
#include <algorithm>

#include "muster/graph/ops/primitive.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace matmul_rows {

using kernels::Activation;
using kernels::MatmulArguments;
using kernels::MatmulKernel;
using kernels::MatmulSize;

struct Transposed {
  bool a = false;
  bool b = false;
};

Transposed transposed(const Attributes& attributes) {
  return {attributes.get("transpose_a", false), attributes.get("transpose_b", false)};
}

MatmulSize size_of(const Signature& signature) {
  const Shape& a = signature.inputs[0].shape;
  const Shape& b = signature.inputs[1].shape;
  const Transposed t = transposed(signature.attributes);
  return {.m = t.a ? a[1] : a[0],
          .n = t.b ? b[0] : b[1],
          .k = t.a ? a[0] : a[1],
          .transpose_a = t.a,
          .transpose_b = t.b};
}

Types infer(const Signature& signature) {
  const TensorType& a = signature.inputs[0];
  const TensorType& b = signature.inputs[1];
  MUSTER_TRY_VOID(require_floating("matmul", a));
  MUSTER_TRY_VOID(require_equal_dtypes("matmul", signature));
  if (a.shape.rank() != 2 || b.shape.rank() != 2)
    return bad("matmul: two matrices are needed, not {} and {}", to_string(a), to_string(b));
  const Transposed t = transposed(signature.attributes);
  const std::int64_t a_inner = t.a ? a.shape[0] : a.shape[1];
  const std::int64_t b_inner = t.b ? b.shape[1] : b.shape[0];
  if (a_inner != b_inner)
    return bad("matmul: a {}{} has {} columns, b {}{} has {} rows", muster::to_string(a.shape),
               t.a ? " transposed" : "", a_inner, muster::to_string(b.shape), t.b ? " transposed" : "",
               b_inner);
  const MatmulSize size = size_of(signature);
  return std::vector<TensorType>{{signature.attributes.get("dtype", a.dtype), {size.m, size.n}}};
}

Value product(const Value& a, const Value& b, bool transpose_a, bool transpose_b) {
  return apply("matmul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

std::vector<Value> gradient(const GradientQuery& query) {
  const Value& a = query.inputs[0];
  const Value& b = query.inputs[1];
  const Value& g = query.output_gradients[0];
  const Transposed t = transposed(query.attributes);
  return {t.a ? product(b, g, t.b, true) : product(g, b, false, !t.b),
          t.b ? product(g, a, true, t.a) : product(a, g, !t.a, false)};
}

double flops(const Signature& signature) {
  const MatmulSize size = size_of(signature);
  return 2.0 * static_cast<double>(size.m) * static_cast<double>(size.n) * static_cast<double>(size.k);
}

struct Settings {
  MatmulSize size;
  const MatmulKernel* kernel = nullptr;  // null: the reference
  bool bias = false;
  Activation activation = Activation::none;
  int threads = 1;  // that the scratch memory is for
};

Activation activation_of(const Attributes& attributes) {
  const auto name = attributes.get<std::string>("activation", "none");
  if (name == "relu") return Activation::relu;
  if (name == "tanh") return Activation::tanh;
  MUSTER_CHECK(name == "none", "dense has an activation that it does not know");
  return Activation::none;
}

Prepared prepare(const Signature& signature, const MatmulKernel* kernel) {
  const MatmulSize size = size_of(signature);
  return prepared(Settings{.size = size,
                           .kernel = kernel,
                           .bias = signature.inputs.size() == 3,
                           .activation = activation_of(signature.attributes),
                           .threads = signature.threads},
                  kernel == nullptr ? 0 : kernel->scratch_bytes(size, signature.threads));
}

Prepared prepare_reference(const Signature& signature) { return prepare(signature, nullptr); }

template <class T>
void run(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  const MatmulArguments<T> arguments{.a = call.input<T>(0),
                                     .b = call.input<T>(1),
                                     .c = call.output<T>(),
                                     .bias = settings.bias ? call.input<T>(2) : nullptr,
                                     .activation = settings.activation,
                                     .threads = std::min(call.threads, settings.threads),
                                     .scratch = call.scratch};
  if constexpr (std::is_same_v<T, float>) {
    if (settings.kernel != nullptr) return settings.kernel->run(settings.size, arguments);
  }
  kernels::matmul_reference(settings.size, arguments);
}

// Rows hold plain functions, so each fast kernel gets its own pair.
template <std::size_t index>
bool usable_fast(const Signature& signature) {
  return signature.inputs[0].dtype == DType::float32 &&
         kernels::matmul_kernels()[index].usable(size_of(signature));
}
template <std::size_t index>
Prepared prepare_fast(const Signature& signature) {
  return prepare(signature, &kernels::matmul_kernels()[index]);
}

// A call into the library costs as much as so many multiply-adds.
constexpr std::int64_t operations_min = 1 << 16;

// The library's: for bfloat16, and for float32 where none of our kernels for narrow products applies. The
// choice depends on sizes alone, so that every run of a script makes the same; ADR 45 has the measurements.
bool usable_library(const Signature& signature) {
  const DType dtype = signature.inputs[0].dtype;
  if (dtype == DType::bfloat16) return suits_primitives(signature);
  const auto fast = kernels::matmul_kernels();
  const MatmulSize size = size_of(signature);
  return dtype == DType::float32 && !fast.empty() && size.m * size.n * size.k >= operations_min &&
         std::none_of(fast.begin(), fast.end(),
                      [&](const MatmulKernel& kernel) { return kernel.narrow && kernel.usable(size); }) &&
         suits_primitives(signature);
}
Prepared prepare_library(const Signature& signature) {
  const bool bias = signature.inputs.size() == 3;
  return prepared(primitive_library()->matmul(
      setting_of(signature), {.size = size_of(signature),
                              .bias = bias ? std::optional(signature.inputs[2].dtype) : std::nullopt,
                              .activation = activation_of(signature.attributes)}));
}

template <std::size_t... index>
std::vector<Kernel> kernel_list(std::index_sequence<index...>) {
  std::vector<Kernel> list{with_bfloat16(
      {primitive_kernel_name, usable_library, prepare_library, run_primitive, primitives_available})};
  const auto fast = kernels::matmul_kernels();
  MUSTER_CHECK(fast.size() <= sizeof...(index), "more fast matmul kernels than the row has places for");
  ((index < fast.size()
        ? list.push_back({fast[index].name, usable_fast<index>, prepare_fast<index>, run<float>})
        : void()),
   ...);
  list.push_back(reference<float>(prepare_reference, run<float>));
  list.push_back(reference<double>(prepare_reference, run<double>));
  return list;
}

std::vector<Kernel> kernel_list() { return kernel_list(std::make_index_sequence<8>()); }

Result<> to_onnx(OnnxCall& call) {
  const Transposed t = transposed(call.attributes());
  if (call.out().type.dtype != call.in().type.dtype)
    return call.refuse("its result has another dtype than its inputs: export the network in float32");
  return call.give("Gemm", call.all_inputs(), {{"transA", std::int64_t{t.a}}, {"transB", std::int64_t{t.b}}});
}

}  // namespace matmul_rows
}  // namespace

const Op& matmul_op() {
  using namespace matmul_rows;
  static const Op op{
      .name = "matmul",
      .documentation =
          "c (m, n) = op(a) op(b), a (m, k) or (k, m) with transpose_a, b (k, n) or (n, k) with "
          "transpose_b; float32 or float64.",
      .inputs_min = 2,
      .inputs_max = 2,
      .infer = infer,
      .gradient = gradient,
      .flops = flops,
      .kernels = kernel_list(),
      .precision = MixedPrecision::low,
      .onnx = to_onnx,
      .dimensions = matmul_dimensions,
  };
  return op;
}

const Op& dense_op() {
  using namespace matmul_rows;
  static const Op op{
      .name = "dense",
      .documentation =
          "activation(op(a) op(b) + bias), bias (n,), activation 'none', 'relu' or 'tanh'. Made by "
          "the compiler from matmul, bias_add and the activation; it has no gradient of its own.",
      .inputs_min = 3,
      .inputs_max = 3,
      .infer = infer,
      .flops = flops,
      .kernels = kernel_list(),
  };
  return op;
}

std::vector<const Op*> rows_of_matmul() { return {&matmul_op(), &dense_op()}; }

}  // namespace muster::graph
