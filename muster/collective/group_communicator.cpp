#include "muster/collective/group_communicator.h"

#include <fmt/format.h>

namespace muster::collective {
namespace {

Result<> check_group(const Group& group) {
  if (group.endpoints.empty() || group.endpoints.size() > ranks_max)
    return fail(Code::invalid_argument,
                fmt::format("a group of {} ranks; 1 to {} are possible", group.endpoints.size(), ranks_max));
  if (group.rank >= group.endpoints.size())
    return fail(Code::invalid_argument,
                fmt::format("rank {} in a group of {} ranks", group.rank, group.endpoints.size()));
  return {};
}

Layout layout_of(const Group& group) {
  std::vector<std::string_view> host_keys;
  host_keys.reserve(group.endpoints.size());
  for (const Endpoint& endpoint : group.endpoints) host_keys.push_back(endpoint.host_key);
  return Layout(host_keys, group.rank);
}

LocalShape shape_of(const Layout& layout) {
  const Sizes sizes = sizes_of(layout);
  return {.ranks = layout.own_ranks(),
          .local_rank = layout.place_of(layout.own_rank()),
          .small_size_bytes = sizes.small_size_bytes,
          .chunk_size_bytes = sizes.chunk_size_bytes,
          .remote_ranks = layout.remote_count(),
          .raw_size_bytes = sizes.raw_size_bytes};
}

// Else it would be found out in the middle of the rendezvous, by some.
Result<> check_descriptors(const Layout& layout) {
  constexpr std::size_t for_the_process = 16;
  const std::size_t free = net::free_descriptors();
  if (layout.lanes().size() + for_the_process <= free) return {};
  return fail(
      Code::invalid_argument,
      fmt::format("rank {} needs connections to {} other hosts, but this process may open only {} more "
                  "files: raise that limit (ulimit -n)",
                  layout.own_rank(), layout.lanes().size(), free));
}

// From its construction to its destruction.
class Mark {
 public:
  Mark(std::atomic<std::uint64_t>& mark, std::uint64_t value) : mark_(mark) {
    mark_.store(value, std::memory_order_relaxed);
  }
  ~Mark() { mark_.store(0, std::memory_order_relaxed); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

 private:
  std::atomic<std::uint64_t>& mark_;
};

template <class Pieces>
Result<> check_message(const Pieces& pieces, const Communicator& own, std::uint32_t peer,
                       std::string_view what) {
  constexpr std::size_t piece_limit = 1 << 16;
  if (peer >= own.size() || peer == own.rank())
    return fail(Code::invalid_argument,
                fmt::format("rank {} of {} cannot {} rank {}", own.rank(), own.size(), what, peer));
  if (pieces.size() > piece_limit)
    return fail(Code::invalid_argument,
                fmt::format("a message of {} pieces; at most {} are possible", pieces.size(), piece_limit));
  std::size_t size_bytes = 0;
  for (const auto& piece : pieces) {
    MUSTER_TRY_VOID(check_size(piece.size(), 1));
    MUSTER_TRY_VOID(check_size(size_bytes += piece.size(), 1));
  }
  return {};
}

}  // namespace

Result<Listener> Listener::open(const std::string& address) {
  MUSTER_TRY(auto tcp, net::TcpListener::open({.ip = address, .port = 0}));
  MUSTER_TRY(auto local, net::LocalListener::open());
  return Listener(std::move(tcp), std::move(local));
}

Result<std::unique_ptr<Communicator>> connect(Group group, Listener listener, Options options) {
  MUSTER_TRY_VOID(check_group(group));
  Layout layout = layout_of(group);
  MUSTER_TRY_VOID(check_descriptors(layout));
  GroupCommunicator::Origin origin{.listen_address = listener.address(),
                                   .connect_timeout = options.connect_timeout,
                                   .call_timeout = options.call_timeout,
                                   .security = options.security,
                                   .clock = options.clock,
                                   .roots_wait = options.roots_wait,
                                   .reads_neighbours = options.reads_neighbours,
                                   .recorder = options.recorder};
  MUSTER_TRY(Connections connections, Rendezvous(group, layout, listener, shape_of(layout), options).meet());
  MUSTER_TRY(net::StopSignal stop, net::StopSignal::create());
  const auto kept = std::make_shared<const Group>(std::move(group));
  std::unique_ptr<ReconnectAcceptor> acceptor;
  if (!layout.has_one_host()) {
    std::vector<std::uint32_t> linked;
    for (const Lane& lane : layout.lanes()) linked.push_back(lane.peer);
    MUSTER_TRY(acceptor, ReconnectAcceptor::open(kept, std::move(linked), std::move(listener),
                                                 options.security, options.clock));
    acceptor->take(std::move(connections.early));
  }
  return std::make_unique<GroupCommunicator>(kept, std::move(layout), std::move(connections),
                                             std::move(acceptor), std::move(stop), std::move(origin));
}

GroupCommunicator::GroupCommunicator(std::shared_ptr<const Group> group, Layout layout,
                                     Connections connections, std::unique_ptr<ReconnectAcceptor> acceptor,
                                     net::StopSignal stop, Origin origin)
    : group_(std::move(group)),
      recorded_(origin.recorder, *group_),
      layout_(std::move(layout)),
      sizes_(sizes_of(layout_)),
      local_(std::move(connections.local)),
      alarms_(std::move(connections.alarms)),
      acceptor_(std::move(acceptor)),
      links_(rank(), {.epoch = group_->epoch, .job_id = group_->job_id}, std::move(connections.links),
             acceptor_.get()),
      remote_pairs_({.epoch = group_->epoch, .job_id = group_->job_id}, rank(), acceptor_.get()),
      stop_(std::move(stop)),
      origin_(std::move(origin)),
      call_timeout_(origin_.call_timeout),
      received_stride_(std::max(sizes_.small_size_bytes, sizes_.raw_size_bytes)),
      sources_(size()),
      reached_(local_size()) {
  if (local_) {
    local_pairs_.emplace(*local_);
    rings_.emplace(*local_);
    neighbour_memory_.emplace(*local_);
    checks_ = {.own = [this](const Call& call) { return rings_->check(call); },
               .all = [this] { return rings_->check_all(); }};
    deadline_of_rings_ = [this] { return deadline(); };
  }
  look_at_remote_ = [this]() -> Result<> {
    looks_.fetch_add(1, std::memory_order_relaxed);
    MUSTER_TRY_VOID(usable_for_messages());  // leave() wakes no rank here
    return remote_pairs_.look();
  };
  look_at_local_ = [this]() -> Result<> {
    looks_.fetch_add(1, std::memory_order_relaxed);
    if (!local_) return {};
    if (auto reason = local_pairs_->ended()) return fail(*std::move(reason));
    return {};
  };
  if (!acceptor_) return;
  ReconnectWatch::Duties duties{.attend = [this] { return attend(); },
                                .watch = [this](WaitList& waits) { watch(waits); }};
  if (origin_.security && origin_.security->uses_certificates())
    duties.check_peers = [this] { check_peers(); };
  reconnect_watch_.emplace(*acceptor_, stop_, std::move(duties));
}

// ---- Collective calls -------------------------------------------------------------------------------------

Result<> GroupCommunicator::begin(Call& call, const Offsets& offsets) {
  MUSTER_TRY_VOID(usable_for_messages());
  call.number = calls_ + 1;
  if (local_ && local_->aborted() && !has_come(call)) return fail_group(local_->abort_reason());
  ++calls_;
  in_call_.store(call.number << kind_bits | static_cast<std::uint64_t>(call.kind), std::memory_order_relaxed);
  deadline_.reset();
  if (local_) local_->announce(call, offsets);
  return {};
}

TimePoint GroupCommunicator::deadline() {
  if (!deadline_) deadline_ = origin_.clock.now() + call_timeout();
  return *deadline_;
}

Result<> GroupCommunicator::exchange() {
  if (links_.empty()) return {};
  return links_.run({.deadline = deadline(), .stop = &stop_});
}

Result<> GroupCommunicator::settle() {
  if (links_.empty()) return {};
  return links_.settle({.deadline = deadline(), .stop = &stop_});
}

Result<> GroupCommunicator::all_reduce(const void* in, void* out, std::size_t count, DType dtype,
                                       Reduction reduction) {
  MUSTER_TRY_VOID(check_reduction(dtype, reduction, "all_reduce"));
  MUSTER_TRY_VOID(check_size(count, size_bytes(dtype)));
  const Call call{.count = count, .kind = CallKind::all_reduce, .dtype = dtype, .reduction = reduction};
  const Offsets offsets = offsets_of(in, out, count * size_bytes(dtype));
  return run(call, offsets, [&](const Call& numbered) {
    return all_reduce(static_cast<const std::byte*>(in), static_cast<std::byte*>(out), numbered);
  });
}

// Each rank combines its slice, as in an all_reduce; what the others then get they throw away.
Result<> GroupCommunicator::reduce(const void* in, void* out, std::size_t count, DType dtype,
                                   Reduction reduction, std::uint32_t root) {
  MUSTER_TRY_VOID(check_reduction(dtype, reduction, "reduce"));
  MUSTER_TRY_VOID(check_size(count, size_bytes(dtype)));
  MUSTER_TRY_VOID(check_root(root, "reduce to"));
  const Call call{
      .count = count, .root = root, .kind = CallKind::reduce, .dtype = dtype, .reduction = reduction};
  const std::size_t bytes = count * size_bytes(dtype);
  const auto unwanted = std::make_unique_for_overwrite<std::byte[]>(rank() == root ? 0 : bytes);
  auto* const into = rank() == root ? static_cast<std::byte*>(out) : unwanted.get();
  return run(call, offsets_of(in, into, bytes), [&](const Call& numbered) {
    return all_reduce(static_cast<const std::byte*>(in), into, numbered);
  });
}

Result<> GroupCommunicator::broadcast(void* data, std::size_t size_bytes, std::uint32_t root) {
  MUSTER_TRY_VOID(check_size(size_bytes, 1));
  MUSTER_TRY_VOID(check_root(root, "broadcast from"));
  const Call call{.count = size_bytes, .root = root, .kind = CallKind::broadcast};
  return run(call, [&](const Call& numbered) { return broadcast(static_cast<std::byte*>(data), numbered); });
}

Result<> GroupCommunicator::all_gather(const void* in, void* out, std::size_t size_bytes) {
  MUSTER_TRY_VOID(check_size(size_bytes, size()));
  const Call call{.count = size_bytes, .kind = CallKind::all_gather};
  return run(call, [&](const Call& numbered) {
    return all_gather(static_cast<const std::byte*>(in), static_cast<std::byte*>(out), size_bytes, numbered);
  });
}

Result<> GroupCommunicator::barrier() {
  return run({.kind = CallKind::barrier}, [&](const Call& numbered) { return barrier(numbered); });
}

Result<> GroupCommunicator::check_root(std::uint32_t root, std::string_view what) const {
  if (root < size()) return {};
  return fail(Code::invalid_argument, fmt::format("{} rank {} in a group of {}", what, root, size()));
}

// ---- Messages ---------------------------------------------------------------------------------------------

// A wait on one acceptor must not keep the other one from being served.
MessageWait GroupCommunicator::message_wait(const std::function<Result<>()>& look) const {
  const TimePoint now = origin_.clock.now();
  return {
      .clock = origin_.clock, .start = now, .deadline = now + call_timeout(), .stop = &stop_, .look = look};
}

Result<> GroupCommunicator::send(std::uint32_t to, SentPieces pieces) {
  MUSTER_TRY_VOID(check_message(pieces, *this, to, "send to"));
  MUSTER_TRY_VOID(usable_for_messages());
  const WaitingScope waiting;
  const Mark mark(in_send_, std::uint64_t{to} << 1 | 1);
  const Message message = message_of(pieces, {.from = rank(), .to = to});
  const std::uint64_t record = recorded_.begin_send(to, message.size_bytes);
  const Result<> done = layout_.is_local(to)
                            ? local_pairs_->send(pieces, message, message_wait(look_at_remote_))
                            : remote_pairs_.send(pieces, message, message_wait(look_at_local_));
  recorded_.end(record, done);
  if (!done) return fail_group(done.error());
  messages_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Result<> GroupCommunicator::receive(std::uint32_t from, ReceivedPieces pieces) {
  MUSTER_TRY_VOID(check_message(pieces, *this, from, "receive from"));
  MUSTER_TRY_VOID(usable_for_messages());
  const WaitingScope waiting;
  const Mark mark(in_receive_, std::uint64_t{from} << 1 | 1);
  const Message message = message_of(pieces, {.from = from, .to = rank()});
  const std::uint64_t record = recorded_.begin_receive(from, message.size_bytes);
  const Result<> done = receive_now(pieces, message, message_wait(look_at_the_others(from)));
  recorded_.end(record, done);
  if (!done) return fail_group(done.error());
  messages_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Result<> GroupCommunicator::receive_now(ReceivedPieces pieces, const Message& message,
                                        const MessageWait& wait) {
  return layout_.is_local(message.from) ? local_pairs_->receive(pieces, message, wait)
                                        : remote_pairs_.receive(pieces, message, wait);
}

// While a message of one kind is waited for, those of the other kind are looked after.
const std::function<Result<>()>& GroupCommunicator::look_at_the_others(std::uint32_t peer) const {
  return layout_.is_local(peer) ? look_at_remote_ : look_at_local_;
}

// Not seen from outside: a rank that listens waits for no other. One that is gone is the caller's affair, as
// long as the group lives.
Result<> GroupCommunicator::receive_patiently(std::uint32_t from, ReceivedPieces pieces,
                                              const std::function<Result<>()>& look) {
  constexpr Duration for_ever = std::chrono::hours(24 * 365);
  MUSTER_TRY_VOID(check_message(pieces, *this, from, "receive from"));
  MUSTER_TRY_VOID(usable_for_messages());
  const Message message = message_of(pieces, {.from = from, .to = rank()});
  const std::function<Result<>()> look_at_all = [&]() -> Result<> {
    MUSTER_TRY_VOID(look());
    return look_at_the_others(from)();
  };
  MessageWait wait = message_wait(look_at_all);
  wait.deadline = wait.start + for_ever;
  const Result<> done = receive_now(pieces, message, wait);
  if (done) recorded_.end(recorded_.begin_receive(from, message.size_bytes), done);
  if (!done && done.error().code != Code::peer_lost) return fail_group(done.error());
  return done;
}

// A rank that is alone on its host has no rank to share with.
Result<std::shared_ptr<std::byte>> GroupCommunicator::shared_buffer(std::size_t size_bytes) {
  MUSTER_TRY_VOID(check_size(size_bytes, 1));
  MUSTER_TRY_VOID(usable());
  if (local_) return local_->arena().take(size_bytes);
  constexpr std::align_val_t alignment{64};
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(::operator new(size_bytes, alignment)),
                                    [](std::byte* data) { ::operator delete(data, alignment); });
}

Offsets GroupCommunicator::offsets_of(const void* in, const void* out, std::size_t size_bytes) const {
  if (!local_ || size_bytes <= sizes_.small_size_bytes) return {};
  const auto offset_of = [&](const void* data) {
    return local_->arena().offset_of(static_cast<const std::byte*>(data), size_bytes);
  };
  const Offset of_in = offset_of(in);
  return {.in = of_in, .out = in == out ? of_in : offset_of(out)};
}

InFlightCall GroupCommunicator::in_flight_call() const {
  const std::uint64_t call = in_call_.load(std::memory_order_relaxed);
  const CallKind kind = kind_in(call);
  const std::uint64_t number = call >> kind_bits;
  if (kind != CallKind::none) return {kind, number, number - 1};
  if (const std::uint64_t from = in_receive_.load(std::memory_order_relaxed); from != 0)
    return {CallKind::receive, from >> 1, number};
  if (const std::uint64_t to = in_send_.load(std::memory_order_relaxed); to != 0)
    return {CallKind::send, to >> 1, number};
  return {CallKind::none, 0, number};
}

GroupState GroupCommunicator::state() const {
  GroupState made{
      .call = in_flight_call(), .messages = messages_.load(std::memory_order_relaxed), .awaited = {}};
  const bool is_message = made.call.kind == CallKind::send || made.call.kind == CallKind::receive;
  if (!local_ || made.call.kind == CallKind::none || is_message) return made;
  made.awaited = rings_->missing_ranks();
  if (made.awaited.empty()) made.awaited = local_->missing_ranks();
  return made;
}

}  // namespace muster::collective
