// Messages between two ranks of one host, through the rings of pair_memory.h: the sender copies in, the
// receiver copies out, and while both are at it neither makes a system call. A message that is larger than
// the ring goes through it in pieces. Threads: of each ordered pair one at a time.
#pragma once

#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "muster/base/base.h"
#include "muster/collective/kernels.h"
#include "muster/collective/local_group.h"
#include "muster/collective/message.h"
#include "muster/collective/message_wait.h"
#include "muster/collective/pair_memory.h"
#include "muster/collective/store_choice.h"
#include "muster/collective/waiting.h"

namespace muster::collective {

class LocalPairs {
 public:
  // `group` is borrowed.
  explicit LocalPairs(const LocalGroup& group);

  // The ranks of `message` are local; it gets its number here.
  Result<> send(SentPieces pieces, Message message, const MessageWait& wait);
  Result<> receive(ReceivedPieces pieces, Message message, const MessageWait& wait);

  // Ends all messages of this host's ranks; the first reason stays. Any thread.
  void abort(const Error& reason);
  // This rank sends and receives no more. What it has sent is still received. Any thread.
  void leave();
  // The same of another rank, whose process has ended. Any thread.
  void lose(std::uint32_t place);
  // Why messages have ended, once they have. Any thread.
  std::optional<Error> ended() const;

 private:
  struct Copying {  // of the message at hand
    Stores stores = Stores::cached;
    bool timed = false;
    Duration busy{};
    void copy(const Clock& clock, std::byte* to, const std::byte* from, std::size_t size_bytes);
  };
  struct Outgoing {
    Ring* ring = nullptr;
    std::uint64_t number = 0;   // of the last message
    std::uint64_t written = 0;  // in the ring
    struct Timed {
      std::uint64_t number = 0;  // 0: none
      std::size_t size_bytes = 0;
      Duration busy{};
    } timed;
    Copying copying;
    StoreChoice store_choice;
  };
  struct Incoming {
    net::Mapping mapping;
    Ring* ring = nullptr;
    std::uint64_t number = 0;
    std::uint64_t read = 0;
    Copying copying;
  };

  Result<> make_ring(Outgoing& way, std::uint32_t to);
  Result<std::atomic<Offset>*> ring_places();
  void begin_timing(Outgoing& way, const Message& message);
  Result<> write(Outgoing& way, std::span<const std::byte> bytes, const Message& message,
                 const MessageWait& wait);
  void publish(Outgoing& way, std::uint32_t to);

  Result<> open_ring(Incoming& way, const Message& message, const MessageWait& wait);
  Result<> read(Incoming& way, std::span<std::byte> bytes, const Message& message, const MessageWait& wait);
  void publish(Incoming& way, std::uint32_t from);

  // Returns when `ready()`, which `place` brings about and rings `bell` of this rank's seat for.
  template <class Ready>
  Result<> await(std::uint32_t place, Bell Seat::*bell, Ready&& ready, const Message& message,
                 const MessageWait& wait);
  bool is_over(std::uint32_t place) const;
  Result<> check_peer(std::uint32_t place, const Message& message) const;
  Error broken(const Message& message) const;
  void mark(std::uint32_t place, Left how);
  void wake(std::uint32_t place, Bell Seat::*bell);
  std::uint32_t own_place() const { return group_.local_rank(); }

  const LocalGroup& group_;
  PairMemory memory_;
  ShortWait short_wait_;
  std::mutex ring_places_mutex_;
  std::atomic<Offset>* ring_places_ = nullptr;  // guarded by the mutex; null before the first message
  std::vector<Outgoing> outgoing_;              // by local rank
  std::vector<Incoming> incoming_;              // likewise
};

}  // namespace muster::collective
