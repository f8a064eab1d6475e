#include "muster/base/dtype.h"

#include <array>

namespace muster {
namespace {

enum class Kind { floating, whole, unsigned_whole, truth };

struct Row {
  DType dtype;
  std::string_view name;
  std::size_t size_bytes;
  Kind kind;
  DType computed_in;
};

constexpr std::array rows = {
    Row{DType::float32, "float32", 4, Kind::floating, DType::float32},
    Row{DType::float64, "float64", 8, Kind::floating, DType::float64},
    Row{DType::int32, "int32", 4, Kind::whole, DType::int32},
    Row{DType::int64, "int64", 8, Kind::whole, DType::int64},
    Row{DType::uint8, "uint8", 1, Kind::unsigned_whole, DType::int32},
    Row{DType::uint32, "uint32", 4, Kind::unsigned_whole, DType::int64},
    Row{DType::int8, "int8", 1, Kind::whole, DType::int32},
    Row{DType::bool_, "bool", 1, Kind::truth, DType::bool_},
    Row{DType::bfloat16, "bfloat16", 2, Kind::floating, DType::float32},
    Row{DType::float16, "float16", 2, Kind::floating, DType::float32},
    Row{DType::int16, "int16", 2, Kind::whole, DType::int32},
    Row{DType::uint16, "uint16", 2, Kind::unsigned_whole, DType::int32},
    Row{DType::uint64, "uint64", 8, Kind::unsigned_whole, DType::int64},
};

constexpr const Row& row_of(DType dtype) { return rows[static_cast<std::size_t>(dtype)]; }

constexpr bool rows_are_in_enum_order() {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (static_cast<std::size_t>(rows[i].dtype) != i || all_dtypes[i] != rows[i].dtype) return false;
  return rows.size() == all_dtypes.size();
}
static_assert(rows_are_in_enum_order());

}  // namespace

std::size_t size_bytes(DType dtype) { return row_of(dtype).size_bytes; }
std::string_view to_string(DType dtype) { return row_of(dtype).name; }
bool is_floating(DType dtype) { return row_of(dtype).kind == Kind::floating; }
bool is_unsigned(DType dtype) { return row_of(dtype).kind == Kind::unsigned_whole; }
bool is_whole(DType dtype) { return row_of(dtype).kind == Kind::whole || is_unsigned(dtype); }
DType computed_in(DType dtype) { return row_of(dtype).computed_in; }

std::optional<DType> dtype_from_string(std::string_view name) {
  for (const Row& row : rows)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

}  // namespace muster
