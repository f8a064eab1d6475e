#include "muster/server/link_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

namespace muster::server {
namespace {

// Two batches fit, so that one can be written while another one is read.
constexpr std::uint64_t batches_at_once = 2;
constexpr std::uint64_t least_ring_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t largest_ring_bytes = std::uint64_t{1} << 29;
// The server is there, or there is nothing of that name.
constexpr std::size_t local_name_max = 256;
constexpr Duration patience_for_server = std::chrono::milliseconds(200);

std::uint64_t ring_bytes(std::uint64_t batch_bytes) {
  return std::max(std::bit_ceil(batch_bytes * batches_at_once), least_ring_bytes);
}

}  // namespace

struct LinkMemory::Shared {
  explicit Shared(SharedBatches made)
      : batches(std::move(made)),
        to_server(batches.memory().to_server_bytes),
        to_worker(batches.memory().to_worker_bytes) {}

  void reap() {
    const std::uint64_t read = batches.read().load(std::memory_order_acquire);
    for (; !unread.empty() && unread.front().first < read; unread.pop_front())
      to_server.give_back(unread.front().second);
  }

  SharedBatches batches;
  std::mutex mutex;  // rows may be forgotten on another thread than that of the calls
  bool is_taken = false;
  PlaceRing to_server;
  PlaceRing to_worker;
  std::uint64_t written = 0;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> unread;  // number and offset
  std::map<std::uint32_t, std::uint64_t> awaited;              // offset of the answer, by serial
};

void LinkMemory::close() {
  shared_.reset();
  name_.clear();
}

Result<bool> LinkMemory::hear(const net::Frame& frame, std::optional<std::size_t> least_bytes) {
  net::ByteReader in(frame.payload);
  switch (static_cast<FrameType>(frame.header.type)) {
    case FrameType::memory_offer: {
      std::string name = in.text(local_name_max);
      MUSTER_TRY_VOID(in.finish("an offer of shared memory"));
      if (least_bytes) name_ = std::move(name);
      least_bytes_ = least_bytes.value_or(0);
      return true;
    }
    case FrameType::memory_taken: {
      const auto token = in.number<std::uint64_t>();
      MUSTER_TRY_VOID(in.finish("an answer about shared memory"));
      if (shared_ != nullptr && shared_->batches.memory().token == token) shared_->is_taken = true;
      return true;
    }
    default:
      return false;
  }
}

void LinkMemory::make(const Outgoing& outgoing, const Send& send) {
  SharedMemory wanted{.token = entropy(),
                      .to_server_bytes = ring_bytes(outgoing.batch.size()),
                      .to_worker_bytes = ring_bytes(outgoing.answer_bytes)};
  if (shared_ != nullptr) {  // it grows: both directions keep what they had
    wanted.to_server_bytes = std::max(wanted.to_server_bytes, shared_->to_server.size_bytes());
    wanted.to_worker_bytes = std::max(wanted.to_worker_bytes, shared_->to_worker.size_bytes());
  }
  const TimePoint deadline = real_clock().now() + patience_for_server;
  auto socket = net::Socket::connect_local(name_, {.deadline = deadline});
  if (!socket) {  // it is on another host, or in another network namespace
    log::debug(
        fmt::format("a parameter server shares no memory with this worker: {}", socket.error().message));
    return close();
  }
  auto made = SharedBatches::create(wanted);
  if (!made) return do_without(made.error());
  if (const auto sent = socket->send_fd(made->descriptor(), {.deadline = deadline}); !sent)
    return do_without(sent.error());
  shared_ = std::make_shared<Shared>(*std::move(made));
  send(FrameType::memory, encode(wanted));
}

void LinkMemory::do_without(const Error& error) {
  if (!is_told_)
    log::warning(
        fmt::format("no memory to share with parameter servers of this host: {}. Rows travel through "
                    "sockets, which takes longer: give the container more memory",
                    error.message));
  is_told_ = true;
  close();
}

std::optional<SharedMessage> LinkMemory::put(const Outgoing& outgoing, const Send& send) {
  const std::uint64_t largest = std::max<std::uint64_t>(outgoing.batch.size(), outgoing.answer_bytes);
  if (name_.empty() || largest < least_bytes_ || ring_bytes(largest) > largest_ring_bytes)
    return std::nullopt;
  if (shared_ == nullptr) make(outgoing, send);
  if (shared_ == nullptr || !shared_->is_taken) return std::nullopt;
  std::unique_lock lock(shared_->mutex);
  shared_->reap();
  const bool is_idle = shared_->to_server.is_idle() && shared_->to_worker.is_idle();
  if (is_idle && (outgoing.batch.size() > shared_->to_server.size_bytes() ||
                  outgoing.answer_bytes > shared_->to_worker.size_bytes())) {
    lock.unlock();
    make(outgoing, send);
    return std::nullopt;
  }
  const auto place = shared_->to_server.take(outgoing.batch.size());
  if (!place) return std::nullopt;
  const auto bytes = shared_->batches.to_server(*place);
  std::memcpy(bytes->data(), outgoing.batch.data(), outgoing.batch.size());
  shared_->unread.emplace_back(shared_->written++, place->offset);
  ++batches_;
  SharedMessage message{.memory = shared_->batches.memory().token, .batch = *place};
  if (outgoing.answer_bytes == 0) return message;
  if (const auto answer = shared_->to_worker.take(outgoing.answer_bytes)) {
    message.answer = *answer;
    shared_->awaited[outgoing.serial] = answer->offset;
  }
  return message;
}

void LinkMemory::answered(std::uint32_t serial) {
  if (shared_ == nullptr) return;
  const std::lock_guard lock(shared_->mutex);
  const auto awaited = shared_->awaited.find(serial);
  if (awaited == shared_->awaited.end()) return;
  shared_->to_worker.give_back(awaited->second);
  shared_->awaited.erase(awaited);
}

Result<Rows> LinkMemory::rows_of(net::Frame frame) {
  const bool is_shared = (frame.header.type & shared_bit) != 0;
  const auto type = static_cast<FrameType>(frame.header.type & ~shared_bit);
  if (!is_shared) answered(frame.header.flags);
  MUSTER_TRY(Batch batch, is_shared ? take(frame) : read_batch(std::move(frame.payload)));
  Rows rows{.generation = frame.header.epoch,
            .serial = frame.header.flags,
            .kind = type == FrameType::rows         ? Rows::Kind::whole
                    : type == FrameType::rows_early ? Rows::Kind::early
                                                    : Rows::Kind::changed,
            .applied = batch.applied,
            .since = frame.header.sequence};
  rows.body = std::make_shared<ArrivedRows>(ArrivedRows{std::move(batch)});
  return rows;
}

Result<Batch> LinkMemory::take(const net::Frame& frame) {
  MUSTER_TRY(const SharedMessage message, decode_shared_message(frame));
  const auto shared = shared_;
  // Those of a generation before lie in memory that was given up: their owner drops them.
  if (shared == nullptr || shared->batches.memory().token != message.memory) return Batch{};
  const std::lock_guard lock(shared->mutex);
  const auto awaited = shared->awaited.find(frame.header.flags);
  if (awaited == shared->awaited.end() || awaited->second != message.batch.offset)
    return fail(Code::corrupt, "a parameter server has written rows where none were awaited");
  shared->awaited.erase(awaited);
  MUSTER_TRY(const std::span<std::byte> bytes, shared->batches.to_worker(message.batch));
  MUSTER_TRY(Batch batch, read_batch_at(bytes));
  ++batches_;
  batch.lease = std::shared_ptr<void>(nullptr, [shared, offset = message.batch.offset](void*) {
    const std::lock_guard giving(shared->mutex);
    shared->to_worker.give_back(offset);
  });
  return batch;
}

}  // namespace muster::server
