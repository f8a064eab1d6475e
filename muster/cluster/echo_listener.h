// Echo listener: answers processes that measure the network path to this one.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "muster/cluster/messages.h"
#include "muster/net/net.h"

namespace muster::cluster {

class Observers;

// Threads: that of its loop. It answers Echo, a bounded number on each connection, and nothing else.
class EchoListener {
 public:
  // On a free port.
  static Result<std::unique_ptr<EchoListener>> open(net::Loop& loop, const Clock& clock,
                                                    const std::string& ip,
                                                    std::shared_ptr<const net::Security> security);
  ~EchoListener();

  const net::Address& address() const { return listener_->address(); }
  // The time of the last answer.
  TimePoint last_served() const { return last_served_; }

 private:
  explicit EchoListener(const Clock& clock);
  void accept(std::unique_ptr<net::Connection> connection);
  void answer(PeerId id, const net::Frame& frame);
  void drop(PeerId id);

  const Clock& clock_;
  std::unique_ptr<Observers> observers_;
  PeerId next_ = 1;
  TimePoint last_served_;
  std::map<PeerId, std::unique_ptr<net::Connection>> connections_;
  std::unique_ptr<net::ConnectionListener> listener_;
};

}  // namespace muster::cluster
