#include <fmt/format.h>

#include "muster/net/descriptor_limit.h"
#include "muster/net/loop_implementation.h"

namespace muster::net {

Guests::Id GuestRoom::arrive(const std::string& ip) {
  const Guests::Id id = ++last_id_;
  const auto leaves = guests_.arrive(id, ip, real_clock().now());
  if (leaves)
    drop(*leaves, fmt::format("a newer connection took its place: {} had not said who they are",
                              guests_.limits().count));
  wait();
  return id;
}

void GuestRoom::seat(Guests::Id id, const std::shared_ptr<Connection::Implementation>& connection) {
  connections_[id] = connection;
}

void GuestRoom::hold(Guests::Id id, std::size_t size_bytes) {
  if (const auto leaves = guests_.hold(id, size_bytes))
    drop(*leaves,
         fmt::format("connections that had not said who they are had sent {} bytes, and it most of them",
                     guests_.limits().held_size_bytes));
}

void GuestRoom::leave_unread(Guests::Id id, std::size_t size_bytes) {
  if (const auto leaves = guests_.leave_unread(id, size_bytes))
    drop(*leaves, fmt::format("connections that had not said who they are had not read {} bytes of their "
                              "answers, and it most of them",
                              guests_.limits().unread_size_bytes));
}

void GuestRoom::leave(Guests::Id id) {
  guests_.leave(id);
  connections_.erase(id);
}

bool GuestRoom::make_room(const std::string& why) {
  const auto first = guests_.first_to_go(real_clock().now());
  if (!first) return give_up_reserved_descriptor();
  drop(*first, why);
  return true;
}

void GuestRoom::drop(Guests::Id id, const std::string& why) {
  const auto found = connections_.find(id);
  const bool is_in_porch = found == connections_.end();
  const auto connection = is_in_porch ? nullptr : found->second.lock();
  leave(id);
  if (is_in_porch && drop_from_porch_) drop_from_porch_(id, why);
  if (connection)
    connection->close(
        {Code::refused, fmt::format("closed the connection of {}: {}", to_string(connection->peer()), why)});
}

// The deadlines come in the order in which the guests came, so one timer does for all.
void GuestRoom::wait() {
  if (waits_ || guests_.count() == 0) return;
  waits_ = true;
  timer_.expires_at(guests_.deadline());
  timer_.async_wait([room = weak_from_this()](const asio::error_code& error) {
    if (const auto self = room.lock(); self && !error) self->drop_overdue();
  });
}

void GuestRoom::drop_overdue() {
  waits_ = false;
  const std::chrono::duration<double> time = guests_.limits().time;
  for (const Guests::Id id : guests_.overdue(real_clock().now()))
    drop(id, fmt::format("it did not say who it is within {:.3g} s", time.count()));
  wait();
}

}  // namespace muster::net
