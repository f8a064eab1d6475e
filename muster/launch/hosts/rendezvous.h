// The rendezvous of a job's hosts, where every host runs a launcher of its own: all tell all what they have
// to know before anything starts, and from then on the connections are leases. The first host listens and
// knows when the job is over; the others come to it. Byte by byte: docs/formats/rendezvous.md.
//
// Ownership: a Rendezvous owns a thread, which has every signal blocked, and its sockets; they are closed in
// forked children. Threads: all calls belong to one.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/launch/hosts/rendezvous_hub.h"
#include "muster/launch/lease.h"
#include "muster/net/net.h"

namespace muster::launch {

struct RendezvousOptions {
  const Clock& clock;      // borrowed
  std::int64_t hosts = 1;  // of the job
  std::string preset = {};
  std::string openness = {};  // what unauthorized peers can do without `security`, for people
  HostReport own = {};        // without the address
  net::HostPort place = {};   // of the first host
  std::string bind = {};      // where the first host listens, if not at its own addresses of `place`
  std::shared_ptr<const net::Security> security = {};  // null: plain
  RendezvousTimes times = {};
  // Lines for people. Called on the rendezvous' thread.
  std::function<void(const std::string&)> say = {};
};

// What the rendezvous' thread tells the supervisor's.
class RendezvousOutcome;
class RendezvousSide;

class Rendezvous final : public Lease {
 public:
  static Result<std::unique_ptr<Rendezvous>> open(RendezvousOptions options);
  // Says goodbye to the others, for which it waits a second at most.
  ~Rendezvous() override;

  // What each host has told, by index, once all have come. It ends early, with Code::aborted, when one of
  // `abort_fds` becomes readable.
  Result<std::vector<HostReport>> wait(std::span<const int> abort_fds);

  int fd() const override;
  std::optional<End> take() override;
  void work_ended(int exit_code) override;

 private:
  Rendezvous();
  class Thread;
  std::unique_ptr<RendezvousOutcome> outcome_;
  std::unique_ptr<Thread> thread_;
};

}  // namespace muster::launch
