#include "muster/collective/reconnect_acceptor.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::collective {
namespace {

// Between two ranks: connections that may be made as long as the group lives.
constexpr std::size_t message_ways = all_purposes.size() - 1;

std::string no_more_calls(const std::string& reason) {
  return fmt::format("no more calls can be made: {}", reason);
}

}  // namespace

Result<std::unique_ptr<ReconnectAcceptor>> ReconnectAcceptor::open(
    std::shared_ptr<const Group> group, std::vector<std::uint32_t> linked, Listener listener,
    std::shared_ptr<const net::Security> security, const Clock& clock) {
  MUSTER_TRY(net::Bell bell, net::Bell::create());
  MUSTER_TRY(const LinkOffer offer, link_offer(group->transport, security.get()));
  std::unique_ptr<ReconnectAcceptor> acceptor(new ReconnectAcceptor(std::move(group), std::move(linked),
                                                                    std::move(listener.tcp_), security, offer,
                                                                    std::move(bell), clock));
  MUSTER_TRY(Handshakes handshakes,
             Handshakes::create({.tcp = acceptor->tcp_},
                                {.clock = clock,
                                 .own = acceptor->origin(),
                                 .members = message_ways * acceptor->group_->endpoints.size(),
                                 .security = std::move(security)}));
  acceptor->handshakes_.emplace(std::move(handshakes));
  return acceptor;
}

ReconnectAcceptor::ReconnectAcceptor(std::shared_ptr<const Group> group, std::vector<std::uint32_t> linked,
                                     net::TcpListener tcp, std::shared_ptr<const net::Security> security,
                                     LinkOffer offer, net::Bell bell, const Clock& clock)
    : group_(std::move(group)),
      linked_(std::move(linked)),
      tcp_(std::move(tcp)),
      security_(std::move(security)),
      offer_(offer),
      bell_(std::move(bell)),
      clock_(clock) {}

std::string ReconnectAcceptor::name(std::uint32_t rank) const {
  const Endpoint& endpoint = group_->endpoints[rank];
  return fmt::format("rank {} ({})", rank, net::to_string(net::Address{endpoint.address, endpoint.port}));
}

std::optional<ReconnectAcceptor::Reconnection> ReconnectAcceptor::take_reconnection(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  auto found = reconnections_.extract({stream.rank, stream.purpose});
  has_news_ = !reconnections_.empty() || !reconnect_requests_.empty();
  if (found.empty() || found.mapped().generation <= stream.generation) return std::nullopt;
  return std::move(found.mapped());
}

bool ReconnectAcceptor::take_reconnect_request(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  const auto found = reconnect_requests_.extract({stream.rank, stream.purpose});
  has_news_ = !reconnections_.empty() || !reconnect_requests_.empty();
  return !found.empty() && found.mapped() == stream.generation;
}

std::vector<ReconnectAcceptor::Key> ReconnectAcceptor::news() const {
  const std::lock_guard lock(mutex_);
  std::vector<Key> keys;
  for (const auto& [key, reconnection] : reconnections_) keys.push_back(key);
  for (const auto& [key, generation] : reconnect_requests_) keys.push_back(key);
  return keys;
}

Reconnector ReconnectAcceptor::reconnector(const Stream& stream) const {
  const bool calls_it = calls(stream.rank);
  return {{.endpoint = group_->endpoints[stream.rank], .name = name(stream.rank), .security = security_},
          {.origin = origin(),
           .from = group_->rank,
           .to = stream.rank,
           .size = static_cast<std::uint32_t>(group_->endpoints.size()),
           .purpose = stream.purpose,
           .intent = calls_it ? Intent::resume : Intent::ask_for_reconnect,
           .generation = stream.generation,
           .received_bytes = stream.received_bytes,
           .link = offer_},
          clock_};
}

Result<> ReconnectAcceptor::welcome(Reconnection& reconnection, std::uint64_t received_bytes) const {
  return answer(reconnection.socket, {.received_bytes = received_bytes, .link = reconnection.kind});
}

Result<> ReconnectAcceptor::answer(net::Socket& socket, const Welcome& welcome) const {
  return socket.send_all(encode_welcome(origin(), welcome),
                         {.deadline = clock_.now()});  // so little goes at once
}

void ReconnectAcceptor::end_calls(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  calls_over_ = reason;
  for (auto& [key, reconnection] : reconnections_)
    if (key.second == Purpose::calls) handshakes_->refuse(reconnection.socket, no_more_calls(reason));
  std::erase_if(reconnections_, [](const auto& each) { return each.first.second == Purpose::calls; });
  has_news_ = !reconnections_.empty() || !reconnect_requests_.empty();
}

void ReconnectAcceptor::shut() {
  tcp_.shut();
  const std::lock_guard lock(mutex_);
  is_shut_ = true;
  handshakes_->close();
  reconnections_.clear();
}

TimePoint ReconnectAcceptor::deadline() const {
  const std::lock_guard lock(mutex_);
  return handshakes_->deadline();
}

void ReconnectAcceptor::serve() {
  const std::lock_guard lock(mutex_);
  if (is_shut_) return;
  admit_all(handshakes_->hear());
}

void ReconnectAcceptor::take(std::vector<Handshakes::Candidate> early) {
  const std::lock_guard lock(mutex_);
  admit_all(std::move(early));
}

void ReconnectAcceptor::admit_all(std::vector<Handshakes::Candidate> candidates) {
  for (Handshakes::Candidate& candidate : candidates)
    if (const auto done = admit(candidate); !done)
      handshakes_->refuse(candidate.socket, done.error().message);
  has_news_ = !reconnections_.empty() || !reconnect_requests_.empty();
}

// Connections for messages are made with the first one.
bool ReconnectAcceptor::is_awaited(const Hello& hello) const {
  const bool remote = group_->endpoints[hello.from].host_key != group_->endpoints[group_->rank].host_key;
  const bool is_expected =
      calls(hello.from) ? hello.intent == Intent::ask_for_reconnect : hello.intent == Intent::resume;
  const bool exists = hello.purpose == Purpose::calls ? std::ranges::binary_search(linked_, hello.from)
                                                      : hello.purpose <= all_purposes.back();
  return remote && is_expected && exists;
}

// A peer that asks to be reconnected to keeps this connection only to learn whether this rank is still there.
Result<> ReconnectAcceptor::admit(Handshakes::Candidate& candidate) {
  const Hello& hello = candidate.hello;
  MUSTER_TRY_VOID(check_hello(hello, candidate.socket, *group_));
  if (!is_awaited(hello))
    return fail(Code::refused, fmt::format("rank {} is not awaited by rank {} in the middle of an epoch",
                                           hello.from, group_->rank));
  if (hello.purpose == Purpose::calls && calls_over_) return fail(Code::refused, no_more_calls(*calls_over_));
  MUSTER_TRY(const LinkKind kind, link_between(hello.link, offer_, hello.from, group_->rank));
  const Key key{hello.from, hello.purpose};
  if (hello.intent == Intent::ask_for_reconnect) {
    reconnect_requests_[key] = std::max(reconnect_requests_[key], hello.generation);
    static_cast<void>(answer(candidate.socket, {}));  // else it asks again
    return {};
  }
  if (const auto known = reconnections_.find(key);
      known != reconnections_.end() && known->second.generation >= hello.generation)
    return {};
  reconnections_.insert_or_assign(key, Reconnection{.socket = std::move(candidate.socket),
                                                    .generation = hello.generation,
                                                    .received_bytes = hello.received_bytes,
                                                    .kind = kind});
  return {};
}

}  // namespace muster::collective
