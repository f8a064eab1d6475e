// The element types of tensors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "muster/base/bfloat16.h"

namespace muster {

// The numbers of the list are a part of wire formats: new dtypes are added at the end.
enum class DType : std::uint8_t { float32, float64, int32, int64, uint8, uint32, int8, bool_, bfloat16 };

inline constexpr std::array all_dtypes = {DType::float32, DType::float64, DType::int32,
                                          DType::int64,   DType::uint8,   DType::uint32,
                                          DType::int8,    DType::bool_,   DType::bfloat16};

std::size_t size_bytes(DType dtype);
// "float32", "int64", "bool", …
std::string_view to_string(DType dtype);
std::optional<DType> dtype_from_string(std::string_view name);
bool is_floating(DType dtype);

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

}  // namespace muster
