#include "muster/collective/state.h"

#include <fmt/format.h>

namespace muster::collective {
namespace {

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

constexpr Operation operation_of(Kind kind) {
  return static_cast<Operation>(static_cast<std::uint8_t>(kind) + 1);
}
static_assert(operation_of(Kind::all_reduce) == Operation::all_reduce);
static_assert(operation_of(Kind::barrier) == Operation::barrier);

// Before what others say of the group's end counts.
constexpr Duration patience_in_message = std::chrono::milliseconds(20);
constexpr Duration patience_of_idle = std::chrono::milliseconds(60);

}  // namespace

Communicator::State::State(std::shared_ptr<const Group> group, Layout layout, Connections connections,
                           std::unique_ptr<ReconnectAcceptor> acceptor, net::StopSignal stop, Origin origin)
    : group_(std::move(group)),
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
      received_stride_(std::max(sizes_.small_size_bytes, sizes_.raw_size_bytes)),
      sources_(size()),
      reached_(local_size()) {
  if (local_) local_pairs_.emplace(*local_);
  look_at_remote_ = [this]() -> Result<> {
    MUSTER_TRY_VOID(usable_for_messages());  // leave() wakes no rank here
    return remote_pairs_.look();
  };
  look_at_local_ = [this]() -> Result<> {
    if (!local_) return {};
    if (auto reason = local_pairs_->ended()) return fail(*std::move(reason));
    return {};
  };
  if (!acceptor_) return;
  ReconnectWatch::Duties duties{.attend = [this] { return attend(); },
                                .watch = [this](std::vector<pollfd>& polled) { watch(polled); }};
  if (origin_.security && origin_.security->uses_certificates())
    duties.check_peers = [this] { check_peers(); };
  reconnect_watch_.emplace(*acceptor_, stop_, std::move(duties));
}

// Peers that still wait for this rank learn at once that it will not come.
Communicator::State::~State() {
  if (fork_count_ != net::fork_count()) return;
  stop_.raise();
  if (acceptor_) acceptor_->shut();
  links_.close();
  if (!local_) return;
  local_->abort({Code::peer_lost, fmt::format("rank {} left the group", rank())});
  local_pairs_->leave();
  if (alarms_) alarms_->left.ring();
}

bool Communicator::State::end(const Error& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return false;
    failure_ = reason;
  }
  failed_.store(true, std::memory_order_release);
  stop_.raise();
  if (acceptor_)
    acceptor_->shut();  // first: who finds its connection reset calls, and learns so that it is no accident
  return true;
}

// Who hears of it passes it on: the ranks of this host by the alarm, others by their connections.
void Communicator::State::abort(Error reason) {
  if (!end(reason)) return;
  links_.reset();
  if (local_) local_->abort(reason);
  remote_pairs_.reset();
  if (local_) local_pairs_->abort(reason);
  if (alarms_) alarms_->ended.ring();
}

// Collective calls need all ranks, messages do not: others may still be at it.
void Communicator::State::leave(Error reason) {
  if (!end(reason)) return;
  links_.close();
  if (local_) local_->abort(reason);
  if (alarms_) alarms_->left.ring();
  remote_pairs_.finish();
  if (local_) local_pairs_->leave();
}

// ---- On the thread of the watch ---------------------------------------------------------------------------

void Communicator::State::watch(std::vector<pollfd>& polled) {
  links_.watch(polled);
  if (!alarms_) return;
  polled.push_back({.fd = alarms_->ended.fd(), .events = POLLIN, .revents = 0});
  if (!calls_are_over_) polled.push_back({.fd = alarms_->left.fd(), .events = POLLIN, .revents = 0});
}

Result<bool> Communicator::State::attend() {
  const auto calls_have_more = links_.attend();  // this serves the acceptor
  const bool messages_have_more = remote_pairs_.attend();
  if (local_)
    if (auto reason = local_pairs_->ended()) return hear_of_end(*std::move(reason));
  if (!calls_have_more && calls_have_more.error().code == Code::peer_lost)
    return hear_of_end(calls_have_more.error());
  if (!calls_have_more) return calls_have_more;
  return hear_of_leaving() || *calls_have_more || messages_have_more;
}

// A rank of this host that leaves has made all calls that it made together with this one: no other call will
// succeed, and those of other hosts who wait for this rank in it are told so. Whether a call is still under
// way.
bool Communicator::State::hear_of_leaving() {
  if (calls_are_over_ || !local_ || !local_->aborted()) return false;
  const std::uint64_t call = in_call_.load();
  if (operation_in(call) != Operation::none) return true;
  calls_are_over_ = true;
  acceptor_->end_calls(local_->abort_reason().message);
  links_.close();
  return false;
}

// A rank that waits for a message may get a better reason than that some rank is gone. And one that does
// nothing just now leaves it to those who do to tell why they end: it would only pass on that it ends, too.
Result<bool> Communicator::State::hear_of_end(const Error& lost) {
  const TimePoint now = real_clock().now();
  if (!lost_since_) lost_since_ = now;
  const Operation operation = in_flight_call().operation;
  const bool is_in_message = operation == Operation::send || operation == Operation::receive;
  const Duration patience = operation == Operation::none ? patience_of_idle
                            : is_in_message              ? patience_in_message
                                                         : Duration::zero();
  if (now - *lost_since_ < patience) return true;
  abort(lost);
  return false;
}

// No connection with the same certificate can take the place of those that end here: the group is over, and
// for the next one it is checked again.
void Communicator::State::check_peers() {
  const auto good = links_.check_peers().and_then([this] { return remote_pairs_.check_peers(); });
  if (good) return;
  log::error(good.error().message);
  abort(good.error());
}

std::optional<Error> Communicator::State::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

tl::unexpected<Error> Communicator::State::fail_group(const Error& error) {
  abort(error);
  links_.forget();
  return fail(*failure());
}

Result<> Communicator::State::usable() {
  MUSTER_TRY_VOID(usable_for_messages());
  if (local_ && local_->aborted()) return fail_group(local_->abort_reason());
  return {};
}

Result<> Communicator::State::usable_for_messages() {
  if (fork_count_ != net::fork_count())
    return fail(Code::refused, "a forked child cannot use its parent's communicator");
  if (failed_.load(std::memory_order_acquire)) return fail(*failure());
  return {};
}

Result<> Communicator::State::begin(Call& call, const Offsets& offsets) {
  MUSTER_TRY_VOID(usable());
  call.number = ++calls_;
  in_call_.store(call.number << operation_bits | static_cast<std::uint64_t>(operation_of(call.kind)),
                 std::memory_order_relaxed);
  deadline_.reset();
  if (local_) local_->announce(call, offsets);
  return {};
}

InFlightCall Communicator::State::in_flight_call() const {
  const std::uint64_t call = in_call_.load(std::memory_order_relaxed);
  const Operation operation = operation_in(call);
  const std::uint64_t number = call >> operation_bits;
  if (operation != Operation::none) return {operation, number, number - 1};
  if (const std::uint64_t from = in_receive_.load(std::memory_order_relaxed); from != 0)
    return {Operation::receive, from >> 1, number};
  if (const std::uint64_t to = in_send_.load(std::memory_order_relaxed); to != 0)
    return {Operation::send, to >> 1, number};
  return {Operation::none, 0, number};
}

TimePoint Communicator::State::deadline() {
  if (!deadline_) deadline_ = real_clock().now() + origin_.call_timeout;
  return *deadline_;
}

Result<> Communicator::State::exchange() {
  if (links_.empty()) return {};
  return links_.run({.deadline = deadline(), .stop = &stop_});
}

Result<> Communicator::State::settle() {
  if (links_.empty()) return {};
  return links_.settle({.deadline = deadline(), .stop = &stop_});
}

// A wait on one acceptor must not keep the other one from being served.
MessageWait Communicator::State::message_wait(const std::function<Result<>()>& look) const {
  const TimePoint now = real_clock().now();
  return {.start = now, .deadline = now + origin_.call_timeout, .stop = &stop_, .look = look};
}

Result<> Communicator::State::send(std::uint32_t to, SentPieces pieces) {
  MUSTER_TRY_VOID(usable_for_messages());
  const Mark mark(in_send_, std::uint64_t{to} << 1 | 1);
  const Message message = message_of(pieces, {.from = rank(), .to = to});
  const Result<> done = layout_.is_local(to)
                            ? local_pairs_->send(pieces, message, message_wait(look_at_remote_))
                            : remote_pairs_.send(pieces, message, message_wait(look_at_local_));
  if (!done) return fail_group(done.error());
  return {};
}

Result<> Communicator::State::receive(std::uint32_t from, ReceivedPieces pieces) {
  MUSTER_TRY_VOID(usable_for_messages());
  const Mark mark(in_receive_, std::uint64_t{from} << 1 | 1);
  const Message message = message_of(pieces, {.from = from, .to = rank()});
  const Result<> done = layout_.is_local(from)
                            ? local_pairs_->receive(pieces, message, message_wait(look_at_remote_))
                            : remote_pairs_.receive(pieces, message, message_wait(look_at_local_));
  if (!done) return fail_group(done.error());
  return {};
}

// A rank that is alone on its host has no rank to share with.
Result<std::shared_ptr<std::byte>> Communicator::State::shared_buffer(std::size_t size_bytes) {
  MUSTER_TRY_VOID(usable());
  if (local_) return local_->arena().take(size_bytes);
  constexpr std::align_val_t alignment{64};
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(::operator new(size_bytes, alignment)),
                                    [](std::byte* data) { ::operator delete(data, alignment); });
}

Offsets Communicator::State::offsets_of(const void* in, const void* out, std::size_t size_bytes) const {
  if (!local_ || size_bytes <= sizes_.small_size_bytes) return {};
  const auto offset_of = [&](const void* data) {
    return local_->arena().offset_of(static_cast<const std::byte*>(data), size_bytes);
  };
  const Offset of_in = offset_of(in);
  return {.in = of_in, .out = in == out ? of_in : offset_of(out)};
}

}  // namespace muster::collective
