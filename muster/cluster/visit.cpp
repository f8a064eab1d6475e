#include "muster/cluster/visit.h"

#include <fmt/format.h>

#include "muster/cluster/wire.h"

namespace muster::cluster {
namespace {

constexpr net::ConnectionLimits limits{.payload_size_bytes = scheduler_payload_limit_bytes,
                                       .unsent_size_bytes = scheduler_payload_limit_bytes};

}  // namespace

Result<std::unique_ptr<Visit>> Visit::open(net::Loop& loop, const Clock& clock, const net::Address& address,
                                           const Options& options) {
  std::unique_ptr<Visit> visit(new Visit(loop, clock, address));
  Visit& self = *visit;
  net::ConnectionEvents events;
  events.opened = [&self] {
    self.is_open_ = true;
    self.loop_.stop();
  };
  events.received = [&self](const net::Frame& frame) {
    self.heard_.push_back(decode_message(frame));
    self.loop_.stop();
  };
  events.closed = [&self](const Error& error) {
    self.closed_ = error;
    self.loop_.stop();
  };
  visit->connection_ = net::Connection::connect(loop, address, limits, std::move(events), options.security);
  self.wait(options.limit, [&self] { return self.is_open_ || self.closed_; });
  if (self.closed_) return fail(*self.closed_);
  if (!self.is_open_)
    return fail(Code::timeout, fmt::format("{}: no answer within {:.2g} s", net::to_string(address),
                                           in_seconds(options.limit)));
  return visit;
}

bool Visit::wait(Duration limit, const std::function<bool()>& done) {
  const TimePoint deadline = clock_.now() + limit;
  while (!done()) {
    const TimePoint now = clock_.now();
    if (now >= deadline) return false;
    loop_.run_for(deadline - now);
  }
  return true;
}

void Visit::say(MessageBody body) {
  connection_->send(std::make_shared<const std::vector<std::byte>>(encode_message({0, 0, std::move(body)})));
}

Result<Message> Visit::hear(Duration limit) {
  if (!wait(limit, [this] { return !heard_.empty() || closed_; }))
    return fail(Code::timeout, fmt::format("{}: the connection stands, but nothing was answered in {:.2g} s",
                                           net::to_string(address_), in_seconds(limit)));
  if (heard_.empty()) return fail(*closed_);
  Result<Message> heard = std::move(heard_.front());
  heard_.pop_front();
  if (heard)
    if (const auto* refusal = std::get_if<message::Refuse>(&heard->body))
      return fail(refusal->failure.code, refusal->failure.message);
  return heard;
}

Result<Message> Visit::ask(MessageBody body, Duration limit) {
  say(std::move(body));
  return hear(limit);
}

}  // namespace muster::cluster
