#include "muster/base/dtype.h"

#include <array>

namespace muster {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::size_t size_bytes;
  bool floating;
};

constexpr std::array rows = {
    Row{DType::float32, "float32", 4, true},   Row{DType::float64, "float64", 8, true},
    Row{DType::int32, "int32", 4, false},      Row{DType::int64, "int64", 8, false},
    Row{DType::uint8, "uint8", 1, false},      Row{DType::uint32, "uint32", 4, false},
    Row{DType::int8, "int8", 1, false},        Row{DType::bool_, "bool", 1, false},
    Row{DType::bfloat16, "bfloat16", 2, true},
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
bool is_floating(DType dtype) { return row_of(dtype).floating; }

std::optional<DType> dtype_from_string(std::string_view name) {
  for (const Row& row : rows)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

}  // namespace muster
