#include "muster/train/recovery_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "muster/train/job.h"
#include "muster/train/parameter_servers.h"
#include "muster/train/point_shares.h"
#include "muster/train/row_files.h"
#include "muster/train/run_context.h"

namespace muster::train {
namespace {

using checkpoint::Entry;
using checkpoint::Point;

constexpr const char* position_section = "training";
constexpr const char* homes_section = "homes";
constexpr const char* runs_name = "runs";
constexpr const char* outputs_name = "outputs";

// Sections, and what stands before the names of the tensors that belong to them.
constexpr std::string_view callback_prefix = "callback ";
constexpr std::string_view metric_prefix = "metric ";
constexpr std::string_view output_prefix = "output ";
std::string section_of_callback(std::size_t index) { return fmt::format("{}{}", callback_prefix, index); }
std::string section_of_metric(const std::string& name) { return fmt::format("{}{}", metric_prefix, name); }
std::string name_of_output(std::size_t index) { return fmt::format("{}{}", output_prefix, index); }

std::map<std::string, const Tensor*> by_name(const std::vector<Entry>& entries) {
  std::map<std::string, const Tensor*> found;
  for (const Entry& entry : entries) found[entry.name] = &entry.value;
  return found;
}

// Names are unique in a point; two parameters of one name are told apart by their order.
std::vector<std::string> unique_names(std::span<const graph::ParameterPtr> parameters) {
  std::map<std::string, int> times;
  std::vector<std::string> names;
  for (const graph::ParameterPtr& parameter : parameters) {
    const int before = times[parameter->name()]++;
    names.push_back(before == 0 ? parameter->name() : fmt::format("{} #{}", parameter->name(), before + 1));
  }
  return names;
}

void put_state(State state, const std::string& section, Point& point) {
  point.state[section] = std::move(state.text);
  for (Entry& entry : state.tensors)
    point.tensors.push_back({fmt::format("{}/{}", section, entry.name), std::move(entry.value)});
}

State state_in(const Point& point, const std::string& section) {
  State state;
  if (const auto found = point.state.find(section); found != point.state.end()) state.text = found->second;
  const std::string begin = section + "/";
  for (const Entry& entry : point.tensors)
    if (entry.name.starts_with(begin))
      state.tensors.push_back({entry.name.substr(begin.size()), entry.value});
  return state;
}

Result<> put_states(const TrainingParts& parts, Point& point) {
  for (std::size_t i = 0; i < parts.callbacks.size(); ++i) {
    MUSTER_TRY(State state, catch_error([&] { return parts.callbacks[i]->state(); }));
    put_state(std::move(state), section_of_callback(i), point);
  }
  for (const auto& [name, metric] : parts.metrics) {
    MUSTER_TRY(State state, catch_error([&metric] { return metric->state(); }));
    put_state(std::move(state), section_of_metric(name), point);
  }
  return {};
}

// One that had nothing to say is asked to load nothing.
Result<> load_states(const Point& point, const TrainingParts& parts,
                     StateOwner owner = StateOwner::this_worker) {
  const auto load =
      owner == StateOwner::this_worker ? &Callback::load_state : &Callback::load_state_of_another;
  const auto explain = [](const std::string& section) {
    return [section](Error error) {
      error.message = fmt::format("{} of the recovery point: {}", section, error.message);
      return error;
    };
  };
  for (std::size_t i = 0; i < parts.callbacks.size(); ++i) {
    const std::string section = section_of_callback(i);
    const State state = state_in(point, section);
    if (!state.text.empty())
      MUSTER_TRY_VOID(
          catch_error([&] { return ((*parts.callbacks[i]).*load)(state); }).map_error(explain(section)));
  }
  if (owner == StateOwner::another_worker) return {};
  for (const auto& [name, metric] : parts.metrics) {
    const std::string section = section_of_metric(name);
    const State state = state_in(point, section);
    if (!state.text.empty())
      MUSTER_TRY_VOID(
          catch_error([&metric, &state] { return metric->load_state(state); }).map_error(explain(section)));
  }
  return {};
}

// Of the parameters that are here, and of other tensors. Parameters that a plan keeps in another order come
// straight from there.
std::vector<Entry> copies_of(std::span<const graph::ParameterPtr> parameters, std::span<const Entry> others,
                             SnapshotMemory& memory) {
  const std::vector<std::string> names = unique_names(parameters);
  std::vector<Entry> copies;
  std::vector<graph::TensorType> types;
  std::vector<graph::Parameter*> here;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i]->absence() != nullptr) continue;
    copies.push_back({names[i], {}});
    types.push_back(parameters[i]->held_type());
    here.push_back(parameters[i].get());
  }
  for (const Entry& other : others) {
    copies.push_back({other.name, {}});
    types.push_back({other.value.dtype(), other.value.shape()});
  }
  const std::vector<Tensor> made = memory.tensors(types);
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (i < here.size())
      here[i]->copy_to(made[i].bytes(), seed(), threads());
    else if (const Tensor& value = others[i - here.size()].value; value.size_bytes() > 0)
      std::memcpy(made[i].bytes(), value.bytes(), value.size_bytes());
    copies[i].value = made[i];
  }
  return copies;
}

// Where the rows of tables were saved with which the servers began: a worker that is started again says the
// same of its tables.
void put_saved_rows(std::span<const graph::ParameterPtr> parameters, Point& point) {
  const std::vector<std::string> names = unique_names(parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (const auto& rows = parameters[i]->served_rows(); rows && !rows->saved.empty())
      point.tensors.push_back(entry_of_text(names[i] + std::string(rows_suffix), rows->saved));
}

// Of a divided network: who has which parameter.
void put_homes(std::span<const graph::ParameterPtr> parameters, Point& point) {
  const std::vector<std::string> names = unique_names(parameters);
  std::vector<std::string> homed, reasons;
  std::vector<double> ranks;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& home = parameters[i]->home();
    if (!home) continue;
    homed.push_back(names[i]);
    ranks.push_back(home->rank);
    reasons.push_back(home->is_here ? "" : home->reason);
  }
  if (homed.empty()) return;
  point.state[homes_section] = StateValues()
                                   .set("names", std::move(homed))
                                   .set("ranks", std::move(ranks))
                                   .set("reasons", std::move(reasons))
                                   .to_json();
}

// A process that returns behind the training never divides the network itself, and must not take the initial
// values of what others have for theirs.
Result<> set_homes(const Point& point, std::span<const graph::ParameterPtr> parameters) {
  const auto section = point.state.find(homes_section);
  if (section == point.state.end()) return {};
  MUSTER_TRY(const StateValues values, StateValues::from_json(section->second));
  MUSTER_TRY(const std::vector<std::string> homed, values.texts("names"));
  MUSTER_TRY(const std::vector<double> ranks, values.numbers("ranks"));
  MUSTER_TRY(const std::vector<std::string> reasons, values.texts("reasons"));
  if (ranks.size() != homed.size() || reasons.size() != homed.size())
    return fail(Code::corrupt, fmt::format("{} does not say who has which parameter", to_string(point.id)));
  const std::vector<std::string> names = unique_names(parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto found = std::find(homed.begin(), homed.end(), names[i]);
    if (parameters[i]->home() || found == homed.end()) continue;
    const auto at = static_cast<std::size_t>(found - homed.begin());
    parameters[i]->set_home({.rank = static_cast<std::uint32_t>(ranks[at]),
                             .is_here = reasons[at].empty(),
                             .reason = reasons[at]});
  }
  return {};
}

Result<> set_parameters(const Point& point, std::span<const graph::ParameterPtr> parameters) {
  const std::vector<std::string> names = unique_names(parameters);
  MUSTER_TRY_VOID(set_homes(point, parameters));
  MUSTER_TRY_VOID(take_shares(point, parameters, names));
  const auto values = by_name(point.tensors);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto found = values.find(names[i]);
    const auto ids = values.find(names[i] + std::string(ids_suffix));
    const auto saved = values.find(names[i] + std::string(rows_suffix));
    if (saved != values.end()) {
      MUSTER_TRY_VOID(set_saved_rows(*parameters[i], *saved->second));
    } else if (found != values.end() && ids != values.end() && parameters[i]->served_rows()) {
      MUSTER_TRY_VOID(parameters[i]->set_rows(*ids->second, *found->second));
    } else if (found != values.end()) {
      MUSTER_TRY_VOID(parameters[i]->set(*found->second));
    } else if (parameters[i]->absence() == nullptr && stages() == nullptr) {
      return fail(Code::invalid_argument, fmt::format("it has no parameter '{}'", names[i]));
    }
  }
  return {};
}

// Another number of them: other data, of which the position says nothing.
Result<> check_batches(const StateValues& values, const TrainingParts& parts) {
  if (!parts.batches || !values.has(batches_name)) return {};
  MUSTER_TRY(const std::int64_t batches, values.integer(batches_name));
  if (batches == *parts.batches) return {};
  return fail(Code::invalid_argument,
              fmt::format("it had {} batches of data an epoch, the script has {}", batches, *parts.batches));
}

// What no part of this script takes was saved by another script.
Result<> check_nothing_is_left(const Point& point, std::span<const graph::ParameterPtr> parameters) {
  const std::vector<std::string> names = unique_names(parameters);
  const std::set<std::string_view> known(names.begin(), names.end());
  for (const Entry& entry : point.tensors) {
    std::string_view name = entry.name;
    for (const std::string_view suffix : {ids_suffix, rows_suffix})
      if (!known.contains(name) && name.ends_with(suffix)) name.remove_suffix(suffix.size());
    if (name.starts_with(output_prefix) || name.starts_with(callback_prefix) ||
        name.starts_with(metric_prefix))
      continue;
    if (!known.contains(name))
      return fail(Code::invalid_argument,
                  fmt::format("it has a parameter '{}', which the script has not", name));
  }
  return {};
}

// Of the parts, whose states are in the point.
std::string own_state_in(const TrainingParts& parts, const Point& point) {
  if (!parts.is_together) return "each worker trains parameters of its own";
  if (!parts.own.empty()) return parts.own;
  for (const graph::ParameterPtr& parameter : parts.parameters)
    if (parameter->share())
      return fmt::format("'{}' is divided over the workers", parameter->name());
    else if (parameter->is_statistic())
      return fmt::format("'{}' depends on the samples that each worker has seen", parameter->name());
  for (std::size_t i = 0; i < parts.callbacks.size(); ++i) {
    const std::string& text = point.state.at(section_of_callback(i));
    if (!parts.callbacks[i]->shares_state() && !text.empty() && text != "{}")
      return fmt::format("callback {} keeps a state of each worker's own", i);
  }
  return "";
}

}  // namespace

Result<Point> capture(const checkpoint::PointId& id, const TrainingParts& parts,
                      const TrainingPosition& position, SnapshotMemory& memory) {
  Point point{.id = id};
  for (std::size_t i = 0; i < position.outputs.size(); ++i)
    point.tensors.push_back({name_of_output(i), position.outputs[i]});
  MUSTER_TRY_VOID(put_states(parts, point));
  put_saved_rows(parts.parameters, point);
  point.tensors = copies_of(parts.parameters, point.tensors, memory);
  put_homes(parts.parameters, point);
  put_shares(parts.parameters, unique_names(parts.parameters), point);
  StateValues values = position.values;
  values.set(runs_name, static_cast<std::int64_t>(counted_runs()));
  values.set(outputs_name, static_cast<std::int64_t>(position.outputs.size()));
  if (parts.batches) values.set(batches_name, *parts.batches);
  put_position(values, point);
  point.own = own_state_in(parts, point);
  point.is_shared = point.own.empty();
  return point;
}

bool is_divided(const Point& point) { return point.state.contains(homes_section); }

void put_position(const StateValues& values, Point& point) {
  point.state[position_section] = values.to_json();
}

Result<TrainingPosition> position_in(const Point& point) {
  TrainingPosition position;
  const auto section = point.state.find(position_section);
  if (section == point.state.end())
    return fail(Code::corrupt, fmt::format("{} does not say where the training was", to_string(point.id)));
  MUSTER_TRY(position.values, StateValues::from_json(section->second));
  MUSTER_TRY(const std::int64_t outputs, position.values.integer(outputs_name));
  const auto tensors = by_name(point.tensors);
  for (std::int64_t i = 0; i < outputs; ++i) {
    const auto found = tensors.find(name_of_output(static_cast<std::size_t>(i)));
    if (found == tensors.end())
      return fail(Code::corrupt, fmt::format("{} lacks what the last step gave", to_string(point.id)));
    position.outputs.push_back(*found->second);
  }
  return position;
}

Result<std::string> own_state_in(const TrainingParts& parts) {
  Point states;
  MUSTER_TRY_VOID(put_states(parts, states));
  return own_state_in(parts, states);
}

Result<> restore_states(const Point& point, const TrainingParts& parts) { return load_states(point, parts); }

Result<> restore(const Point& point, const TrainingParts& parts, StateOwner owner) {
  MUSTER_TRY(const TrainingPosition position, position_in(point));
  MUSTER_TRY(const std::int64_t runs, position.values.integer(runs_name));
  MUSTER_TRY_VOID(check_batches(position.values, parts));
  MUSTER_TRY_VOID(check_nothing_is_left(point, parts.parameters));
  MUSTER_TRY_VOID(set_parameters(point, parts.parameters));
  MUSTER_TRY_VOID(load_states(point, parts, owner));
  count_runs_from(static_cast<std::uint64_t>(runs));
  return {};
}

Result<std::string> states_as_text(const TrainingParts& parts) {
  Point point;
  MUSTER_TRY_VOID(put_states(parts, point));
  StateValues values;
  for (auto& [section, text] : point.state) {
    const auto is_of_section = [begin = section + "/"](const Entry& entry) {
      return entry.name.starts_with(begin);
    };
    if (std::ranges::none_of(point.tensors, is_of_section)) values.set(section, std::move(text));
  }
  return values.to_json();
}

Result<> load_states(const std::string& text, const TrainingParts& parts) {
  MUSTER_TRY(const StateValues values, StateValues::from_json(text));
  Point point;
  const auto take = [&](const std::string& section) -> Result<> {
    if (!values.has(section)) return {};
    MUSTER_TRY(point.state[section], values.text(section));
    return {};
  };
  for (std::size_t i = 0; i < parts.callbacks.size(); ++i) MUSTER_TRY_VOID(take(section_of_callback(i)));
  for (const auto& [name, metric] : parts.metrics) MUSTER_TRY_VOID(take(section_of_metric(name)));
  return load_states(point, parts);
}

Result<Point> point_of_metrics(const NamedMetrics& metrics) {
  Point point;
  MUSTER_TRY_VOID(put_states({.metrics = metrics}, point));
  return point;
}

State state_of_metric(const Point& point, const std::string& name) {
  return state_in(point, section_of_metric(name));
}

std::vector<graph::ParameterPtr> parameters_of(std::span<const nn::CellPtr> cells) {
  std::vector<graph::ParameterPtr> found;
  std::set<const graph::Parameter*> seen;
  for (const nn::CellPtr& cell : cells) {
    if (cell == nullptr) continue;
    for (const graph::ParameterPtr& parameter : cell->parameters())
      if (seen.insert(parameter.get()).second) found.push_back(parameter);
  }
  return found;
}

}  // namespace muster::train
