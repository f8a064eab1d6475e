#include "muster/server/parameter_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <utility>

#include "muster/server/server_disk.h"
#include "muster/server/table_set.h"
#include "muster/server/wire.h"

namespace muster::server {
class ParameterServer::Implementation {
 public:
  Implementation(net::Loop& loop, Options options)
      : loop_(loop),
        options_(std::move(options)),
        machine_(options_.config),
        tables_(options_.share, options_.config.worker_num, options_.config.staleness.has_value()) {}
  ~Implementation() { alive_.reset(); }

  Result<> open();
  const net::Address& address() const { return listener_->address(); }
  const std::optional<Error>& failure() const { return failure_; }
  std::function<State()> watch() const {
    return [told = told_] {
      const std::lock_guard lock(told->mutex);
      return told->state;
    };
  }

 private:
  struct WantedRows {
    Batch batch = {};
    ChangedRows changed = {};  // since they were sent early
  };
  struct Peer {
    std::unique_ptr<net::Connection> connection;
    std::optional<std::uint32_t> worker = {};
  };
  using PeerPlace = std::list<Peer>::iterator;

  Result<> open_disk();

  // ---- Connections
  void accept(std::unique_ptr<net::Connection> connection);
  void receive(PeerPlace peer, net::Frame frame);
  Result<> hear(PeerPlace peer, net::Frame frame);
  Result<> hear_hello(PeerPlace peer, const net::Frame& frame);
  Result<> hear_table(const net::Frame& frame);
  Result<> check_memory();
  Result<> hear_batch(const Peer& peer, net::Frame frame);
  void close(PeerPlace peer);
  void send(std::uint32_t worker, FramePtr frame);
  void send(std::uint32_t worker, FrameType type, std::uint64_t generation,
            std::span<const std::byte> payload);

  // ---- Actions
  void do_all(const Actions& actions);
  Result<> act(const Append& append);
  Result<> act(const Apply& apply);
  Result<> act(const Reset& reset);
  Result<> act(const Answer& answer);
  Result<> act(const Preview& preview);
  void send_rows(const Pull& pull, FrameType type, std::uint64_t sequence, std::vector<std::byte> frame);
  Result<> act(const Send& send);
  void fail_with(const Error& error);
  void tell_state();

  net::Loop& loop_;
  Options options_;
  ServerMachine machine_;
  TableSet tables_;
  std::unique_ptr<ServerDisk> disk_;
  std::vector<std::weak_ptr<WantedRows>> sent_early_;  // those that the machine still has
  std::uint64_t appended_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for what is posted
  std::list<Peer> peers_;
  std::unique_ptr<net::ConnectionListener> listener_;
  std::optional<Error> failure_;
  struct Told {
    std::mutex mutex;
    State state = {};
  };
  std::shared_ptr<Told> told_ = std::make_shared<Told>();
};

Result<> ParameterServer::Implementation::open() {
  if (!options_.log_path.empty()) MUSTER_TRY_VOID(open_disk());
  const net::ConnectionLimits limits{.payload_size_bytes = batch_limit_bytes,
                                     .unsent_size_bytes = unsent_batches_limit_bytes};
  MUSTER_TRY(listener_,
             net::ConnectionListener::open(
                 loop_, options_.address, limits,
                 [this](std::unique_ptr<net::Connection> connection) { accept(std::move(connection)); },
                 options_.security));
  return {};
}

Result<> ParameterServer::Implementation::open_disk() {
  disk_ = std::make_unique<ServerDisk>(
      loop_,
      ServerDisk::Options{.path = options_.log_path,
                          .job_id = options_.job_id,
                          .share = options_.share,
                          .log_limit_bytes = options_.log_limit_bytes},
      machine_, tables_,
      ServerDisk::Events{.kept = [this](std::uint64_t records) { do_all(machine_.log_kept(records)); },
                         .failed = [this](const Error& error) { fail_with(error); }});
  MUSTER_TRY(const Restored restored, disk_->open());
  MUSTER_TRY(const Actions actions, machine_.restore(restored));
  do_all(actions);
  return failure_ ? Result<>(fail(*failure_)) : Result<>{};
}

// ---- Connections

void ParameterServer::Implementation::accept(std::unique_ptr<net::Connection> connection) {
  const PeerPlace peer = peers_.insert(peers_.end(), Peer{std::move(connection)});
  peer->connection->set_events(
      {.received = [this, peer](net::Frame frame) { receive(peer, std::move(frame)); },
       .closed = [this, peer](const Error&) { close(peer); }});
}

// A connection must not be destroyed while it tells of something.
void ParameterServer::Implementation::close(PeerPlace peer) {
  peer->worker.reset();
  loop_.post([this, peer, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) peers_.erase(peer);
  });
}

void ParameterServer::Implementation::receive(PeerPlace peer, net::Frame frame) {
  if (failure_) return;
  const net::FrameHeader header = frame.header;
  const Result<> heard = hear(peer, std::move(frame));
  if (heard) return;
  log::warning(fmt::format("parameter server {}: {}", options_.share.server, heard.error().message));
  if (!peer->worker) return peer->connection->finish();
  send(*peer->worker, FrameType::refusal, header.epoch,
       encode(Refusal{.generation = header.epoch, .reason = heard.error().message}));
}

Result<> ParameterServer::Implementation::hear(PeerPlace peer, net::Frame frame) {
  const auto type = static_cast<FrameType>(frame.header.type);
  if (frame.header.job_id != options_.job_id)
    return fail(Code::refused,
                "a process of another job has connected: its MS_SCHED_HOST or port is another job's");
  if (type == FrameType::hello) return hear_hello(peer, frame);
  if (!peer->worker) return fail(Code::refused, "a connection did not begin with a hello");
  if (type == FrameType::table) return hear_table(frame);
  if (type == FrameType::common_point) {
    MUSTER_TRY(const CommonPoint point, decode_common_point(frame));
    do_all(machine_.receive(point));
    return {};
  }
  if (type == FrameType::pull || type == FrameType::pull_ahead || type == FrameType::push)
    return hear_batch(*peer, std::move(frame));
  return fail(Code::corrupt, fmt::format("a worker has sent a frame of type {:#06x}", frame.header.type));
}

Result<> ParameterServer::Implementation::hear_hello(PeerPlace peer, const net::Frame& frame) {
  MUSTER_TRY(const Hello hello, decode_hello(frame));
  for (Peer& other : peers_)  // its earlier connection, whose end we have not heard of yet
    if (other.worker == hello.worker) other.worker.reset();
  peer->worker = hello.worker;
  peer->connection->admit();
  do_all(machine_.receive(hello));
  return {};
}

Result<> ParameterServer::Implementation::hear_table(const net::Frame& frame) {
  MUSTER_TRY(const TableMessage table, decode_table(frame));
  MUSTER_TRY(const bool is_new, tables_.declare(table.table, table.spec));
  if (!is_new) return {};
  if (disk_ != nullptr)
    if (const auto written = disk_->write_table(frame.header, frame.payload); !written)
      fail_with(written.error());
  return check_memory();
}

Result<> ParameterServer::Implementation::check_memory() {
  if (options_.memory_bytes == 0) return {};
  const std::string excess = tables_.excess_of(options_.memory_bytes);
  if (excess.empty()) return {};
  if (options_.refuses_large_tables) return fail(Code::invalid_argument, excess + " (MUSTER_STRICT=1)");
  log::warning(excess);
  return {};
}

Result<> ParameterServer::Implementation::hear_batch(const Peer& peer, net::Frame frame) {
  const net::FrameHeader header = frame.header;
  MUSTER_TRY(Batch batch, read_batch(std::move(frame.payload)));
  if (batch.worker != *peer.worker)
    return fail(Code::corrupt,
                fmt::format("worker {} has sent a batch of worker {}", *peer.worker, batch.worker));
  if (static_cast<FrameType>(header.type) != FrameType::push) {
    MUSTER_TRY_VOID(tables_.check_pull(batch));
    do_all(machine_.receive(Pull{.worker = batch.worker,
                                 .generation = header.epoch,
                                 .step = header.sequence,
                                 .serial = header.flags,
                                 .is_ahead = static_cast<FrameType>(header.type) == FrameType::pull_ahead,
                                 .body = std::make_shared<WantedRows>(WantedRows{std::move(batch)})}));
    return {};
  }
  MUSTER_TRY_VOID(tables_.check_push(batch));
  const std::uint32_t worker = batch.worker;
  do_all(machine_.receive(Push{.worker = worker,
                               .generation = header.epoch,
                               .step = header.sequence,
                               .body = std::make_shared<HeldPush>(HeldPush{std::move(batch), header})}));
  return {};
}

void ParameterServer::Implementation::send(std::uint32_t worker, FramePtr frame) {
  const auto peer =
      std::find_if(peers_.begin(), peers_.end(), [&](const Peer& each) { return each.worker == worker; });
  if (peer != peers_.end()) peer->connection->send(std::move(frame));
}

void ParameterServer::Implementation::send(std::uint32_t worker, FrameType type, std::uint64_t generation,
                                           std::span<const std::byte> payload) {
  send(worker, std::make_shared<const std::vector<std::byte>>(net::encode_frame(
                   {.type = static_cast<std::uint16_t>(type), .epoch = generation, .job_id = options_.job_id},
                   payload)));
}

// ---- Actions

void ParameterServer::Implementation::do_all(const Actions& actions) {
  const std::uint64_t before = appended_;
  for (const Action& action : actions) {
    const Result<> done = std::visit([this](const auto& each) { return act(each); }, action);
    if (!done) return fail_with(done.error());
  }
  tell_state();
  if (disk_ != nullptr) {
    if (appended_ != before) disk_->want_kept(appended_);
    disk_->look();
  } else if (appended_ != before) {
    do_all(machine_.log_kept(appended_));  // nothing is ever kept better than now
  }
}

Result<> ParameterServer::Implementation::act(const Append& append) {
  ++appended_;
  return disk_ == nullptr ? Result<>{} : disk_->write(append.record);
}

Result<> ParameterServer::Implementation::act(const Apply& apply) {
  std::vector<const Batch*> batches;
  for (const Body& body : apply.bodies) {
    const auto& push = *static_cast<const HeldPush*>(body.get());
    if (disk_ != nullptr) MUSTER_TRY_VOID(disk_->load(push));
    batches.push_back(&*push.batch);
  }
  MUSTER_TRY_VOID(tables_.apply(apply.step, batches));
  std::erase_if(sent_early_, [&](const std::weak_ptr<WantedRows>& each) {
    const auto wanted = each.lock();
    if (wanted != nullptr) tables_.note_changes(wanted->batch, apply.step, batches, wanted->changed);
    return wanted == nullptr;
  });
  for (const Body& body : apply.bodies) static_cast<const HeldPush*>(body.get())->batch.reset();
  return {};
}

Result<> ParameterServer::Implementation::act(const Reset&) {
  if (disk_ == nullptr)
    return fail(Code::not_provided,
                "workers go back to an earlier step, which parameter servers without a log cannot");
  return disk_->reset_rows();
}

Result<> ParameterServer::Implementation::act(const Answer& answer) {
  const auto& wanted = *static_cast<const WantedRows*>(answer.pull.body.get());
  if (answer.since) {
    MUSTER_TRY(auto frame, tables_.read_changed(wanted.batch, wanted.changed, answer.applied));
    send_rows(answer.pull, FrameType::rows_changed, *answer.since, std::move(frame));
    return {};
  }
  MUSTER_TRY(auto frame, tables_.read(wanted.batch, answer.applied));
  send_rows(answer.pull, FrameType::rows, answer.pull.step, std::move(frame));
  return {};
}

Result<> ParameterServer::Implementation::act(const Preview& preview) {
  // The machine's bodies are const: this one was made here, and no other holds it.
  const auto wanted =
      std::const_pointer_cast<WantedRows>(std::static_pointer_cast<const WantedRows>(preview.pull.body));
  wanted->changed.clear();
  for (const TablePart& part : wanted->batch.parts) wanted->changed.emplace_back(part.ids.size());
  sent_early_.push_back(wanted);
  MUSTER_TRY(auto frame, tables_.read(wanted->batch, preview.applied));
  send_rows(preview.pull, FrameType::rows_early, preview.pull.step, std::move(frame));
  return {};
}

void ParameterServer::Implementation::send_rows(const Pull& pull, FrameType type, std::uint64_t sequence,
                                                std::vector<std::byte> frame) {
  send(pull.worker, finish_batch(std::move(frame), {.type = static_cast<std::uint16_t>(type),
                                                    .flags = pull.serial,
                                                    .epoch = pull.generation,
                                                    .job_id = options_.job_id,
                                                    .sequence = sequence}));
}

Result<> ParameterServer::Implementation::act(const Send& message) {
  if (const auto* taken = std::get_if<Taken>(&message.message))
    send(message.worker, FrameType::taken, taken->generation, encode(*taken));
  else if (const auto* refusal = std::get_if<Refusal>(&message.message))
    send(message.worker, FrameType::refusal, refusal->generation, encode(*refusal));
  return {};
}

void ParameterServer::Implementation::tell_state() {
  const std::lock_guard lock(told_->mutex);
  told_->state = {.rows = tables_.rows(),
                  .size_bytes = tables_.size_bytes(),
                  .updates = machine_.applied(),
                  .waiting = machine_.waiting()};
}

void ParameterServer::Implementation::fail_with(const Error& error) {
  if (failure_) return;
  failure_ = error;
  log::error(fmt::format("parameter server {}: {}", options_.share.server, error.message));
  loop_.stop();
}

ParameterServer::ParameterServer(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
ParameterServer::~ParameterServer() = default;

Result<std::unique_ptr<ParameterServer>> ParameterServer::open(net::Loop& loop, Options options) {
  auto implementation = std::make_unique<Implementation>(loop, std::move(options));
  MUSTER_TRY_VOID(implementation->open());
  return std::unique_ptr<ParameterServer>(new ParameterServer(std::move(implementation)));
}

const net::Address& ParameterServer::address() const { return implementation_->address(); }
const std::optional<Error>& ParameterServer::failure() const { return implementation_->failure(); }
std::function<ParameterServer::State()> ParameterServer::watch() const { return implementation_->watch(); }

}  // namespace muster::server
