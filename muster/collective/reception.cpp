#include "muster/collective/reception.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::collective {
namespace {

// The system vouches for who comes by the unix socket: such guests are no strangers, and the rules, to which
// they are unknown, do not drive them out for strangers.
constexpr net::UnauthenticatedPeers::Id of_this_user = 0;
constexpr int accepted_at_once_max = 64;  // then those who are connected have their turn
constexpr auto pause_when_full = std::chrono::milliseconds(50);
// Were each of a crowd to wake this process, a step would be interrupted as often.
constexpr auto pause_when_flooded = std::chrono::milliseconds(2);

}  // namespace

Result<Reception> Reception::create(Listeners listeners, Terms terms) {
  MUSTER_TRY(net::PollSet awaited, net::PollSet::create());
  Reception made(listeners, std::move(terms), std::move(awaited));
  MUSTER_TRY_VOID(made.open());
  return made;
}

// All members may come at once, besides the strangers.
Reception::Reception(Listeners listeners, Terms terms, net::PollSet awaited)
    : listeners_(listeners),
      terms_(std::move(terms)),
      awaited_(std::move(awaited)),
      places_(terms_.limits.count + terms_.members, terms_.members),
      rules_(net::with_places(terms_.limits, places_)) {}

TimePoint Reception::deadline() const {
  return std::min(rules_.deadline(), closed_until_.value_or(TimePoint::max()));
}

Result<> Reception::open() {
  MUSTER_TRY_VOID(awaited_.add(listeners_.tcp.fd()));
  if (listeners_.local != nullptr) MUSTER_TRY_VOID(awaited_.add(listeners_.local->fd()));
  closed_until_.reset();
  return {};
}

// Who waits to be accepted would wake us again and again.
void Reception::close_for(Duration pause) {
  awaited_.remove(listeners_.tcp.fd());
  if (listeners_.local != nullptr) awaited_.remove(listeners_.local->fd());
  closed_until_ = real_clock().now() + pause;
}

std::vector<Reception::Visitor> Reception::hear() {
  std::vector<Visitor> visitors;
  hear_guests(visitors);
  hold_to_limit();
  drop_overdue();
  if (closed_until_ && real_clock().now() < *closed_until_) return visitors;
  if (closed_until_ && !open()) {
    close_for(pause_when_full);
    return visitors;
  }
  is_flooded_ = false;
  net::fill_descriptor_reserve();
  take_from(listeners_.tcp, false);
  if (listeners_.local != nullptr) take_from(*listeners_.local, true);
  if (is_flooded_ && !closed_until_) close_for(pause_when_flooded);
  return visitors;
}

void Reception::hear_guests(std::vector<Visitor>& visitors) {
  if (guests_.empty()) return;
  std::vector<pollfd> polled;
  for (const UnauthenticatedPeer& guest : guests_)
    polled.push_back({.fd = guest.socket.fd(), .events = POLLIN, .revents = 0});
  polled.emplace_back();
  if (!net::poll_until(polled, {.deadline = real_clock().now()})) return;  // no memory: in the next turn
  std::vector<UnauthenticatedPeer> staying;
  for (std::size_t i = 0; i < guests_.size(); ++i)
    if (polled[i].revents != 0 && hear(guests_[i], visitors))
      rules_.leave(guests_[i].id);
    else
      staying.push_back(std::move(guests_[i]));
  guests_ = std::move(staying);
}

void Reception::hold_to_limit() {
  std::vector<net::UnauthenticatedPeers::Id> leaving;
  for (const UnauthenticatedPeer& guest : guests_)
    if (const auto leaves = rules_.hold(guest.id, guest.bytes.size() + guest.socket.held_size_bytes()))
      leaving.push_back(*leaves);
  for (const net::UnauthenticatedPeers::Id id : leaving) drop(id);
}

void Reception::drop_overdue() {
  for (const net::UnauthenticatedPeers::Id id : rules_.overdue(real_clock().now())) drop(id);
}

void Reception::close() {
  for (const UnauthenticatedPeer& guest : guests_) rules_.leave(guest.id);
  guests_.clear();
}

void Reception::drop(net::UnauthenticatedPeers::Id id) {
  rules_.leave(id);
  std::erase_if(guests_, [&](const UnauthenticatedPeer& guest) { return guest.id == id; });
}

template <class ListenerOfAKind>
void Reception::take_from(ListenerOfAKind& listener, bool local) {
  for (int count = 0; count < accepted_at_once_max; ++count) {
    net::Arrival arrival = listener.accept();
    if (arrival.socket)
      take(*std::move(arrival.socket), local);
    else if (!arrival.lacks_descriptor || !make_room())
      return;
  }
}

bool Reception::make_room() {
  if (const auto first = rules_.first_to_go(real_clock().now())) {
    drop(*first);
    return true;
  }
  if (net::give_up_reserved_descriptor()) return true;
  if (const auto more = lack_lines_.take(real_clock().now()))
    log::warning(fmt::format("who connects to {} has to wait: {}{}", net::to_string(listeners_.tcp.address()),
                             net::no_descriptor_is_free, *more));
  close_for(pause_when_full);
  return false;
}

void Reception::take(net::Socket socket, bool local) {
  const TimePoint now = real_clock().now();
  const net::UnauthenticatedPeers::Id id = local ? of_this_user : ++last_guest_;
  const std::string& peer = socket.peer();
  if (!local)
    if (const auto leaves = rules_.arrive(id, peer.substr(0, peer.rfind(':')), now)) {
      is_flooded_ = true;
      drop(*leaves);
    }
  if (!awaited_.add(socket.fd())) return rules_.leave(id);
  if (terms_.security) rules_.expect_handshake(id, now);
  guests_.push_back({.id = id, .socket = std::move(socket), .local = local, .bytes = {}});
}

bool Reception::hear(UnauthenticatedPeer& guest, std::vector<Visitor>& visitors) {
  if (guest.is_refused) return drain(guest);
  if (terms_.security && !guest.is_begun && !secure(guest)) return true;
  if (terms_.security && !believe(guest)) return false;
  return hear_hello(guest, visitors);
}

// Without a usable revocation list nobody is let in; it may come in time. Who is silent costs no TLS.
bool Reception::secure(UnauthenticatedPeer& guest) {
  const auto begun = guest.socket.begin_tls({.security = terms_.security, .listens = true});
  guest.is_begun = begun.has_value();
  if (begun) return true;
  if (const auto more = stranger_lines_.take(real_clock().now()))
    log::warning(
        fmt::format("refused a connection of {}: {}{}", guest.socket.peer(), begun.error().message, *more));
  return false;
}

bool Reception::believe(UnauthenticatedPeer& guest) {
  if (guest.is_secured) return true;
  const auto through = guest.socket.shake_hands();
  if (through && *through) {
    guest.is_secured = true;
    rules_.secured(guest.id);
  }
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

bool Reception::drain(UnauthenticatedPeer& guest) {
  std::array<std::byte, 4096> ignored;
  const iovec piece{.iov_base = ignored.data(), .iov_len = ignored.size()};
  guest.socket.end_tls();
  return !guest.socket.receive_some({&piece, 1});
}

void Reception::answer_tls(UnauthenticatedPeer& guest) {
  const auto answer = net::answer_to_tls();
  static_cast<void>(guest.socket.send_all(answer, {.deadline = real_clock().now()}));
  if (const auto more = stranger_lines_.take(real_clock().now()))
    log::warning(fmt::format("closed a connection from {}, which uses TLS while this job does not{}",
                             guest.socket.peer(), *more));
  guest.socket.finish_sending();
  guest.is_refused = true;
}

bool Reception::hear_hello(UnauthenticatedPeer& guest, std::vector<Visitor>& visitors) {
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
