#include "muster/cluster/echo_listener.h"

#include "muster/cluster/host.h"
#include "muster/cluster/observers.h"
#include "muster/cluster/wire.h"

namespace muster::cluster {
namespace {

constexpr std::size_t connections_max = 2 * doctors_max;
constexpr net::ConnectionLimits limits{.payload_size_bytes = node_payload_limit_bytes,
                                       .unsent_size_bytes = 2 * echo_budget_bytes};

}  // namespace

EchoListener::EchoListener(const Clock& clock) : clock_(clock), observers_(std::make_unique<Observers>()) {}

EchoListener::~EchoListener() = default;

Result<std::unique_ptr<EchoListener>> EchoListener::open(net::Loop& loop, const Clock& clock,
                                                         const std::string& ip,
                                                         std::shared_ptr<const net::Security> security) {
  std::unique_ptr<EchoListener> made(new EchoListener(clock));
  const auto accepted = [self = made.get()](auto connection) { self->accept(std::move(connection)); };
  MUSTER_TRY(made->listener_, net::ConnectionListener::open(loop, {ip, 0}, limits, accepted,
                                                            {.security = std::move(security)}));
  return made;
}

void EchoListener::accept(std::unique_ptr<net::Connection> connection) {
  if (connections_.size() >= connections_max) return;
  const PeerId id = next_++;
  net::Connection& accepted = *(connections_[id] = std::move(connection));
  accepted.set_events({.received = [this, id](const net::Frame& frame) { answer(id, frame); },
                       .closed = [this, id](const Error&) { drop(id); }});
}

void EchoListener::answer(PeerId id, const net::Frame& frame) {
  const auto message = decode_message(frame);
  const auto* asked = message ? std::get_if<message::Echo>(&message->body) : nullptr;
  if (asked == nullptr || !observers_->may_echo(id, asked->filling.size())) return drop(id);
  last_served_ = clock_.now();
  connections_.at(id)->send(
      std::make_shared<const std::vector<std::byte>>(encode_message({0, 0, stamped(*asked)})));
}

void EchoListener::drop(PeerId id) {
  connections_.erase(id);
  observers_->left(id);
}

}  // namespace muster::cluster
