// sort, and searchsorted, which finds places in what is sorted.
#include <algorithm>
#include <bit>
#include <numeric>

#include "muster/graph/ops/array.h"
#include "muster/graph/ops/rules.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/parallel.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace sort_rows {

using Key = std::uint64_t;

// Keys order as the numbers do; NaN is greatest, and -0 is 0. So one sort serves all dtypes.
template <class T>
Key key_of(T value) {
  constexpr Key sign = Key{1} << 63;
  if constexpr (std::is_floating_point_v<T>) {
    if (value != value) return ~Key{0};
    const auto bits = std::bit_cast<Key>(static_cast<double>(value) + 0.0);
    return bits & sign ? ~bits : bits | sign;
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    return value;
  } else {
    return static_cast<Key>(static_cast<std::int64_t>(value)) ^ sign;
  }
}

template <class T>
void write_keys(const std::byte* x, std::int64_t first, std::int64_t step, std::span<Key> keys) {
  const T* from = reinterpret_cast<const T*>(x) + first;
  for (Key& key : keys) {
    key = key_of(static_cast<Computed<T>>(*from));
    from += step;
  }
}

using WriteKeys = void (*)(const std::byte*, std::int64_t, std::int64_t, std::span<Key>);

WriteKeys key_writer(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return write_keys<float>;
    case DType::float64:
      return write_keys<double>;
    case DType::int32:
      return write_keys<std::int32_t>;
    case DType::int64:
      return write_keys<std::int64_t>;
    case DType::uint32:
      return write_keys<std::uint32_t>;
    case DType::int8:
      return write_keys<std::int8_t>;
    case DType::uint8:
      return write_keys<std::uint8_t>;
    case DType::bfloat16:
      return write_keys<bfloat16>;
    case DType::float16:
      return write_keys<float16>;
    case DType::int16:
      return write_keys<std::int16_t>;
    case DType::uint16:
      return write_keys<std::uint16_t>;
    case DType::uint64:
      return write_keys<std::uint64_t>;
    default:
      return nullptr;
  }
}

Result<> require_order(std::string_view op, const TensorType& x) {
  if (key_writer(x.dtype) != nullptr) return {};
  return bad("{}: {} has no order here: cast it", op, muster::to_string(x.dtype));
}

// ---- sort ------------------------------------------------------------------------------------------------

Types infer(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  MUSTER_TRY_VOID(require_order("sort", x));
  if (x.shape.rank() > 0) MUSTER_TRY_VOID(axis_of("sort", signature.attributes, x.shape, -1));
  return std::vector<TensorType>{x, {DType::int32, x.shape}};
}

std::vector<Value> gradient(const GradientQuery& query) {
  const Value& x = query.inputs[0];
  if (x.shape().rank() == 0) return {query.output_gradients[0]};
  return {in_floats(query.output_gradients[0], [&](const Value& dy) {
    return apply("gather_elements_grad", {dy, query.outputs[1]},
                 {{"axis", query.attributes.get("axis", std::int64_t{-1})}, {"shape", x.shape().sizes()}});
  })};
}

// Lines along the axis: element i of a line is `inner` behind the one before it.
struct Lines {
  std::int64_t outer = 1;
  std::int64_t size = 1;
  std::int64_t inner = 1;
  bool descending = false;
  WriteKeys write = nullptr;
  std::size_t bytes = 0;  // of an element
};

Prepared prepare(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  Lines lines{.descending = signature.attributes.get("descending", false),
              .write = key_writer(x.dtype),
              .bytes = size_bytes(x.dtype)};
  if (x.shape.rank() > 0) {
    const std::size_t axis = *axis_of("sort", signature.attributes, x.shape, -1);
    lines.outer = elements_between(x.shape, 0, axis);
    lines.size = x.shape[axis];
    lines.inner = elements_between(x.shape, axis + 1, x.shape.rank());
  }
  return prepared(lines);
}

void sort_line(const Lines& lines, const KernelCall& call, std::int64_t first, std::vector<Key>& keys,
               std::vector<std::pair<Key, std::int32_t>>& order) {
  lines.write(call.inputs[0], first, lines.inner, keys);
  for (std::size_t i = 0; i < keys.size(); ++i)
    order[i] = {lines.descending ? ~keys[i] : keys[i], static_cast<std::int32_t>(i)};
  std::sort(order.begin(), order.end());  // equal ones by their places: stable
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int64_t to = first + static_cast<std::int64_t>(i) * lines.inner;
    const std::int64_t from = first + order[i].second * lines.inner;
    call.output<std::int32_t>(1)[to] = order[i].second;
    std::copy_n(call.inputs[0] + from * static_cast<std::int64_t>(lines.bytes), lines.bytes,
                call.outputs[0] + to * static_cast<std::int64_t>(lines.bytes));
  }
}

void run(const KernelCall& call) {
  const Lines& lines = call.setting<Lines>();
  const std::int64_t grain = std::max<std::int64_t>(1, 4096 / std::max<std::int64_t>(1, lines.size));
  parallel_for(lines.outer * lines.inner, grain, call.threads, [&](std::int64_t begin, std::int64_t end) {
    std::vector<Key> keys(static_cast<std::size_t>(lines.size));
    std::vector<std::pair<Key, std::int32_t>> order(keys.size());
    for (std::int64_t line = begin; line < end; ++line)
      sort_line(lines, call, line / lines.inner * lines.size * lines.inner + line % lines.inner, keys, order);
  });
}

// ---- searchsorted ----------------------------------------------------------------------------------------

Types infer_search(const Signature& signature) {
  const TensorType &sorted = signature.inputs[0], &values = signature.inputs[1];
  MUSTER_TRY_VOID(require_order("searchsorted", sorted));
  MUSTER_TRY_VOID(require_equal_dtypes("searchsorted", signature));
  const Shape &a = sorted.shape, &b = values.shape;
  const bool one_row = a.rank() == 1;
  const bool fits =
      a.rank() >= 1 && (one_row || (a.rank() == b.rank() && std::equal(a.begin(), a.end() - 1, b.begin())));
  if (!fits)
    return bad(
        "searchsorted: the sorted sequence {} must have one axis, or those of the values {} up to the "
        "last one",
        muster::to_string(a), muster::to_string(b));
  return std::vector<TensorType>{{DType::int64, b}};
}

struct Search {
  std::int64_t rows = 1;
  std::int64_t size = 0;   // of a sorted row
  std::int64_t count = 0;  // of values for one row
  bool right = false;
  WriteKeys write = nullptr;
};

Prepared prepare_search(const Signature& signature) {
  const Shape &a = signature.inputs[0].shape, &b = signature.inputs[1].shape;
  const std::int64_t rows = elements_between(a, 0, a.rank() - 1);
  return prepared(Search{.rows = rows,
                         .size = a.sizes().back(),
                         .count = rows == 0 ? 0 : b.elements() / rows,
                         .right = signature.attributes.get("right", false),
                         .write = key_writer(signature.inputs[0].dtype)});
}

void run_search(const KernelCall& call) {
  const Search& search = call.setting<Search>();
  std::vector<Key> sorted(static_cast<std::size_t>(search.size));
  std::vector<Key> values(static_cast<std::size_t>(search.count));
  std::int64_t* out = call.output<std::int64_t>();
  for (std::int64_t row = 0; row < search.rows; ++row) {
    search.write(call.inputs[0], row * search.size, 1, sorted);
    search.write(call.inputs[1], row * search.count, 1, values);
    for (const Key value : values) {
      const auto found = search.right ? std::upper_bound(sorted.begin(), sorted.end(), value)
                                      : std::lower_bound(sorted.begin(), sorted.end(), value);
      *out++ = found - sorted.begin();
    }
  }
}

std::vector<Op> rows() {
  return {
      {.name = "sort",
       .documentation =
           "The elements in order along `axis` (the last), the smallest first or, `descending`, the "
           "greatest, and their places (int32). Equal ones stay in their order; NaN is greatest. Any dtype "
           "but bool.",
       .outputs = 2,
       .infer = infer,
       .gradient = gradient,
       .kernels = {for_any_dtype({"reference", any_signature, prepare, run})},
       .schema = {.inputs = {"x"},
                  .attributes = {{.name = "axis", .otherwise = std::int64_t{-1}},
                                 {.name = "descending", .otherwise = false}},
                  .results = 2,
                  .mindspore = {{"sort", {"input_x:x", "axis", "descending"}}},
                  .primitives = {{"Sort", {"axis", "descending"}}}},
       .dimensions = along_axis},
      {.name = "searchsorted",
       .documentation =
           "For each value the number of elements of its sorted row (the last axis) that are less, or with "
           "`right` less or equal: the place where it would be inserted, int64. The sorted sequence has one "
           "axis, or those of the values up to the last one.",
       .inputs_min = 2,
       .inputs_max = 2,
       .infer = infer_search,
       .kernels = {for_any_dtype({"reference", any_signature, prepare_search, run_search})},
       .schema = {.inputs = {"sorted_sequence", "values"},
                  .attributes = {{.name = "right", .otherwise = false}},
                  .promotion = Promotion::common}}};
}

}  // namespace sort_rows
}  // namespace

std::vector<const Op*> rows_of_sort() {
  using namespace sort_rows;
  static const std::vector<Op> family = rows();
  return addresses(family);
}

}  // namespace muster::graph
