// A visit to a scheduler, or to a doctor, by a process that is no part of the job.
//
// Threads: one; every call blocks, up to its limit.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "muster/cluster/messages.h"
#include "muster/net/net.h"

namespace muster::cluster {

class Visit {
 public:
  struct Options {
    Duration limit = std::chrono::seconds(3);  // until it is connected
    net::ConnectionSecurity security = {};
  };

  // Connected, and with TLS the other side is who was expected. The error says how that failed: refused, no
  // answer, unreachable, the certificate.
  static Result<std::unique_ptr<Visit>> open(net::Loop& loop, const Clock& clock, const net::Address& address,
                                             const Options& options);

  // Sends without waiting.
  void say(MessageBody body);
  // The next message; Refuse is an error. So is a scheduler that says nothing within `limit`, and a peer
  // who does not speak as one.
  Result<Message> hear(Duration limit);
  Result<Message> ask(MessageBody body, Duration limit);

 private:
  Visit(net::Loop& loop, const Clock& clock, net::Address address)
      : loop_(loop), clock_(clock), address_(std::move(address)) {}
  bool wait(Duration limit, const std::function<bool()>& done);

  net::Loop& loop_;
  const Clock& clock_;
  net::Address address_;
  bool is_open_ = false;
  std::optional<Error> closed_ = {};
  std::deque<Result<Message>> heard_ = {};
  std::unique_ptr<net::Connection> connection_;  // last: its events touch the others
};

}  // namespace muster::cluster
