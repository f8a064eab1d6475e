#include "muster/data/operation_row.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::data {

std::vector<const OperationRow*> all_operation_rows();  // CMakeLists.txt writes it

namespace {

bool is_in_range(const OperationArgument& argument, double value) {
  return (!argument.min || value >= *argument.min) && (!argument.max || value <= *argument.max);
}

template <class Number>
bool are_allowed(const OperationArgument& argument, const std::vector<Number>& numbers) {
  const auto& counts = argument.counts;
  const bool fits = counts.empty() || std::find(counts.begin(), counts.end(), numbers.size()) != counts.end();
  return fits && std::all_of(numbers.begin(), numbers.end(), [&](Number number) {
           return is_in_range(argument, static_cast<double>(number));
         });
}

bool is_allowed(const OperationArgument& argument, const Setting& value) {
  if (argument.is_fixed) return value == argument.otherwise;
  if (const auto* number = std::get_if<double>(&value)) return is_in_range(argument, *number);
  if (const auto* whole = std::get_if<std::int64_t>(&value))
    return is_in_range(argument, static_cast<double>(*whole));
  if (const auto* several = std::get_if<Numbers>(&value)) return are_allowed(argument, *several);
  if (const auto* several = std::get_if<WholeNumbers>(&value)) return are_allowed(argument, *several);
  return true;
}

std::string allowed(const OperationArgument& argument) {
  if (!argument.meaning.empty()) return std::string(argument.meaning);
  if (!argument.max) return fmt::format("at least {}", argument.min.value_or(0));
  return fmt::format("{} to {}", argument.min.value_or(0), *argument.max);
}

Result<> check(const OperationRow& row, const OperationArgument& argument, const Setting& value) {
  if (value.index() != argument.otherwise.index())
    return fail(Code::invalid_argument, fmt::format("{}: {} is of another type", row.name, argument.name));
  if (is_allowed(argument, value)) return {};
  return fail(Code::invalid_argument,
              fmt::format("{}: {} is {}", row.name, argument.name, allowed(argument)));
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
