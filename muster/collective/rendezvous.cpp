#include "muster/collective/rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

namespace muster::collective {
namespace {

// Strangers may connect too. They are limited like those of the scheduler, and all ranks may come at once.
net::GuestLimits guest_limits(const Group& group) {
  net::GuestLimits limits;
  limits.count += 2 * group.endpoints.size();
  return limits;
}
constexpr int accepted_at_once_max = 64;  // then those who are connected have their turn

net::FrameHeader header_of(FrameType type, const FrameOrigin& origin) {
  return {.type = static_cast<std::uint16_t>(type), .epoch = origin.epoch, .job_id = origin.job_id};
}

Result<net::Frame> receive_frame(net::Socket& socket, const net::Wait& wait) {
  net::Frame frame;
  net::FrameHeaderBytes head;
  MUSTER_TRY_VOID(socket.receive_all(head, wait));
  MUSTER_TRY(frame.header, net::decode_header(head, refusal_limit_bytes));
  frame.payload.resize(frame.header.payload_size_bytes);
  MUSTER_TRY_VOID(socket.receive_all(frame.payload, wait));
  MUSTER_TRY_VOID(net::check_payload(frame.header, frame.payload));
  return frame;
}

}  // namespace

Rendezvous::Rendezvous(const Group& group, Listener& listener, LocalShape shape, const Options& options)
    : group_(group),
      listener_(listener),
      shape_(std::move(shape)),
      wait_{.deadline = real_clock().now() + options.connect_timeout, .stop = options.stop},
      timeout_(options.connect_timeout),
      security_(options.security),
      guest_rules_(guest_limits(group)) {}

bool Rendezvous::is_local(std::uint32_t rank) const {
  return std::find(shape_.ranks.begin(), shape_.ranks.end(), rank) != shape_.ranks.end();
}

std::string Rendezvous::name(std::uint32_t rank) const {
  const Endpoint& endpoint = group_.endpoints[rank];
  return fmt::format("rank {} ({})", rank, net::to_string(net::Address{endpoint.address, endpoint.port}));
}

// Nobody waits for a welcome before all its own connections are made and accepted, so that no circle of ranks
// can wait for each other: making a connection needs only the other's queue.
Result<Connections> Rendezvous::meet() {
  if (is_first() && shape_.ranks.size() > 1) {
    MUSTER_TRY(LocalGroup made, LocalGroup::create(shape_));
    local_.emplace(std::move(made));
  }
  MUSTER_TRY_VOID(connect_to_hosts());
  MUSTER_TRY_VOID(connect_to_first());
  MUSTER_TRY_VOID(accept_all());
  MUSTER_TRY_VOID(await_all_welcomes());
  std::sort(hosts_.begin(), hosts_.end(), [](const Peer& a, const Peer& b) { return a.rank < b.rank; });
  Connections met{.links = {}, .message_links = {}, .local = std::move(local_)};
  for (Peer& peer : hosts_)
    if (peer.purpose == Purpose::calls)
      met.links.emplace_back(peer.rank, name(peer.rank), std::move(peer.socket));
    else
      met.message_links.push_back({peer.rank, name(peer.rank), std::move(peer.socket)});
  return met;
}

Result<> Rendezvous::connect_to_hosts() {
  for (std::uint32_t rank = 0; rank < group_.rank; ++rank) {
    if (is_local(rank)) continue;
    const Endpoint& endpoint = group_.endpoints[rank];
    for (const Purpose purpose : {Purpose::calls, Purpose::messages}) {
      auto socket = net::Socket::connect({endpoint.address, endpoint.port}, wait_);
      if (!socket)
        return fail(socket.error().code,
                    fmt::format("cannot reach rank {}: {}", rank, socket.error().message));
      MUSTER_TRY_VOID(secure(*socket, rank));
      MUSTER_TRY_VOID(send_hello(*socket, rank, purpose));
      hosts_.push_back({rank, purpose, *std::move(socket)});
    }
  }
  return {};
}

Result<> Rendezvous::connect_to_first() {
  if (is_first()) return {};
  const std::uint32_t rank = shape_.ranks.front();
  auto socket = net::Socket::connect_local(group_.endpoints[rank].local_name, wait_);
  if (!socket)
    return fail(socket.error().code,
                fmt::format("cannot reach rank {} on this host: {}", rank, socket.error().message));
  MUSTER_TRY_VOID(secure(*socket, rank));
  MUSTER_TRY_VOID(send_hello(*socket, rank, Purpose::calls));
  first_ = *std::move(socket);
  return {};
}

// A handshake needs the other side's turn. Everybody who waits for one waits for a lower rank, so that no
// circle of ranks can wait for each other here either.
Result<> Rendezvous::secure(net::Socket& socket, std::uint32_t rank) const {
  if (!security_) return {};
  auto done = socket.start_tls(
      {.security = security_, .expected = group_.endpoints[rank].identity, .peer_name = name(rank)}, wait_);
  if (done) return {};
  return fail(done.error().code, fmt::format("cannot reach rank {}: {}", rank, done.error().message));
}

Result<> Rendezvous::send_hello(net::Socket& socket, std::uint32_t to, Purpose purpose) {
  return socket.send_all(encode_hello({.origin = origin(),
                                       .from = group_.rank,
                                       .to = to,
                                       .size = static_cast<std::uint32_t>(group_.endpoints.size()),
                                       .purpose = purpose}),
                         wait_);
}

bool Rendezvous::has_met(std::uint32_t rank, Purpose purpose) const {
  if (is_local(rank)) return !is_first() || std::ranges::find(local_met_, rank) != local_met_.end();
  return std::ranges::any_of(hosts_,
                             [&](const Peer& peer) { return peer.rank == rank && peer.purpose == purpose; });
}

std::vector<std::uint32_t> Rendezvous::missing() const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = group_.rank + 1; rank < group_.endpoints.size(); ++rank)
    if (!has_met(rank, Purpose::calls) || !has_met(rank, Purpose::messages)) ranks.push_back(rank);
  return ranks;
}

Result<> Rendezvous::accept_all() {
  while (!missing().empty()) {
    std::vector<pollfd> polled;
    for (const Guest& guest : guests_)
      polled.push_back({.fd = guest.socket.fd(), .events = POLLIN, .revents = 0});
    polled.push_back({.fd = listener_.tcp_.fd(), .events = POLLIN, .revents = 0});
    polled.push_back({.fd = listener_.local_.fd(), .events = POLLIN, .revents = 0});
    polled.emplace_back();
    MUSTER_TRY(const net::Readiness readiness, wait_for_guests(polled));
    if (readiness == net::Readiness::stopped) return fail(Code::aborted, "connecting the group was stopped");
    if (readiness == net::Readiness::deadline && real_clock().now() >= wait_.deadline) {
      std::vector<std::string> names;
      for (const std::uint32_t rank : missing()) names.push_back(name(rank));
      const std::chrono::duration<double> waited = timeout_;
      return fail(Code::timeout, fmt::format("connecting the group waited {:.3g} s for {}", waited.count(),
                                             fmt::join(names, ", ")));
    }
    MUSTER_TRY_VOID(hear_guests(polled));
    drop_overdue_guests();
    MUSTER_TRY_VOID(take_new_guests());
  }
  return {};
}

Result<net::Readiness> Rendezvous::wait_for_guests(std::span<pollfd> polled) const {
  net::Wait wait = wait_;
  wait.deadline = std::min(wait.deadline, guest_rules_.deadline());
  return net::poll_until(polled, wait);
}

void Rendezvous::drop_overdue_guests() {
  for (const net::Guests::Id id : guest_rules_.overdue(real_clock().now())) {
    std::erase_if(guests_, [&](const Guest& guest) { return guest.id == id; });
    guest_rules_.leave(id);
  }
}

Result<> Rendezvous::take_new_guests() {
  const auto take = [&](auto& listener, bool local) -> Result<> {
    for (int count = 0; count < accepted_at_once_max; ++count) {
      MUSTER_TRY(auto socket, listener.accept());
      if (!socket) return {};
      const std::string& peer = socket->peer();
      const auto leaves =
          guest_rules_.arrive(++last_guest_, peer.substr(0, peer.rfind(':')), real_clock().now());
      if (leaves) std::erase_if(guests_, [&](const Guest& guest) { return guest.id == *leaves; });
      if (!secure_guest(*socket)) continue;
      guests_.push_back({.id = last_guest_, .socket = *std::move(socket), .local = local, .bytes = {}});
    }
    return {};
  };
  MUSTER_TRY_VOID(take(listener_.tcp_, false));
  return take(listener_.local_, true);
}

Result<> Rendezvous::hear_guests(const std::vector<pollfd>& polled) {
  std::vector<Guest> staying;
  for (std::size_t i = 0; i < guests_.size(); ++i) {
    bool done = false;
    if (polled[i].revents != 0) {
      MUSTER_TRY(done, hear(guests_[i]));
    }
    if (done)
      guest_rules_.leave(guests_[i].id);
    else
      staying.push_back(std::move(guests_[i]));
  }
  guests_ = std::move(staying);
  return {};
}

Result<bool> Rendezvous::hear(Guest& guest) {
  if (guest.is_refused) return drain(guest);
  if (security_ && !believe(guest)) return false;
  return hear_hello(guest);
}

// Without a usable revocation list nobody is let in; it may come in time.
bool Rendezvous::secure_guest(net::Socket& socket) {
  if (!security_) return true;
  const auto begun = socket.begin_tls({.security = security_, .listens = true});
  if (begun) return true;
  if (const auto more = stranger_lines_.take(real_clock().now()))
    log::warning(
        fmt::format("refused a connection of {}: {}{}", socket.peer(), begun.error().message, *more));
  return false;
}

bool Rendezvous::believe(Guest& guest) {
  const auto through = guest.socket.shake_hands();
  if (through) return *through;
  const bool is_plain = guest.socket.spoke_plain();
  if (is_plain) {
    guest.socket.end_tls();
    refuse(guest, through.error().message);
  } else if (const auto more = stranger_lines_.take(real_clock().now())) {
    log::warning(fmt::format("refused a connection: {}{}", through.error().message, *more));
  }
  // Closing at once could discard what was said last.
  guest.socket.finish_sending();
  guest.is_refused = true;
  return false;
}

bool Rendezvous::drain(Guest& guest) {
  std::array<std::byte, 4096> ignored;
  const iovec piece{.iov_base = ignored.data(), .iov_len = ignored.size()};
  guest.socket.end_tls();
  return !guest.socket.receive_some({&piece, 1});
}

Result<bool> Rendezvous::hear_hello(Guest& guest) {
  const std::size_t have = guest.bytes.size();
  guest.bytes.resize(hello_size_bytes);
  const iovec piece{.iov_base = guest.bytes.data() + have, .iov_len = hello_size_bytes - have};
  const auto received = guest.socket.receive_some({&piece, 1});
  if (!received) return true;
  guest.bytes.resize(have + *received);
  if (!security_ && net::begins_tls(guest.bytes)) {
    const auto answer = net::answer_to_tls();
    static_cast<void>(guest.socket.send_all(answer, {.deadline = real_clock().now()}));
    if (const auto more = stranger_lines_.take(real_clock().now()))
      log::warning(fmt::format("closed a connection from {}, which uses TLS while this job does not{}",
                               guest.socket.peer(), *more));
    guest.socket.finish_sending();
    guest.is_refused = true;
    return false;
  }
  if (guest.bytes.size() < hello_size_bytes) return false;
  // Whoever does not even speak our frames is closed without a word.
  const auto hello = decode_hello(std::span(guest.bytes).first<hello_size_bytes>());
  if (!hello) {
    if (const auto more = stranger_lines_.take(real_clock().now()))
      log::warning(fmt::format("closed a connection from {} that is no member of the group{}",
                               guest.socket.peer(), *more));
    return true;
  }
  MUSTER_TRY_VOID(welcome(guest, *hello));
  return true;
}

Result<> Rendezvous::welcome(Guest& guest, const Hello& hello) {
  if (const auto reason = reason_to_refuse(guest, hello); !reason.empty()) {
    refuse(guest, reason);
    return {};
  }
  // A guest that goes away while it is welcomed may come again.
  const auto bytes = net::encode_frame(header_of(FrameType::welcome, origin()), {});
  if (!guest.socket.send_all(bytes, wait_)) return {};
  if (guest.local) {
    if (!guest.socket.send_fd(local_->segment().fd(), wait_)) return {};
    local_met_.push_back(hello.from);
  } else {
    hosts_.push_back({hello.from, hello.purpose, std::move(guest.socket)});
  }
  return {};
}

std::string Rendezvous::reason_to_refuse(const Guest& guest, const Hello& hello) const {
  if (auto sound = check_origin({.epoch = hello.origin.epoch, .job_id = hello.origin.job_id}, origin());
      !sound)
    return sound.error().message;
  const auto [from, to, size, purpose] = std::tuple(hello.from, hello.to, hello.size, hello.purpose);
  if (size != group_.endpoints.size())
    return fmt::format("a world of {} ranks is not this group's world of {}", size, group_.endpoints.size());
  if (to != group_.rank) return fmt::format("this is rank {}, not rank {}", group_.rank, to);
  if (purpose > (guest.local ? Purpose::calls : Purpose::messages))
    return fmt::format("a connection for purpose {} is unknown", static_cast<std::uint32_t>(purpose));
  if (from <= group_.rank || from >= size || has_met(from, purpose))
    return fmt::format("rank {} is not awaited by rank {}", from, group_.rank);
  if (guest.local != is_local(from))
    return fmt::format("rank {} {} this host", from, guest.local ? "is not on" : "is on");
  if (const net::PeerNames* names = guest.socket.peer_names())
    if (auto honest = net::check_identity(*names, group_.endpoints[from].identity); !honest)
      return honest.error().message;
  return {};
}

void Rendezvous::refuse(Guest& guest, const std::string& reason) {
  if (const auto more = refusal_lines_.take(real_clock().now()))
    log::warning(fmt::format("refused {}: {}{}", guest.socket.peer(), reason, *more));
  const auto bytes = encode_refusal(origin(), reason);
  const iovec piece{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  static_cast<void>(guest.socket.send_some({&piece, 1}));  // best effort: it is closed either way
}

Result<> Rendezvous::await_welcome(net::Socket& socket, std::uint32_t rank) {
  auto answer = receive_frame(socket, wait_);
  if (!answer)
    return fail(answer.error().code,
                fmt::format("{} did not welcome this process: {}", name(rank), answer.error().message));
  return check_welcome(*answer, origin(), name(rank));
}

Result<> Rendezvous::await_all_welcomes() {
  for (Peer& peer : hosts_)
    if (peer.rank < group_.rank) MUSTER_TRY_VOID(await_welcome(peer.socket, peer.rank));
  if (!first_) return {};
  MUSTER_TRY_VOID(await_welcome(*first_, shape_.ranks.front()));
  MUSTER_TRY(net::ProcessDescriptor memory, first_->receive_fd(wait_));
  MUSTER_TRY(LocalGroup opened, LocalGroup::open(shape_, std::move(memory)));
  local_.emplace(std::move(opened));
  return {};
}

}  // namespace muster::collective
