#include "muster/server/parameter_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "muster/base/state_clock.h"
#include "muster/server/batch_checks.h"
#include "muster/server/parameter_client_implementation.h"
#include "muster/server/row_lists.h"
#include "muster/server/table_set.h"

namespace muster::server {
namespace {

constexpr Duration patience_for_origin = std::chrono::seconds(5);
// So many times as long as for an answer a worker waits until rows are on disks.
constexpr int patience_for_disks = 10;

}  // namespace

// ---- Calls

Result<std::uint32_t> ParameterClient::Implementation::add_table(const TableSpec& spec,
                                                                 std::size_t cached_rows) {
  const Turn turn(*this);
  MUSTER_TRY_VOID(check(spec, servers_));
  const auto table = static_cast<std::uint32_t>(specs_.size());
  if (table >= tables_max)
    return fail(Code::invalid_argument, fmt::format("there are {} tables at most", tables_max));
  specs_.push_back(spec);
  at_hand_.add_table(spec.width, cached_rows);
  for (std::uint32_t holder = 0; holder < holders_.count(); ++holder)
    if (links_[holder].is_open) send_table(holder, table);
  return table;
}

Result<> ParameterClient::Implementation::begin(std::uint64_t generation, std::uint64_t step,
                                                std::optional<std::uint64_t> origin) {
  const Turn turn(*this);
  at_hand_.clear();
  for (Link& link : links_) link.memory.renew();
  send(machine_.begin(generation, step, origin));
  std::optional<TimePoint> until;  // another worker may say where the job began
  MUSTER_TRY_VOID(wait(
      [&] {
        if (machine_.lacks_origin() && !until) until = options_.clock.now() + patience_for_origin;
        return machine_.is_welcome() || (machine_.lacks_origin() && options_.clock.now() >= *until);
      },
      "to answer"));
  if (machine_.is_welcome()) return {};
  send(machine_.assume_origin());
  return wait([this] { return machine_.is_welcome(); }, "to answer");
}

Result<> ParameterClient::Implementation::check_ids(std::uint32_t table,
                                                    std::span<const std::uint64_t> ids) const {
  if (table >= specs_.size()) return fail(Code::invalid_argument, fmt::format("there is no table {}", table));
  return server::check_ids(specs_[table], ids);
}

Result<> ParameterClient::Implementation::pull(std::uint64_t step, std::span<const Lookup> lookups) {
  const Turn turn(*this);
  for (const Lookup& lookup : lookups) {
    MUSTER_TRY_VOID(check_ids(lookup.table, lookup.ids));
    MUSTER_CHECK(lookup.rows.size() == lookup.ids.size() * specs_[lookup.table].width,
                 "ids and rows differ in number");
  }
  for (const auto& [before, table] : at_hand_.forget_before(step))
    machine_.forget_pull(before, number_of(table));
  std::vector<SoughtRows> sought;
  for (const Lookup& lookup : lookups)
    sought.push_back(at_hand_.seek(step, lookup.table, sorted(lookup.table, lookup.ids), lookup.rows));
  // One that asks for nothing waits for its step; one whose rows are all at hand does not.
  const bool asks = lookups.empty() || std::ranges::any_of(sought, &SoughtRows::asks);
  if (asks) {
    MUSTER_TRY(std::vector<Body> bodies, bodies_of(step, sought));
    send(machine_.pull(step, std::move(bodies)));
  }
  std::optional<std::vector<Rows>> rows;
  Result<> harvested;
  MUSTER_TRY_VOID(wait(
      [&] {
        if (asks && !rows) rows = machine_.take_rows(step);
        harvested = harvest();
        return !harvested || ((!asks || rows) && at_hand_.has_come(sought));
      },
      "for rows"));
  MUSTER_TRY_VOID(harvested);
  applied_ = step;
  if (rows) MUSTER_TRY_VOID(take(step, sought, *rows));
  for (SoughtRows& each : sought) applied_ = std::min(applied_, at_hand_.take_rest(step, each));
  return {};
}

Result<std::vector<Body>> ParameterClient::Implementation::bodies_of(
    std::uint64_t step, std::span<const SoughtRows> sought) const {
  std::vector<Body> bodies;
  for (std::uint32_t server = 0; server < servers_; ++server) {
    BatchWriter out(options_.worker, 0);
    std::size_t answer_bytes = BatchWriter::header_bytes;
    for (const SoughtRows& each : sought) {
      const auto asked = each.asked(server);
      if (asked.empty()) continue;
      std::ranges::copy(asked, out.add(each.table, {.ids = asked.size()}).ids.begin());
      answer_bytes += BatchWriter::part_bytes({.values = asked.size() * specs_[each.table].width});
    }
    MUSTER_TRY_VOID(check_size(answer_bytes, "the rows that are looked up", step, server));
    bodies.push_back(std::make_shared<OutgoingBatch>(out.take(), answer_bytes));
  }
  return bodies;
}

// Each server answers the parts that it was asked for, in their order.
Result<> ParameterClient::Implementation::take(std::uint64_t step, std::span<SoughtRows> sought,
                                               const std::vector<Rows>& rows) {
  for (std::uint32_t server = 0; server < servers_; ++server) {
    applied_ = std::min(applied_, rows[server].applied);
    const auto& parts = static_cast<const ArrivedRows*>(rows[server].body.get())->batch.parts;
    std::size_t next = 0;
    for (SoughtRows& each : sought) {
      const std::size_t asked = each.asked(server).size();
      if (asked == 0) continue;
      if (next == parts.size() || parts[next].table != each.table ||
          parts[next].values.size() != asked * specs_[each.table].width)
        return fail(Code::corrupt,
                    fmt::format("server {} has answered something else than it was asked for", server));
      at_hand_.take(step, each, server, {.values = parts[next++].values, .applied = rows[server].applied});
    }
  }
  return {};
}

// ---- A list of all rows

Result<ParameterClient::ListedRows> ParameterClient::Implementation::list_rows(std::uint64_t step,
                                                                               std::uint32_t table,
                                                                               bool with_states) {
  MUSTER_TRY_VOID(check_ids(table, {}));
  const TableSpec& spec = specs_[table];
  const Turn turn(*this);
  RowLists lists(with_states ? whole_width(spec) : spec.width);
  const std::uint64_t at_once = slots_at_once(spec);
  std::uint64_t slots = 1;
  for (std::uint64_t begin = 0; begin < slots; begin += at_once) {
    BatchWriter out(options_.worker, 0);
    const auto places = out.add(table | slots_bit | (with_states ? states_bit : 0), {.ids = 2});
    places.ids[0] = begin;
    places.ids[1] = begin + at_once;
    const auto body = std::make_shared<OutgoingBatch>(out.take());
    send(machine_.pull(step, std::vector<Body>(servers_, body)));
    std::optional<std::vector<Rows>> rows;
    MUSTER_TRY_VOID(
        wait([&] { return (rows = machine_.take_rows(step)).has_value(); }, "for a list of rows"));
    for (const Rows& each : *rows) {
      MUSTER_TRY(const std::uint64_t here,
                 lists.add(static_cast<const ArrivedRows*>(each.body.get())->batch));
      slots = std::max(slots, here);
    }
  }
  return lists.take();
}

// ---- For a checkpoint

Result<std::uint64_t> ParameterClient::Implementation::save_rows(std::uint64_t step,
                                                                 std::span<const std::uint32_t> tables,
                                                                 const std::string& order) {
  for (const std::uint32_t table : tables) MUSTER_TRY_VOID(check_ids(table, {}));
  const Turn turn(*this);
  const auto body = std::make_shared<OutgoingBatch>(OutgoingBatch::of(
      {.worker = options_.worker, .tables = {tables.begin(), tables.end()}, .text = order}));
  send(machine_.pull(step, std::vector<Body>(servers_, body)));
  std::optional<std::vector<Rows>> answers;
  MUSTER_TRY_VOID(wait([&] { return (answers = machine_.take_rows(step)).has_value(); },
                       "for rows to be saved", options_.timeout * patience_for_disks));
  std::uint64_t rows = 0;
  for (std::uint32_t server = 0; server < servers_; ++server) {
    const auto& outcome = *static_cast<const SaveOutcome*>((*answers)[server].body.get());
    if (!outcome.trouble.empty())
      return fail(Code::io,
                  fmt::format("parameter server {} could not save its rows: {}", server, outcome.trouble));
    rows += outcome.rows;
  }
  return rows;
}

// ---- Ahead of a step

Result<> ParameterClient::Implementation::pull_ahead(std::uint64_t step, std::uint32_t table,
                                                     std::span<const std::uint64_t> ids) {
  MUSTER_TRY_VOID(check_ids(table, ids));
  const Turn turn(*this);
  if (const auto before = at_hand_.forget(table)) machine_.forget_pull(*before, number_of(table));
  const std::vector<std::uint64_t> lacking = at_hand_.lacking(step, table, ids);
  if (lacking.empty()) return {};
  SoughtRows sought{.table = table, .ids = sorted(table, lacking)};
  MUSTER_TRY(std::vector<Body> bodies, bodies_of(step, std::span(&sought, 1)));
  at_hand_.expect(step, table, std::move(sought.ids));
  send(machine_.pull_ahead(step, std::move(bodies), number_of(table)));
  if (!background_.joinable()) background_ = std::thread([this] { serve_in_background(); });
  return {};
}

// What has come.
Result<> ParameterClient::Implementation::harvest() {
  for (auto& [table, ahead] : at_hand_.ahead())
    if (!ahead.has_come())
      if (auto rows = machine_.take_rows(ahead.step(), number_of(table)))
        MUSTER_TRY_VOID(ahead.arrive(*std::move(rows)));
  return {};
}

void ParameterClient::Implementation::serve_in_background() {
  const auto is_due = [this] { return callers_ == 0 && at_hand_.expects(); };
  std::unique_lock lock(mutex_);
  for (;;) {
    turned_.wait(lock, [&] { return ends_ || is_due(); });
    if (ends_) return;
    connect_closed();
    loop_.run_for(wait_slice);
    if (const auto harvested = harvest(); !harvested && !corrupt_) corrupt_ = harvested.error();
  }
}

void ParameterClient::Implementation::end_background() {
  if (!background_.joinable()) return;
  {
    const Turn turn(*this);
    ends_ = true;
  }
  turned_.notify_one();
  background_.join();
}

void ParameterClient::Implementation::leave() {
  const Turn turn(*this);
  send(machine_.leave());
  loop_.run_ready();
}

// ---- Gradients

Result<> ParameterClient::Implementation::check_pushes(std::span<const Gradient> gradients,
                                                       std::span<const SortedIds> ids) const {
  for (std::uint32_t server = 0; server < servers_; ++server) {
    std::size_t size_bytes = BatchWriter::header_bytes;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const std::size_t count = ids[i].ids(server).size();
      const TableSpec& spec = specs_[gradients[i].table];
      const std::size_t width = gradients[i].has_states ? whole_width(spec) : spec.width;
      size_bytes += BatchWriter::part_bytes({.ids = count, .values = count * width});
    }
    MUSTER_TRY_VOID(check_size(size_bytes, "what is pushed of rows", machine_.next(), server));
  }
  return {};
}

Result<> ParameterClient::Implementation::push(std::span<const Gradient> gradients) {
  const Turn turn(*this);
  std::vector<SortedIds> ids;
  for (const Gradient& gradient : gradients) {
    MUSTER_TRY_VOID(check_ids(gradient.table, gradient.ids));
    MUSTER_TRY_VOID(check_gradient(specs_[gradient.table], gradient, machine_.next(), options_.worker));
    ids.push_back(sorted(gradient.table, gradient.ids));
  }
  MUSTER_TRY_VOID(check_pushes(gradients, ids));
  std::vector<Body> bodies;
  for (std::uint32_t server = 0; server < servers_; ++server) {
    BatchWriter out(options_.worker, 0);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const auto of_server = ids[i].ids(server);
      if (of_server.empty()) continue;
      const TableSpec& spec = specs_[gradients[i].table];
      const std::size_t width = gradients[i].has_states ? whole_width(spec) : spec.width;
      const std::uint32_t kind =
          (gradients[i].has_first_values ? first_values_bit : 0) | (gradients[i].has_states ? states_bit : 0);
      const auto places =
          out.add(gradients[i].table | kind, {.ids = of_server.size(), .values = of_server.size() * width},
                  gradients[i].learning_rate, gradients[i].steps.value_or(machine_.next()));
      std::copy(of_server.begin(), of_server.end(), places.ids.begin());
      ids[i].gather(server, gradients[i].values, width, places.values);
    }
    bodies.push_back(std::make_shared<OutgoingBatch>(out.take()));
  }
  send(machine_.push(std::move(bodies)));
  connect_closed();
  loop_.run_ready();  // as much of it as goes without waiting
  return {};
}

Result<> ParameterClient::Implementation::flush() {
  const Turn turn(*this);
  return wait([this] { return machine_.kept() == machine_.next(); }, "to keep what was pushed");
}

void ParameterClient::Implementation::set_address(std::uint32_t server, const net::Address& address) {
  const Turn turn(*this);
  options_.servers.at(server) = address;
  for (std::uint32_t holder = 0; holder < holders_.count(); ++holder)
    if (holders_.server(holder) == server) links_[holder].next_attempt = {};
}

// ---- Waiting

template <class Done>
Result<> ParameterClient::Implementation::wait(const Done& done, std::string_view what, Duration patience) {
  const WaitingScope waiting;
  Result<> waited = serve_until(done, what, patience);
  tell_awaited(false);
  return waited;
}

template <class Done>
Result<> ParameterClient::Implementation::serve_until(const Done& done, std::string_view what,
                                                      Duration patience) {
  const TimePoint deadline = options_.clock.now() + patience;
  for (;;) {
    // First: a refusal may have come together with what is waited for.
    if (machine_.failure()) return fail(*machine_.failure());
    if (corrupt_) return fail(*corrupt_);
    if (done()) return {};
    if (options_.interrupted) MUSTER_TRY_VOID(options_.interrupted());
    const TimePoint now = options_.clock.now();
    if (now >= deadline)
      return fail(Code::timeout,
                  fmt::format("worker {} has waited {:.1f} s {} in step {}; missing: server {}",
                              options_.worker, std::chrono::duration<double>(patience).count(), what,
                              machine_.next(), missing_servers()));
    tell_awaited(true);
    connect_closed();
    const bool is_whole =
        std::all_of(links_.begin(), links_.end(), [](const Link& link) { return link.is_open; });
    loop_.run_for(std::min<Duration>(deadline - now, is_whole ? wait_slice : reconnect_pause));
    look_while_waiting();
  }
}

ParameterClient::ParameterClient(Options options)
    : implementation_(std::make_unique<Implementation>(std::move(options))) {}
ParameterClient::~ParameterClient() = default;

Result<std::uint32_t> ParameterClient::add_table(const TableSpec& spec, std::size_t cached_rows) {
  return implementation_->add_table(spec, cached_rows);
}
Result<> ParameterClient::begin(std::uint64_t generation, std::uint64_t step,
                                std::optional<std::uint64_t> origin) {
  return implementation_->begin(generation, step, origin);
}
Result<> ParameterClient::pull(std::uint64_t step, std::span<const Lookup> lookups) {
  return implementation_->pull(step, lookups);
}
Result<ParameterClient::ListedRows> ParameterClient::list_rows(std::uint64_t step, std::uint32_t table,
                                                               bool with_states) {
  return implementation_->list_rows(step, table, with_states);
}
Result<std::uint64_t> ParameterClient::save_rows(std::uint64_t step, std::span<const std::uint32_t> tables,
                                                 const std::string& order) {
  return implementation_->save_rows(step, tables, order);
}
Result<> ParameterClient::pull_ahead(std::uint64_t step, std::uint32_t table,
                                     std::span<const std::uint64_t> ids) {
  return implementation_->pull_ahead(step, table, ids);
}
ParameterClient::Counts ParameterClient::counts() const { return implementation_->counts(); }
void ParameterClient::end_background() { implementation_->end_background(); }
void ParameterClient::leave() { implementation_->leave(); }
Result<> ParameterClient::push(std::span<const Gradient> gradients) {
  return implementation_->push(gradients);
}
Result<> ParameterClient::flush() { return implementation_->flush(); }
void ParameterClient::set_address(std::uint32_t server, const net::Address& address) {
  implementation_->set_address(server, address);
}
std::uint64_t ParameterClient::origin() const { return implementation_->origin(); }
std::uint64_t ParameterClient::applied() const { return implementation_->applied(); }
void ParameterClient::set_common_point(std::uint64_t step) { implementation_->set_common_point(step); }
std::uint64_t ParameterClient::kept() const { return implementation_->kept(); }

}  // namespace muster::server
