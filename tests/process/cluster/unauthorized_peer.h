// Somebody who knows the frames, and says to a scheduler what it likes.
#pragma once

#include <deque>
#include <memory>

#include "muster/cluster/cluster.h"
#include "muster/cluster/wire.h"
#include "muster/net/net.h"

namespace muster::process_test {

class UnauthorizedPeer {
 public:
  explicit UnauthorizedPeer(std::uint16_t port, std::shared_ptr<const net::Security> security = {})
      : connection_(net::Connection::connect(
            loop_, {"127.0.0.1", port},
            {.payload_size_bytes = cluster::scheduler_payload_limit_bytes, .unsent_size_bytes = 1 << 20},
            {.opened = [this] { is_open_ = true; },
             .received =
                 [this](const net::Frame& frame) { heard_.push_back(cluster::decode_message(frame)); },
             .closed = [this](const Error&) { is_closed_ = true; }},
            {.security = std::move(security),
             .expected = {.hosts = {"127.0.0.1"}, .node_id = std::string(net::scheduler_node_id)}})) {}

  void say(const cluster::Message& message) {
    wait([this] { return is_open_ || is_closed_; });
    connection_->send(std::make_shared<const std::vector<std::byte>>(cluster::encode_message(message)));
  }
  // Nothing: the connection has ended, or ten seconds have passed.
  std::optional<cluster::Message> hear() {
    wait([this] { return !heard_.empty() || is_closed_; });
    if (heard_.empty() || !heard_.front()) return std::nullopt;
    cluster::Message message = *std::move(heard_.front());
    heard_.pop_front();
    return message;
  }

 private:
  template <class Done>
  void wait(Done done) {
    const TimePoint deadline = real_clock().now() + std::chrono::seconds(10);
    while (!done() && real_clock().now() < deadline) loop_.run_for(std::chrono::milliseconds(2));
  }

  net::Loop loop_;
  std::deque<Result<cluster::Message>> heard_ = {};
  bool is_open_ = false;
  bool is_closed_ = false;
  std::unique_ptr<net::Connection> connection_;  // last: its events touch the others
};

}  // namespace muster::process_test
