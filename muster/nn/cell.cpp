#include "muster/nn/cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "muster/graph/explanation.h"

namespace muster::nn {

Cell::Cell(std::string class_name) : class_name_(std::move(class_name)) {}
Cell::~Cell() = default;

Values Cell::call(std::span<const Value> inputs) {
  if (graph::is_tracing()) {
    graph::watch(*this);
    return constructed(inputs);
  }
  if (is_paused()) return {};
  if (runs_op_by_op()) return constructed(inputs);
  return outside_function()(inputs);
}

bool Cell::runs_op_by_op() const {
  const bool is_compiled = graph::falls_back() && !graph::is_taping() && is_compiled_alone();
  return graph::runs_op_by_op() && !is_compiled;
}

graph::Function& Cell::outside_function() {
  if (function_ == nullptr)
    function_ = std::make_unique<graph::Function>(class_name_, [this](std::span<const Value> traced) {
      graph::watch(*this);
      return constructed(traced);
    });
  return *function_;
}

void Cell::replicate_outputs() { outside_function().replicate_outputs(); }

Result<graph::Explanation> Cell::explain(std::span<const Tensor> inputs, const RunContext& context) {
  if (graph::runs_op_by_op())
    return fail(Code::invalid_argument,
                fmt::format("{} has no plan to explain: in eager mode each op runs by itself. Use graph mode",
                            description()));
  graph::Function& function = outside_function();
  MUSTER_TRY_VOID(function.compile(inputs, {}, context));
  return function.explain();
}

namespace {

Values constructed_with_bprop(Cell& cell, std::span<const Value> inputs) {
  Cell::Bprop bprop = graph::notes_gradients() ? cell.own_bprop() : nullptr;
  if (bprop == nullptr) return cell.construct(inputs);
  return cell.with_bprop(
      inputs, [&] { return cell.construct(inputs); }, std::move(bprop));
}

Values constructed_in_precision(Cell& cell, std::span<const Value> inputs) {
  if (!cell.precision()) return constructed_with_bprop(cell, inputs);
  const CellPrecision precision = *cell.precision();
  const graph::PrecisionScope scope(precision.ops);
  const Values given =
      precision.inputs ? graph::floating_as(inputs, *precision.inputs) : Values(inputs.begin(), inputs.end());
  const Values made = constructed_with_bprop(cell, given);
  return precision.outputs ? graph::floating_as(made, *precision.outputs) : made;
}

}  // namespace

// construct, where the cell is placed and as mixed precision has it.
Values Cell::constructed(std::span<const Value> inputs) {
  require_possible_place();
  const PlacedScope placed(*this);
  const graph::CellScope scope(*this);
  return constructed_in_precision(*this, inputs);
}

// Once: what looks like training trains nothing.
void Cell::tell_of_untrained() const {
  if (std::exchange(told_of_untrained_, true)) return;
  const std::vector<ParameterPtr> parameters = trainable_params();
  if (parameters.empty()) return;
  log::warning(
      fmt::format("{} defines bprop, so what it holds itself is not trained: '{}'{} gets gradients of "
                  "zero. A parameter that is an input of the cell gets those that bprop gives",
                  description(), parameters.front()->name(),
                  parameters.size() > 1 ? fmt::format(" and {} more", parameters.size() - 1) : ""));
}

Values Cell::with_bprop(std::span<const Value> inputs, const std::function<Values()>& body, Bprop bprop) {
  auto gradients = [token = token(), bprop = std::move(bprop)](std::span<const Value> given,
                                                               std::span<const Value> outputs,
                                                               std::span<const Value> output_gradients) {
    const auto* cell = static_cast<const Cell*>(token->object);
    if (cell == nullptr)
      throw Exception(Code::invalid_argument,
                      "a gradient was to pass through a cell with a bprop that is gone: keep the cell until "
                      "its gradient is taken");
    cell->tell_of_untrained();
    const graph::CellScope scope(*cell);
    return bprop(given, outputs, output_gradients);
  };
  return graph::with_own_gradient(inputs, body, {description(), std::move(gradients)});
}

Values Cell::call(std::span<const Value> inputs, const RunContext& context) {
  const graph::ContextScope scope(context);
  return call(inputs);
}

Value Cell::call_for_one(std::span<const Value> inputs) {
  Values outputs = call(inputs);
  if (outputs.size() != 1)
    throw Exception(Code::invalid_argument, fmt::format("{} gives {} outputs, not one: take them from call()",
                                                        description(), outputs.size()));
  return std::move(outputs.front());
}

void Cell::require_free(std::string_view name) const {
  const auto has_name = [&](const auto& entry) { return entry.first == name; };
  if (std::ranges::any_of(children_, has_name) || std::ranges::any_of(parameters_, has_name))
    throw Exception(Code::invalid_argument, fmt::format("{} has '{}' already: give each child and parameter "
                                                        "a name of its own",
                                                        class_name(), name));
}

ParameterPtr Cell::add_parameter(std::string_view name, Tensor initial) {
  require_free(name);
  auto parameter = std::make_shared<graph::Parameter>(std::string(name), initial);
  insert_param(name, parameter);
  return parameter;
}

CellState Cell::state() const {
  return {.path = path_,
          .has_parent = has_parent_,
          .auto_prefix = auto_prefix_,
          .training = training_,
          .precision = precision_,
          .place = place_,
          .recomputes = recomputes_};
}

void Cell::restore(CellState state) {
  path_ = std::move(state.path);
  has_parent_ = state.has_parent;
  auto_prefix_ = state.auto_prefix;
  training_ = state.training;
  precision_ = std::move(state.precision);
  place_ = std::move(state.place);
  recomputes_ = state.recomputes;
  called_where_placed_ = false;
  touch("it was restored from a copy");
}

void Cell::insert_child(std::string_view name, std::shared_ptr<Cell> child) {
  if (child == nullptr || child.get() == this)
    throw Exception(Code::invalid_argument, fmt::format("{}: child '{}' is {}", class_name_, name,
                                                        child ? "the cell itself" : "null"));
  if (auto_prefix_) child->set_path(path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name));
  const auto same_name = [&](const auto& entry) { return entry.first == name; };
  const auto found = std::find_if(children_.begin(), children_.end(), same_name);
  if (found != children_.end())
    found->second = std::move(child);
  else
    children_.emplace_back(name, std::move(child));
  touch(fmt::format("child '{}' was inserted", name));
}

void Cell::keep_param(std::string_view name, ParameterPtr& member) {
  members_.emplace_back(name, &member);
  insert_param(name, member);
}

bool Cell::keeps_param(std::string_view name) const {
  return std::ranges::any_of(members_, [&](const auto& entry) { return entry.first == name; });
}

void Cell::insert_param(std::string_view name, ParameterPtr parameter) {
  if (parameter == nullptr)
    throw Exception(Code::invalid_argument, fmt::format("{}: parameter '{}' is null", class_name_, name));
  for (const auto& [own, member] : members_) {
    if (own != name) continue;
    if ((*member)->is_statistic()) parameter->mark_statistic();
    *member = parameter;
  }
  const auto same_name = [&](const auto& entry) { return entry.first == name; };
  const auto found = std::find_if(parameters_.begin(), parameters_.end(), same_name);
  if (found != parameters_.end())
    found->second = std::move(parameter);
  else
    parameters_.emplace_back(name, std::move(parameter));
  touch(fmt::format("parameter '{}' was inserted", name));
}

void Cell::remove(std::string_view name) {
  const auto same_name = [&](const auto& entry) { return entry.first == name; };
  const std::size_t erased = std::erase_if(children_, same_name) + std::erase_if(parameters_, same_name);
  if (erased > 0) touch(fmt::format("'{}' was removed", name));
}

Result<> Cell::place_at(std::string_view role, std::int64_t rank, std::string where) {
  MUSTER_TRY(Place made, make_place(Placed::cell, description(), role, rank, std::move(where)));
  // What code that is being traced places is a part of that trace.
  const bool changes = (!place_ || place_->rank != made.rank) && !graph::is_tracing();
  place_ = std::move(made);
  called_where_placed_ = false;
  if (changes) touch(fmt::format("it was placed on worker {}", place_->rank));
  return {};
}

void Cell::set_recompute(bool recompute) {
  if (recompute == recomputes_) return;
  recomputes_ = recompute;
  touch("whether it is computed again in the backward pass was changed");
}

Cell::PlacedScope::PlacedScope(const Cell& cell) {
  if (cell.recomputes_) recompute_.emplace();
  if (!cell.place_) return;
  cell.called_where_placed_ = true;
  scope_.emplace(placement_of(cell.description(), *cell.place_));
}

void Cell::require_possible_place() const {
  if (place_ && graph::runs_op_by_op()) check_place(description(), *place_).value();
}

// Names say where a parameter is in the tree, whatever it was called before; in several places, the first.
void Cell::set_path(const std::string& path) {
  has_parent_ = true;
  path_ = path;
  for (const auto& [name, parameter] : parameters_and_names())
    parameter->rename(fmt::format("{}.{}", path, name));
  for (const auto& [name, cell] : descendants()) {
    cell->has_parent_ = true;
    cell->path_ = fmt::format("{}.{}", path, name);
    cell->touch("it was given another name");
  }
  touch("it was given another name");
}

void Cell::prefix_names(const std::string& prefix) {
  path_ = path_.empty() ? prefix : prefix + "." + path_;
  for (const auto& [name, parameter] : parameters_) parameter->rename(prefix + "." + parameter->name());
  for (const auto& [name, child] : children_) child->prefix_names(prefix);
  touch("it was given another name");
}

void Cell::collect(const std::string& prefix, Parameters& found) const {
  for (const auto& [name, parameter] : parameters_) {
    const bool known = std::any_of(found.begin(), found.end(),
                                   [&p = parameter](const auto& entry) { return entry.second == p; });
    if (!known) found.emplace_back(prefix + name, parameter);
  }
  for (const auto& [name, child] : children_) child->collect(prefix + name + ".", found);
}

void Cell::collect(const std::string& prefix, Children& found) const {
  for (const auto& [name, child] : children_) {
    const bool known = std::any_of(found.begin(), found.end(),
                                   [&c = child](const auto& entry) { return entry.second == c; });
    if (known) continue;
    found.emplace_back(prefix + name, child);
    child->collect(prefix + name + ".", found);
  }
}

Cell::Children Cell::descendants() const {
  Children found;
  collect("", found);
  return found;
}

Cell::Parameters Cell::parameters_and_names() const {
  Parameters found;
  collect("", found);
  return found;
}

std::vector<ParameterPtr> Cell::parameters() const {
  std::vector<ParameterPtr> found;
  for (auto& [name, parameter] : parameters_and_names()) found.push_back(std::move(parameter));
  return found;
}

std::vector<ParameterPtr> Cell::trainable_params() const {
  std::vector<ParameterPtr> found = parameters();
  std::erase_if(found, [](const ParameterPtr& parameter) { return !parameter->requires_grad(); });
  return found;
}

void Cell::set_train(bool training) {
  if (training_ != training) {
    training_ = training;
    std::swap(version_, other_version_);
  }
  for (const auto& [name, child] : children_) child->set_train(training);
}

// All versions of the tree in one number. Not the greatest of them: with one cell in another mode that may be
// the same.
std::uint64_t Cell::tree_version() const {
  std::uint64_t all = version_;
  const auto add = [&all](std::uint64_t version) {
    all = (all ^ (all >> 29) ^ version) * 0x9E3779B97F4A7C15ULL;
  };
  for (const auto& [name, parameter] : parameters_) add(parameter->version());
  for (const auto& [name, child] : children_) add(child->tree_version());
  return all;
}

void Cell::find_change(Change& newest) const {
  if (touched_ > newest.when) newest = {touched_, fmt::format("{}: {}", description(), change_)};
  for (const auto& [name, parameter] : parameters_)
    if (parameter->version() > newest.when)
      newest = {parameter->version(),
                fmt::format("parameter '{}' was made, renamed, or its requires_grad set", parameter->name())};
  for (const auto& [name, child] : children_) child->find_change(newest);
}

std::string Cell::change_since(std::uint64_t stamp) const {
  Change newest{.when = stamp};
  find_change(newest);
  if (!newest.what.empty()) return newest.what;
  return fmt::format("{}: it, or a cell below, was set to training or back", description());
}

std::string Cell::description() const {
  return path_.empty() ? class_name_ : fmt::format("{} '{}'", class_name_, path_);
}

namespace {

std::string tree_text(const Cell& cell, const std::string& indent) {
  const std::string settings = cell.settings();
  const std::string place = cell.placed() ? fmt::format(" on worker {}", cell.placed()->rank) : "";
  if (cell.children().empty()) return fmt::format("{}({}){}", cell.class_name(), settings, place);
  const std::string inner = indent + "  ";
  std::string text = cell.class_name() + "(\n";
  if (!settings.empty()) text += inner + settings + '\n';
  for (const auto& [name, child] : cell.children())
    text += fmt::format("{}({}): {}\n", inner, name, tree_text(*child, inner));
  return text + indent + ')' + place;
}

}  // namespace

std::string to_string(const Cell& cell) { return tree_text(cell, ""); }

}  // namespace muster::nn
