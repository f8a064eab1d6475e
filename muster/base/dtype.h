// The element types of tensors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <type_traits>

#include "muster/base/bfloat16.h"
#include "muster/base/float16.h"

namespace muster {

// The numbers of the list are a part of wire formats: new dtypes are added at the end.
enum class DType : std::uint8_t {
  float32,
  float64,
  int32,
  int64,
  uint8,
  uint32,
  int8,
  bool_,
  bfloat16,
  float16,
  int16,
  uint16,
  uint64
};

inline constexpr std::array all_dtypes = {
    DType::float32, DType::float64,  DType::int32,   DType::int64, DType::uint8,  DType::uint32, DType::int8,
    DType::bool_,   DType::bfloat16, DType::float16, DType::int16, DType::uint16, DType::uint64};

std::size_t size_bytes(DType dtype);
// "float32", "int64", "bool", …
std::string_view to_string(DType dtype);
std::optional<DType> dtype_from_string(std::string_view name);
bool is_floating(DType dtype);
// Whole numbers: neither floating nor bool.
bool is_whole(DType dtype);
bool is_unsigned(DType dtype);
// What computes for `dtype` where nothing computes in it: float32 for the floating ones of 16 bits, int32 and
// int64 for whole numbers. It holds every number of `dtype`, but for uint64 from 2^63 on; others are itself.
DType computed_in(DType dtype);

// A set of dtypes.
class DTypes {
 public:
  constexpr DTypes() = default;
  constexpr DTypes(std::initializer_list<DType> dtypes) {
    for (const DType dtype : dtypes) bits_ |= bit(dtype);
  }
  static constexpr DTypes all() {
    DTypes made;
    for (const DType dtype : all_dtypes) made.bits_ |= bit(dtype);
    return made;
  }
  constexpr bool contains(DType dtype) const { return (bits_ & bit(dtype)) != 0; }
  constexpr DTypes operator|(DTypes other) const {
    other.bits_ |= bits_;
    return other;
  }

 private:
  static constexpr std::uint32_t bit(DType dtype) { return 1U << static_cast<unsigned>(dtype); }

  std::uint32_t bits_ = 0;
};

// The DType of a C++ element type: dtype_of<float> is DType::float32.
template <class T>
inline constexpr DType dtype_of = [] {
  static_assert(sizeof(T) == 0, "no DType for this type");
  return DType{};
}();
template <>
inline constexpr DType dtype_of<float> = DType::float32;
template <>
inline constexpr DType dtype_of<double> = DType::float64;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::int32;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::int64;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::uint8;
template <>
inline constexpr DType dtype_of<std::uint32_t> = DType::uint32;
template <>
inline constexpr DType dtype_of<std::int8_t> = DType::int8;
template <>
inline constexpr DType dtype_of<bool> = DType::bool_;
template <>
inline constexpr DType dtype_of<bfloat16> = DType::bfloat16;
template <>
inline constexpr DType dtype_of<float16> = DType::float16;
template <>
inline constexpr DType dtype_of<std::int16_t> = DType::int16;
template <>
inline constexpr DType dtype_of<std::uint16_t> = DType::uint16;
template <>
inline constexpr DType dtype_of<std::uint64_t> = DType::uint64;

// What C++ computes with where elements are T.
template <class T>
using Computed = std::conditional_t<std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>, float, T>;

// float, double and those of 16 bits.
template <class T>
inline constexpr bool is_floating_v = std::is_floating_point_v<Computed<T>>;

}  // namespace muster
