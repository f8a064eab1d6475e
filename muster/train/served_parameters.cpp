#include "muster/train/served_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>

#include "muster/nn/nn.h"
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

std::string name_of(std::int64_t number) {
  const std::string name = graph::served_parameter(number).parameter->stream_name();
  return name.empty() ? fmt::format("parameter {}", number) : name;
}

// A table that nothing updates is a table of some rule.
Result<server::RuleSettings> rule_of(std::int64_t number) {
  const auto& rule = graph::served_parameter(number).rule;
  if (!rule) return server::RuleSettings{};
  return settings_of(*rule).map_error([&](Error error) {
    error.message = fmt::format("parameter '{}': {}", name_of(number), error.message);
    return error;
  });
}

// What the workers say that its rows begin with, or a formula.
server::FirstValue first_value_of(const nn::ElementFormula* formula) {
  using Kind = server::FirstValue::Kind;
  if (formula == nullptr) return {.kind = Kind::constant, .scale = 0, .mean = 0};
  switch (formula->kind) {
    case nn::ElementFormula::Kind::normal:
      return {.kind = Kind::normal, .scale = formula->scale, .mean = formula->mean};
    case nn::ElementFormula::Kind::uniform:
      return {.kind = Kind::uniform, .scale = formula->scale, .mean = 0};
    case nn::ElementFormula::Kind::constant:
      break;
  }
  return {.kind = Kind::constant, .scale = 0, .mean = formula->mean};
}

Result<server::TableSpec> dense_table(std::int64_t number, std::size_t servers) {
  const Shape& shape = graph::served_parameter(number).parameter->shape();
  const std::int64_t elements = shape.elements();
  const std::int64_t rows = shape.rank() == 0 ? 1 : shape[0];
  if (elements == 0)
    return fail(Code::invalid_argument,
                fmt::format("parameter '{}' is {}: parameter servers hold no empty one", name_of(number),
                            to_string(shape)));
  MUSTER_CHECK(graph::served_parameter(number).rule.has_value(),
               "a served parameter is updated by no optimizer");
  MUSTER_TRY(const server::RuleSettings rule, rule_of(number));
  const bool is_cut = elements >= elements_to_cut && rows >= static_cast<std::int64_t>(servers);
  return server::TableSpec{.name = name_of(number),
                           .sharding = is_cut ? server::Sharding::ranges : server::Sharding::whole,
                           .home = static_cast<std::uint32_t>(number),
                           .rows = static_cast<std::uint64_t>(rows),
                           .width = static_cast<std::uint32_t>(elements / rows),
                           .seed = seed(),
                           .first_value = first_value_of(nullptr),
                           .rule = rule};
}

// The formula by which rows begin that have no values of their own, null where there is none. The same in a
// worker that was started again and knows no values.
const nn::ElementFormula* formula_of(const graph::Parameter& table) {
  return table.initializer().target<nn::ElementFormula>();
}

Result<server::TableSpec> embedding_table(std::int64_t number) {
  const graph::Parameter& parameter = *graph::served_parameter(number).parameter;
  const Shape& shape = parameter.served_rows()->shape;
  const bool takes_any_id = shape[0] == 0;
  MUSTER_TRY(const server::RuleSettings rule, rule_of(number));
  return server::TableSpec{.name = name_of(number),
                           .sharding = takes_any_id ? server::Sharding::hash : server::Sharding::ranges,
                           .rows = takes_any_id ? 0 : static_cast<std::uint64_t>(shape[0]),
                           .width = static_cast<std::uint32_t>(shape[1]),
                           .seed = seed(),
                           .first_value = first_value_of(formula_of(parameter)),
                           .rule = rule};
}

// Its elements by an initializer that makes whole tensors alone.
Tensor made_whole(const graph::Parameter& table) {
  Tensor made(DType::float32, table.served_rows()->shape);
  table.initializer()(made, RandomStream(seed(), hash_text(table.stream_name())));
  return made;
}

Tensor rounded(const Tensor& values) {
  Tensor made = values.clone();
  for (float& each : std::span(made.data<float>(), static_cast<std::size_t>(made.elements())))
    each = bfloat16(each);
  return made;
}

void keep_values(std::span<const graph::ServedUpdate> updates) {
  for (const graph::ServedUpdate& update : updates) std::ranges::copy(update.before, update.after.begin());
}

std::uint64_t hash_of(std::span<const float> values) {
  return hash_bytes(values.data(), values.size_bytes());
}

bool is_table(std::int64_t number) {
  return graph::served_parameter(number).parameter->served_rows().has_value();
}

// Of a table: rows of what its optimizer keeps were loaded.
bool has_loaded_states(std::int64_t number) {
  return is_table(number) &&
         std::ranges::any_of(graph::served_parameter(number).states,
                             [](const auto& state) { return state->served_rows()->values.defined(); });
}

// Row `id` of what an optimizer keeps, as it was when the job began.
std::span<const float> first_state(const graph::Parameter& state, const Tensor& begins, std::uint64_t id,
                                   std::size_t width) {
  const auto& rows = state.served_rows();
  if (!rows) return {begins.data<float>() + id * width, width};
  if (!rows->values.defined()) return {begins.data<float>(), width};
  if (!rows->takes_any_id()) return {rows->values.data<float>() + id * width, width};
  const std::span ids(rows->ids.data<std::int64_t>(), static_cast<std::size_t>(rows->ids.elements()));
  const auto found = std::ranges::lower_bound(ids, static_cast<std::int64_t>(id));
  if (found == ids.end() || *found != static_cast<std::int64_t>(id)) return {begins.data<float>(), width};
  return {rows->values.data<float>() + static_cast<std::size_t>(found - ids.begin()) * width, width};
}

std::vector<net::Address> addresses_of(const std::vector<cluster::Member>& servers) {
  std::vector<net::Address> addresses;
  for (const cluster::Member& each : servers)
    addresses.push_back({.ip = each.address, .port = each.data_port});
  return addresses;
}

}  // namespace

ServedParameters::ServedParameters(Session& session, Options options)
    : session_(session), options_(std::move(options)), joined_in_(session.membership().epoch()) {}

Result<> ServedParameters::follow_epoch(std::uint64_t step) {
  const cluster::Roster& roster = session_.membership().roster();
  if (epoch_ == roster.epoch) return failure_ ? Result<>(fail(*failure_)) : Result<>{};
  {
    const std::lock_guard lock(notes_mutex_);  // a thread of the client may be connecting
    servers_ = roster.servers;
  }
  const std::vector<net::Address> addresses = addresses_of(roster.servers);
  if (client_ == nullptr)
    client_ = std::make_unique<server::ParameterClient>(server::ParameterClient::Options{
        .worker = session_.membership().rank(),
        .servers = addresses,
        .copies = options_.copies,
        .job_id = roster.job_id,
        .staleness = parameter_servers().staleness,
        .timeout = options_.call_timeout,
        .clock = options_.clock,
        .security =
            [this](std::uint32_t server) {
              const std::lock_guard lock(notes_mutex_);
              return net::ConnectionSecurity{.security = options_.security,
                                             .expected = cluster::identity_of(servers_[server]),
                                             .peer_name = fmt::format("server {}", server)};
            },
        .shared_from_bytes = options_.shared_from_bytes,
        .interrupted = [this]() -> Result<> {
          if (const auto over = session_.worker_groups().wait_until_over({})) return fail(*over);
          return {};
        },
        .awaits =
            [](std::uint32_t first, std::uint32_t count) {
              process().activity.awaited.store({.first = first, .count = count}, std::memory_order_relaxed);
            }});
  for (std::uint32_t server = 0; server < addresses.size(); ++server)
    client_->set_address(server, addresses[server]);
  // Who is there from the start on and has made no step knows where the job begins.
  const bool is_first = !epoch_ && joined_in_ == 1;
  epoch_ = roster.epoch;
  begun_.clear();
  for (auto& [number, table] : tables_) table.made.reset();
  ahead_.clear();
  failure_.reset();
  {
    const std::lock_guard lock(notes_mutex_);
    notes_.clear();  // of a step that is made again
  }
  next_ = step;
  if (is_first) origin_ = step;  // above 0: the optimizer's state was loaded
  MUSTER_TRY_VOID(client_->begin(roster.epoch, step, joined_in_ == 1 ? origin_ : std::nullopt));
  origin_ = client_->origin();
  return {};
}

Result<> ServedParameters::add_table(std::int64_t number) {
  if (tables_.contains(number)) return {};
  const graph::Parameter& parameter = *graph::served_parameter(number).parameter;
  // A step is complete with the pushes of all workers, and those without the cell make none.
  if (parameter.home())
    return fail(Code::not_provided,
                fmt::format("parameter '{}' is on parameter servers, and its cell is placed on worker {}: "
                            "all workers push its gradients; leave out place(), or leave the parameter to "
                            "the workers",
                            parameter.name(), parameter.home()->rank));
  const auto spec_of = [&] {
    return is_table(number) ? embedding_table(number) : dense_table(number, servers_.size());
  };
  MUSTER_TRY(server::TableSpec spec, spec_of());
  const TableOptions& options = options_of_tables_[number];
  spec.eviction = {.age_max = static_cast<std::uint64_t>(options.age_max),
                   .rows_max = static_cast<std::uint64_t>(options.rows_max)};
  spec.dtype = options.row_dtype;
  if (is_table(number)) MUSTER_TRY_VOID(begin_with_saved(number, spec));
  const bool lacks_formula = is_table(number) && spec.saved.place.empty() && formula_of(parameter) == nullptr;
  const bool has_values = lacks_formula || (is_table(number) && parameter.served_rows()->values.defined()) ||
                          has_loaded_states(number);
  if (has_values && epoch_ == 1 && next_ > origin_)
    return fail(
        Code::not_provided,
        fmt::format("table '{}', whose rows begin with values of their own, is looked up first behind "
                    "step {}: look it up in the first step, which tells the servers of them",
                    spec.name, next_));
  if (lacks_formula && spec.rows == 0)
    return fail(
        Code::invalid_argument,
        fmt::format("the rows of table '{}', which takes any number, begin by normal, uniform, constant, "
                    "zeros or ones",
                    spec.name));
  Table table{.spec = spec, .has_rule = graph::served_parameter(number).rule.has_value()};
  MUSTER_TRY(table.number, client_->add_table(spec, static_cast<std::size_t>(options.cached_rows)));
  if (has_values) {
    table.made_values = parameter.served_rows()->values;
    if (!table.made_values.defined() && spec.rows == 0)
      return fail(
          Code::invalid_argument,
          fmt::format("what the optimizer keeps for the rows of table '{}', which takes any number, was "
                      "loaded without them: load the table, too",
                      spec.name));
    if (!table.made_values.defined()) table.made_values = made_whole(parameter);
    // As the servers will have them, from the first lookup on.
    if (spec.dtype == DType::bfloat16) table.made_values = rounded(table.made_values);
    table.first_values = {table.made_values.data<float>(),
                          static_cast<std::size_t>(table.made_values.elements())};
  }
  if (has_values && spec.rows == 0) {
    const Tensor& ids = parameter.served_rows()->ids;
    table.all_ids.assign(ids.data<std::int64_t>(), ids.data<std::int64_t>() + ids.elements());
  } else if (!is_table(number) || !table.first_values.empty()) {
    table.all_ids.resize(spec.rows);
    std::iota(table.all_ids.begin(), table.all_ids.end(), std::uint64_t{0});
  }
  tables_.emplace(number, std::move(table));
  return {};
}

Result<> ServedParameters::check_step(std::uint64_t step) const {
  if (step == next_) return {};
  return fail(
      Code::not_provided,
      fmt::format("the optimizers of parameters on servers have made {} steps together, the parameter "
                  "servers {}: their state was loaded, or one was made, behind the first step. Start the "
                  "job anew, and make and load all optimizers before its first step",
                  step, next_));
}

// The servers have their own value: what was written over it would be lost without a word. A value that is
// set to evaluate with, and set back, is none.
Result<> ServedParameters::check_unwritten(const graph::ServedUpdate& update) const {
  const auto& made = tables_.at(update.number).made;
  if (!made || *made == hash_of(update.before)) return {};
  return fail(
      Code::not_provided,
      fmt::format(
          "parameter '{}' was written between two steps of its optimizer, before step {}: it lives on "
          "parameter servers, which do not see that. To go on from a checkpoint, start the job anew and load "
          "before its first step; what was loaded to evaluate with, set back before the next step; or "
          "leave out set_param_ps for it",
          name_of(update.number), next_));
}

void ServedParameters::note_made(std::span<const graph::ServedUpdate> updates) {
  for (const graph::ServedUpdate& update : updates)
    if (!is_table(update.number)) tables_.at(update.number).made = hash_of(update.after);
}

// ---- Lookups

void ServedParameters::note(graph::ServedGradient gradient) {
  if (step_is_aborted()) return;
  const std::lock_guard lock(notes_mutex_);
  Notes& notes = notes_[gradient.number];
  ++notes.count;
  if (notes.ids.empty()) {
    notes.ids = std::move(gradient.ids);
    notes.rows = std::move(gradient.rows);
    return;
  }
  notes.ids.insert(notes.ids.end(), gradient.ids.begin(), gradient.ids.end());
  notes.rows.insert(notes.rows.end(), gradient.rows.begin(), gradient.rows.end());
}

ServedParameters::NotesByNumber ServedParameters::take_notes(std::span<const graph::ServedUpdate> updates) {
  const std::lock_guard lock(notes_mutex_);
  NotesByNumber taken;
  for (const graph::ServedUpdate& update : updates)
    if (is_table(update.number)) taken[update.number] = std::exchange(notes_[update.number], {});
  return taken;
}

Result<> ServedParameters::check_notes(const graph::ServedUpdate& update, const Notes& notes) const {
  const float expected = graph::noted_gradient * static_cast<float>(notes.count);
  const auto differs = [&](float each) { return each != expected; };
  if (std::ranges::none_of(update.gradient, differs)) return {};
  return fail(
      Code::not_provided,
      fmt::format(
          "the gradient of table '{}' was changed or left out between its computation and the "
          "optimizer, in step {} (it stands for {:g} of {} lookups): the gradients of a table's rows go "
          "to the parameter servers as they are; give the optimizer a loss_scale instead of scaling "
          "them, and use all that are computed",
          name_of(update.number), next_, update.gradient[0] / graph::noted_gradient, notes.count));
}

// With staleness 0 the first step's pull has shown that servers are there, and none of them has applied a
// push.
bool ServedParameters::servers_may_not_have_begun() const {
  return client_->applied() <= origin_ && parameter_servers().staleness;
}

Result<> ServedParameters::look_up_now(std::uint64_t step, const graph::ServedLookup& lookup) {
  MUSTER_TRY_VOID(follow_epoch(step));
  MUSTER_TRY_VOID(check_step(step));
  MUSTER_TRY_VOID(add_table(lookup.number));
  const Table& table = tables_.at(lookup.number);
  const server::ParameterClient::Lookup asked{.table = table.number, .ids = lookup.ids, .rows = lookup.rows};
  MUSTER_TRY_VOID(client_->pull(step, std::span(&asked, 1)));
  MUSTER_TRY_VOID(ahead_.looked_up(*client_, step, table.number, lookup));
  if (!servers_may_not_have_begun()) return {};
  if (table.first_values.empty()) {
    if (joined_in_ == 1 || origin_ == 0 || !table.spec.saved.place.empty()) return {};
    return fail(Code::not_provided,
                fmt::format("this worker was started again before the first step of a training that goes on "
                            "from a checkpoint, and does not know the rows of table '{}' that were loaded: "
                            "start the job again",
                            name_of(lookup.number)));
  }
  const std::size_t width = lookup.rows.size() / std::max<std::size_t>(lookup.ids.size(), 1);
  for (std::size_t i = 0; i < lookup.ids.size(); ++i) {
    const auto found = std::ranges::lower_bound(table.all_ids, lookup.ids[i]);
    if (found == table.all_ids.end() || *found != lookup.ids[i]) continue;  // it begins by a formula
    const auto place = static_cast<std::size_t>(found - table.all_ids.begin());
    std::ranges::copy(table.first_values.subspan(place * width, width),
                      lookup.rows.begin() + static_cast<std::ptrdiff_t>(i * width));
  }
  return {};
}

Result<> ServedParameters::look_up(std::int64_t steps, const graph::ServedLookup& lookup) {
  MUSTER_TRY_VOID(call_together("a lookup on parameter servers",
                                [&] { return look_up_now(static_cast<std::uint64_t>(steps), lookup); }));
  if (step_is_aborted()) std::ranges::fill(lookup.rows, 0.0F);
  return {};
}

std::vector<float> ServedParameters::whole_rows(std::int64_t number, std::span<const float> values) const {
  const std::vector<std::uint64_t>& ids = tables_.at(number).all_ids;
  const auto& states = graph::served_parameter(number).states;
  const std::size_t width = values.size() / ids.size();
  std::vector<Tensor> begins;
  for (const graph::ParameterPtr& state : states) begins.push_back(state->materialize(seed()));
  std::vector<float> whole;
  whole.reserve(values.size() * (1 + states.size()));
  const auto add = [&](std::span<const float> part) { whole.insert(whole.end(), part.begin(), part.end()); };
  for (std::size_t i = 0; i < ids.size(); ++i) {
    add(values.subspan(i * width, width));
    for (std::size_t k = 0; k < states.size(); ++k) add(first_state(*states[k], begins[k], ids[i], width));
  }
  return whole;
}

// ---- Updates

// What the workers have begins rows that no server keeps yet; it is said anew in each epoch, whose servers
// may have begun anew with it.
Result<> ServedParameters::push(std::uint64_t own_steps, std::span<const graph::ServedUpdate> updates,
                                const NotesByNumber& notes) {
  std::vector<server::ParameterClient::Gradient> parts;
  std::deque<std::vector<float>> made;
  const auto begin = [&](std::int64_t number, std::span<const float> values) {
    const Table& table = tables_.at(number);
    if (!begun_.insert(number).second || values.empty()) return;
    const bool has_states = origin_ > 0 && !graph::served_parameter(number).states.empty();
    if (has_states) values = made.emplace_back(whole_rows(number, values));
    parts.push_back({.table = table.number,
                     .ids = table.all_ids,
                     .values = values,
                     .has_first_values = true,
                     .has_states = has_states});
  };
  for (const auto& [number, table] : tables_)
    if (is_table(number)) begin(number, table.first_values);
  for (const graph::ServedUpdate& update : updates) {
    const Table& table = tables_.at(update.number);
    if (!is_table(update.number)) begin(update.number, update.before);
    server::ParameterClient::Gradient part{.table = table.number,
                                           .learning_rate = update.learning_rate,
                                           .steps = own_steps,
                                           .ids = table.all_ids,
                                           .values = update.gradient};
    if (!table.has_rule)
      return fail(
          Code::invalid_argument,
          fmt::format("rows of table '{}' were looked up before it had an optimizer: make the optimizer "
                      "before the first lookup",
                      name_of(update.number)));
    if (is_table(update.number)) {
      const Notes& noted = notes.at(update.number);
      MUSTER_TRY_VOID(check_notes(update, noted));
      part.ids = noted.ids;
      part.values = noted.rows;
    }
    parts.push_back(part);
  }
  return client_->push(parts);
}

// Also where no dense parameter is pulled: with staleness 0 the step counts only when the servers have the
// pushes of all workers.
Result<> ServedParameters::pull(std::uint64_t step, std::span<const graph::ServedUpdate> updates) {
  std::vector<server::ParameterClient::Lookup> lookups;
  for (const graph::ServedUpdate& update : updates) {
    const Table& table = tables_.at(update.number);
    if (!is_table(update.number))
      lookups.push_back({.table = table.number, .ids = table.all_ids, .rows = update.after});
  }
  MUSTER_TRY_VOID(client_->pull(step, lookups));
  if (servers_may_not_have_begun()) keep_values(updates);
  return {};
}

Result<> ServedParameters::update_now(const graph::ServedSteps& steps,
                                      std::span<const graph::ServedUpdate> updates,
                                      const NotesByNumber& notes) {
  const auto step = static_cast<std::uint64_t>(steps.all);
  MUSTER_TRY_VOID(follow_epoch(step));
  MUSTER_TRY_VOID(check_step(step));
  for (const graph::ServedUpdate& update : updates) {
    MUSTER_TRY_VOID(add_table(update.number));
    MUSTER_TRY_VOID(check_unwritten(update));
  }
  MUSTER_TRY_VOID(push(static_cast<std::uint64_t>(steps.own), updates, notes));
  next_ = step + 1;
  MUSTER_TRY_VOID(pull(next_, updates));
  note_made(updates);
  return {};
}

Result<> ServedParameters::update(const graph::ServedSteps& steps,
                                  std::span<const graph::ServedUpdate> updates) {
  const NotesByNumber notes = take_notes(updates);  // the call may be made again, in another epoch
  MUSTER_TRY_VOID(
      call_together("the update on parameter servers", [&] { return update_now(steps, updates, notes); }));
  if (step_is_aborted()) keep_values(updates);  // what the rest of a void step computes with
  return {};
}

Result<> ServedParameters::call_together(std::string_view what, const std::function<Result<>()>& make) {
  const Collectives::GroupCall work = [&](Communicator&) -> Result<> {
    Result<> done = make();
    if (!done && !failure_) failure_ = done.error();
    return done;
  };
  return call_in_body([&] { return session_.recovery().explicit_collective(what, std::nullopt, work); });
}

Result<> ServedParameters::look_up_ahead(std::int64_t number, const Tensor& ids) {
  ahead_.expect(number, ids, next_);
  if (!ahead_.has_looked_up(number, next_) || epoch_ != session_.membership().roster().epoch) return {};
  return ahead_.ask(*client_, next_, tables_.at(number).number, number);
}

void ServedParameters::leave(bool is_for_good) {
  if (client_ == nullptr) return;
  client_->end_background();
  if (is_for_good) client_->leave();
  const server::ParameterClient::Counts counts = client_->counts();
  if (counts.looked_up > 0)
    log::info(fmt::format(
        "rows looked up on parameter servers: {}, of which {} came ahead of their step and {} were cached",
        counts.looked_up, counts.from_ahead, counts.from_cache));
  log::info(fmt::format("batches in memory shared with parameter servers: {}", counts.shared_batches));
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

namespace {

Result<ServedParameters*> current() {
  if (ServedParameters* const served = process().served_parameters) return served;
  return fail(Code::invalid_argument,
              "parameters live on parameter servers, and this process has left its job");
}

}  // namespace

void watch_served_parameters() {
  graph::set_served_calls({.update = [](const graph::ServedSteps& steps,
                                        std::span<const graph::ServedUpdate> updates) -> Result<> {
                             MUSTER_TRY(ServedParameters* const served, current());
                             return served->update(steps, updates);
                           },
                           .look_up = [](std::int64_t steps, const graph::ServedLookup& lookup) -> Result<> {
                             MUSTER_TRY(ServedParameters* const served, current());
                             return served->look_up(steps, lookup);
                           },
                           .note = [](graph::ServedGradient gradient) -> Result<> {
                             MUSTER_TRY(ServedParameters* const served, current());
                             served->note(std::move(gradient));
                             return {};
                           }});
}

}  // namespace muster::train
