#include "muster/collective/reception.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::collective {
namespace {

// Strangers may connect too. They are limited like those of the scheduler, and all members may come at once.
net::GuestLimits guest_limits(std::size_t members) {
  net::GuestLimits limits;
  limits.count += members;
  return limits;
}
constexpr int accepted_at_once_max = 64;  // then those who are connected have their turn

}  // namespace

Result<Reception> Reception::create(Listeners listeners, Terms terms) {
  MUSTER_TRY(net::PollSet awaited, net::PollSet::create());
  MUSTER_TRY_VOID(awaited.add(listeners.tcp.fd()));
  if (listeners.local != nullptr) MUSTER_TRY_VOID(awaited.add(listeners.local->fd()));
  return Reception(listeners, std::move(terms), std::move(awaited));
}

Reception::Reception(Listeners listeners, Terms terms, net::PollSet awaited)
    : listeners_(listeners),
      terms_(std::move(terms)),
      awaited_(std::move(awaited)),
      rules_(guest_limits(terms_.members)) {}

Result<std::vector<Reception::Visitor>> Reception::hear() {
  std::vector<Visitor> visitors;
  MUSTER_TRY_VOID(hear_guests(visitors));
  drop_overdue();
  MUSTER_TRY_VOID(take_new());
  return visitors;
}

Result<> Reception::hear_guests(std::vector<Visitor>& visitors) {
  if (guests_.empty()) return {};
  std::vector<pollfd> polled;
  for (const Guest& guest : guests_)
    polled.push_back({.fd = guest.socket.fd(), .events = POLLIN, .revents = 0});
  polled.emplace_back();
  MUSTER_TRY_VOID(net::poll_until(polled, {.deadline = real_clock().now()}));
  std::vector<Guest> staying;
  for (std::size_t i = 0; i < guests_.size(); ++i)
    if (polled[i].revents != 0 && hear(guests_[i], visitors))
      rules_.leave(guests_[i].id);
    else
      staying.push_back(std::move(guests_[i]));
  guests_ = std::move(staying);
  return {};
}

void Reception::drop_overdue() {
  for (const net::Guests::Id id : rules_.overdue(real_clock().now())) {
    std::erase_if(guests_, [&](const Guest& guest) { return guest.id == id; });
    rules_.leave(id);
  }
}

Result<> Reception::take_new() {
  MUSTER_TRY_VOID(take_from(listeners_.tcp, false));
  return listeners_.local == nullptr ? Result<>{} : take_from(*listeners_.local, true);
}

template <class ListenerOfAKind>
Result<> Reception::take_from(ListenerOfAKind& listener, bool local) {
  for (int count = 0; count < accepted_at_once_max; ++count) {
    MUSTER_TRY(auto socket, listener.accept());
    if (!socket) return {};
    const std::string& peer = socket->peer();
    const auto leaves = rules_.arrive(++last_guest_, peer.substr(0, peer.rfind(':')), real_clock().now());
    if (leaves) std::erase_if(guests_, [&](const Guest& guest) { return guest.id == *leaves; });
    if (!secure(*socket)) continue;
    MUSTER_TRY_VOID(awaited_.add(socket->fd()));
    guests_.push_back({.id = last_guest_, .socket = *std::move(socket), .local = local, .bytes = {}});
  }
  return {};
}

bool Reception::hear(Guest& guest, std::vector<Visitor>& visitors) {
  if (guest.is_refused) return drain(guest);
  if (terms_.security && !believe(guest)) return false;
  return hear_hello(guest, visitors);
}

// Without a usable revocation list nobody is let in; it may come in time.
bool Reception::secure(net::Socket& socket) {
  if (!terms_.security) return true;
  const auto begun = socket.begin_tls({.security = terms_.security, .listens = true});
  if (begun) return true;
  if (const auto more = stranger_lines_.take(real_clock().now()))
    log::warning(
        fmt::format("refused a connection of {}: {}{}", socket.peer(), begun.error().message, *more));
  return false;
}

bool Reception::believe(Guest& guest) {
  const auto through = guest.socket.shake_hands();
  if (through) return *through;
  const bool is_plain = guest.socket.spoke_plain();
  if (is_plain) {
    guest.socket.end_tls();
    refuse(guest.socket, through.error().message);
  } else if (const auto more = stranger_lines_.take(real_clock().now())) {
    log::warning(fmt::format("refused a connection: {}{}", through.error().message, *more));
  }
  // Closing at once could discard what was said last.
  guest.socket.finish_sending();
  guest.is_refused = true;
  return false;
}

bool Reception::drain(Guest& guest) {
  std::array<std::byte, 4096> ignored;
  const iovec piece{.iov_base = ignored.data(), .iov_len = ignored.size()};
  guest.socket.end_tls();
  return !guest.socket.receive_some({&piece, 1});
}

void Reception::answer_tls(Guest& guest) {
  const auto answer = net::answer_to_tls();
  static_cast<void>(guest.socket.send_all(answer, {.deadline = real_clock().now()}));
  if (const auto more = stranger_lines_.take(real_clock().now()))
    log::warning(fmt::format("closed a connection from {}, which uses TLS while this job does not{}",
                             guest.socket.peer(), *more));
  guest.socket.finish_sending();
  guest.is_refused = true;
}

bool Reception::hear_hello(Guest& guest, std::vector<Visitor>& visitors) {
  const std::size_t have = guest.bytes.size();
  guest.bytes.resize(hello_size_bytes);
  const iovec piece{.iov_base = guest.bytes.data() + have, .iov_len = hello_size_bytes - have};
  const auto received = guest.socket.receive_some({&piece, 1});
  if (!received) return true;
  guest.bytes.resize(have + *received);
  if (!terms_.security && net::begins_tls(guest.bytes)) {
    answer_tls(guest);
    return false;
  }
  if (guest.bytes.size() < hello_size_bytes) return false;
  // Whoever does not even speak our frames is closed without a word.
  const auto hello = decode_hello(std::span(guest.bytes).first<hello_size_bytes>());
  if (hello) {
    awaited_.remove(guest.socket.fd());
    visitors.push_back({.socket = std::move(guest.socket), .local = guest.local, .hello = *hello});
  } else if (const auto more = stranger_lines_.take(real_clock().now())) {
    log::warning(fmt::format("closed a connection from {} that is no member of the group{}",
                             guest.socket.peer(), *more));
  }
  return true;
}

void Reception::refuse(net::Socket& socket, const std::string& reason) {
  if (const auto more = refusal_lines_.take(real_clock().now()))
    log::warning(fmt::format("refused {}: {}{}", socket.peer(), reason, *more));
  const auto bytes = encode_refusal(terms_.own, reason);
  const iovec piece{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  static_cast<void>(socket.send_some({&piece, 1}));  // best effort: it is closed either way
}

}  // namespace muster::collective
