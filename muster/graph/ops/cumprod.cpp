// cumprod and its gradient.
#include "muster/graph/ops/array.h"
#include "muster/graph/ops/lines.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace cumprod_rows {

Types infer(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  MUSTER_TRY_VOID(require_number("cumprod", x));
  MUSTER_TRY_VOID(axis_of("cumprod", signature.attributes, x.shape));
  return same_as_first(signature);
}

Types infer_grad(const Signature& signature) {
  if (signature.inputs[0] != signature.inputs[1])
    return bad("cumprod_grad: dy {} and x {} must be alike", to_string(signature.inputs[0]),
               to_string(signature.inputs[1]));
  MUSTER_TRY_VOID(require_floating("cumprod_grad", signature.inputs[1]));
  MUSTER_TRY_VOID(axis_of("cumprod_grad", signature.attributes, signature.inputs[1].shape));
  return same_as_first(signature);
}

std::vector<Value> gradient(const GradientQuery& query) {
  return {apply("cumprod_grad", {query.output_gradients[0], query.inputs[0]}, query.attributes)};
}

// Whole numbers wrap around, which only unsigned ones may.
template <class T>
T product(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b));
  } else {
    return a * b;
  }
}

template <class T>
void run(const KernelCall& call) {
  const Lines& lines = call.setting<Lines>();
  const T* x = call.input<T>(0);
  T* y = call.output<T>();
  lines.each([&](std::int64_t first, std::int64_t step) {
    T before{1};
    for (std::int64_t i = 0, at = first; i < lines.size; ++i, at += step) {
      const T with = product(before, x[at]);
      y[at] = lines.exclusive ? before : with;
      before = with;
    }
  });
}

// dx[j] = (x[0] ... x[j-1]) s[j], where s[j] is what the products from j on give, each without x[j]:
// s[j] = dy[j] + x[j+1] s[j+1], or when exclusive dy[j+1] + x[j+1] s[j+1]. Nothing is divided by x: zeros are
// numbers like others.
template <class T>
void run_grad(const KernelCall& call) {
  const Lines& lines = call.setting<Lines>();
  const T* dy = call.input<T>(0);
  const T* x = call.input<T>(1);
  T* dx = call.output<T>();
  lines.each([&](std::int64_t first, std::int64_t step) {
    T later{0};  // dy[j+1] when exclusive, and x[j+1] s[j+1]
    for (std::int64_t i = lines.size - 1, at = first + i * step; i >= 0; --i, at -= step) {
      const T sum = lines.exclusive ? later : dy[at] + later;
      dx[at] = sum;
      later = x[at] * sum + (lines.exclusive ? dy[at] : T{0});
    }
    T before{1};
    for (std::int64_t i = 0, at = first; i < lines.size; ++i, at += step) {
      dx[at] *= before;
      before *= x[at];
    }
  });
}

std::vector<Op> rows() {
  return {
      {.name = "cumprod",
       .documentation =
           "Running products along `axis` (negative ones count from the end): y[i] = x[0] ... x[i], without "
           "x[i] when `exclusive`, from the other end when `reverse`. x is cast to `dtype` first where one "
           "is given. float32, float64, int32 or int64 (they wrap around). The gradient is right also where "
           "elements are 0.",
       .infer = infer,
       .gradient = gradient,
       .kernels = {reference<float>(prepare_lines, run<float>), reference<double>(prepare_lines, run<double>),
                   reference<std::int32_t>(prepare_lines, run<std::int32_t>),
                   reference<std::int64_t>(prepare_lines, run<std::int64_t>)},
       .precision = MixedPrecision::full,
       .schema =
           {.inputs = {"x"},
            .attributes = {{.name = "axis", .otherwise = std::int64_t{0}, .required = true},
                           {.name = "dtype", .otherwise = DType::float32, .optional = true, .casts = true},
                           {.name = "exclusive", .otherwise = false},
                           {.name = "reverse", .otherwise = false}},
            .methods = {{"cumprod", {"dim:axis", "dtype"}}},
            .mindspore = {{"cumprod", {"input:x", "dim:axis", "dtype"}}},
            .primitives = {{"CumProd", {"exclusive", "reverse"}, {"x", "axis"}}}},
       .dimensions = along_first_axis},
      {.name = "cumprod_grad",
       .documentation = "dx from dy and x, for y = cumprod(x) with the same attributes; no division by x.",
       .inputs_min = 2,
       .inputs_max = 2,
       .infer = infer_grad,
       .kernels = {reference<float>(prepare_lines, run_grad<float>),
                   reference<double>(prepare_lines, run_grad<double>)},
       .dimensions = along_first_axis}};
}

}  // namespace cumprod_rows
}  // namespace

std::vector<const Op*> rows_of_cumprod() {
  using namespace cumprod_rows;
  static const std::vector<Op> family = rows();
  return addresses(family);
}

}  // namespace muster::graph
