#include "muster/train/parameter_servers.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "muster/graph/served.h"
#include "muster/train/explain.h"
#include "muster/train/process.h"
#include "muster/train/served_parameters.h"
#include "muster/train/session.h"

namespace muster::train {

Result<> set_parameter_servers(const ParameterServers& chosen) {
  if (chosen == parameter_servers()) return {};
  if (process().session != nullptr)
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

Result<Tensor> all_rows(const graph::ParameterPtr& table) {
  const Shape& shape = table->served_rows()->shape;
  Tensor all(DType::float32, shape);
  const std::int64_t rows = std::max<std::int64_t>(elements_at_once / shape[1], 1);
  for (std::int64_t begin = 0; begin < shape[0]; begin += rows) {
    const std::int64_t count = std::min(rows, shape[0] - begin);
    MUSTER_TRY(const Tensor part, graph::look_up(table, graph::Value(ids_from(begin, count))).read());
    std::ranges::copy(std::span(part.data<float>(), static_cast<std::size_t>(part.elements())),
                      all.data<float>() + begin * shape[1]);
  }
  return all;
}

// A lookup first, so that everything before it is done.
Result<std::vector<checkpoint::Entry>> updated_rows(const graph::ParameterPtr& table,
                                                    const std::string& name) {
  MUSTER_TRY([[maybe_unused]] const Tensor row, graph::look_up(table, graph::Value(ids_from(0, 1))).read());
  MUSTER_TRY(const auto listed, process().served_parameters->list_rows(*graph::served_number(*table)));
  const auto count = static_cast<std::int64_t>(listed.ids.size());
  Tensor rows(DType::float32, {count, table->served_rows()->shape[1]}), ids(DType::int64, {count});
  std::ranges::copy(listed.values, rows.data<float>());
  std::ranges::copy(listed.ids, ids.data<std::int64_t>());
  return std::vector<checkpoint::Entry>{{name, rows}, {name + std::string(ids_suffix), ids}};
}

}  // namespace

Result<std::vector<checkpoint::Entry>> entries_on_servers(const graph::ParameterPtr& table,
                                                          const std::string& name) {
  if (table->served_rows()->takes_any_id()) return updated_rows(table, name);
  MUSTER_TRY(const Tensor rows, all_rows(table));
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
  const auto number = graph::served_number(parameter);
  if (served == nullptr || !number || !parameter.served_rows() || !served->has_table(*number)) return {};
  return fail(
      Code::not_provided,
      fmt::format("the rows of table '{}' are on parameter servers already: set them, or load them, before "
                  "the first lookup",
                  parameter.name()));
}

}  // namespace muster::train
