#include "muster/train/served_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "muster/train/aborted_step.h"
#include "muster/train/job.h"
#include "muster/train/process.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

// Smaller ones live whole on one server each, larger ones are cut by rows.
constexpr std::int64_t elements_to_cut = 1 << 16;

template <class T>
T argument(const graph::Attributes& arguments, std::string_view name, T otherwise) {
  return arguments.get<T>(name, otherwise);
}

Result<server::RuleSettings> settings_of(const graph::UpdateRule& rule) {
  server::RuleSettings made;
  MUSTER_TRY(made.kind, server::rule_of_optimizer(rule.optimizer));
  const graph::Attributes& given = rule.arguments;
  made.weight_decay = argument(given, "weight_decay", 0.0);
  made.loss_scale = argument(given, "loss_scale", 1.0);
  made.momentum = argument(given, "momentum", 0.0);
  made.dampening = argument(given, "dampening", 0.0);
  made.nesterov = argument(given, "nesterov", argument(given, "use_nesterov", false));
  made.beta1 = argument(given, "beta1", made.beta1);
  made.beta2 = argument(given, "beta2", made.beta2);
  made.eps = argument(given, "eps", argument(given, "epsilon", made.eps));
  made.amsgrad = argument(given, "use_amsgrad", false);
  made.initial = argument(given, "accum", argument(given, "initial_accum", made.initial));
  made.accumulate = argument(given, "update_slots", true);
  made.power = argument(given, "lr_power", made.power);
  made.l1 = argument(given, "l1", 0.0);
  made.l2 = argument(given, "l2", 0.0);
  return made;
}

Result<server::TableSpec> table_of(std::int64_t number, std::size_t servers) {
  const graph::ServedParameter parameter = graph::served_parameter(number);
  const Shape& shape = parameter.type.shape;
  const std::int64_t elements = shape.elements();
  const std::int64_t rows = shape.rank() == 0 ? 1 : shape[0];
  if (elements == 0)
    return fail(Code::invalid_argument,
                fmt::format("parameter '{}' is {}: parameter servers hold no empty one", parameter.name,
                            to_string(shape)));
  MUSTER_CHECK(parameter.rule.has_value(), "a served parameter is updated by no optimizer");
  MUSTER_TRY(const server::RuleSettings rule, settings_of(*parameter.rule).map_error([&](Error error) {
    error.message = fmt::format("parameter '{}': {}", parameter.name, error.message);
    return error;
  }));
  const bool is_cut = elements >= elements_to_cut && rows >= static_cast<std::int64_t>(servers);
  return server::TableSpec{
      .name = parameter.name.empty() ? fmt::format("parameter {}", number) : parameter.name,
      .sharding = is_cut ? server::Sharding::ranges : server::Sharding::whole,
      .home = static_cast<std::uint32_t>(number),
      .rows = static_cast<std::uint64_t>(rows),
      .width = static_cast<std::uint32_t>(elements / rows),
      .seed = seed(),
      .first_value = {.kind = server::FirstValue::Kind::constant, .scale = 0, .mean = 0},
      .rule = rule};
}

std::vector<net::Address> addresses_of(const std::vector<cluster::Member>& servers) {
  std::vector<net::Address> addresses;
  for (const cluster::Member& each : servers)
    addresses.push_back({.ip = each.address, .port = each.data_port});
  return addresses;
}

}  // namespace

Result<> ServedParameters::follow_epoch(std::uint64_t step) {
  const cluster::Roster& roster = session_.membership().roster();
  if (epoch_ == roster.epoch) return failure_ ? Result<>(fail(*failure_)) : Result<>{};
  servers_ = roster.servers;
  const std::vector<net::Address> addresses = addresses_of(servers_);
  if (client_ == nullptr)
    client_ = std::make_unique<server::ParameterClient>(server::ParameterClient::Options{
        .worker = session_.membership().rank(),
        .servers = addresses,
        .job_id = roster.job_id,
        .timeout = options_.call_timeout,
        .security =
            [this](std::uint32_t server) {
              return net::ConnectionSecurity{.security = options_.security,
                                             .expected = cluster::identity_of(servers_[server]),
                                             .peer_name = fmt::format("server {}", server)};
            },
        .interrupted = [this]() -> Result<> {
          if (const auto over = session_.worker_groups().wait_until_over({})) return fail(*over);
          return {};
        }});
  for (std::uint32_t server = 0; server < addresses.size(); ++server)
    client_->set_address(server, addresses[server]);
  const bool is_first = !epoch_ && roster.epoch == 1;
  epoch_ = roster.epoch;
  begun_.clear();
  failure_.reset();
  next_ = step;
  if (is_first && step > 0)
    return fail(Code::not_provided,
                fmt::format("the optimizer has made {} steps already (its state was loaded): parameter "
                            "servers begin a job without state; load the network alone",
                            step));
  return client_->begin(roster.epoch, step);
}

Result<> ServedParameters::add_table(std::int64_t number) {
  if (tables_.contains(number)) return {};
  MUSTER_TRY(const server::TableSpec spec, table_of(number, servers_.size()));
  Table table;
  MUSTER_TRY(table.number, client_->add_table(spec));
  table.ids.resize(spec.rows);
  std::iota(table.ids.begin(), table.ids.end(), std::uint64_t{0});
  tables_.emplace(number, std::move(table));
  return {};
}

Result<> ServedParameters::check_step(std::uint64_t step) const {
  if (step == next_) return {};
  return fail(Code::not_provided,
              fmt::format("the optimizer is at step {}, the parameter servers at step {}: one optimizer has "
                          "all parameters on servers, and its steps follow each other",
                          step, next_));
}

// What the workers have begins rows that no server keeps yet; it is said anew in each epoch, whose servers
// may have begun anew with it.
Result<> ServedParameters::push(std::span<const graph::ServedUpdate> updates) {
  std::vector<server::ParameterClient::Gradient> parts;
  for (const graph::ServedUpdate& update : updates) {
    const Table& table = tables_.at(update.number);
    if (begun_.insert(update.number).second)
      parts.push_back(
          {.table = table.number, .ids = table.ids, .values = update.before, .has_first_values = true});
    parts.push_back({.table = table.number,
                     .learning_rate = update.learning_rate,
                     .ids = table.ids,
                     .values = update.gradient});
  }
  return client_->push(parts);
}

Result<> ServedParameters::pull(std::uint64_t step, std::span<const graph::ServedUpdate> updates) {
  std::vector<server::ParameterClient::Lookup> lookups;
  for (const graph::ServedUpdate& update : updates) {
    const Table& table = tables_.at(update.number);
    lookups.push_back({.table = table.number, .ids = table.ids, .rows = update.after});
  }
  MUSTER_TRY_VOID(client_->pull(step, lookups));
  // Servers that are behind may not have begun yet.
  if (client_->applied() == 0 && parameter_servers().staleness)
    for (const graph::ServedUpdate& update : updates) std::ranges::copy(update.before, update.after.begin());
  return {};
}

Result<> ServedParameters::update_now(std::uint64_t step, std::span<const graph::ServedUpdate> updates) {
  MUSTER_TRY_VOID(follow_epoch(step));
  MUSTER_TRY_VOID(check_step(step));
  for (const graph::ServedUpdate& update : updates) MUSTER_TRY_VOID(add_table(update.number));
  MUSTER_TRY_VOID(push(updates));
  next_ = step + 1;
  return pull(next_, updates);
}

Result<> ServedParameters::update(std::int64_t steps, std::span<const graph::ServedUpdate> updates) {
  const Collectives::GroupCall work = [&](Communicator&) -> Result<> {
    Result<> done = update_now(static_cast<std::uint64_t>(steps), updates);
    if (!done && !failure_) failure_ = done.error();
    return done;
  };
  MUSTER_TRY_VOID(call_in_body([&] {
    return session_.recovery().explicit_collective("the update on parameter servers", std::nullopt, work);
  }));
  if (step_is_aborted())  // what the rest of a void step computes with
    for (const graph::ServedUpdate& update : updates) std::ranges::copy(update.before, update.after.begin());
  return {};
}

void ServedParameters::note_point(const checkpoint::PointId& point) {
  // Behind an epoch that has just begun, next_ is of the one before until the first update.
  if (epoch_ == session_.membership().roster().epoch) points_[point] = next_;
}

void ServedParameters::note_common_point(const checkpoint::PointId& point) {
  const auto found = points_.find(point);
  if (found == points_.end()) return;
  // A worker's pull of a step has shown that the servers have all pushes of the steps that they had to have
  // applied for it; without a bound it shows nothing.
  if (const auto staleness = parameter_servers().staleness)
    client_->set_common_point(found->second - std::min(found->second, *staleness));
  points_.erase(points_.begin(), std::next(found));
}

void watch_served_parameters() {
  graph::set_served_updater([](std::int64_t steps, std::span<const graph::ServedUpdate> updates) -> Result<> {
    ServedParameters* const served = process().served_parameters;
    if (served == nullptr)
      return fail(Code::invalid_argument,
                  "parameters live on parameter servers, and this process has left its job");
    return served->update(steps, updates);
  });
}

}  // namespace muster::train
