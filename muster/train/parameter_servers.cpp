#include "muster/train/parameter_servers.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "muster/graph/served.h"
#include "muster/train/explain.h"
#include "muster/train/job.h"
#include "muster/train/process.h"
#include "muster/train/served_parameters.h"
#include "muster/train/session.h"
#include "muster/train/updates.h"

namespace muster::train {

Result<> set_parameter_servers(const ParameterServers& chosen) {
  if (chosen == parameter_servers()) return {};
  ParameterServers turned = parameter_servers();
  turned.enabled = chosen.enabled;
  Session* const session = process().session;
  // A job that has servers may leave networks whole, and put later ones on them again. They serve only where
  // all processes, their own among them, said so before init().
  const bool turns = session != nullptr && chosen == turned && process().has_joined_servers &&
                     !session->membership().roster().servers.empty();
  if (session != nullptr && !turns)
    return fail(Code::invalid_argument,
                "set_ps_context: this process has joined its job already; call it before init()");
  process().choices.parameter_servers = chosen;
  return {};
}

const ParameterServers& parameter_servers() { return process().choices.parameter_servers; }

namespace {

Result<> check_options(const graph::Parameter& parameter, const TableOptions& options) {
  for (const auto& [name, number] :
       {std::pair("cached_rows", options.cached_rows), std::pair("age_max", options.age_max),
        std::pair("rows_max", options.rows_max)}) {
    if (number < 0)
      return fail(Code::invalid_argument,
                  fmt::format("table '{}': {} is at least 0, not {}", parameter.name(), name, number));
    if (number > 0 && !parameter.is_table())
      return fail(Code::invalid_argument,
                  fmt::format("parameter '{}' is no table: it has no {}", parameter.name(), name));
  }
  if (options.row_dtype != DType::float32 && options.row_dtype != DType::bfloat16)
    return fail(Code::invalid_argument,
                fmt::format("table '{}': servers have rows in float32 or bfloat16 (row_dtype), not in {}",
                            parameter.name(), to_string(options.row_dtype)));
  if (options.row_dtype != DType::float32 && !parameter.is_table())
    return fail(Code::invalid_argument,
                fmt::format("parameter '{}' is no table: it has no row_dtype", parameter.name()));
  const bool has_vocabulary = parameter.is_table() && !parameter.served_rows() && parameter.shape()[0] > 0;
  if (has_vocabulary && (options.age_max > 0 || options.rows_max > 0))
    return fail(
        Code::invalid_argument,
        fmt::format("table '{}' has a vocabulary of {} rows: rows leave only tables without one (age_max, "
                    "rows_max)",
                    parameter.name(), parameter.shape()[0]));
  return {};
}

}  // namespace

Result<> put_on_servers(const graph::ParameterPtr& parameter, const TableOptions& options) {
  MUSTER_TRY_VOID(check_options(*parameter, options));
  if (process().trains_alone || explain_mode() != ExplainMode::off) return {};
  Session* const session = Session::current();
  if (session == nullptr) {
    if (!real_environment().get("MS_ROLE")) return {};
    return fail(
        Code::invalid_argument,
        fmt::format("set_param_ps of '{}': this process has not joined its job; call init() before it",
                    parameter->name()));
  }
  if (session->membership().roster().servers.empty())
    return fail(Code::invalid_argument,
                fmt::format("set_param_ps of '{}': this job has no parameter servers (MS_SERVER_NUM is 0): "
                            "start some with MS_ROLE=MS_PSERVER, as muster run --servers 2 does",
                            parameter->name()));
  if (parameter->dtype() != DType::float32)
    return fail(Code::not_provided, fmt::format("parameter '{}' is {}: parameter servers hold float32 ones",
                                                parameter->name(), to_string(parameter->dtype())));
  if (parameter->is_table() && parameter->shape().rank() != 2)
    return fail(Code::invalid_argument,
                fmt::format("table '{}' is {}: one on parameter servers is (rows, width)", parameter->name(),
                            to_string(parameter->shape())));
  if (!graph::served_number(*parameter) && has_been_updated(*parameter))
    return fail(
        Code::invalid_argument,
        fmt::format("set_param_ps of '{}': its optimizer has made steps already, in each worker; mark "
                    "parameters before the first step",
                    parameter->name()));
  graph::serve(parameter);
  if (options != TableOptions{})
    process().served_parameters->set_options(*graph::served_number(*parameter), options);
  return {};
}

namespace {

constexpr std::int64_t elements_at_once = 1 << 22;

Tensor ids_from(std::int64_t begin, std::int64_t count) {
  Tensor ids(DType::int64, {count});
  std::iota(ids.data<std::int64_t>(), ids.data<std::int64_t>() + count, begin);
  return ids;
}

// Whether a worker sees steps later than the servers have applied them.
bool may_be_behind() { return parameter_servers().staleness != std::uint64_t{0}; }

// What servers have made of the parameter by now, over what is there of it.
Result<> copy_listed(std::int64_t number, Tensor& all, std::int64_t width) {
  MUSTER_TRY(const auto listed, process().served_parameters->list_rows(number));
  const auto row_elements = static_cast<std::size_t>(width);
  for (std::size_t i = 0; i < listed.ids.size(); ++i)
    std::ranges::copy(std::span(listed.values).subspan(i * row_elements, row_elements),
                      all.data<float>() + listed.ids[i] * row_elements);
  return {};
}

// Steps see what the staleness allows, a cache keeps as much: a checkpoint has all. Servers know none without
// an optimizer.
Result<Tensor> dense_values(const graph::ParameterPtr& parameter) {
  MUSTER_TRY_VOID(finish_steps(parameter));
  MUSTER_TRY(const Tensor here, graph::Value(parameter).read());
  Tensor all = here.clone();
  if (!graph::served_parameter(*graph::served_number(*parameter)).rule) return all;
  const std::int64_t rows = std::max<std::int64_t>(all.shape().rank() == 0 ? 1 : all.shape()[0], 1);
  MUSTER_TRY_VOID(copy_listed(*graph::served_number(*parameter), all, all.elements() / rows));
  return all;
}

Result<Tensor> all_rows(const graph::ParameterPtr& table) {
  if (may_be_behind()) MUSTER_TRY_VOID(finish_steps(table));
  const Shape& shape = table->served_rows()->shape;
  Tensor all(DType::float32, shape);
  const std::int64_t rows = std::max<std::int64_t>(elements_at_once / shape[1], 1);
  for (std::int64_t begin = 0; begin < shape[0]; begin += rows) {
    const std::int64_t count = std::min(rows, shape[0] - begin);
    MUSTER_TRY(const Tensor part, graph::look_up(table, graph::Value(ids_from(begin, count))).read());
    std::ranges::copy(std::span(part.data<float>(), static_cast<std::size_t>(part.elements())),
                      all.data<float>() + begin * shape[1]);
  }
  if (may_be_behind()) MUSTER_TRY_VOID(copy_listed(*graph::served_number(*table), all, shape[1]));
  return all;
}

}  // namespace

Result<> finish_steps(const graph::ParameterPtr& parameter) {
  const graph::Value value = parameter->served_rows()
                                 ? graph::look_up(parameter, graph::Value(ids_from(0, 1)))
                                 : graph::Value(parameter);
  MUSTER_TRY([[maybe_unused]] const Tensor read, value.read());
  return process().served_parameters->finish_steps();
}

namespace {

std::vector<checkpoint::Entry> with_ids(const std::string& name, std::span<const std::uint64_t> ids,
                                        std::span<const float> values, std::int64_t width) {
  const auto count = static_cast<std::int64_t>(ids.size());
  Tensor rows(DType::float32, {count, width}), numbers(DType::int64, {count});
  std::ranges::copy(values, rows.data<float>());
  std::ranges::copy(ids, numbers.data<std::int64_t>());
  return {{name, rows}, {name + std::string(ids_suffix), numbers}};
}

Result<std::vector<checkpoint::Entry>> updated_rows(const graph::ParameterPtr& table,
                                                    const std::string& name) {
  MUSTER_TRY_VOID(finish_steps(table));
  MUSTER_TRY(const auto listed, process().served_parameters->list_rows(*graph::served_number(*table)));
  return with_ids(name, listed.ids, listed.values, table->served_rows()->shape[1]);
}

// What each row of the state of a table begins with: its elements in this worker are zeros.
Tensor first_row_of(const graph::Parameter& state) {
  Tensor row(state.dtype(), state.shape());
  state.initializer()(row, RandomStream(seed(), 0));
  return row;
}

// One state of an optimizer, out of whole rows.
Result<std::vector<checkpoint::Entry>> entries_of_state(const graph::ParameterPtr& state,
                                                        const graph::ServedState& place,
                                                        const std::string& name) {
  const graph::ServedParameter& of = graph::served_parameter(place.number);
  MUSTER_TRY_VOID(finish_steps(of.parameter));
  MUSTER_TRY(const auto listed,
             process().served_parameters->list_rows(place.number, ServedParameters::Listed::with_states));
  const auto& table = of.parameter->served_rows();
  const Tensor first = table ? first_row_of(*state) : state->materialize(seed());
  const Shape& shape = table ? table->shape : state->shape();
  const std::int64_t rows = shape.rank() == 0 || table ? 1 : shape[0];
  const std::size_t width = static_cast<std::size_t>(first.elements() / rows);
  const std::size_t whole = width * (1 + of.states.size());
  const auto row_of = [&](std::size_t i) {
    return std::span(listed.values).subspan(i * whole + (1 + place.index) * width, width);
  };
  if (table && table->takes_any_id()) {
    std::vector<float> values;
    for (std::size_t i = 0; i < listed.ids.size(); ++i)
      values.insert(values.end(), row_of(i).begin(), row_of(i).end());
    return with_ids(name, listed.ids, values, shape[1]);
  }
  Tensor all(DType::float32, shape);
  if (table)
    std::ranges::fill(std::span(all.data<float>(), static_cast<std::size_t>(all.elements())),
                      first.data<float>()[0]);
  else
    all = first.clone();
  for (std::size_t i = 0; i < listed.ids.size(); ++i)
    std::ranges::copy(row_of(i), all.data<float>() + listed.ids[i] * width);
  return std::vector<checkpoint::Entry>{{name, all}};
}

}  // namespace

namespace {

// From such a size on a table in a worker's memory is worth a word.
constexpr std::int64_t large_table_bytes = std::int64_t{1} << 30;

void warn_of_large_table(const graph::Parameter& table) {
  const Shape& shape = table.served_rows()->shape;
  const std::int64_t size_bytes = shape.elements() * static_cast<std::int64_t>(sizeof(float));
  if (size_bytes < large_table_bytes ||
      !process().warnings_given.insert("large table " + table.name()).second)
    return;
  log::warning(
      fmt::format("a checkpoint in one piece has all rows of table '{}' in each worker's memory ({:.1f} "
                  "GiB, and what the optimizer keeps for them): with integrated_save=False the parameter "
                  "servers write them themselves",
                  table.name(), static_cast<double>(size_bytes) / (1 << 30)));
}

}  // namespace

bool is_equal_in_workers(const graph::Parameter& parameter) {
  return !graph::served_number(parameter) || !may_be_behind();
}

bool is_on_servers(const graph::Parameter& parameter) {
  return parameter.served_rows() || graph::served_state(parameter) || !is_equal_in_workers(parameter);
}

Result<std::vector<checkpoint::Entry>> entries_on_servers(const graph::ParameterPtr& parameter,
                                                          const std::string& name) {
  if (const auto state = graph::served_state(*parameter)) return entries_of_state(parameter, *state, name);
  if (!parameter->served_rows()) {
    MUSTER_TRY(const Tensor values, dense_values(parameter));
    return std::vector<checkpoint::Entry>{{name, values}};
  }
  if (parameter->served_rows()->takes_any_id()) return updated_rows(parameter, name);
  warn_of_large_table(*parameter);
  MUSTER_TRY(const Tensor rows, all_rows(parameter));
  return std::vector<checkpoint::Entry>{{name, rows}};
}

Result<> look_up_ahead(const graph::ParameterPtr& table, const Tensor& ids) {
  if (!table->is_table())
    return fail(Code::invalid_argument,
                fmt::format("parameter '{}' is no table: rows are looked up ahead of tables", table->name()));
  if (ids.dtype() != DType::int32 && ids.dtype() != DType::int64)
    return fail(Code::invalid_argument, fmt::format("ids of table '{}' are int32 or int64, not {}",
                                                    table->name(), to_string(ids.dtype())));
  ServedParameters* const served = process().served_parameters;
  const auto number = graph::served_number(*table);
  return served != nullptr && number ? served->look_up_ahead(*number, ids) : Result<>{};
}

Result<> check_settable(const graph::Parameter& parameter) {
  const ServedParameters* const served = process().served_parameters;
  const auto state = graph::served_state(parameter);
  const auto number = state ? std::optional(state->number) : graph::served_number(parameter);
  // Of a dense parameter this process has a copy, which may be set to evaluate with.
  const bool is_there_alone = state || parameter.served_rows();
  if (served == nullptr || !number || !is_there_alone || !served->has_table(*number)) return {};
  return fail(
      Code::not_provided,
      fmt::format("'{}' is on parameter servers already: set it, or load it, before the first step, a "
                  "table before its first lookup",
                  parameter.name()));
}

}  // namespace muster::train
