// How the ranks of a group find each other: every rank connects to the lower ranks of other hosts, once
// for collective calls and once for messages, and to the first rank of its own host, and accepts the others.
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
#include "muster/collective/remote_pairs.h"

namespace muster::collective {

struct Connections {
  std::vector<Link> links;                 // to the ranks of other hosts, by rank
  std::vector<MessageLink> message_links;  // likewise
  std::optional<LocalGroup> local;         // absent for a rank that is alone on its host
};

class Rendezvous {
 public:
  // `group` and `listener` are borrowed. `shape` is this host's.
  Rendezvous(const Group& group, Listener& listener, LocalShape shape, const Options& options);
  Result<Connections> meet();

 private:
  struct Guest {  // who connected and has not yet said who it is
    net::Guests::Id id;
    net::Socket socket;
    bool local = false;
    bool is_refused = false;  // it is only given time to hear why
    std::vector<std::byte> bytes;
  };
  struct Peer {
    std::uint32_t rank;
    Purpose purpose;
    net::Socket socket;
  };
  Result<> connect_to_hosts();
  Result<> connect_to_first();
  Result<> accept_all();
  Result<> take_new_guests();
  void drop_overdue_guests();
  Result<net::Readiness> wait_for_guests(std::span<pollfd> polled) const;
  Result<> hear_guests(const std::vector<pollfd>& polled);
  // Whether the guest is done with: welcomed, refused or gone.
  Result<bool> hear(Guest& guest);
  Result<bool> hear_hello(Guest& guest);
  // A step of the handshake; false while it is not through, or will never be.
  bool believe(Guest& guest);
  bool secure_guest(net::Socket& socket);
  static bool drain(Guest& guest);
  Result<> welcome(Guest& guest, const Hello& hello);
  std::string reason_to_refuse(const Guest& guest, const Hello& hello) const;
  void refuse(Guest& guest, const std::string& reason);
  Result<> await_welcome(net::Socket& socket, std::uint32_t rank);
  Result<> await_all_welcomes();
  Result<> secure(net::Socket& socket, std::uint32_t rank) const;
  Result<> send_hello(net::Socket& socket, std::uint32_t to, Purpose purpose);

  bool is_local(std::uint32_t rank) const;
  bool is_first() const { return shape_.local_rank == 0; }
  std::string name(std::uint32_t rank) const;
  bool has_met(std::uint32_t rank, Purpose purpose) const;
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
  std::vector<Guest> guests_;
  net::Guests guest_rules_;
  net::Guests::Id last_guest_ = 0;
  net::LineLimit stranger_lines_;
  net::LineLimit refusal_lines_;
};

}  // namespace muster::collective
