// Attention as one op: softmax(scale q k^T + mask) v.
#include <algorithm>
#include <type_traits>

#include "muster/graph/ops/array.h"
#include "muster/graph/ops/attention_parts.h"
#include "muster/graph/ops/dropout.h"
#include "muster/graph/ops/rules.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace attention_rows {

using namespace attention_parts;

using kernels::AttentionGradients, kernels::AttentionInputs;
using kernels::AttentionKernelOf, kernels::AttentionSize;

constexpr std::string_view name = "scaled_dot_product_attention";
constexpr std::string_view grad_name = "scaled_dot_product_attention_grad";

// The inputs of both rows, of which the gradient's begin with dy.
struct Given {
  TensorType q;  // these three with heads first
  TensorType k;
  TensorType v;
  const TensorType* mask = nullptr;   // null: there is none
  const TensorType* fill = nullptr;   // likewise
  const TensorType* scale = nullptr;  // likewise
};

Given given(const Signature& signature, std::size_t first) {
  const auto& inputs = signature.inputs;
  const auto input = [&](std::size_t index) {
    const TensorType& type = inputs[first + index];
    return TensorType{type.dtype, heads_first(type.shape, is_rows_first(signature.attributes))};
  };
  Given found{input(0), input(1), input(2)};
  const std::size_t scales = has_scale(signature.attributes) ? 1 : 0;
  if (inputs.size() > first + 3 + scales) found.mask = &inputs[first + 3];
  if (has_fill(signature.attributes) && inputs.size() > first + 4 + scales) found.fill = &inputs[first + 4];
  if (scales > 0) found.scale = &inputs.back();
  return found;
}

Shape products_shape(const Given& in) { return {in.q.shape[0], in.q.shape[1], in.q.shape[2], in.k.shape[2]}; }

Shape result_shape(const Given& in, const Attributes& attributes) {
  return heads_first({in.q.shape[0], in.q.shape[1], in.q.shape[2], in.v.shape[3]}, is_rows_first(attributes));
}

Result<> check_shapes(const Given& in) {
  using muster::to_string;
  const Shape &q = in.q.shape, &k = in.k.shape, &v = in.v.shape;
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4)
    return bad("{}: q, k, v have axes (samples, heads, rows, depth), not {}, {} and {}; one head is 1 there",
               name, to_string(q), to_string(k), to_string(v));
  if (q[0] != k[0] || q[3] != k[3])
    return bad("{}: q {} and k {} differ in samples or depth", name, to_string(q), to_string(k));
  if (k[0] != v[0] || k[1] != v[1] || k[2] != v[2])
    return bad("{}: k {} and v {} differ in samples, heads or rows", name, to_string(k), to_string(v));
  if (k[1] == 0 || q[1] % k[1] != 0)
    return bad("{}: {} heads of q cannot share {} heads of k and v: give a multiple", name, q[1], k[1]);
  return {};
}

Result<> check_fill(const Given& in, const Attributes& attributes) {
  if (!has_fill(attributes)) return {};
  if (attributes.get("is_causal", false))
    return bad("{}: is_causal and fills_where exclude each other: hide the future in the mask", name);
  if (in.fill == nullptr || in.mask->dtype != DType::bool_)
    return bad("{}: fills_where takes a bool mask and a number behind it", name);
  const bool fits = in.fill->dtype == in.q.dtype || in.fill->dtype == computed_in(in.q.dtype);
  if (fits && in.fill->shape.elements() == 1) return {};
  return bad("{}: what fills is one number of dtype {}, not {}", name, muster::to_string(in.q.dtype),
             to_string(*in.fill));
}

Result<> check(const Given& in, const Attributes& attributes) {
  using muster::to_string;
  MUSTER_TRY_VOID(require_floating(name, in.q));
  if (in.k.dtype != in.q.dtype || in.v.dtype != in.q.dtype)
    return bad("{}: q, k, v differ in dtype: {}, {} and {}", name, to_string(in.q.dtype),
               to_string(in.k.dtype), to_string(in.v.dtype));
  MUSTER_TRY_VOID(check_shapes(in));
  if (in.mask != nullptr) {
    const bool is_added = in.mask->dtype == in.q.dtype || in.mask->dtype == computed_in(in.q.dtype);
    if (in.mask->dtype != DType::bool_ && !is_added)
      return bad("{}: the mask must be bool (true: is seen) or {} (added), not {}: cast it", name,
                 to_string(in.q.dtype), to_string(in.mask->dtype));
    if (!broadcasts_to(in.mask->shape, products_shape(in)))
      return bad("{}: the mask {} does not broadcast to {}; that of keys is (samples, 1, 1, keys)", name,
                 to_string(in.mask->shape), to_string(products_shape(in)));
  }
  if (in.scale != nullptr && in.scale->shape.elements() != 1)
    return bad("{}: the scale is one number, not {}", name, to_string(*in.scale));
  MUSTER_TRY_VOID(check_fill(in, attributes));
  const double keep_prob = keep_prob_of(attributes);
  if (keep_prob >= 0 && keep_prob <= 1) return {};
  return bad("{}: keep_prob must lie in [0, 1], not {}", name, keep_prob);
}

Types infer(const Signature& signature) {
  const Given in = given(signature, 0);
  MUSTER_TRY_VOID(check(in, signature.attributes));
  return std::vector<TensorType>{{in.q.dtype, result_shape(in, signature.attributes)}};
}

Types infer_grad(const Signature& signature) {
  const Given in = given(signature, 1);
  MUSTER_TRY_VOID(check(in, signature.attributes));
  if (const TensorType result{in.q.dtype, result_shape(in, signature.attributes)};
      signature.inputs[0] != result)
    return bad("{}: dy must be {}, not {}", grad_name, to_string(result), to_string(signature.inputs[0]));
  return std::vector<TensorType>{signature.inputs[1], signature.inputs[2], signature.inputs[3]};
}

// ---- Gradients --------------------------------------------------------------------------------------------

Value mask_gradient(std::span<const Value> inputs, const Value& dy, const Attributes& attributes) {
  if (inputs[3].dtype() == DType::bool_) return Value();
  const Unfused all(inputs, attributes);
  const Value dp = all.dropped(product(all.in_groups(dy), all.v, false, true));
  return all.gradient_of_mask(inputs[3], all.through_softmax(dp));
}

// Of q, k, v and, where they are there, the mask and the scale.
bool has_mask(std::span<const Value> inputs, const Attributes& attributes) {
  return inputs.size() > (has_scale(attributes) ? 4 : 3);
}

std::vector<Value> gradient(const GradientQuery& query) {
  std::vector<Value> inputs = {query.output_gradients[0]};
  inputs.insert(inputs.end(), query.inputs.begin(), query.inputs.end());
  std::vector<Value> gradients = apply_all(grad_name, inputs, query.attributes);
  if (has_mask(query.inputs, query.attributes))
    gradients.push_back(mask_gradient(query.inputs, query.output_gradients[0], query.attributes));
  gradients.resize(query.inputs.size());  // the scale is a constant
  return gradients;
}

// How dq = scale ds k, dk = scale ds^T q and dv = w^T dy depend on what they are made from, for p = softmax,
// w = p growth, dp = growth (dy v^T) and ds = p (dp - sum(dp p)).
std::vector<Value> gradient_of_grad(const GradientQuery& query) {
  const std::span<const Value> inputs = query.inputs.subspan(1);
  const Unfused all(inputs, query.attributes);
  const Value dy = all.in_groups(query.inputs[0]);
  const Value dp = all.dropped(product(dy, all.v, false, true));
  const Value ds = all.through_softmax(dp);
  const auto grouped = [&](std::size_t index, const Value& like, std::int64_t group) {
    const Value& g = query.output_gradients[index];
    return g.defined() ? all.in_groups(g, group) : filled_like(like, 0);
  };
  const Value gq = grouped(0, all.q, 0), gk = grouped(1, all.k, 1), gv = grouped(2, all.v, 1);
  // Through ds.
  const Value g_ds =
      all.of_products(all.scaled(plus(product(gq, all.k, false, true), product(all.q, gk, false, true))));
  const Value along = total(times(g_ds, all.p));
  const Value g_dp = times(all.p, minus(g_ds, along));
  const Value g_w = product(dy, gv, false, true);
  const Value g_p =
      plus(minus(times(g_ds, minus(dp, total(times(dp, all.p)))), times(dp, along)), all.dropped(g_w));
  const Value g_s = all.through_softmax(g_p);
  const Value through = all.dropped(g_dp);
  const Value w = all.dropped(all.p);
  const Value of_dy = plus(product(through, all.v), product(w, gv));
  const Value of_v = product(through, dy, true);
  const Value of_q = all.scaled(plus(product(g_s, all.k), product(ds, gk)));
  const Value of_k = all.scaled(plus(product(g_s, all.q, true), product(ds, gq, true)));
  std::vector<Value> gradients = {all.gradient_of(dy, of_dy), all.gradient_of(all.q, of_q),
                                  all.gradient_of(all.k, of_k), all.gradient_of(all.v, of_v)};
  if (has_mask(inputs, query.attributes)) gradients.push_back(all.gradient_of_mask(inputs[3], g_s));
  gradients.resize(query.inputs.size());
  return gradients;
}

// ---- Kernels ----------------------------------------------------------------------------------------------

struct Settings {
  AttentionSize size;
  std::size_t first = 0;  // input, behind dy
  bool has_mask = false;
  bool is_added = false;
  DType mask_dtype = DType::bool_;
  DType fill_dtype = DType::float32;
  DType scale_dtype = DType::float32;
  std::size_t fill_at = 0;   // the input; 0: there is none
  std::size_t scale_at = 0;  // likewise
  bool divides = false;
  DropoutPlace place;
  const AttentionKernelOf<float>* kernel = nullptr;
  const AttentionKernelOf<bfloat16>* bfloat16_kernel = nullptr;
  int threads = 1;  // that the scratch memory is for
};

// How far the mask moves from one of (sample, head, query, key) to the next.
std::array<std::int64_t, 4> mask_steps(const Shape& mask) {
  const Sizes steps = kernels::row_major_strides(mask);
  std::array<std::int64_t, 4> found{};
  for (std::size_t back = 1; back <= mask.rank(); ++back)
    if (mask[mask.rank() - back] != 1) found[4 - back] = steps[mask.rank() - back];
  return found;
}

Settings settings_of(const Signature& signature, std::size_t first) {
  const Given in = given(signature, first);
  const Shape &q = in.q.shape, &k = in.k.shape;
  const Attributes& attributes = signature.attributes;
  Settings made{.size = {.samples = q[0],
                         .heads = q[1],
                         .key_heads = k[1],
                         .queries = q[2],
                         .keys = k[2],
                         .depth = q[3],
                         .value_depth = in.v.shape[3],
                         .scale = scale_of(attributes, q[3]),
                         .is_causal = attributes.get("is_causal", false),
                         .keep_prob = keep_prob_of(attributes),
                         .layout = is_rows_first(attributes) ? kernels::AttentionLayout::rows_first
                                                             : kernels::AttentionLayout::heads_first,
                         .blind_is_zero = blind_is_zero(attributes)},
                .first = first,
                .has_mask = in.mask != nullptr,
                .place = dropout_place(attributes)};
  if (in.mask != nullptr) {
    made.size.mask_steps = mask_steps(in.mask->shape);
    made.is_added = in.mask->dtype != DType::bool_;
    made.mask_dtype = in.mask->dtype;
  }
  made.size.hides_where = attributes.get("fills_where", false);
  if (in.fill != nullptr) {
    made.fill_at = first + 4;
    made.fill_dtype = in.fill->dtype;
  }
  if (in.scale != nullptr) {
    made.scale_at = signature.inputs.size() - 1;
    made.scale_dtype = in.scale->dtype;
  }
  made.divides = divides(attributes);
  return made;
}

template <std::size_t first>
Prepared prepare_reference(const Signature& signature) {
  return prepared(settings_of(signature, first));
}

// The kernels for T that are the fastest here, and which of them is meant.
template <class T>
std::span<const AttentionKernelOf<T>> kernels_of() {
  if constexpr (!std::is_same_v<T, bfloat16>)
    return kernels::attention_kernels();
  else
    return this_processor().slow_bfloat16 ? std::span<const AttentionKernelOf<T>>()
                                          : kernels::bfloat16_attention_kernels();
}
template <class T, class Given>
auto& kernel_in(Given& settings) {
  if constexpr (std::is_same_v<T, bfloat16>)
    return settings.bfloat16_kernel;
  else
    return settings.kernel;
}

template <class T, std::size_t first>
Prepared prepare_fast(const Signature& signature) {
  Settings made = settings_of(signature, first);
  const AttentionKernelOf<T>& kernel = kernels_of<T>().front();
  kernel_in<T>(made) = &kernel;
  made.threads = signature.threads;
  const auto scratch_bytes = first == 0 ? kernel.scratch_bytes : kernel.grad_scratch_bytes;
  return prepared(made, scratch_bytes(made.size, signature.threads));
}

// A mask and numbers may be in float32 beside q, k and v in bfloat16.
template <class T>
bool usable_fast(const Signature& signature) {
  const auto fits = [&](const TensorType& type) {
    return type.dtype == DType::bool_ || type.dtype == DType::float32 ||
           type.dtype == signature.inputs[0].dtype;
  };
  return first_is<T>(signature) && !kernels_of<T>().empty() &&
         std::all_of(signature.inputs.begin(), signature.inputs.end(), fits);
}

// The number that an input is, of T or float32.
template <class T>
double number_in(const KernelCall& call, std::size_t input, DType dtype) {
  if (dtype == DType::float32) return static_cast<double>(*call.input<float>(input));
  return static_cast<double>(*call.input<T>(input));
}

template <class T>
AttentionInputs<T> inputs_of(const KernelCall& call, const Settings& settings) {
  AttentionInputs<T> in{.q = call.input<T>(settings.first),
                        .k = call.input<T>(settings.first + 1),
                        .v = call.input<T>(settings.first + 2),
                        .draw = dropout_draw(*call.context, settings.place, settings.size.samples)};
  if (settings.has_mask && settings.is_added) {
    if (settings.mask_dtype == DType::float32 && !std::is_same_v<T, float>)
      in.added_float32 = call.input<float>(settings.first + 3);
    else
      in.added = call.input<T>(settings.first + 3);
  }
  if (settings.has_mask && !settings.is_added) in.visible = call.input<bool>(settings.first + 3);
  return in;
}

template <class T>
AttentionSize size_of(const KernelCall& call, const Settings& settings) {
  AttentionSize size = settings.size;
  if (settings.fill_at != 0) size.fill = number_in<T>(call, settings.fill_at, settings.fill_dtype);
  if (settings.scale_at == 0) return size;
  const double factor = number_in<T>(call, settings.scale_at, settings.scale_dtype);
  size.scale = settings.divides ? size.scale / factor : size.scale * factor;
  return size;
}

template <class T>
AttentionGradients<T> gradients_of(const KernelCall& call) {
  return {.dy = call.input<T>(0), .dq = call.output<T>(0), .dk = call.output<T>(1), .dv = call.output<T>(2)};
}

template <class T>
void run(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  kernels::attention_reference(size_of<T>(call, settings), inputs_of<T>(call, settings), call.output<T>());
}

template <class T>
void run_grad(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  kernels::attention_grad_reference(size_of<T>(call, settings), inputs_of<T>(call, settings),
                                    gradients_of<T>(call));
}

template <class T>
void run_fast(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  kernel_in<T>(settings)->run(size_of<T>(call, settings), inputs_of<T>(call, settings), call.output<T>(),
                              call.scratch, std::min(call.threads, settings.threads));
}

template <class T>
void run_fast_grad(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  kernel_in<T>(settings)->run_grad(size_of<T>(call, settings), inputs_of<T>(call, settings),
                                   gradients_of<T>(call), call.scratch,
                                   std::min(call.threads, settings.threads));
}

// Two products forward, and five in the gradient, of half the pairs where only the past is seen.
template <std::size_t first>
double flops(const Signature& signature) {
  const AttentionSize size = settings_of(signature, first).size;
  const auto pairs = static_cast<double>(size.samples * size.heads * size.queries * size.keys);
  const auto depth = static_cast<double>(size.depth), values = static_cast<double>(size.value_depth);
  const double products = first == 0 ? depth + values : 3 * depth + 2 * values;
  return 2 * pairs * products * (size.is_causal ? 0.5 : 1.0);
}

// The weights before the mask are made as in Unfused.
Result<> to_onnx(OnnxCall& call) {
  const DType dtype = call.in().type.dtype;
  const bool rows_first = is_rows_first(call.attributes());
  const Shape q = heads_first(call.in(0).type.shape, rows_first);
  const Shape k = heads_first(call.in(1).type.shape, rows_first);
  const auto exchanged = [&](const std::string& x) {
    return rows_first ? call.make("Transpose", {x}, {{"perm", Sizes{0, 2, 1, 3}}}) : x;
  };
  if (has_scale(call.attributes())) return call.refuse("its scale is a tensor");
  if (has_fill(call.attributes())) return call.refuse("its mask fills: hide keys by a mask that is added");
  if (q[1] != k[1]) return call.refuse("heads share keys: give k and v as many heads as q");
  if (keep_prob_of(call.attributes()) < 1)
    return call.refuse("it drops weights, which is training: export with dropout_p=0");
  const std::string columns =
      call.make("Transpose", {call.input(1)}, {{"perm", rows_first ? Sizes{0, 2, 3, 1} : Sizes{0, 1, 3, 2}}});
  std::string s = call.make("MatMul", {exchanged(call.input(0)), columns});
  s = call.make("Mul", {s, call.scalar(scale_of(call.attributes(), q[3]), dtype)});
  const bool is_added = call.inputs() > 3 && call.in(3).type.dtype != DType::bool_;
  if (is_added) s = call.make("Add", {s, call.input(3)});
  std::vector<std::string> visible;
  if (call.inputs() > 3 && !is_added) visible.push_back(call.input(3));
  if (call.attributes().get("is_causal", false)) visible.push_back(call.constant(past_keys(q[2], k[2])));
  for (const std::string& mask : visible) s = call.make("Where", {mask, s, call.scalar(lowest, dtype)});
  std::string p = call.make("Softmax", {s}, {{"axis", std::int64_t{-1}}});
  for (const std::string& mask : visible) p = call.make("Where", {mask, p, call.scalar(0, dtype)});
  if (is_added && blind_is_zero(call.attributes()))
    p = call.make("Where", {call.make("IsNaN", {p}), call.scalar(0, dtype), p});
  if (!rows_first) return call.give("MatMul", {p, call.input(2)});
  const std::string y = call.make("MatMul", {p, exchanged(call.input(2))});
  return call.give("Transpose", {y}, {{"perm", Sizes{0, 2, 1, 3}}});
}

std::vector<Op> rows() {
  return {
      {.name = name,
       .documentation =
           "y = softmax(scale q k^T + mask) v for each head, without keeping the products: q (samples, "
           "heads, queries, depth), k (samples, key heads, keys, depth), v (samples, key heads, keys, value "
           "depth); y (samples, heads, queries, value depth). heads is a multiple of key heads: so many "
           "heads in a row share keys and values. `scale` is 1 / sqrt(depth) unless set. The mask, the last "
           "input, broadcasts to (samples, heads, queries, keys): bool, true where a query sees a key, or of "
           "the dtype of q and added. With `is_causal` query i sees keys 0 to i. A query that a bool mask "
           "lets see no key gives zeros, unless with `fills_where`, a truth value, the next input is the "
           "number that products become where the mask has it; where an added mask is minus infinity for "
           "all keys it gives NaN, as softmax does, or with `blind_is_zero` zeros. With `rows_first` q, k, v "
           "and y have rows before heads. `keep_prob` below 1 drops elements of the softmax, the same that "
           "the op dropout drops for `stream` and `part`. float32, float64 or bfloat16, which float32 sums; "
           "float16, and bfloat16 without AVX512_BF16, compute in float32. Source: Vaswani et al., Attention "
           "is all you need, 2017; Dao et al., FlashAttention, arXiv 2205.14135.",
       .inputs_min = 3,
       .inputs_max = 6,
       .infer = infer,
       .gradient = gradient,
       .flops = flops<0>,
       .kernels = {{"fast", usable_fast<float>, prepare_fast<float, 0>, run_fast<float>},
                   with_bfloat16({"fast_bfloat16", usable_fast<bfloat16>, prepare_fast<bfloat16, 0>,
                                  run_fast<bfloat16>}),
                   reference<float>(prepare_reference<0>, run<float>),
                   reference<double>(prepare_reference<0>, run<double>)},
       .precision = MixedPrecision::low,
       .onnx = to_onnx,
       .dimensions = attention_dimensions},
      {.name = grad_name,
       .documentation =
           "(dq, dk, dv) of scaled_dot_product_attention for dy, q, k, v and perhaps the mask, with its "
           "attributes. The products are computed again.",
       .inputs_min = 4,
       .inputs_max = 7,
       .outputs = 3,
       .infer = infer_grad,
       .gradient = gradient_of_grad,
       .flops = flops<1>,
       .kernels = {{"fast", usable_fast<float>, prepare_fast<float, 1>, run_fast_grad<float>},
                   with_bfloat16({"fast_bfloat16", usable_fast<bfloat16>, prepare_fast<bfloat16, 1>,
                                  run_fast_grad<bfloat16>}),
                   reference<float>(prepare_reference<1>, run_grad<float>),
                   reference<double>(prepare_reference<1>, run_grad<double>)},
       .precision = MixedPrecision::low,
       .dimensions = attention_grad_dimensions}};
}

}  // namespace attention_rows
}  // namespace

std::vector<const Op*> rows_of_attention() {
  static const std::vector<Op> family = attention_rows::rows();
  return addresses(family);
}

}  // namespace muster::graph
