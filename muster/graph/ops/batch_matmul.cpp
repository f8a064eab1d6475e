// Products of the matrices in the last two axes; the axes before broadcast.
#include <algorithm>

#include "muster/graph/ops/array.h"
#include "muster/graph/ops/primitive.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace batch_matmul_rows {

using kernels::BatchMatmulSize;
using kernels::MatmulKernel;
using kernels::MatmulSize;

struct Transposed {
  bool a = false;
  bool b = false;
};

Transposed transposed(const Attributes& attributes) {
  return {attributes.get("transpose_a", false), attributes.get("transpose_b", false)};
}

std::int64_t from_end(const Shape& shape, std::size_t back) { return shape[shape.rank() - back]; }

Shape leading(const Shape& shape) { return Shape(Sizes(shape.begin(), shape.end() - 2)); }

MatmulSize size_of(const Signature& signature) {
  const Shape& a = signature.inputs[0].shape;
  const Shape& b = signature.inputs[1].shape;
  const Transposed t = transposed(signature.attributes);
  return {.m = from_end(a, t.a ? 1 : 2),
          .n = from_end(b, t.b ? 2 : 1),
          .k = from_end(a, t.a ? 2 : 1),
          .transpose_a = t.a,
          .transpose_b = t.b};
}

// What `a` and `b` become together, or nothing.
std::optional<Shape> joined(const Shape& a, const Shape& b) {
  Sizes sizes(std::max(a.rank(), b.rank()));
  for (std::size_t back = 1; back <= sizes.size(); ++back) {
    const std::int64_t left = back <= a.rank() ? from_end(a, back) : 1;
    const std::int64_t right = back <= b.rank() ? from_end(b, back) : 1;
    if (left != right && left != 1 && right != 1) return std::nullopt;
    sizes[sizes.size() - back] = left == 1 ? right : left;
  }
  return Shape(std::move(sizes));
}

Types infer(const Signature& signature) {
  const TensorType& a = signature.inputs[0];
  const TensorType& b = signature.inputs[1];
  MUSTER_TRY_VOID(require_number("batch_matmul", a));
  MUSTER_TRY_VOID(require_equal_dtypes("batch_matmul", signature));
  if (a.shape.rank() < 2 || b.shape.rank() < 2)
    return bad("batch_matmul: both tensors need two axes at least, not {} and {}", to_string(a),
               to_string(b));
  const MatmulSize size = size_of(signature);
  const std::int64_t b_inner = from_end(b.shape, size.transpose_b ? 1 : 2);
  if (size.k != b_inner)
    return bad("batch_matmul: a {}{} has {} columns, b {}{} has {} rows", muster::to_string(a.shape),
               size.transpose_a ? " transposed" : "", size.k, muster::to_string(b.shape),
               size.transpose_b ? " transposed" : "", b_inner);
  const auto batches = joined(leading(a.shape), leading(b.shape));
  if (!batches)
    return bad("batch_matmul: the leading axes of {} and {} do not fit together", muster::to_string(a.shape),
               muster::to_string(b.shape));
  Sizes sizes = batches->sizes();
  sizes.insert(sizes.end(), {size.m, size.n});
  return std::vector<TensorType>{{a.dtype, Shape(std::move(sizes))}};
}

Value product(const Value& a, const Value& b, bool transpose_a, bool transpose_b) {
  return apply("batch_matmul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

std::vector<Value> gradient(const GradientQuery& query) {
  const Value& a = query.inputs[0];
  const Value& b = query.inputs[1];
  const Value& g = query.output_gradients[0];
  const Transposed t = transposed(query.attributes);
  return {summed_like(t.a ? product(b, g, t.b, true) : product(g, b, false, !t.b), a),
          summed_like(t.b ? product(g, a, true, t.a) : product(a, g, !t.a, false), b)};
}

// Where the matrix of each product begins, in a tensor whose leading axes broadcast to `batches`.
Sizes begins(const Shape& shape, const Shape& batches) {
  const Shape own = leading(shape);
  const Sizes steps = kernels::row_major_strides(own);
  const std::int64_t matrix = from_end(shape, 1) * from_end(shape, 2);
  Sizes found;
  for (std::int64_t i = 0; i < batches.elements(); ++i) {
    std::int64_t rest = i;
    std::int64_t at = 0;
    for (std::size_t back = 1; back <= batches.rank(); ++back) {
      const std::int64_t index = rest % from_end(batches, back);
      rest /= from_end(batches, back);
      if (back <= own.rank() && from_end(own, back) != 1) at += index * steps[own.rank() - back];
    }
    found.push_back(at * matrix);
  }
  return found;
}

double flops(const Signature& signature) {
  return 2.0 * static_cast<double>(signature.outputs[0].shape.elements()) *
         static_cast<double>(size_of(signature).k);
}

struct Settings {
  BatchMatmulSize size;
  const MatmulKernel* kernel = nullptr;  // null: the reference
  int threads = 1;                       // that the scratch memory is for
};

Prepared prepare(const Signature& signature, const MatmulKernel* kernel) {
  const Shape batches = leading(signature.outputs[0].shape);
  Settings made{{.each = size_of(signature),
                 .a_begins = begins(signature.inputs[0].shape, batches),
                 .b_begins = begins(signature.inputs[1].shape, batches)},
                kernel,
                signature.threads};
  const std::size_t scratch_bytes = kernels::batch_matmul_scratch(made.size, kernel, signature.threads);
  return prepared(std::move(made), scratch_bytes);
}

Prepared prepare_reference(const Signature& signature) { return prepare(signature, nullptr); }

// The best fast kernel for this size, if there is one.
const MatmulKernel* fast_kernel(const Signature& signature) {
  for (const MatmulKernel& kernel : kernels::matmul_kernels())
    if (kernel.usable(size_of(signature))) return &kernel;
  return nullptr;
}

bool usable_fast(const Signature& signature) {
  return first_is<float>(signature) && fast_kernel(signature) != nullptr;
}

Prepared prepare_fast(const Signature& signature) { return prepare(signature, fast_kernel(signature)); }

template <class T>
void run(const KernelCall& call) {
  const auto& [size, kernel, threads] = call.setting<Settings>();
  kernels::batch_matmul<T>(size, kernel,
                           {.a = call.input<T>(0),
                            .b = call.input<T>(1),
                            .c = call.output<T>(),
                            .scratch = call.scratch,
                            .threads = std::min(call.threads, threads)});
}

// The library's, for bfloat16 where no matrix is repeated.
bool usable_low(const Signature& signature) {
  return signature.inputs[0].dtype == DType::bfloat16 && suits_primitives(signature) &&
         leading(signature.inputs[0].shape) == leading(signature.inputs[1].shape);
}
Prepared prepare_low(const Signature& signature) {
  return prepared(primitive_library()->matmul(
      setting_of(signature),
      {.size = size_of(signature), .batch = leading(signature.inputs[0].shape).elements()}));
}

// Whole numbers, which wrap around.
template <class T>
void run_whole(const KernelCall& call) {
  using Unsigned = std::make_unsigned_t<T>;
  const BatchMatmulSize& size = call.setting<Settings>().size;
  const auto [m, n, k, transpose_a, transpose_b] = size.each;
  const std::int64_t a_row = transpose_a ? 1 : k;
  const std::int64_t a_column = transpose_a ? m : 1;
  const std::int64_t b_row = transpose_b ? 1 : n;
  const std::int64_t b_column = transpose_b ? k : 1;
  auto* c = call.output<Unsigned>();
  std::fill_n(c, static_cast<std::int64_t>(size.a_begins.size()) * m * n, Unsigned{0});
  for (std::size_t each = 0; each < size.a_begins.size(); ++each) {
    const auto* a = call.input<Unsigned>(0) + size.a_begins[each];
    const auto* b = call.input<Unsigned>(1) + size.b_begins[each];
    for (std::int64_t i = 0; i < m; ++i, c += n)
      for (std::int64_t p = 0; p < k; ++p)
        for (std::int64_t j = 0; j < n; ++j)
          c[j] += a[i * a_row + p * a_column] * b[p * b_row + j * b_column];
  }
}

Result<> to_onnx(OnnxCall& call) {
  // The last two axes the other way round.
  const auto turned = [&call](std::size_t index, std::string_view attribute) {
    if (!call.attributes().get(attribute, false)) return call.input(index);
    Sizes perm;
    for (std::size_t axis = 0; axis < call.in(index).type.shape.rank(); ++axis)
      perm.push_back(static_cast<std::int64_t>(axis));
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return call.make("Transpose", {call.input(index)}, {{"perm", perm}});
  };
  const std::string a = turned(0, "transpose_a");
  return call.give("MatMul", {a, turned(1, "transpose_b")});
}

}  // namespace batch_matmul_rows
}  // namespace

const Op& batch_matmul_op() {
  using namespace batch_matmul_rows;
  static const Op op{
      .name = "batch_matmul",
      .documentation =
          "c (..., m, n) = op(a) op(b) for each index of the leading axes, which broadcast: a (..., m, k), "
          "or (..., k, m) with transpose_a, b (..., k, n), or (..., n, k) with transpose_b; numbers "
          "of any dtype (whole ones wrap around).",
      .inputs_min = 2,
      .inputs_max = 2,
      .infer = infer,
      .gradient = gradient,
      .flops = flops,
      .kernels = {with_bfloat16(
                      {primitive_kernel_name, usable_low, prepare_low, run_primitive, primitives_available}),
                  {"fast", usable_fast, prepare_fast, run<float>},
                  reference<float>(prepare_reference, run<float>),
                  reference<double>(prepare_reference, run<double>),
                  reference<std::int32_t>(prepare_reference, run_whole<std::int32_t>),
                  reference<std::int64_t>(prepare_reference, run_whole<std::int64_t>)},
      .precision = MixedPrecision::low,
      .schema = {.inputs = {"a", "b"},
                 .attributes = {{.name = "transpose_a", .otherwise = false},
                                {.name = "transpose_b", .otherwise = false}},
                 .mindspore = {{"bmm", {"input_x", "mat2"}}},
                 .primitives = {{"BatchMatMul", {"transpose_a", "transpose_b"}}}},
      .onnx = to_onnx,
      .dimensions = matmul_dimensions,
  };
  return op;
}

std::vector<const Op*> rows_of_batch_matmul() { return {&batch_matmul_op()}; }

}  // namespace muster::graph
