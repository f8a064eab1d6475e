#include "muster/server/parameter_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "muster/base/state_clock.h"
#include "muster/server/batch_checks.h"
#include "muster/server/link_memory.h"
#include "muster/server/outgoing_batch.h"
#include "muster/server/row_lists.h"
#include "muster/server/rows_at_hand.h"
#include "muster/server/sorted_ids.h"
#include "muster/server/table_set.h"
#include "muster/server/wire.h"
#include "muster/server/worker_machine.h"

namespace muster::server {
namespace {

constexpr Duration patience_for_origin = std::chrono::seconds(5);
constexpr Duration reconnect_pause = std::chrono::milliseconds(20);

}  // namespace

class ParameterClient::Implementation {
 public:
  explicit Implementation(Options options)
      : options_(std::move(options)),
        servers_(static_cast<std::uint32_t>(options_.servers.size())),
        holders_{.servers = servers_, .copies = options_.copies},
        machine_({.worker = options_.worker,
                  .server_num = servers_,
                  .copies = options_.copies,
                  .nothing = std::make_shared<OutgoingBatch>(BatchWriter(options_.worker, 0).take())}),
        links_(holders_.count()),
        at_hand_(servers_, options_.staleness) {}
  ~Implementation() { end_background(); }

  Result<std::uint32_t> add_table(const TableSpec& spec, std::size_t cached_rows);
  Result<> begin(std::uint64_t generation, std::uint64_t step, std::optional<std::uint64_t> origin);
  std::uint64_t origin() const { return machine_.origin(); }
  Result<> pull(std::uint64_t step, std::span<const Lookup> lookups);
  Result<ListedRows> list_rows(std::uint64_t step, std::uint32_t table, bool with_states);
  Result<> pull_ahead(std::uint64_t step, std::uint32_t table, std::span<const std::uint64_t> ids);
  Result<> push(std::span<const Gradient> gradients);
  Result<> flush();
  void set_common_point(std::uint64_t step) {
    const Turn turn(*this);
    send(machine_.set_common_point(step));
  }
  void set_address(std::uint32_t server, const net::Address& address);
  std::uint64_t kept() {
    const Turn turn(*this);
    return machine_.kept();
  }
  std::uint64_t applied() const { return applied_; }
  Counts counts() const {
    Counts counts = at_hand_.counts();
    for (const Link& link : links_) counts.shared_batches += link.memory.batches();
    return counts;
  }

 private:
  // While a call is made no thread but its own has the loop and what belongs to it.
  class Turn {
   public:
    explicit Turn(Implementation& of) : of_(of) {
      ++of_.callers_;
      if (of_.background_.joinable()) of_.loop_.post([&loop = of_.loop_] { loop.stop(); });
      lock_ = std::unique_lock(of_.mutex_);
    }
    ~Turn() {
      --of_.callers_;
      lock_.unlock();
      of_.turned_.notify_one();
    }
    Turn(const Turn&) = delete;

   private:
    Implementation& of_;
    std::unique_lock<std::mutex> lock_;
  };

  struct Link {
    std::unique_ptr<net::Connection> connection = {};
    bool is_open = false;
    bool is_closed = true;  // to be made anew
    TimePoint next_attempt = {};
    std::string trouble = {};
    LinkMemory memory = {};
  };

  Result<> check_ids(std::uint32_t table, std::span<const std::uint64_t> ids) const;
  // Of the pull of rows of a table ahead of their step.
  static std::uint32_t number_of(std::uint32_t table) { return table + 1; }
  SortedIds sorted(std::uint32_t table, std::span<const std::uint64_t> ids) const {
    return SortedIds(ids, Owners(specs_[table], servers_), servers_);
  }
  std::vector<Body> bodies_of(std::span<const SoughtRows> sought) const;
  Result<> take(std::uint64_t step, std::span<SoughtRows> sought, const std::vector<Rows>& rows);
  Result<> harvest();

  void serve_in_background();
  void end_background();

  void connect_closed();
  void opened(std::uint32_t holder);
  void received(std::uint32_t holder, net::Frame frame);
  Result<ToWorker> decode(std::uint32_t holder, net::Frame frame);
  void send_batch(std::uint32_t holder, const net::FrameHeader& header, const OutgoingBatch& batch);
  void send(const ToServerMessages& messages);
  void send(std::uint32_t holder, const ToServer& message);
  void send_table(std::uint32_t holder, std::uint32_t table);
  void send_frame(std::uint32_t holder, FrameType type, const net::FrameHeader& header,
                  std::span<const std::byte> payload);
  // Serves connections until done(), the deadline or a failure; `what` is for the error.
  template <class Done>
  Result<> wait(const Done& done, std::string_view what);
  template <class Done>
  Result<> serve_until(const Done& done, std::string_view what);
  std::string missing_servers() const;
  void tell_awaited(bool is_waiting);

  Options options_;
  std::uint32_t servers_;
  Holders holders_;
  WorkerMachine machine_;
  std::vector<TableSpec> specs_;
  net::Loop loop_;
  std::vector<Link> links_;  // by holder; destroyed before the loop
  std::optional<Error> corrupt_;
  std::uint64_t applied_ = 0;  // of the last pull
  RowsAtHand at_hand_;
  std::pair<std::uint32_t, std::uint32_t> told_ = {};  // the first server that is awaited, and how many are

  // Rows that were asked for ahead come while no call waits.
  std::mutex mutex_;
  std::atomic<int> callers_ = 0;
  std::condition_variable turned_;
  bool ends_ = false;
  std::thread background_;
};

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
  if (asks) send(machine_.pull(step, bodies_of(sought)));
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

std::vector<Body> ParameterClient::Implementation::bodies_of(std::span<const SoughtRows> sought) const {
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

// ---- Ahead of a step

Result<> ParameterClient::Implementation::pull_ahead(std::uint64_t step, std::uint32_t table,
                                                     std::span<const std::uint64_t> ids) {
  MUSTER_TRY_VOID(check_ids(table, ids));
  const Turn turn(*this);
  if (const auto before = at_hand_.forget(table)) machine_.forget_pull(*before, number_of(table));
  const std::vector<std::uint64_t> lacking = at_hand_.lacking(step, table, ids);
  if (lacking.empty()) return {};
  SoughtRows sought{.table = table, .ids = sorted(table, lacking)};
  std::vector<Body> bodies = bodies_of(std::span(&sought, 1));
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

// ---- Gradients

Result<> ParameterClient::Implementation::push(std::span<const Gradient> gradients) {
  const Turn turn(*this);
  std::vector<SortedIds> ids;
  for (const Gradient& gradient : gradients) {
    MUSTER_TRY_VOID(check_ids(gradient.table, gradient.ids));
    MUSTER_TRY_VOID(check_gradient(specs_[gradient.table], gradient, machine_.next(), options_.worker));
    ids.push_back(sorted(gradient.table, gradient.ids));
  }
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

// ---- Connections

void ParameterClient::Implementation::connect_closed() {
  const TimePoint now = options_.clock.now();
  for (std::uint32_t holder = 0; holder < holders_.count(); ++holder) {
    Link& link = links_[holder];
    if (!link.is_closed || now < link.next_attempt) continue;
    const std::uint32_t server = holders_.server(holder);
    link.connection.reset();
    link.is_closed = false;
    link.next_attempt = now + reconnect_pause;
    link.connection = net::Connection::connect(
        loop_, options_.servers[server],
        {.payload_size_bytes = batch_limit_bytes, .unsent_size_bytes = unsent_batches_limit_bytes},
        {.opened = [this, holder] { opened(holder); },
         .received = [this, holder](net::Frame frame) { received(holder, std::move(frame)); },
         .closed =
             [this, holder](const Error& error) {
               links_[holder].is_open = false;
               links_[holder].is_closed = true;
               links_[holder].trouble = error.message;
               links_[holder].memory.close();
               loop_.stop();
             }},
        options_.security ? options_.security(server) : net::ConnectionSecurity{});
  }
}

void ParameterClient::Implementation::opened(std::uint32_t holder) {
  links_[holder].is_open = true;
  links_[holder].trouble.clear();
  if (machine_.generation() == 0) return;
  send(machine_.retry(holder));
}

void ParameterClient::Implementation::received(std::uint32_t holder, net::Frame frame) {
  const auto heard = links_[holder].memory.hear(frame, options_.shared_from_bytes);
  if (!heard && !corrupt_) corrupt_ = heard.error();
  if (!heard || *heard) return;
  loop_.stop();  // a thread that waits looks whether that was it
  auto message = decode(holder, std::move(frame));
  if (!message) {
    if (!corrupt_) corrupt_ = message.error();
    return;
  }
  send(machine_.receive(holder, *message));
}

Result<ToWorker> ParameterClient::Implementation::decode(std::uint32_t holder, net::Frame frame) {
  switch (static_cast<FrameType>(frame.header.type & ~shared_bit)) {
    case FrameType::taken: {
      MUSTER_TRY(Taken taken, decode_taken(frame));
      return taken;
    }
    case FrameType::refusal: {
      MUSTER_TRY(Refusal refusal, decode_refusal(frame));
      return refusal;
    }
    case FrameType::rows:
    case FrameType::rows_early:
    case FrameType::rows_changed: {
      MUSTER_TRY(Rows rows, links_[holder].memory.rows_of(std::move(frame)));
      return rows;
    }
    default:
      return fail(Code::corrupt,
                  fmt::format("a parameter server has sent a frame of type {:#06x}", frame.header.type));
  }
}

void ParameterClient::Implementation::send(const ToServerMessages& messages) {
  for (const ToServerMessage& message : messages) send(message.holder, message.message);
}

// What is sent while there is no connection is lost: once there is one, hello brings everything that is
// missing.
void ParameterClient::Implementation::send(std::uint32_t holder, const ToServer& message) {
  if (!links_[holder].is_open) return;
  if (const auto* hello = std::get_if<Hello>(&message)) {
    send_frame(holder, FrameType::hello, {.flags = holders_.share(holder), .epoch = hello->generation},
               encode(*hello));
    for (std::uint32_t table = 0; table < specs_.size(); ++table) send_table(holder, table);
    return;
  }
  if (const auto* point = std::get_if<CommonPoint>(&message))
    return send_frame(holder, FrameType::common_point, {.epoch = point->generation}, encode(*point));
  net::FrameHeader header{.job_id = options_.job_id};
  Body body;
  if (const auto* pull = std::get_if<Pull>(&message)) {
    header.type = static_cast<std::uint16_t>(pull->is_ahead ? FrameType::pull_ahead : FrameType::pull);
    header.flags = pull->serial;
    header.epoch = pull->generation;
    header.sequence = pull->step;
    body = pull->body;
  } else {
    const auto& push = std::get<Push>(message);
    header.type = static_cast<std::uint16_t>(FrameType::push);
    header.epoch = push.generation;
    header.sequence = push.step;
    body = push.body;
  }
  send_batch(holder, header, *static_cast<const OutgoingBatch*>(body.get()));
}

void ParameterClient::Implementation::send_batch(std::uint32_t holder, const net::FrameHeader& header,
                                                 const OutgoingBatch& batch) {
  const auto shared_message = links_[holder].memory.put(
      {.batch = batch.payload(), .answer_bytes = batch.answer_bytes(), .serial = header.flags},
      [&](FrameType type, std::span<const std::byte> payload) { send_frame(holder, type, {}, payload); });
  if (!shared_message) return links_[holder].connection->send(batch.with(header));
  send_frame(holder, shared(static_cast<FrameType>(header.type)), header, encode(*shared_message));
}

void ParameterClient::Implementation::send_table(std::uint32_t holder, std::uint32_t table) {
  send_frame(holder, FrameType::table, {.epoch = machine_.generation()},
             encode(TableMessage{.worker = options_.worker, .table = table, .spec = specs_[table]}));
}

void ParameterClient::Implementation::send_frame(std::uint32_t holder, FrameType type,
                                                 const net::FrameHeader& header,
                                                 std::span<const std::byte> payload) {
  links_[holder].connection->send(make_frame(options_.job_id, type, header, payload));
}

std::string ParameterClient::Implementation::missing_servers() const {
  std::map<std::uint32_t, std::string> troubles;  // by server
  for (std::uint32_t holder = 0; holder < holders_.count(); ++holder)
    if (machine_.awaits(holder)) {
      std::string& trouble = troubles[holders_.server(holder)];
      if (trouble.empty()) trouble = links_[holder].trouble;
    }
  std::string text;
  for (const auto& [server, trouble] : troubles)
    text += fmt::format("{}{} at {}{}", text.empty() ? "" : ", ", server,
                        net::to_string(options_.servers[server]),
                        trouble.empty() ? "" : fmt::format(" ({})", trouble));
  return text;
}

void ParameterClient::Implementation::tell_awaited(bool is_waiting) {
  std::set<std::uint32_t> servers;
  for (std::uint32_t holder = 0; is_waiting && holder < holders_.count(); ++holder)
    if (machine_.lacks_answer(holder)) servers.insert(holders_.server(holder));
  const std::pair awaited(servers.empty() ? 0 : *servers.begin(), static_cast<std::uint32_t>(servers.size()));
  if (options_.awaits && std::exchange(told_, awaited) != awaited)
    options_.awaits(awaited.first, awaited.second);
}

template <class Done>
Result<> ParameterClient::Implementation::wait(const Done& done, std::string_view what) {
  const WaitingScope waiting;
  Result<> waited = serve_until(done, what);
  tell_awaited(false);
  return waited;
}

template <class Done>
Result<> ParameterClient::Implementation::serve_until(const Done& done, std::string_view what) {
  const TimePoint deadline = options_.clock.now() + options_.timeout;
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
                              options_.worker, std::chrono::duration<double>(options_.timeout).count(), what,
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
Result<> ParameterClient::pull_ahead(std::uint64_t step, std::uint32_t table,
                                     std::span<const std::uint64_t> ids) {
  return implementation_->pull_ahead(step, table, ids);
}
ParameterClient::Counts ParameterClient::counts() const { return implementation_->counts(); }
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
