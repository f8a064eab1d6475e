#include "muster/server/table_spec.h"

#include <fmt/format.h>

#include <cmath>

#include "muster/server/row_rule.h"
#include "muster/server/sharding.h"

namespace muster::server {
namespace {

tl::unexpected<Error> bad_table(const TableSpec& spec, const std::string& what) {
  return fail(Code::invalid_argument, fmt::format("table '{}': {}", spec.name, what));
}

Result<> check_rows(const TableSpec& spec, std::uint32_t servers) {
  if ((spec.rows == 0) != (spec.sharding == Sharding::hash))
    return bad_table(spec, spec.rows == 0 ? "it has no rows; a table without a vocabulary is sharded by hash"
                                          : "a table that is sharded by hash has no number of rows");
  const std::uint64_t most =
      spec.sharding == Sharding::whole ? spec.rows : range_of(spec.rows, {0, servers}).size();
  if (most > rows_per_server_max)
    return bad_table(spec, fmt::format("{} rows are {} on one server, which has {} at most: use more servers",
                                       spec.rows, most, rows_per_server_max));
  if (spec.eviction != Eviction{} && spec.sharding != Sharding::hash)
    return bad_table(spec, "rows leave only tables without a vocabulary");
  return {};
}

Result<> check_numbers(const TableSpec& spec) {
  const RuleSettings& rule = spec.rule;
  for (const double number :
       {spec.first_value.scale, spec.first_value.mean, rule.weight_decay, rule.loss_scale, rule.momentum,
        rule.dampening, rule.beta1, rule.beta2, rule.eps, rule.initial, rule.power, rule.l1, rule.l2})
    if (!std::isfinite(number)) return bad_table(spec, fmt::format("{} is no setting of a rule", number));
  if (rule.loss_scale <= 0)
    return bad_table(spec, fmt::format("loss_scale must be above 0, not {}", rule.loss_scale));
  return {};
}

}  // namespace

Result<RuleKind> rule_of_optimizer(std::string_view class_name) {
  if (class_name == "SGD") return RuleKind::sgd;
  if (class_name == "Momentum") return RuleKind::momentum;
  if (class_name == "Adagrad") return RuleKind::adagrad;
  if (class_name == "Adam" || class_name == "LazyAdam") return RuleKind::adam;
  if (class_name == "FTRL") return RuleKind::ftrl;
  return fail(
      Code::not_provided,
      fmt::format("{} cannot update single rows on parameter servers: choose SGD, Momentum, Adagrad, Adam, "
                  "LazyAdam or FTRL, or leave the parameter to the workers",
                  class_name));
}

Result<> check(const TableSpec& spec, std::uint32_t servers) {
  if (spec.name.empty() || spec.name.size() > table_name_max)
    return bad_table(spec, fmt::format("a name has 1 to {} bytes", table_name_max));
  if (spec.saved.place.size() > place_name_max)
    return bad_table(spec, fmt::format("the name of a checkpoint has {} bytes at most", place_name_max));
  if (servers == 0) return bad_table(spec, "there is no parameter server: MS_SERVER_NUM is 0");
  if (spec.width == 0 || spec.width > width_max)
    return bad_table(spec, fmt::format("a row has 1 to {} numbers, not {}", width_max, spec.width));
  if (spec.dtype != DType::float32 && spec.dtype != DType::bfloat16)
    return bad_table(spec, fmt::format("rows are float32 or bfloat16, not {}", to_string(spec.dtype)));
  MUSTER_TRY_VOID(check_rows(spec, servers));
  return check_numbers(spec);
}

std::size_t whole_width(const TableSpec& spec) { return spec.width * (1 + RowRule(spec.rule).states()); }

std::uint64_t row_size_bytes(const TableSpec& spec) {
  return spec.width * (size_bytes(spec.dtype) + RowRule(spec.rule).states() * sizeof(float));
}

std::uint64_t share_size_bytes(const TableSpec& spec, std::uint32_t servers) {
  if (spec.sharding == Sharding::hash) return spec.eviction.rows_max * (row_size_bytes(spec) + 32);
  const std::uint64_t rows =
      spec.sharding == Sharding::whole ? spec.rows : range_of(spec.rows, {0, servers}).size();
  return rows * (row_size_bytes(spec) + sizeof(std::uint32_t));
}

}  // namespace muster::server
