#include <fmt/format.h>

#include "muster/net/descriptor_limit.h"
#include "muster/net/loop_implementation.h"

namespace muster::net {

UnauthenticatedPeers::Id UnauthenticatedPool::arrive(const std::string& ip) {
  const UnauthenticatedPeers::Id id = ++last_id_;
  const auto leaves = unauthenticated_.arrive(id, ip, real_clock().now());
  if (leaves)
    drop(*leaves, fmt::format("a newer connection took its place: {} had not identified themselves",
                              unauthenticated_.limits().count));
  wait();
  return id;
}

void UnauthenticatedPool::seat(UnauthenticatedPeers::Id id,
                               const std::shared_ptr<Connection::Implementation>& connection) {
  connections_[id] = connection;
}

void UnauthenticatedPool::hold(UnauthenticatedPeers::Id id, std::size_t size_bytes) {
  if (const auto leaves = unauthenticated_.hold(id, size_bytes))
    drop(*leaves,
         fmt::format("connections that had not identified themselves had sent {} bytes, and it most of them",
                     unauthenticated_.limits().held_size_bytes));
}

void UnauthenticatedPool::leave_unread(UnauthenticatedPeers::Id id, std::size_t size_bytes) {
  if (const auto leaves = unauthenticated_.leave_unread(id, size_bytes))
    drop(*leaves, fmt::format("connections that had not identified themselves had not read {} bytes of their "
                              "answers, and it most of them",
                              unauthenticated_.limits().unread_size_bytes));
}

void UnauthenticatedPool::leave(UnauthenticatedPeers::Id id) {
  unauthenticated_.leave(id);
  connections_.erase(id);
}

bool UnauthenticatedPool::make_room(const std::string& why) {
  const auto first = unauthenticated_.first_to_go(real_clock().now());
  if (!first) return give_up_reserved_descriptor();
  drop(*first, why);
  return true;
}

void UnauthenticatedPool::drop(UnauthenticatedPeers::Id id, const std::string& why) {
  const auto found = connections_.find(id);
  const bool is_pending = found == connections_.end();
  const auto connection = is_pending ? nullptr : found->second.lock();
  leave(id);
  if (is_pending && drop_pending_) drop_pending_(id, why);
  if (connection)
    connection->close(
        {Code::refused, fmt::format("closed the connection of {}: {}", to_string(connection->peer()), why)});
}

// The deadlines come in the order in which the unauthenticated peers came, so one timer does for all.
void UnauthenticatedPool::wait() {
  if (waits_ || unauthenticated_.count() == 0) return;
  waits_ = true;
  timer_.expires_at(unauthenticated_.deadline());
  timer_.async_wait([pool = weak_from_this()](const asio::error_code& error) {
    if (const auto self = pool.lock(); self && !error) self->drop_overdue();
  });
}

void UnauthenticatedPool::drop_overdue() {
  waits_ = false;
  const std::chrono::duration<double> time = unauthenticated_.limits().time;
  for (const UnauthenticatedPeers::Id id : unauthenticated_.overdue(real_clock().now()))
    drop(id, fmt::format("it did not identify itself within {:.3g} s", time.count()));
  wait();
}

}  // namespace muster::net
