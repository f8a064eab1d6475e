// Public header of `collective`: operations that all ranks of a group take part in together, and messages
// from one rank to another.
//
// Ranks with equal host keys share memory, others talk TCP, both at once in one group. The bits of a result
// depend on the world size and the ranks only: values are combined element by element in the order of the
// ranks, starting with rank 0's, whatever the transport, the layout over hosts or the chunking.
//
// Every rank makes the same collective calls in the same order. Calls that do not match, a peer that is gone,
// a passed deadline and abort() end the group: the call fails with the reason, and so does every later call
// on every rank. A connection between hosts that breaks while both ranks live is made again. What a failed
// call leaves in its output is undefined. A new group starts with new Listeners.
//
// Ownership: a Communicator owns its connections and memory; buffers are borrowed for the length of a call. A
// shared buffer may outlive it. Threads: collective calls come from one thread at a time, so do calls of
// send(), and so do calls of receive(); that may be three threads, at the same time. abort(), leave() and
// shared_buffer() may come from any thread, and shared buffers may be dropped on any. In a forked child every
// call fails, and shared buffers are its parent's.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"
#include "muster/net/net.h"

namespace muster::collective {

// Where one rank is reached. Ranks with equal host keys must be able to share memory (net::host_key).
struct Endpoint {
  std::string host_key;
  std::string address;  // numeric IP
  std::uint16_t port = 0;
  std::string local_name;       // of its Listener, for ranks with the same host key
  net::Identity identity = {};  // the identity that its certificate must have, where there are certificates
};

// The most ranks of a group.
inline constexpr std::size_t ranks_max = 16384;

struct Group {
  std::uint64_t epoch = 0;
  std::uint64_t job_id = 0;
  std::uint32_t rank = 0;
  std::vector<Endpoint> endpoints;  // by rank
};

// Where peers connect to. Open it before telling others its port and name; it queues peers that come early.
class Listener {
 public:
  // On a numeric address of this host; "0.0.0.0" and "::" listen on all.
  static Result<Listener> open(const std::string& address);
  const std::string& address() const { return tcp_.address().ip; }
  std::uint16_t port() const { return tcp_.address().port; }
  const std::string& local_name() const { return local_.name(); }

 private:
  friend class Rendezvous;
  friend class ReconnectAcceptor;
  Listener(net::TcpListener tcp, net::LocalListener local) : tcp_(std::move(tcp)), local_(std::move(local)) {}
  net::TcpListener tcp_;
  net::LocalListener local_;
};

// mean is the sum divided by the world size; for integers the quotient is truncated towards zero. Integer
// sums wrap around. max and min of a NaN and anything are NaN.
enum class Reduction : std::uint8_t { sum, mean, max, min };
std::string_view to_string(Reduction reduction);

struct Options {
  Duration connect_timeout = std::chrono::minutes(1);  // for connect(), all peers together
  Duration call_timeout = std::chrono::minutes(10);    // for each call
  const net::StopSignal* stop = nullptr;               // ends connect() early; borrowed for its length
  // Of all connections; the same kind on every rank. Null: plain. Memory that ranks share is not encrypted.
  std::shared_ptr<const net::Security> security = {};
};

// What a call is.
enum class Operation : std::uint8_t { none, all_reduce, broadcast, all_gather, barrier, send, receive };

// A look at a group from outside.
struct InFlightCall {
  Operation operation = Operation::none;
  std::uint64_t number = 0;    // of a collective call, from 1; of send and receive: the other rank
  std::uint64_t finished = 0;  // collective calls
};

class Communicator {
 public:
  // Connects to all other ranks; returns when all are connected. Errors name the ranks and their addresses.
  static Result<std::unique_ptr<Communicator>> connect(Group group, Listener listener, Options options = {});
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // `out` may be `in`, else they must not overlap. float32, float64, int32 and int64.
  Result<> all_reduce(const void* in, void* out, std::size_t count, DType dtype, Reduction reduction);
  // The root's bytes to all ranks.
  Result<> broadcast(void* data, std::size_t size_bytes, std::uint32_t root);
  // Each rank's `size_bytes` bytes one after another, in the order of the ranks. `in` may be this rank's
  // place in `out`.
  Result<> all_gather(const void* in, void* out, std::size_t size_bytes);
  // Returns when every rank has called it.
  Result<> barrier();

  // A collective call: the group of the ranks that give the same color, numbered from 0 in the order of their
  // ranks here. It is as independent of this one as two groups can be: neither's end ends the other, and
  // calls of both may go on at the same time.
  Result<std::unique_ptr<Communicator>> split(std::uint32_t color);

  // One message from this rank to another: its pieces, one after another. Messages of each ordered pair
  // arrive in the order in which they were sent, whatever goes on in collective calls and between other
  // ranks. send() returns when the bytes are on their way, and may return only when the other side receives
  // them: ranks that send and receive all messages of the group in one order never block each other. The
  // receiver gives the same sizes, or the group ends with an error that names both.
  Result<> send(std::uint32_t to, std::span<const std::span<const std::byte>> pieces);
  Result<> receive(std::uint32_t from, std::span<const std::span<std::byte>> pieces);

  // Memory, in whole pages, that the ranks of this host reach: an all_reduce whose `in` and `out` lie in such
  // memory on every rank needs no copies, and one of them alone saves some. Each rank has its own; none
  // need know of the others'. An error where no memory is left, and after the group has ended.
  Result<std::shared_ptr<std::byte>> shared_buffer(std::size_t size_bytes);

  // Ends the group: waiting calls of every rank return within milliseconds and fail; the first reason stays.
  void abort(Error reason);
  // This rank makes no more calls: a rank that waits for it fails within milliseconds, and so does every
  // collective call. Messages go on: what it sent is still received, and the others may send to each other.
  // The destructor does the same.
  void leave(Error reason);

  // What some thread is in now: a collective call rather than a message. Any thread; it costs a call two
  // stores.
  InFlightCall in_flight_call() const;

  std::uint32_t rank() const;
  std::uint32_t size() const;
  // Among the ranks with the same host key.
  std::uint32_t local_rank() const;
  std::uint32_t local_size() const;

 private:
  class State;
  explicit Communicator(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace muster::collective
