// And, or, exclusive or, not and shifts of the bits of whole numbers; of truth values the first four.
#include "muster/graph/ops/array.h"
#include "muster/graph/ops/rules.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace bitwise_rows {

enum class Bits { both, either, one, left, right, none };

constexpr std::string_view name_of(Bits kind) {
  constexpr std::string_view names[] = {"bitwise_and",        "bitwise_or",          "bitwise_xor",
                                        "bitwise_left_shift", "bitwise_right_shift", "bitwise_not"};
  static_assert(std::size(names) == static_cast<std::size_t>(Bits::none) + 1);
  return names[static_cast<std::size_t>(kind)];
}

constexpr bool is_shift(Bits kind) { return kind == Bits::left || kind == Bits::right; }

template <Bits kind>
Types infer(const Signature& signature) {
  const TensorType& a = signature.inputs[0];
  if (!is_whole(a.dtype) && (a.dtype != DType::bool_ || is_shift(kind)))
    return bad("{}: whole numbers{} are needed, not {}", name_of(kind), is_shift(kind) ? "" : " or bool",
               muster::to_string(a.dtype));
  if constexpr (kind == Bits::none) return same_as_first(signature);
  MUSTER_TRY_VOID(require_equal_dtypes(name_of(kind), signature));
  const Shape& b = signature.inputs[1].shape;
  if (const auto shape = broadcast_shape(a.shape, b)) return std::vector<TensorType>{{a.dtype, *shape}};
  return bad("{}: {} and {} do not fit together", name_of(kind), muster::to_string(a.shape),
             muster::to_string(b));
}

// A shift by more than there are bits begins again at 0, as processors have it.
template <Bits kind, class T>
T of_pair(T a, T b) {
  using Unsigned = std::make_unsigned_t<T>;
  constexpr T last = sizeof(T) * 8 - 1;
  if constexpr (kind == Bits::both) return a & b;
  if constexpr (kind == Bits::either) return a | b;
  if constexpr (kind == Bits::one) return a ^ b;
  if constexpr (kind == Bits::left) return static_cast<T>(static_cast<Unsigned>(a) << (b & last));
  if constexpr (kind == Bits::right) return static_cast<T>(a >> (b & last));
}

struct Pairs {
  kernels::BroadcastLoops loops;
};

Prepared prepare(const Signature& signature) {
  const Shape operands[] = {signature.inputs[0].shape, signature.inputs[1].shape};
  return prepared(Pairs{kernels::broadcast_loops(signature.outputs[0].shape, operands)});
}

template <Bits kind, class T>
void run(const KernelCall& call) {
  const kernels::BroadcastLoops& loops = call.setting<Pairs>().loops;
  const std::int64_t a_step = loops.strides[0].back();
  const std::int64_t b_step = loops.strides[1].back();
  kernels::for_each_run<2>(loops, 0, loops.count,
                           [&](const auto& offsets, std::int64_t at, std::int64_t count) {
                             const T* a = call.input<T>(0) + offsets[0];
                             const T* b = call.input<T>(1) + offsets[1];
                             T* out = call.output<T>() + at;
                             for (std::int64_t i = 0; i < count; ++i)
                               out[i] = of_pair<kind, T>(a[i * a_step], b[i * b_step]);
                           });
}

template <class T>
bool has_size(const Signature& signature) {
  return size_bytes(signature.inputs[0].dtype) == sizeof(T);
}

// The bits alone count, but for shifts, which keep the sign.
template <Bits kind>
std::vector<Kernel> kernel_list() {
  if constexpr (is_shift(kind))
    return {reference<std::int32_t>(prepare, run<kind, std::int32_t>),
            reference<std::int64_t>(prepare, run<kind, std::int64_t>),
            reference<std::uint32_t>(prepare, run<kind, std::uint32_t>),
            taking({DType::uint64}, reference<std::uint64_t>(prepare, run<kind, std::uint64_t>))};
  else
    return {for_any_dtype({"reference", has_size<std::uint8_t>, prepare, run<kind, std::uint8_t>}),
            for_any_dtype({"reference", has_size<std::uint16_t>, prepare, run<kind, std::uint16_t>}),
            for_any_dtype({"reference", has_size<std::uint32_t>, prepare, run<kind, std::uint32_t>}),
            for_any_dtype({"reference", has_size<std::uint64_t>, prepare, run<kind, std::uint64_t>})};
}

struct NotSettings {
  std::int64_t bytes = 0;
  unsigned mask = 0;  // of each byte: a bool has but one bit
};

Prepared prepare_not(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  return prepared(
      NotSettings{static_cast<std::int64_t>(x.size_bytes()), x.dtype == DType::bool_ ? 1U : 0xFFU});
}

void run_not(const KernelCall& call) {
  const auto& [bytes, mask] = call.setting<NotSettings>();
  const auto* x = call.input<std::uint8_t>(0);
  auto* y = call.output<std::uint8_t>();
  for (std::int64_t i = 0; i < bytes; ++i) y[i] = static_cast<std::uint8_t>(x[i] ^ mask);
}

Schema schema_of(std::string_view name, std::string_view primitive) {
  return {.inputs = {"a", "b"},
          .promotion = Promotion::common,
          .methods = {{name, {"other"}}},
          .mindspore = {{name, {"input", "other"}}},
          .primitives = {{primitive}}};
}

template <Bits kind>
Op row(std::string_view primitive, std::string_view documentation) {
  return {.name = name_of(kind),
          .documentation = documentation,
          .inputs_min = 2,
          .inputs_max = 2,
          .infer = infer<kind>,
          .kernels = kernel_list<kind>(),
          .schema = schema_of(name_of(kind), primitive)};
}

std::vector<Op> rows() {
  return {
      row<Bits::both>("BitwiseAnd",
                      "The bits that both a and b have; shapes broadcast; whole numbers, or bool."),
      row<Bits::either>("BitwiseOr", "The bits that a or b has; shapes broadcast; whole numbers, or bool."),
      row<Bits::one>("BitwiseXor",
                     "The bits that one of a and b has; shapes broadcast; whole numbers, or bool."),
      row<Bits::left>("LeftShift",
                      "The bits of a, b places higher: a 2^b, which wraps around; shapes broadcast; whole "
                      "numbers. b counts modulo 32, of 64 bits modulo 64."),
      row<Bits::right>("RightShift",
                       "The bits of a, b places lower: a / 2^b, rounded down; shapes broadcast; whole "
                       "numbers. b counts modulo 32, of 64 bits modulo 64."),
      {.name = name_of(Bits::none),
       .documentation = "The bits that x has not; whole numbers, or bool.",
       .infer = infer<Bits::none>,
       .kernels = {for_any_dtype({"reference", any_signature, prepare_not, run_not})},
       .sharing = Sharing::reuse,
       .schema = {.inputs = {"x"},
                  .methods = {{"bitwise_not", {}}},
                  .mindspore = {{"invert", {"x"}}, {"bitwise_not", {"input"}}},
                  .primitives = {{"Invert"}}}}};
}

}  // namespace bitwise_rows

std::vector<const Op*> rows_of_bitwise() {
  using namespace bitwise_rows;
  static const std::vector<Op> family = rows();
  return addresses(family);
}

}  // namespace muster::graph
