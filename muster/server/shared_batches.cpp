#include "muster/server/shared_batches.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace muster::server {
namespace {

constexpr std::uint64_t place_bytes = 64;  // places begin where a cache line does
constexpr std::uint64_t shared_head_bytes = 4096;
constexpr std::uint64_t shared_limit_bytes = std::uint64_t{1} << 31;

struct Head {
  std::uint64_t token;
  alignas(place_bytes) std::atomic<std::uint64_t> read;
};
static_assert(sizeof(Head) <= shared_head_bytes && std::atomic<std::uint64_t>::is_always_lock_free);

std::uint64_t size_of(const SharedMemory& memory) {
  return shared_head_bytes + memory.to_server_bytes + memory.to_worker_bytes;
}

void write_place(net::ByteWriter& out, const SharedPlace& place) {
  out.number(place.offset);
  out.number(place.size_bytes);
}

SharedPlace read_place(net::ByteReader& in) {
  SharedPlace place;
  place.offset = in.number<std::uint64_t>();
  place.size_bytes = in.number<std::uint64_t>();
  return place;
}

}  // namespace

std::vector<std::byte> encode(const SharedMessage& message) {
  net::ByteWriter out;
  out.number(message.memory);
  write_place(out, message.batch);
  write_place(out, message.answer);
  return out.take();
}

Result<SharedMessage> decode_shared_message(const net::Frame& frame) {
  net::ByteReader in(frame.payload);
  SharedMessage message;
  message.memory = in.number<std::uint64_t>();
  message.batch = read_place(in);
  message.answer = read_place(in);
  MUSTER_TRY_VOID(in.finish("where a batch of a parameter server lies"));
  return message;
}

std::vector<std::byte> encode(const SharedMemory& memory) {
  net::ByteWriter out;
  out.number(memory.token);
  out.number(memory.to_server_bytes);
  out.number(memory.to_worker_bytes);
  return out.take();
}

Result<SharedMemory> decode_shared_memory(const net::Frame& frame) {
  net::ByteReader in(frame.payload);
  SharedMemory memory;
  memory.token = in.number<std::uint64_t>();
  memory.to_server_bytes = in.number<std::uint64_t>();
  memory.to_worker_bytes = in.number<std::uint64_t>();
  MUSTER_TRY_VOID(in.finish("a worker's shared memory"));
  if (std::max(memory.to_server_bytes, memory.to_worker_bytes) > shared_limit_bytes)
    return fail(Code::corrupt, "a worker's shared memory is larger than it may be");
  return memory;
}

// ---- Places

std::optional<SharedPlace> PlaceRing::take(std::uint64_t size_bytes) {
  const std::uint64_t rounded =
      std::max((size_bytes + place_bytes - 1) / place_bytes, std::uint64_t{1}) * place_bytes;
  if (taken_.empty()) next_ = 0;
  const std::uint64_t first = taken_.empty() ? size_bytes_ : taken_.front().offset;
  const bool is_behind =
      !taken_.empty() && next_ > first;  // free is what follows, and what is before the first one
  std::uint64_t at = next_;
  if (is_behind && size_bytes_ - next_ < rounded) at = 0;
  const std::uint64_t end = is_behind && at > 0 ? size_bytes_ : first;
  if (end - at < rounded) return std::nullopt;
  taken_.push_back({.offset = at});
  next_ = at + rounded;
  return SharedPlace{.offset = at, .size_bytes = size_bytes};
}

void PlaceRing::give_back(std::uint64_t offset) {
  const auto place =
      std::find_if(taken_.begin(), taken_.end(), [&](const Taken& each) { return each.offset == offset; });
  if (place == taken_.end()) return;
  place->is_back = true;
  while (!taken_.empty() && taken_.front().is_back) taken_.pop_front();
}

// ---- Memory

Result<SharedBatches> SharedBatches::create(const SharedMemory& memory) {
  MUSTER_TRY(net::Segment segment, net::Segment::create(size_of(memory)));
  new (segment.data()) Head{.token = memory.token, .read = 0};
  return SharedBatches(memory, std::move(segment));
}

Result<SharedBatches> SharedBatches::open(net::ProcessDescriptor descriptor, const SharedMemory& memory) {
  MUSTER_TRY(net::Segment segment, net::Segment::open(std::move(descriptor), size_of(memory)));
  return SharedBatches(memory, std::move(segment));
}

Result<std::uint64_t> SharedBatches::token_of(const net::ProcessDescriptor& descriptor) {
  std::array<std::byte, sizeof(std::uint64_t)> bytes;
  const ssize_t got = ::pread(descriptor.get(), bytes.data(), bytes.size(), 0);
  if (got != static_cast<ssize_t>(bytes.size()))
    return fail_errno("cannot read shared memory that was handed over", got < 0 ? errno : EINVAL);
  return net::load_little<std::uint64_t>(bytes.data());
}

std::atomic<std::uint64_t>& SharedBatches::read() const {
  return reinterpret_cast<Head*>(segment_.data())->read;
}

Result<std::span<std::byte>> SharedBatches::at(const SharedPlace& place, std::uint64_t begin,
                                               std::uint64_t size_bytes) const {
  if (place.offset % place_bytes == 0 && place.size_bytes <= size_bytes &&
      place.offset <= size_bytes - place.size_bytes)
    return std::span(segment_.data() + shared_head_bytes + begin + place.offset, place.size_bytes);
  return fail(Code::corrupt,
              fmt::format("a batch of a parameter server lies at byte {} of {} in shared memory",
                          place.offset, size_bytes));
}

}  // namespace muster::server
