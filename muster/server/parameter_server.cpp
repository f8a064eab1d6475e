#include "muster/server/parameter_server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <list>
#include <mutex>
#include <utility>

#include "muster/server/handed_memory.h"
#include "muster/server/held_share.h"
#include "muster/server/rows_fetch.h"
#include "muster/server/wire.h"

namespace muster::server {
namespace {

// Between two tries to reach the other server that has this one's rows.
constexpr Duration fetch_pause = std::chrono::milliseconds(20);

}  // namespace

class ParameterServer::Implementation {
 public:
  Implementation(net::Loop& loop, Options options)
      : loop_(loop),
        options_(std::move(options)),
        holders_{.servers = options_.share.servers, .copies = options_.copies} {}
  ~Implementation() { alive_.reset(); }

  Result<> open();
  const net::Address& address() const { return listener_->address(); }
  const std::optional<Error>& failure() const { return failure_; }
  void set_address(std::uint32_t server, const net::Address& address) {
    loop_.post([this, server, address, alive = std::weak_ptr<bool>(alive_)] {
      if (!alive.expired()) options_.servers.at(server) = address;
    });
  }
  std::function<State()> watch() const {
    return [told = told_] {
      const std::lock_guard lock(told->mutex);
      return told->state;
    };
  }

 private:
  // A share that this server has, and how it gets its rows where its disk has none.
  struct Held {
    std::uint32_t holder = 0;
    std::unique_ptr<HeldShare> share = {};
    std::unique_ptr<RowsFetch> fetch = {};
  };
  struct Peer {
    std::unique_ptr<net::Connection> connection;
    Held* held = nullptr;
    std::optional<std::uint32_t> worker = {};
    std::deque<std::pair<net::Frame, SharedMessage>> waiting = {};  // until the share has its rows
    std::optional<SharedBatches> memory = {};
    bool was_offered = false;
    // A server: the generation from which on it may be told what is kept here, and what it was told of.
    std::optional<std::uint64_t> wants_from = {};
    std::optional<KeptFiles> files = {};
  };
  using PeerPlace = std::list<Peer>::iterator;

  Result<> open_listener();
  std::unique_ptr<HeldShare> make_share(std::uint32_t holder, std::uint32_t share);
  Held* find(std::uint32_t share);

  // ---- Rows of another server
  void begin_fetch(Held& held);
  void connect_fetches();
  Result<> fetched(Held& held, Result<bool> found);
  void answer_servers();

  // ---- Connections
  void accept(std::unique_ptr<net::Connection> connection);
  void receive(PeerPlace peer, net::Frame frame);
  Result<> hear(PeerPlace peer, net::Frame frame);
  Result<> hear_hello(PeerPlace peer, const net::Frame& frame);
  Result<> hear_server(PeerPlace peer, const net::Frame& frame);
  void hear_worker(PeerPlace peer, net::Frame frame, const SharedMessage& shared);
  Result<> hear_memory(PeerPlace peer, const net::Frame& frame);
  static Result<SharedMessage> take_shared(Peer& peer, net::Frame& frame);
  std::span<std::byte> place_of(const Held& held, std::uint32_t worker, const SharedMessage& message);
  PeerPlace find_peer(const Held& held, std::uint32_t worker);
  void close(PeerPlace peer);
  void send(const Held& held, std::uint32_t worker, FramePtr frame);
  void send(const Peer& peer, FrameType type, const net::FrameHeader& header,
            std::span<const std::byte> payload);

  Error with_way_out(Error error) const;
  void fail_with(const Error& error);
  void changed();

  net::Loop& loop_;
  Options options_;
  Holders holders_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for what is posted
  std::vector<std::unique_ptr<Held>> held_;                     // its own share first
  std::list<Peer> peers_;
  std::optional<HandedMemory> handed_;
  std::unique_ptr<net::ConnectionListener> listener_;
  std::optional<Error> failure_;
  struct Told {
    std::mutex mutex;
    State state = {};
  };
  std::shared_ptr<Told> told_ = std::make_shared<Told>();
};

Result<> ParameterServer::Implementation::open() {
  const std::uint32_t server = options_.share.server;
  if (options_.copies < 1 || options_.copies > holders_.servers)
    return fail(
        Code::invalid_argument,
        fmt::format("each row can be on 1 to {} parameter servers, as many as there are, and not on {} "
                    "(MUSTER_SERVER_COPIES)",
                    holders_.servers, options_.copies));
  for (std::uint32_t holder = 0; holder < holders_.count(); ++holder)
    if (holders_.server(holder) == server)
      held_.push_back(std::make_unique<Held>(
          Held{.holder = holder, .share = make_share(holder, holders_.share(holder))}));
  for (const auto& held : held_) {
    const bool may_fetch = options_.copies > 1;
    MUSTER_TRY(const bool lacks_rows, may_fetch ? held->share->lacks_rows() : Result<bool>(false));
    if (lacks_rows)
      begin_fetch(*held);
    else
      MUSTER_TRY_VOID(held->share->open(false));
  }
  return open_listener();
}

Result<> ParameterServer::Implementation::open_listener() {
  const net::ConnectionLimits limits{.payload_size_bytes = batch_limit_bytes,
                                     .unsent_size_bytes = unsent_batches_limit_bytes};
  if (options_.shares_memory && options_.security.security == nullptr) {
    auto opened = HandedMemory::open();
    if (opened)
      handed_.emplace(*std::move(opened));
    else
      log::warning(fmt::format("parameter server {} shares no memory with workers of this host: {}",
                               options_.share.server, opened.error().message));
  }
  MUSTER_TRY(listener_,
             net::ConnectionListener::open(
                 loop_, options_.address, limits,
                 [this](std::unique_ptr<net::Connection> connection) { accept(std::move(connection)); },
                 options_.security));
  connect_fetches();
  return {};
}

std::unique_ptr<HeldShare> ParameterServer::Implementation::make_share(std::uint32_t holder,
                                                                       std::uint32_t share) {
  ServerConfig config = options_.config;
  config.server = options_.share.server;
  if (options_.copies > 1) config.other_holder = holders_.server(holders_.other(holder));
  const bool is_copy = share != options_.share.server && !options_.log_path.empty();
  HeldShare::Options options{
      .job_id = options_.job_id,
      .share = {.server = share, .servers = holders_.servers},
      .config = config,
      .log_path = is_copy ? fmt::format("{}_copy_{}", options_.log_path, share) : options_.log_path,
      .log_limit_bytes = options_.log_limit_bytes,
      .memory_bytes = options_.memory_bytes / options_.copies,
      .refuses_large_tables = options_.refuses_large_tables,
      .files = options_.files};
  return std::make_unique<HeldShare>(
      loop_, std::move(options),
      HeldShare::Events{
          .send = [this, share](std::uint32_t worker,
                                FramePtr frame) { send(*find(share), worker, std::move(frame)); },
          .place_of = [this, share](
                          std::uint32_t worker,
                          const SharedMessage& message) { return place_of(*find(share), worker, message); },
          .failed = [this](const Error& error) { fail_with(error); },
          .changed = [this] { changed(); }});
}

ParameterServer::Implementation::Held* ParameterServer::Implementation::find(std::uint32_t share) {
  for (const auto& held : held_)
    if (holders_.share(held->holder) == share) return held.get();
  return nullptr;
}

// ---- Rows of another server

void ParameterServer::Implementation::begin_fetch(Held& held) {
  held.fetch = std::make_unique<RowsFetch>(loop_,
                                           RowsFetch::Options{.path = held.share->options().log_path,
                                                              .share = holders_.share(held.holder),
                                                              .job_id = options_.job_id,
                                                              .generation = options_.generation},
                                           [this, &held](const Result<bool>& found) {
                                             if (const auto done = fetched(held, found); !done)
                                               fail_with(done.error());
                                           });
}

// The other one may be starting, too, or be started again in a while: how long a job waits for a process that
// is gone is the scheduler's to say, and workers have the deadlines of their calls.
void ParameterServer::Implementation::connect_fetches() {
  bool any_fetches = false;
  for (const auto& held : held_) {
    if (held->fetch == nullptr || held->share->is_open()) continue;
    any_fetches = true;
    if (held->fetch->is_connected()) continue;
    const std::uint32_t other = holders_.server(holders_.other(held->holder));
    held->fetch->connect(options_.servers.at(other),
                         options_.security_of ? options_.security_of(other) : net::ConnectionSecurity{});
  }
  if (any_fetches)
    loop_.set_timer(options_.clock.now() + fetch_pause, [this, alive = std::weak_ptr<bool>(alive_)] {
      if (!alive.expired()) connect_fetches();
    });
}

Result<> ParameterServer::Implementation::fetched(Held& held, Result<bool> found) {
  loop_.post([this, &held, alive = std::weak_ptr<bool>(alive_)] {  // it is telling of something just now
    if (!alive.expired()) held.fetch.reset();
  });
  if (!found) return fail(found.error());
  if (*found)
    log::info(fmt::format("parameter server {} has the rows of share {} from parameter server {}",
                          options_.share.server, holders_.share(held.holder),
                          holders_.server(holders_.other(held.holder))));
  else
    MUSTER_TRY_VOID(ServerDisk::cancel_fetch(held.share->options().log_path));
  MUSTER_TRY_VOID(held.share->open(*found));
  for (PeerPlace peer = peers_.begin(); peer != peers_.end(); ++peer)
    while (peer->held == &held && peer->worker && !peer->waiting.empty()) {
      auto [frame, shared] = std::move(peer->waiting.front());
      peer->waiting.pop_front();
      hear_worker(peer, std::move(frame), shared);
    }
  return {};
}

// Who has nothing of it either says so at once. A server that has its rows waits until it is in the
// generation of which the other one knows: see RowsFetch.
void ParameterServer::Implementation::answer_servers() {
  for (Peer& peer : peers_) {
    if (!peer.wants_from || peer.held == nullptr) continue;
    const bool has_rows = peer.held->share->is_open();
    if (has_rows && peer.held->share->generation() < *peer.wants_from) continue;
    peer.wants_from.reset();
    std::vector<KeptFileName> names;
    if (has_rows) {
      auto files = peer.held->share->kept_files();
      if (!files) return fail_with(files.error());
      names = files->names();
      peer.files.emplace(*std::move(files));
    }
    send(peer, FrameType::kept_files, {}, encode(names));
  }
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
  peer->held = nullptr;
  loop_.post([this, peer, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) peers_.erase(peer);
  });
}

void ParameterServer::Implementation::receive(PeerPlace peer, net::Frame frame) {
  if (failure_) return;
  const Result<> heard = hear(peer, std::move(frame));
  if (heard) return;
  log::warning(fmt::format("parameter server {}: {}", options_.share.server, heard.error().message));
  peer->connection->finish();
}

Result<> ParameterServer::Implementation::hear(PeerPlace peer, net::Frame frame) {
  const auto type = static_cast<FrameType>(frame.header.type);
  if (frame.header.job_id != options_.job_id)
    return fail(Code::refused,
                "a process of another job has connected: its MS_SCHED_HOST or port is another job's");
  if (type == FrameType::want_files || type == FrameType::want_part) return hear_server(peer, frame);
  if (type == FrameType::hello) MUSTER_TRY_VOID(hear_hello(peer, frame));
  if (!peer->worker) return fail(Code::refused, "a connection did not begin with a hello");
  if (type == FrameType::memory) return hear_memory(peer, frame);
  SharedMessage shared;
  if ((frame.header.type & shared_bit) != 0) {
    MUSTER_TRY(shared, take_shared(*peer, frame));
  }
  hear_worker(peer, std::move(frame), shared);
  return {};
}

// Where it cannot be had the worker goes on through its socket.
Result<> ParameterServer::Implementation::hear_memory(PeerPlace peer, const net::Frame& frame) {
  MUSTER_TRY(const SharedMemory memory, decode_shared_memory(frame));
  if (!handed_) return fail(Code::refused, "a worker shares memory with a server that did not offer it");
  peer->memory.reset();
  auto taken = handed_->take(memory);
  if (!taken) {
    log::warning(
        fmt::format("parameter server {} shares no memory with worker {}, whose rows travel through its "
                    "socket, which takes longer: {}",
                    options_.share.server, *peer->worker, taken.error().message));
    return {};
  }
  peer->memory.emplace(*std::move(taken));
  net::ByteWriter out;
  out.number(memory.token);
  send(*peer, FrameType::memory_taken, {}, out.take());
  return {};
}

// The frame is as if it had come through the socket then.
Result<SharedMessage> ParameterServer::Implementation::take_shared(Peer& peer, net::Frame& frame) {
  MUSTER_TRY(const SharedMessage message, decode_shared_message(frame));
  if (!peer.memory || peer.memory->memory().token != message.memory)
    return fail(Code::corrupt, "a worker's batch lies in memory that is not shared");
  MUSTER_TRY(const auto bytes, peer.memory->to_server(message.batch));
  frame.payload.assign(bytes.begin(), bytes.end());
  peer.memory->read().fetch_add(1, std::memory_order_release);
  frame.header.type &= static_cast<std::uint16_t>(~shared_bit);
  frame.header.payload_size_bytes = frame.payload.size();
  if (peer.held->share->keeps_log()) frame.header.payload_checksum = net::payload_checksum(frame.payload);
  return message;
}

std::span<std::byte> ParameterServer::Implementation::place_of(const Held& held, std::uint32_t worker,
                                                               const SharedMessage& message) {
  const auto peer = find_peer(held, worker);
  if (peer == peers_.end() || !peer->memory || peer->memory->memory().token != message.memory) return {};
  const auto place = peer->memory->to_worker(message.answer);
  return place ? *place : std::span<std::byte>{};
}

Result<> ParameterServer::Implementation::hear_hello(PeerPlace peer, const net::Frame& frame) {
  MUSTER_TRY(const Hello hello, decode_hello(frame));
  Held* const held = find(frame.header.flags);
  if (held == nullptr) {
    const Error error{
        Code::refused,
        fmt::format("worker {} asks for the rows of share {}, which are not here: MUSTER_SERVER_COPIES "
                    "or MS_SERVER_NUM differ between the processes of this job",
                    hello.worker, frame.header.flags)};
    send(*peer, FrameType::refusal, {.epoch = hello.generation},
         encode(Refusal{.generation = hello.generation, .reason = error.message}));
    return fail(error);
  }
  for (Peer& other : peers_)  // its earlier connection, whose end we have not heard of yet
    if (other.held == held && other.worker == hello.worker) other.worker.reset();
  peer->held = held;
  peer->worker = hello.worker;
  peer->connection->admit();
  if (!handed_ || std::exchange(peer->was_offered, true)) return {};
  net::ByteWriter out;
  out.text(handed_->name());
  send(*peer, FrameType::memory_offer, {}, out.take());
  return {};
}

Result<> ParameterServer::Implementation::hear_server(PeerPlace peer, const net::Frame& frame) {
  if (static_cast<FrameType>(frame.header.type) == FrameType::want_files) {
    peer->held = find(frame.header.flags);
    if (peer->held == nullptr)
      return fail(
          Code::refused,
          fmt::format("a parameter server asks for the rows of share {}, which are not here: "
                      "MUSTER_SERVER_COPIES or MS_SERVER_NUM differ between the processes of this job",
                      frame.header.flags));
    peer->connection->admit();
    peer->wants_from = frame.header.epoch;
    answer_servers();
    return {};
  }
  if (!peer->files) return fail(Code::refused, "a parameter server asks for a part of nothing");
  MUSTER_TRY(const KeptFilePart part, decode_kept_file_part(frame));
  MUSTER_TRY(const auto bytes, peer->files->read(part));
  send(*peer, FrameType::file_part, {.flags = part.file, .sequence = part.offset}, bytes);
  return {};
}

void ParameterServer::Implementation::hear_worker(PeerPlace peer, net::Frame frame,
                                                  const SharedMessage& shared) {
  HeldShare& share = *peer->held->share;
  if (!share.is_open()) {
    peer->waiting.emplace_back(std::move(frame), shared);
    return;
  }
  const net::FrameHeader header = frame.header;
  const Result<> heard = share.hear(*peer->worker, std::move(frame), shared);
  if (heard) return;
  log::warning(fmt::format("parameter server {}: {}", options_.share.server, heard.error().message));
  send(*peer, FrameType::refusal, {.epoch = header.epoch},
       encode(Refusal{.generation = header.epoch, .reason = heard.error().message}));
}

ParameterServer::Implementation::PeerPlace ParameterServer::Implementation::find_peer(const Held& held,
                                                                                      std::uint32_t worker) {
  return std::ranges::find_if(peers_,
                              [&](const Peer& each) { return each.held == &held && each.worker == worker; });
}

void ParameterServer::Implementation::send(const Held& held, std::uint32_t worker, FramePtr frame) {
  const auto peer = find_peer(held, worker);
  if (peer != peers_.end()) peer->connection->send(std::move(frame));
}

void ParameterServer::Implementation::send(const Peer& peer, FrameType type, const net::FrameHeader& header,
                                           std::span<const std::byte> payload) {
  peer.connection->send(make_frame(options_.job_id, type, header, payload));
}

void ParameterServer::Implementation::changed() {
  if (held_.empty()) return;
  {
    const std::lock_guard lock(told_->mutex);
    told_->state = held_.front()->share->state();
    for (std::size_t i = 1; i < held_.size(); ++i) {
      const State copy = held_[i]->share->state();
      told_->state.rows += copy.rows;
      told_->state.size_bytes += copy.size_bytes;
    }
  }
  answer_servers();
}

// What its open files still take is found by no later process, once their folder is gone; all that was kept
// otherwise.
Error ParameterServer::Implementation::with_way_out(Error error) const {
  const std::filesystem::path folder = std::filesystem::path(options_.log_path).parent_path();
  const bool is_of_disk = error.code == Code::io || error.code == Code::not_found;
  if (options_.log_path.empty() || !is_of_disk) return error;
  if (::access(folder.c_str(), F_OK) == 0)
    return {error.code,
            fmt::format("{}: what was kept is there, and the job goes on from it when '{}' can be "
                        "written and all processes are started again",
                        error.message, folder.string())};
  return {
      error.code,
      fmt::format("its folder '{}', which keeps its rows for a recovery (MS_RECOVERY_PATH), was moved or "
                  "removed while the job runs: put it back and start all processes again, or begin the job "
                  "anew with MUSTER_FRESH=1 ({})",
                  folder.string(), error.message)};
}

void ParameterServer::Implementation::fail_with(const Error& error) {
  if (failure_) return;
  failure_ = with_way_out(error);
  log::error(fmt::format("parameter server {}: {}", options_.share.server, failure_->message));
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
void ParameterServer::set_address(std::uint32_t server, const net::Address& address) {
  implementation_->set_address(server, address);
}
const std::optional<Error>& ParameterServer::failure() const { return implementation_->failure(); }
std::function<ParameterServer::State()> ParameterServer::watch() const { return implementation_->watch(); }

}  // namespace muster::server
