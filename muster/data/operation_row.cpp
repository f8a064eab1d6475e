#include "muster/data/operation_row.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace muster::data {

std::vector<const OperationRow*> all_operation_rows();  // CMakeLists.txt writes it

namespace {

template <class Number>
bool is_in_range(const OperationArgument& argument, Number number) {
  return argument.range.contains(static_cast<double>(number));
}

template <class Number>
bool are_allowed(const OperationArgument& argument, const std::vector<Number>& numbers) {
  const auto& counts = argument.counts;
  const bool fits = counts.empty() || std::find(counts.begin(), counts.end(), numbers.size()) != counts.end();
  return fits && std::all_of(numbers.begin(), numbers.end(),
                             [&](Number number) { return is_in_range(argument, number); });
}

bool is_allowed(const OperationArgument& argument, const Setting& value) {
  if (argument.is_fixed) return value == argument.otherwise;
  if (const auto* number = std::get_if<double>(&value)) return is_in_range(argument, *number);
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return is_in_range(argument, *whole);
  if (const auto* several = std::get_if<Numbers>(&value)) return are_allowed(argument, *several);
  if (const auto* several = std::get_if<WholeNumbers>(&value)) return are_allowed(argument, *several);
  return true;
}

// As Python writes it.
struct Printer {
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return number_text(value); }
  std::string operator()(bool value) const { return value ? "True" : "False"; }
  std::string operator()(DType value) const { return std::string(muster::to_string(value)); }
  std::string operator()(const WholeNumbers& value) const {
    return fmt::format("({})", fmt::join(value, ", "));
  }
  std::string operator()(const Numbers& value) const { return fmt::format("({})", fmt::join(value, ", ")); }
  std::string operator()(Interpolation) const { return "an interpolation"; }
  std::string operator()(Border) const { return "a border"; }
};

Result<> check(const OperationRow& row, const OperationArgument& argument, const Setting& value) {
  if (value.index() != argument.otherwise.index())
    return fail(Code::invalid_argument, fmt::format("{}: {} is of another type", row.name, argument.name));
  if (is_allowed(argument, value)) return {};
  const std::string allowed =
      argument.meaning.empty() ? to_string(argument.range) : std::string(argument.meaning);
  return fail(Code::invalid_argument, fmt::format("{}: {} is {}; it must be {}", row.name, argument.name,
                                                  std::visit(Printer{}, value), allowed));
}

Result<> refuse_unknown(const OperationRow& row, const Settings& given) {
  for (const auto& [name, value] : given.entries()) {
    const bool known =
        std::any_of(row.arguments.begin(), row.arguments.end(),
                    [&name = name](const OperationArgument& argument) { return argument.name == name; });
    if (!known)
      return fail(Code::invalid_argument, fmt::format("{}: there is no argument '{}'", row.name, name));
  }
  return {};
}

}  // namespace

const Setting* Settings::find(std::string_view name) const {
  for (const Entry& entry : entries_)
    if (entry.first == name) return &entry.second;
  return nullptr;
}

std::span<const OperationRow* const> operation_rows() {
  static const std::vector<const OperationRow*> sorted = [] {
    std::vector<const OperationRow*> rows = all_operation_rows();
    std::sort(rows.begin(), rows.end(),
              [](const OperationRow* a, const OperationRow* b) { return a->name < b->name; });
    return rows;
  }();
  return sorted;
}

Result<OperationPtr> make_operation(const OperationRow& row, const Settings& given) {
  MUSTER_TRY_VOID(refuse_unknown(row, given));
  Settings all;
  for (const OperationArgument& argument : row.arguments) {
    const Setting* setting = given.find(argument.name);
    if (setting == nullptr && argument.required)
      return fail(Code::invalid_argument, fmt::format("{}: {} is missing", row.name, argument.name));
    if (setting != nullptr) MUSTER_TRY_VOID(check(row, argument, *setting));
    all.set(argument.name, setting != nullptr ? *setting : argument.otherwise);
  }
  return row.make(all);
}

Result<OperationPtr> make_operation(std::string_view name, const Settings& given) {
  for (const OperationRow* row : operation_rows())
    if (row->name == name) return make_operation(*row, given);
  return fail(Code::invalid_argument, fmt::format("there is no operation '{}'", name));
}

}  // namespace muster::data
