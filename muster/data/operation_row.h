// OperationRow: a built-in operation of `map`, described once. Its class in Python, with stub, page of the
// reference and name under mindspore.dataset, and how C++ makes it by name, come from the row.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "muster/data/operation.h"
#include "muster/data/vision.h"

namespace muster::data {

using WholeNumbers = std::vector<std::int64_t>;
using Numbers = std::vector<double>;
using Setting = std::variant<std::int64_t, double, bool, DType, WholeNumbers, Numbers, Interpolation, Border>;

struct OperationArgument {
  std::string_view name;
  Setting otherwise;                     // the default, and with it the type
  bool required = false;                 // no default: `otherwise` says only the type
  bool optional = false;                 // None in Python is the default
  Range range = {};                      // of a number, or of each of several
  std::vector<std::size_t> counts = {};  // so many numbers may be given; empty: any
  bool is_fixed = false;                 // only the default can be given
  // What is allowed, for people, where there is more to say than the range: "a number or (height, width)".
  std::string_view meaning = {};
};

// Arguments by name.
class Settings {
 public:
  using Entry = std::pair<std::string, Setting>;
  Settings(std::initializer_list<Entry> entries = {}) : entries_(entries) {}

  void set(std::string_view name, Setting value) { entries_.emplace_back(name, std::move(value)); }
  const Setting* find(std::string_view name) const;
  // Of an argument that the row lists, which has this type.
  template <class T>
  const T& get(std::string_view name) const {
    const Setting* found = find(name);
    MUSTER_CHECK(found != nullptr && std::holds_alternative<T>(*found),
                 "an operation reads a setting that its row does not list");
    return std::get<T>(*found);
  }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

// Where Python finds the operation: muster.dataset.vision, and mindspore.dataset.vision.
enum class Family { transforms, vision };

struct OperationRow {
  std::string_view name;  // "CenterCrop"
  Family family = Family::vision;
  std::string_view documentation;
  std::string_view usage = {};  // of the arguments
  std::vector<OperationArgument> arguments = {};
  OperationPtr (*make)(const Settings& all) = nullptr;
};

// Of rows that stand side by side in a file.
inline std::vector<const OperationRow*> addresses(std::span<const OperationRow> rows) {
  std::vector<const OperationRow*> made;
  for (const OperationRow& row : rows) made.push_back(&row);
  return made;
}

// All rows, sorted by name: of all files of this folder that define `rows_of_<file>()`.
std::span<const OperationRow* const> operation_rows();

// The operation with these settings, and the defaults of all others. An error names the operation, the
// setting and what is allowed.
Result<OperationPtr> make_operation(const OperationRow& row, const Settings& given);
// The same by name: `make_operation("CenterCrop", {{"size", WholeNumbers{224}}})`.
Result<OperationPtr> make_operation(std::string_view name, const Settings& given);

}  // namespace muster::data
