#include "muster/collective/handshakes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "muster/collective/wait_list.h"

namespace muster::collective {
namespace {

// The system vouches for a peer on the unix socket: it belongs to this user. The rules, to which such peers
// are unknown, do not drop one of them for others.
constexpr net::UnauthenticatedPeers::Id of_this_user = 0;
constexpr int accepted_at_once_max = 64;  // then those who are connected have their turn
constexpr auto pause_when_full = std::chrono::milliseconds(50);
// Were each of a crowd to wake this process, a step would be interrupted as often.
constexpr auto pause_when_flooded = std::chrono::milliseconds(2);

}  // namespace

Result<Handshakes> Handshakes::create(Listeners listeners, Terms terms) {
  MUSTER_TRY(net::PollSet awaited, net::PollSet::create());
  Handshakes made(listeners, std::move(terms), std::move(awaited));
  MUSTER_TRY_VOID(made.open());
  return made;
}

// All members may come at once, besides the unauthorized peers.
Handshakes::Handshakes(Listeners listeners, Terms terms, net::PollSet awaited)
    : listeners_(listeners),
      terms_(std::move(terms)),
      awaited_(std::move(awaited)),
      places_(terms_.limits.count + terms_.members, terms_.members),
      rules_(net::with_places(terms_.limits, places_)) {}

TimePoint Handshakes::deadline() const {
  return std::min(rules_.deadline(), closed_until_.value_or(TimePoint::max()));
}

Result<> Handshakes::open() {
  MUSTER_TRY_VOID(awaited_.add(listeners_.tcp.fd()));
  if (listeners_.local != nullptr) MUSTER_TRY_VOID(awaited_.add(listeners_.local->fd()));
  closed_until_.reset();
  return {};
}

// Who waits to be accepted would wake us again and again.
void Handshakes::close_for(Duration pause) {
  awaited_.remove(listeners_.tcp.fd());
  if (listeners_.local != nullptr) awaited_.remove(listeners_.local->fd());
  closed_until_ = terms_.clock.now() + pause;
}

std::vector<Handshakes::Candidate> Handshakes::hear() {
  std::vector<Candidate> candidates;
  hear_pending(candidates);
  hold_to_limit();
  drop_overdue();
  if (closed_until_ && terms_.clock.now() < *closed_until_) return candidates;
  if (closed_until_ && !open()) {
    close_for(pause_when_full);
    return candidates;
  }
  is_flooded_ = false;
  net::fill_descriptor_reserve();
  take_from(listeners_.tcp, false);
  if (listeners_.local != nullptr) take_from(*listeners_.local, true);
  if (is_flooded_ && !closed_until_) close_for(pause_when_flooded);
  return candidates;
}

void Handshakes::hear_pending(std::vector<Candidate>& candidates) {
  if (pending_.empty()) return;
  WaitList waits;
  for (const Pending& pending : pending_) waits.add(pending.socket.fd(), {.reading = true});
  if (!waits.look()) return;
  std::vector<Pending> staying;
  for (std::size_t i = 0; i < pending_.size(); ++i)
    if (waits.is_ready(i) && hear(pending_[i], candidates))
      rules_.leave(pending_[i].id);
    else
      staying.push_back(std::move(pending_[i]));
  pending_ = std::move(staying);
}

void Handshakes::hold_to_limit() {
  std::vector<net::UnauthenticatedPeers::Id> leaving;
  for (const Pending& pending : pending_)
    if (const auto leaves = rules_.hold(pending.id, pending.bytes.size() + pending.socket.held_size_bytes()))
      leaving.push_back(*leaves);
  for (const net::UnauthenticatedPeers::Id id : leaving) drop(id);
}

void Handshakes::drop_overdue() {
  for (const net::UnauthenticatedPeers::Id id : rules_.overdue(terms_.clock.now())) drop(id);
}

void Handshakes::close() {
  for (const Pending& pending : pending_) rules_.leave(pending.id);
  pending_.clear();
}

void Handshakes::drop(net::UnauthenticatedPeers::Id id) {
  rules_.leave(id);
  std::erase_if(pending_, [&](const Pending& pending) { return pending.id == id; });
}

template <class ListenerOfAKind>
void Handshakes::take_from(ListenerOfAKind& listener, bool local) {
  for (int count = 0; count < accepted_at_once_max; ++count) {
    net::Arrival arrival = listener.accept();
    if (arrival.socket)
      take(*std::move(arrival.socket), local);
    else if (!arrival.lacks_descriptor || !make_room())
      return;
  }
}

bool Handshakes::make_room() {
  if (const auto first = rules_.first_to_go(terms_.clock.now())) {
    drop(*first);
    return true;
  }
  if (net::give_up_reserved_descriptor()) return true;
  if (const auto more = lack_lines_.take(terms_.clock.now()))
    log::warning(fmt::format("new connections to {} have to wait: {}{}",
                             net::to_string(listeners_.tcp.address()), net::no_descriptor_is_free, *more));
  close_for(pause_when_full);
  return false;
}

void Handshakes::take(net::Socket socket, bool local) {
  const TimePoint now = terms_.clock.now();
  const net::UnauthenticatedPeers::Id id = local ? of_this_user : ++last_id_;
  const std::string& peer = socket.peer();
  if (!local)
    if (const auto leaves = rules_.arrive(id, peer.substr(0, peer.rfind(':')), now)) {
      is_flooded_ = true;
      drop(*leaves);
    }
  if (!awaited_.add(socket.fd())) return rules_.leave(id);
  if (terms_.security) rules_.expect_handshake(id, now);
  pending_.push_back({.id = id, .socket = std::move(socket), .local = local, .bytes = {}});
}

bool Handshakes::hear(Pending& pending, std::vector<Candidate>& candidates) {
  if (pending.is_refused) return drain(pending);
  if (terms_.security && !pending.is_begun && !secure(pending)) return true;
  if (terms_.security && !believe(pending)) return false;
  return hear_hello(pending, candidates);
}

// Without a usable revocation list no peer is admitted; it may come in time. A silent peer costs no TLS.
bool Handshakes::secure(Pending& pending) {
  const auto begun = pending.socket.begin_tls({.security = terms_.security, .listens = true});
  pending.is_begun = begun.has_value();
  if (begun) return true;
  if (const auto more = rejection_lines_.take(terms_.clock.now()))
    log::warning(
        fmt::format("refused a connection of {}: {}{}", pending.socket.peer(), begun.error().message, *more));
  return false;
}

bool Handshakes::believe(Pending& pending) {
  if (pending.is_secured) return true;
  const auto through = pending.socket.shake_hands();
  if (through && *through) {
    pending.is_secured = true;
    rules_.secured(pending.id);
  }
  if (through) return *through;
  const bool is_plain = pending.socket.spoke_plain();
  if (is_plain) {
    pending.socket.end_tls();
    refuse(pending.socket, through.error().message);
  } else if (const auto more = rejection_lines_.take(terms_.clock.now())) {
    log::warning(fmt::format("refused a connection: {}{}", through.error().message, *more));
  }
  // Closing at once could discard what was said last.
  pending.socket.finish_sending();
  pending.is_refused = true;
  return false;
}

bool Handshakes::drain(Pending& pending) {
  std::array<std::byte, 4096> ignored;
  const iovec piece{.iov_base = ignored.data(), .iov_len = ignored.size()};
  pending.socket.end_tls();
  return !pending.socket.receive_some({&piece, 1});
}

void Handshakes::answer_tls(Pending& pending) {
  const auto answer = net::answer_to_tls();
  static_cast<void>(pending.socket.send_all(answer, {.deadline = terms_.clock.now()}));
  if (const auto more = rejection_lines_.take(terms_.clock.now()))
    log::warning(fmt::format("closed a connection from {}, which uses TLS while this job does not{}",
                             pending.socket.peer(), *more));
  pending.socket.finish_sending();
  pending.is_refused = true;
}

bool Handshakes::hear_hello(Pending& pending, std::vector<Candidate>& candidates) {
  const std::size_t have = pending.bytes.size();
  pending.bytes.resize(hello_size_bytes);
  const iovec piece{.iov_base = pending.bytes.data() + have, .iov_len = hello_size_bytes - have};
  const auto received = pending.socket.receive_some({&piece, 1});
  if (!received) return true;
  pending.bytes.resize(have + *received);
  if (!terms_.security && net::begins_tls(pending.bytes)) {
    answer_tls(pending);
    return false;
  }
  if (pending.bytes.size() < hello_size_bytes) return false;
  // A peer that does not even speak our frames is closed without an answer.
  const auto hello = decode_hello(std::span(pending.bytes).first<hello_size_bytes>());
  if (hello) {
    awaited_.remove(pending.socket.fd());
    candidates.push_back({.socket = std::move(pending.socket), .local = pending.local, .hello = *hello});
  } else if (const auto more = rejection_lines_.take(terms_.clock.now())) {
    log::warning(fmt::format("closed a connection from {} that is no member of the group{}",
                             pending.socket.peer(), *more));
  }
  return true;
}

void Handshakes::refuse(net::Socket& socket, const std::string& reason) {
  if (const auto more = refusal_lines_.take(terms_.clock.now()))
    log::warning(fmt::format("refused {}: {}{}", socket.peer(), reason, *more));
  const auto bytes = encode_refusal(terms_.own, reason);
  const iovec piece{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  static_cast<void>(socket.send_some({&piece, 1}));  // best effort: it is closed either way
}

}  // namespace muster::collective
