#include "muster/graph/op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "muster/graph/backward.h"
#include "muster/graph/execution/execute.h"
#include "muster/graph/nodes.h"
#include "muster/graph/ops/ops.h"
#include "muster/graph/precision.h"
#include "muster/graph/thread_state.h"
#include "muster/graph/trace.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {

// An explicit list: rows that registered themselves could be dropped by the linker.
const std::vector<const Op*>& table() {
  static const std::vector<const Op*> rows = [] {
    std::vector<const Op*> made = all_ops();
    std::sort(made.begin(), made.end(), [](const Op* a, const Op* b) { return a->name < b->name; });
    return made;
  }();
  return rows;
}

void require_inputs(const Op& op, std::span<const Value> inputs) {
  if (inputs.size() < op.inputs_min || inputs.size() > op.inputs_max)
    throw Exception(Code::invalid_argument, fmt::format("{} takes {} to {} tensors, {} were given", op.name,
                                                        op.inputs_min, op.inputs_max, inputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].defined())
      throw Exception(Code::invalid_argument, fmt::format("{}: input {} has no value", op.name, i));
}

// Before code writes to a parameter its elements are noted as they are, for the gradients of what was
// computed from them.
void note_snapshot(const Op& op, std::span<const Value> inputs, const RunContext& context) {
  if (!is_taping() || !is_write_of_code(op) || !inputs[0].is_parameter()) return;
  const ParameterPtr& parameter = inputs[0].parameter();
  if (parameter->absence() != nullptr || !parameter->materialized()) return;
  const Value copy(parameter->share() ? whole_of(*parameter, context).value() : parameter->storage().clone());
  note_on_tapes(*find_op("snapshot"), inputs.first(1), {&copy, 1}, {});
}

// Of a table on parameter servers a row of zeros is here: lookups and updates know that, others would compute
// with it.
void refuse_served_tables(const Op& op, std::span<const Value> inputs) {
  for (const Value& input : inputs) {
    if (!input.is_parameter() || !input.parameter()->served_rows()) continue;
    if (op.name == "server_lookup" || op.name == "served_update" || op.name == "cast") continue;
    throw Exception(
        Code::not_provided,
        fmt::format("{} cannot read table '{}': its rows are on parameter servers, and only lookups "
                    "read them; a penalty on it is its optimizer's weight_decay, and weights that "
                    "are shared with another layer have to stay on the workers",
                    op.name, input.parameter()->name()));
  }
}

// A node of the trace around, or the results now.
Values apply_row(const Op& op, std::span<const Value> inputs, const Attributes& attributes) {
  refuse_served_tables(op, inputs);
  const bool is_constant = thread_state().without_gradient;
  if (Trace* trace = Trace::current()) {
    Values made = trace->add(op, inputs, attributes);
    if (is_constant && op.sharing != Sharing::in_place)
      for (Value& value : made) value = trace->add(*find_op("stop_gradient"), {&value, 1}, {})[0];
    return made;
  }
  const RunContext context = default_context();
  note_snapshot(op, inputs, context);
  Values made = execute(op, inputs, attributes, context).value();
  if (!is_constant) note_on_tapes(op, inputs, made, attributes);
  return made;
}

}  // namespace

std::span<const Op* const> ops() { return table(); }

const Op* find_op(std::string_view name) {
  const auto& rows = table();
  const auto found = std::lower_bound(rows.begin(), rows.end(), name,
                                      [](const Op* op, std::string_view key) { return op->name < key; });
  return found != rows.end() && (*found)->name == name ? *found : nullptr;
}

Values apply_all(const Op& op, std::span<const Value> inputs, const Attributes& attributes) {
  require_inputs(op, inputs);
  if (const auto wanted = prescribed(op, inputs)) {
    Values made = apply_row(op, wanted->inputs, attributes);
    if (wanted->results)
      for (Value& value : made) value = floating_as(value, *wanted->results);
    return made;
  }
  return apply_row(op, inputs, attributes);
}

Values apply_all(std::string_view name, std::span<const Value> inputs, const Attributes& attributes) {
  const Op* op = find_op(name);
  if (op == nullptr) throw Exception(Code::invalid_argument, fmt::format("there is no op named '{}'", name));
  return apply_all(*op, inputs, attributes);
}

Values apply_all(std::string_view name, std::span<const Value> inputs, const Attributes& attributes,
                 const RunContext& context) {
  const ContextScope scope(context);
  return apply_all(name, inputs, attributes);
}

Value apply(std::string_view name, std::span<const Value> inputs, const Attributes& attributes) {
  return apply_all(name, inputs, attributes)[0];
}

Value apply(std::string_view name, std::span<const Value> inputs, const Attributes& attributes,
            const RunContext& context) {
  return apply_all(name, inputs, attributes, context)[0];
}

std::string kernels_in_use() {
  std::string text = fmt::format("vector instructions: {}\n", muster::to_string(processor_isa()));
  for (const Op* op : table()) {
    std::string names;
    for (const Kernel& kernel : op->kernels)
      if (names.find(kernel.name) == std::string::npos && (kernel.available == nullptr || kernel.available()))
        names += (names.empty() ? "" : ", ") + std::string(kernel.name);
    if (!names.empty()) text += fmt::format("{}: {}\n", op->name, names);
  }
  return text;
}

namespace {

auto place_of(std::vector<Attributes::Entry>& entries, std::string_view name) {
  return std::lower_bound(
      entries.begin(), entries.end(), name,
      [](const Attributes::Entry& entry, std::string_view key) { return entry.first < key; });
}

struct Printer {
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return fmt::format("{}", value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::string& value) const { return fmt::format("'{}'", value); }
  std::string operator()(const std::vector<std::int64_t>& value) const {
    return fmt::format("[{}]", fmt::join(value, ", "));
  }
  std::string operator()(DType value) const { return std::string(to_string(value)); }
  std::string operator()(const GraphPtr& value) const {
    return fmt::format("graph '{}' of {} nodes", value->name, value->nodes.size());
  }
};

}  // namespace

std::string to_string(const Attribute& attribute) { return std::visit(Printer{}, attribute); }

Attributes::Attributes(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) set(entry.first, entry.second);
}

void Attributes::set(std::string_view name, Attribute value) {
  const auto place = place_of(entries_, name);
  if (place != entries_.end() && place->first == name)
    place->second = std::move(value);
  else
    entries_.insert(place, Entry{std::string(name), std::move(value)});
}

const Attribute* Attributes::find(std::string_view name) const {
  for (const Entry& entry : entries_)
    if (entry.first == name) return &entry.second;
  return nullptr;
}

std::string to_string(const Attributes& attributes) {
  std::string text;
  for (const auto& [name, value] : attributes.entries())
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, to_string(value));
  return text.empty() ? text : "(" + text + ")";
}

}  // namespace muster::graph
