// cummax, cummin and logcumsumexp: what stands along an axis so far.
#include <cmath>
#include <limits>

#include "muster/graph/ops/array.h"
#include "muster/graph/ops/lines.h"
#include "muster/graph/ops/rules.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace cumulative_rows {

// ---- cummax, cummin --------------------------------------------------------------------------------------

template <bool greatest>
Types infer_extreme(const Signature& signature) {
  constexpr std::string_view name = greatest ? "cummax" : "cummin";
  const TensorType& x = signature.inputs[0];
  MUSTER_TRY_VOID(require_number(name, x));
  MUSTER_TRY_VOID(axis_of(name, signature.attributes, x.shape));
  return std::vector<TensorType>{x, {DType::int32, x.shape}};
}

std::vector<Value> gradient_extreme(const GradientQuery& query) {
  return {in_floats(query.output_gradients[0], [&](const Value& dy) {
    return apply("gather_elements_grad", {dy, query.outputs[1]},
                 {{"axis", query.attributes.get("axis", std::int64_t{0})},
                  {"shape", query.inputs[0].shape().sizes()}});
  })};
}

// Of equal ones the last; NaN stays from where it stands.
template <class T, bool greatest>
void run_extreme(const KernelCall& call) {
  const Lines& lines = call.setting<Lines>();
  const T* x = call.input<T>(0);
  lines.each([&](std::int64_t first, std::int64_t step) {
    std::int32_t best = 0;
    for (std::int64_t i = 0, at = first; i < lines.size; ++i, at += step) {
      const T value = x[at], extreme = x[first + best * step];
      const bool is_better = greatest ? value >= extreme : value <= extreme;
      if (extreme == extreme && (is_better || value != value)) best = static_cast<std::int32_t>(i);
      call.output<T>(0)[at] = x[first + best * step];
      call.output<std::int32_t>(1)[at] = best;
    }
  });
}

template <bool greatest>
Op extreme_row(std::string_view documentation) {
  return {.name = greatest ? "cummax" : "cummin",
          .documentation = documentation,
          .outputs = 2,
          .infer = infer_extreme<greatest>,
          .gradient = gradient_extreme,
          .kernels = {reference<float>(prepare_lines, run_extreme<float, greatest>),
                      reference<double>(prepare_lines, run_extreme<double, greatest>),
                      reference<std::int32_t>(prepare_lines, run_extreme<std::int32_t, greatest>),
                      reference<std::int64_t>(prepare_lines, run_extreme<std::int64_t, greatest>)},
          .schema = {.inputs = {"x"},
                     .attributes = {{.name = "axis", .otherwise = std::int64_t{0}, .required = true}},
                     .results = 2},
          .dimensions = along_first_axis};
}

// ---- logcumsumexp ----------------------------------------------------------------------------------------

Types infer_log(const Signature& signature) {
  MUSTER_TRY_VOID(require_floating("logcumsumexp", signature.inputs[0]));
  MUSTER_TRY_VOID(axis_of("logcumsumexp", signature.attributes, signature.inputs[0].shape));
  return same_as_first(signature);
}

std::vector<Value> gradient_log(const GradientQuery& query) {
  return {apply("logcumsumexp_grad", {query.output_gradients[0], query.inputs[0], query.outputs[0]},
                query.attributes)};
}

template <class T>
T log_of_sum(T a, T b) {
  const T top = std::max(a, b), low = std::min(a, b);
  return std::isinf(top) ? top : top + std::log1p(std::exp(low - top));
}

template <class T>
void run_log(const KernelCall& call) {
  const Lines& lines = call.setting<Lines>();
  const T* x = call.input<T>(0);
  T* y = call.output<T>();
  lines.each([&](std::int64_t first, std::int64_t step) {
    T before = -std::numeric_limits<T>::infinity();
    for (std::int64_t i = 0, at = first; i < lines.size; ++i, at += step) {
      const T with = log_of_sum(before, x[at]);
      y[at] = lines.exclusive ? before : with;
      before = with;
    }
  });
}

// dx[j] is the sum of dy[i] e^(x[j] - y[i]) over the sums i that have x[j]. Taken from the end through
// t[j] = dy[j] + t[j+1] e^(y[j] - y[j+1]), whose powers are never above 1.
template <class T>
void run_log_grad(const KernelCall& call) {
  const Lines& lines = call.setting<Lines>();
  const T *dy = call.input<T>(0), *x = call.input<T>(1), *y = call.input<T>(2);
  T* dx = call.output<T>();
  lines.each([&](std::int64_t first, std::int64_t step) {
    T later{0}, above{0};  // t and y of the place behind
    for (std::int64_t i = lines.size - 1; i >= 0; --i) {
      const std::int64_t at = first + i * step;
      const bool is_last = i == lines.size - 1;
      if (lines.exclusive) dx[at] = is_last ? T{0} : later * std::exp(x[at] - above);
      later = dy[at] + (is_last || std::isinf(y[at]) ? T{0} : later * std::exp(y[at] - above));
      above = y[at];
      if (!lines.exclusive) dx[at] = std::isinf(y[at]) ? T{0} : later * std::exp(x[at] - y[at]);
    }
  });
}

std::vector<Op> rows() {
  const Argument axis{.name = "axis", .otherwise = std::int64_t{0}, .required = true};
  return {
      extreme_row<true>(
          "The greatest element so far along `axis`, and its place there (int32): of equal ones the last. "
          "NaN is greatest. float32, float64, int32 or int64."),
      extreme_row<false>(
          "The smallest element so far along `axis`, and its place there (int32): of equal ones the last. "
          "NaN is smallest. float32, float64, int32 or int64."),
      {.name = "logcumsumexp",
       .documentation =
           "log(e^x[0] + ... + e^x[i]) along `axis`, without overflow; without x[i] when `exclusive`, from "
           "the other end when `reverse`. float32 or float64.",
       .infer = infer_log,
       .gradient = gradient_log,
       .kernels = {reference<float>(prepare_lines, run_log<float>),
                   reference<double>(prepare_lines, run_log<double>)},
       .precision = MixedPrecision::full,
       .schema = {.inputs = {"x"},
                  .attributes = {axis,
                                 {.name = "exclusive", .otherwise = false},
                                 {.name = "reverse", .otherwise = false}},
                  .promotion = Promotion::floating,
                  .mindspore = {{"logcumsumexp", {"input:x", "axis"}}},
                  .primitives = {{"CumulativeLogsumexp", {"exclusive", "reverse"}, {"x", "axis"}}}},
       .dimensions = along_first_axis},
      {.name = "logcumsumexp_grad",
       .documentation = "dx from dy, x and y, for y = logcumsumexp(x) with the same attributes.",
       .inputs_min = 3,
       .inputs_max = 3,
       .infer = infer_log,
       .kernels = {reference<float>(prepare_lines, run_log_grad<float>),
                   reference<double>(prepare_lines, run_log_grad<double>)},
       .dimensions = along_first_axis}};
}

}  // namespace cumulative_rows
}  // namespace

std::vector<const Op*> rows_of_cumulative() {
  using namespace cumulative_rows;
  static const std::vector<Op> family = rows();
  return addresses(family);
}

}  // namespace muster::graph
