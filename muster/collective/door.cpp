#include "muster/collective/door.h"

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

Result<std::unique_ptr<Door>> Door::open(std::shared_ptr<const Group> group,
                                         std::vector<std::uint32_t> linked, Listener listener,
                                         std::shared_ptr<const net::Security> security) {
  MUSTER_TRY(net::Bell bell, net::Bell::create());
  std::unique_ptr<Door> door(
      new Door(std::move(group), std::move(linked), std::move(listener.tcp_), security, std::move(bell)));
  MUSTER_TRY(Reception reception,
             Reception::create({.tcp = door->tcp_}, {.own = door->origin(),
                                                     .members = message_ways * door->group_->endpoints.size(),
                                                     .security = std::move(security)}));
  door->reception_.emplace(std::move(reception));
  return door;
}

Door::Door(std::shared_ptr<const Group> group, std::vector<std::uint32_t> linked, net::TcpListener tcp,
           std::shared_ptr<const net::Security> security, net::Bell bell)
    : group_(std::move(group)),
      linked_(std::move(linked)),
      tcp_(std::move(tcp)),
      security_(std::move(security)),
      bell_(std::move(bell)) {}

std::string Door::name(std::uint32_t rank) const {
  const Endpoint& endpoint = group_->endpoints[rank];
  return fmt::format("rank {} ({})", rank, net::to_string(net::Address{endpoint.address, endpoint.port}));
}

std::optional<Door::Caller> Door::take_caller(const Line& line) {
  const std::lock_guard lock(mutex_);
  auto found = callers_.extract({line.rank, line.purpose});
  has_news_ = !callers_.empty() || !wishes_.empty();
  if (found.empty() || found.mapped().generation <= line.generation) return std::nullopt;
  return std::move(found.mapped());
}

bool Door::take_wish_to_be_called(const Line& line) {
  const std::lock_guard lock(mutex_);
  const auto found = wishes_.extract({line.rank, line.purpose});
  has_news_ = !callers_.empty() || !wishes_.empty();
  return !found.empty() && found.mapped() == line.generation;
}

std::vector<Door::Key> Door::news() const {
  const std::lock_guard lock(mutex_);
  std::vector<Key> keys;
  for (const auto& [key, caller] : callers_) keys.push_back(key);
  for (const auto& [key, generation] : wishes_) keys.push_back(key);
  return keys;
}

Redial Door::redial(const Line& line) const {
  const bool calls_it = calls(line.rank);
  return {{.endpoint = group_->endpoints[line.rank], .name = name(line.rank), .security = security_},
          {.origin = origin(),
           .from = group_->rank,
           .to = line.rank,
           .size = static_cast<std::uint32_t>(group_->endpoints.size()),
           .purpose = line.purpose,
           .wish = calls_it ? Wish::resume : Wish::be_called,
           .generation = line.generation,
           .received_bytes = line.received_bytes}};
}

Result<> Door::welcome(net::Socket& socket, std::uint64_t received_bytes) const {
  return socket.send_all(encode_welcome(origin(), {.received_bytes = received_bytes}),
                         {.deadline = real_clock().now()});  // so little goes at once
}

void Door::end_calls(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  calls_over_ = reason;
  for (auto& [key, caller] : callers_)
    if (key.second == Purpose::calls) reception_->refuse(caller.socket, no_more_calls(reason));
  std::erase_if(callers_, [](const auto& each) { return each.first.second == Purpose::calls; });
  has_news_ = !callers_.empty() || !wishes_.empty();
}

void Door::shut() {
  tcp_.shut();
  const std::lock_guard lock(mutex_);
  is_shut_ = true;
  reception_->close();
  callers_.clear();
}

TimePoint Door::deadline() const {
  const std::lock_guard lock(mutex_);
  return reception_->deadline();
}

void Door::serve() {
  const std::lock_guard lock(mutex_);
  if (is_shut_) return;
  for (Reception::Visitor& visitor : reception_->hear())
    if (const auto done = let_in(visitor); !done) reception_->refuse(visitor.socket, done.error().message);
  has_news_ = !callers_.empty() || !wishes_.empty();
}

// Connections for messages are made with the first one.
bool Door::is_awaited(const Hello& hello) const {
  const bool remote = group_->endpoints[hello.from].host_key != group_->endpoints[group_->rank].host_key;
  const bool wished = calls(hello.from) ? hello.wish == Wish::be_called : hello.wish == Wish::resume;
  const bool exists = hello.purpose == Purpose::calls ? std::ranges::binary_search(linked_, hello.from)
                                                      : hello.purpose <= all_purposes.back();
  return remote && wished && exists;
}

// Who wishes to be called goes on to listen on this connection only for whether we are still there.
Result<> Door::let_in(Reception::Visitor& visitor) {
  const Hello& hello = visitor.hello;
  MUSTER_TRY_VOID(check_hello(hello, visitor.socket, *group_));
  if (!is_awaited(hello))
    return fail(Code::refused, fmt::format("rank {} is not awaited by rank {} in the middle of an epoch",
                                           hello.from, group_->rank));
  if (hello.purpose == Purpose::calls && calls_over_) return fail(Code::refused, no_more_calls(*calls_over_));
  const Key key{hello.from, hello.purpose};
  if (hello.wish == Wish::be_called) {
    wishes_[key] = std::max(wishes_[key], hello.generation);
    static_cast<void>(welcome(visitor.socket, 0));  // else it asks again
    return {};
  }
  if (const auto known = callers_.find(key);
      known != callers_.end() && known->second.generation >= hello.generation)
    return {};
  callers_.insert_or_assign(key, Caller{.socket = std::move(visitor.socket),
                                        .generation = hello.generation,
                                        .received_bytes = hello.received_bytes});
  return {};
}

}  // namespace muster::collective
