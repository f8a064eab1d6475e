// How the ranks of a group find each other: every rank connects to the lower ranks of other hosts, once
// for each purpose, and to the first rank of its own host, and accepts the others.
//
// Byte by byte: docs/formats/collective.md.
#pragma once

#include <optional>
#include <vector>

#include "muster/base/base.h"
#include "muster/collective/collective.h"
#include "muster/collective/exchange.h"
#include "muster/collective/hello.h"
#include "muster/collective/local_group.h"
#include "muster/collective/reception.h"

namespace muster::collective {

struct Connections {
  std::vector<Connected> links;             // to the ranks of other hosts, by rank
  std::vector<Connected> messages_to_them;  // likewise
  std::vector<Connected> messages_to_us;    // likewise
  std::optional<LocalGroup> local;          // absent for a rank that is alone on its host
};

class Rendezvous {
 public:
  // `group` and `listener` are borrowed. `shape` is this host's.
  Rendezvous(const Group& group, Listener& listener, LocalShape shape, const Options& options);
  Result<Connections> meet();

 private:
  struct Peer {
    std::uint32_t rank;
    Purpose purpose;
    net::Socket socket;
    bool is_welcomed = false;
  };
  Result<> connect_to_hosts();
  Result<> connect_to(std::uint32_t rank, Purpose purpose);
  // For a connection that the other side has let go.
  Result<net::Socket> call_again(std::uint32_t rank, Purpose purpose);
  Result<> connect_to_first();
  Result<> accept_all();
  Result<> welcome(Reception::Visitor visitor);
  std::string reason_to_refuse(const Reception::Visitor& visitor) const;
  Result<> await_welcome(net::Socket& socket, std::uint32_t rank);
  Result<> await_all_welcomes();
  Result<> secure(net::Socket& socket, std::uint32_t rank) const;
  Result<> send_hello(net::Socket& socket, std::uint32_t to, Purpose purpose);
  Hello hello(std::uint32_t to, Purpose purpose) const;

  bool is_local(std::uint32_t rank) const;
  bool is_first() const { return shape_.local_rank == 0; }
  std::string name(std::uint32_t rank) const;
  bool has_met(std::uint32_t rank, Purpose purpose) const;
  Connections connections();
  std::vector<std::uint32_t> missing() const;
  FrameOrigin origin() const { return {.epoch = group_.epoch, .job_id = group_.job_id}; }

  const Group& group_;
  Listener& listener_;
  LocalShape shape_;
  net::Wait wait_;
  Duration timeout_;
  const std::shared_ptr<const net::Security> security_;  // null: plain
  std::optional<LocalGroup> local_;
  std::optional<net::Socket> first_;      // to the first rank of this host, when that is another
  std::vector<Peer> hosts_;               // connected, by us or by them
  std::vector<std::uint32_t> local_met_;  // by the first rank of a host: who has the memory
  std::optional<Reception> reception_;    // while it meets
};

}  // namespace muster::collective
