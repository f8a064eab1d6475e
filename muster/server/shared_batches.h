// Shared batches: memory of a worker that a parameter server of its host maps, too. Batches lie there, and
// the socket carries where they are (docs/formats/parameter-server.md). Private to server.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "muster/net/net.h"

namespace muster::server {

struct SharedPlace {
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  friend bool operator==(const SharedPlace&, const SharedPlace&) = default;
};

// What a frame says whose batch lies in shared memory.
struct SharedMessage {
  std::uint64_t memory = 0;  // its token
  SharedPlace batch = {};
  SharedPlace answer = {};  // of a pull: where its rows may be written; of no size: nowhere
};
std::vector<std::byte> encode(const SharedMessage& message);
Result<SharedMessage> decode_shared_message(const net::Frame& frame);

// What a worker says of memory whose descriptor it has sent.
struct SharedMemory {
  std::uint64_t token = 0;  // drawn; its first bytes, too
  std::uint64_t to_server_bytes = 0;
  std::uint64_t to_worker_bytes = 0;
};
std::vector<std::byte> encode(const SharedMemory& memory);
Result<SharedMemory> decode_shared_memory(const net::Frame& frame);

// Places in a ring of bytes, which are taken one after the other and given back in any order.
class PlaceRing {
 public:
  explicit PlaceRing(std::uint64_t size_bytes) : size_bytes_(size_bytes) {}

  // Nothing: there is no room now.
  std::optional<SharedPlace> take(std::uint64_t size_bytes);
  void give_back(std::uint64_t offset);
  bool is_idle() const { return taken_.empty(); }
  std::uint64_t size_bytes() const { return size_bytes_; }

 private:
  struct Taken {
    std::uint64_t offset;
    bool is_back = false;
  };
  std::uint64_t size_bytes_;
  std::uint64_t next_ = 0;
  std::deque<Taken> taken_;
};

// A mapping of such memory: a page of its token and of how many batches the server has read, then the
// worker's batches, then the server's.
class SharedBatches {
 public:
  static Result<SharedBatches> create(const SharedMemory& memory);
  static Result<SharedBatches> open(net::ProcessDescriptor descriptor, const SharedMemory& memory);
  // Of a descriptor that was handed over.
  static Result<std::uint64_t> token_of(const net::ProcessDescriptor& descriptor);

  const SharedMemory& memory() const { return memory_; }
  int descriptor() const { return segment_.fd(); }
  std::atomic<std::uint64_t>& read() const;
  // Code::corrupt where there is no such place.
  Result<std::span<std::byte>> to_server(const SharedPlace& place) const {
    return at(place, 0, memory_.to_server_bytes);
  }
  Result<std::span<std::byte>> to_worker(const SharedPlace& place) const {
    return at(place, memory_.to_server_bytes, memory_.to_worker_bytes);
  }

 private:
  SharedBatches(SharedMemory memory, net::Segment segment) : memory_(memory), segment_(std::move(segment)) {}
  Result<std::span<std::byte>> at(const SharedPlace& place, std::uint64_t begin,
                                  std::uint64_t size_bytes) const;

  SharedMemory memory_;
  net::Segment segment_;
};

}  // namespace muster::server
