// Public header of `collective`: groups of ranks (Communicator, in base) over shared memory and connections.
//
// Ranks with equal host keys share memory, others talk TCP or UCX, both at once in one group. The bits of a
// result depend on the world size and the ranks only: values are combined element by element in the order of
// the ranks, starting with rank 0's, whatever the transport, the layout over hosts or the chunking.
//
// Every rank makes the same collective calls in the same order. Calls that do not match, a peer that is gone,
// a passed deadline and abort() end the group: the call fails with the reason, and so does every later call
// on every rank. A connection between hosts that breaks while both ranks live is made again. What a failed
// call leaves in its output is undefined. A new group starts with new Listeners.
//
// Ownership: a Communicator owns its connections and memory. In a forked child every call fails, and shared
// buffers are its parent's.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/collective/async_group.h"  // IWYU pragma: export
#include "muster/net/net.h"

namespace muster::telemetry {
class FlightRecorder;
}

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

// What moves bytes between hosts. Never UCX where there is security.
enum class Transport {
  tcp,
  ucx,        // UCX demanded: connect() fails without it
  automatic,  // UCX where it finds RDMA devices on both hosts, else TCP
};

struct Group {
  std::uint64_t epoch = 0;
  std::uint64_t job_id = 0;
  std::uint32_t rank = 0;
  std::vector<Endpoint> endpoints;       // by rank
  Transport transport = Transport::tcp;  // the same kind on every rank
};

// What UCX is here: its version, and the devices that it found and may use ("tcp/eth0", "rc_mlx5/mlx5_0:1").
struct UcxState {
  std::string name;
  std::vector<std::string> devices;
  bool has_rdma = false;
};
Result<UcxState> ucx_state();

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

struct Options {
  Duration connect_timeout = std::chrono::minutes(1);  // for connect(), all peers together
  Duration call_timeout = std::chrono::minutes(10);    // for each call
  const net::StopSignal* stop = nullptr;               // ends connect() early; borrowed for its length
  // Of all connections; the same kind on every rank. Null: plain. Memory that ranks share is not encrypted.
  std::shared_ptr<const net::Security> security = {};
  // A broadcast ends on its root only when all have come to it, of any size: for who makes calls again that
  // were cut. The same on every rank.
  bool roots_wait = false;
  // Large pieces are read in the memory of the other processes of this host, where the system lets each read
  // each; else, or where one rank does not want it, they go through shared memory. The bits are the same.
  bool reads_neighbours = true;
  const Clock& clock = real_clock();  // borrowed; of all deadlines, but for how long the system lets sleep
  // Of the calls and messages of this group and of those that are split off it; null: they are not recorded.
  std::shared_ptr<telemetry::FlightRecorder> recorder = {};
};

// Connects to all other ranks; returns when all are connected. Errors name the ranks and their addresses.
// What reduces takes every dtype. The destructor leaves.
Result<std::unique_ptr<Communicator>> connect(Group group, Listener listener, Options options = {});

// Several buffers in one call: small ones of one dtype are one message, side by side. Their bits are those of
// a call for each. Every rank gives as many, of the same sizes and dtypes, in the same order.
struct Reduced {
  const void* in = nullptr;
  void* out = nullptr;    // may be `in`
  std::size_t count = 0;  // of elements; of reduce_scatter: of those of each rank
  DType dtype = DType::float32;
};
Result<> all_reduce(Communicator& group, std::span<const Reduced> buffers, Reduction reduction);
Result<> reduce_scatter(Communicator& group, std::span<const Reduced> buffers, Reduction reduction);
struct Gathered {
  const void* in = nullptr;
  void* out = nullptr;         // as large as the group times
  std::size_t size_bytes = 0;  // this
};
Result<> all_gather(Communicator& group, std::span<const Gathered> buffers);

// A group of some ranks of another one, which those alone call for.
struct Members {
  std::string name;                  // another one for each group that exists
  std::vector<std::uint32_t> ranks;  // in the group that all are of; their order is the new group's
};
// "group 'left' (ranks 0, 2)".
std::string to_string(const Members& members);

// Connects the members, who find each other by messages of `all`, the group of `origin`, on a channel of
// their own; each gives the same members, or it is an error that names both sides'. As independent of the
// other as two groups can be.
Result<std::unique_ptr<Communicator>> connect_some(AsyncGroup& all, const Group& origin,
                                                   const Members& members, Listener listener,
                                                   Options options = {});

}  // namespace muster::collective
