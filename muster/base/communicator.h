// The processes of a group and the calls between them: the one interface for talking. `collective` implements
// it over shared memory and connections; graphs, trainings and tests use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "muster/base/clock.h"
#include "muster/base/dtype.h"
#include "muster/base/result.h"

namespace muster {

// mean is the sum divided by the world size; for integers the quotient is truncated towards zero. Integer
// sums and products wrap around. max and min of a NaN and anything are NaN. Floats of 16 bits are combined in
// float32 and rounded once. band, bor and bxor take the bits of integers and bools. A sum and a maximum of
// bools are "or", a product and a minimum "and". Its numbers are part of the wire format.
enum class Reduction : std::uint8_t { sum, mean, max, min, product, band, bor, bxor };
inline constexpr Reduction last_reduction = Reduction::bxor;
std::string_view to_string(Reduction reduction);
std::optional<Reduction> reduction_from_string(std::string_view name);
// Whether there is such a reduction of elements of that type: no bits of floats, no mean of bools.
bool can_reduce(DType dtype, Reduction reduction);

// The calls that a heartbeat tells of; its numbers are part of the wire format.
enum class CallKind : std::uint8_t {
  none,
  all_reduce,
  broadcast,
  all_gather,
  barrier,
  send,
  receive,
  reduce,
  reduce_scatter,
  all_to_all,
  gather,
  scatter
};
inline constexpr CallKind last_call_kind = CallKind::scatter;
std::string_view to_string(CallKind kind);  // "" for none

// A look at a group from outside.
struct InFlightCall {
  CallKind kind = CallKind::none;
  std::uint64_t number = 0;    // of a collective call, from 1; of send and receive: the other rank
  std::uint64_t finished = 0;  // collective calls
};

// A message's pieces, one after another; or what goes to each rank, or comes from it, by rank.
using SentPieces = std::span<const std::span<const std::byte>>;
using ReceivedPieces = std::span<const std::span<std::byte>>;

// A group as one of its ranks sees it. A group need not be able to make every call: what it does not override
// is an error that names the call. Calls block, with a deadline. Buffers are borrowed for the length of a
// call. Threads: collective calls come from one thread at a time, and so do messages to one rank, and
// messages from one rank; all of these may be different threads at the same time. The rest may come from any
// thread.
class Communicator {
 public:
  Communicator() = default;
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t size() const = 0;
  // Among the ranks of this host.
  virtual std::uint32_t local_rank() const { return 0; }
  virtual std::uint32_t local_size() const { return 1; }

  // Collective calls: every rank makes them in the same order, with the same count and dtype.
  // `out` may be `in`, else they must not overlap.
  virtual Result<> all_reduce(const void* in, void* out, std::size_t count, DType dtype, Reduction reduction);
  // The root's bytes to all ranks.
  virtual Result<> broadcast(void* data, std::size_t size_bytes, std::uint32_t root);
  // Each rank's `size_bytes` bytes one after another, in the order of the ranks. `in` may be this rank's
  // place in `out`.
  virtual Result<> all_gather(const void* in, void* out, std::size_t size_bytes);
  // As all_reduce; `out` is written at the root alone, and may be null elsewhere.
  virtual Result<> reduce(const void* in, void* out, std::size_t count, DType dtype, Reduction reduction,
                          std::uint32_t root);
  // `in` holds `count` elements for each rank, in the order of the ranks; `out` gets the combination of what
  // all ranks have for this one. `out` may be this rank's place in `in`.
  virtual Result<> reduce_scatter(const void* in, void* out, std::size_t count, DType dtype,
                                  Reduction reduction);
  // Each rank's bytes to all, by rank, of any sizes; every rank gives the same sizes. `in` may be this rank's
  // piece of `out`.
  virtual Result<> all_gather(std::span<const std::byte> in, ReceivedPieces out);
  // `in` has what goes to each rank, `out` what comes from each, by rank: pieces of the same size everywhere.
  // They must not overlap.
  virtual Result<> all_to_all(SentPieces in, ReceivedPieces out);
  // The same with pieces of any sizes, which two ranks agree about; it first tells all ranks the sizes.
  virtual Result<> all_to_all_uneven(SentPieces in, ReceivedPieces out);
  // Each rank's bytes, as many of each, to the root; `out` is by rank there, and empty elsewhere.
  virtual Result<> gather(std::span<const std::byte> in, ReceivedPieces out, std::uint32_t root);
  // The root's pieces, of one size, to the ranks; `in` is by rank there, and empty elsewhere.
  virtual Result<> scatter(SentPieces in, std::span<std::byte> out, std::uint32_t root);
  // Returns when every rank has called it.
  virtual Result<> barrier();
  // The group of the ranks that give the same color, numbered from 0 in the order of their ranks here. It is
  // as independent of this one as two groups can be: neither's end ends the other, and calls of both may go
  // on at the same time.
  virtual Result<std::unique_ptr<Communicator>> split(std::uint32_t color);

  // Messages of each ordered pair of ranks arrive in the order in which they were sent, whatever goes on in
  // collective calls and between other ranks. send() returns when the bytes are on their way, and may return
  // only when the other side receives them. The receiver gives the same sizes, or it is an error that names
  // the ranks.
  virtual Result<> send(std::uint32_t to, SentPieces pieces);
  virtual Result<> receive(std::uint32_t from, ReceivedPieces pieces);

  // Whether all_reduce needs fewer copies in memory of shared_buffer(). It may change when the group ends.
  virtual bool shares_memory() const { return local_size() > 1; }
  // Such memory, in whole pages; it may outlive the group. An error where none is left, and after the end.
  virtual Result<std::shared_ptr<std::byte>> shared_buffer(std::size_t size_bytes);

  // Of the calls that begin after it; they have a deadline from the beginning.
  virtual void set_call_timeout(Duration) {}
  virtual Duration call_timeout() const { return std::chrono::minutes(10); }
  // What some thread is in now: a collective call rather than a message.
  virtual InFlightCall in_flight_call() const { return {}; }
  // Ends the group: waiting calls of every rank return within milliseconds and fail; the first reason stays.
  virtual void abort(Error) {}
  // This rank makes no more calls: a rank that waits for it fails within milliseconds, and so does every
  // collective call. Messages go on: what it sent is still received, and the others may send to each other.
  virtual void leave(Error) {}
};

}  // namespace muster
