#include "muster/collective/rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "muster/collective/reconnector.h"

namespace muster::collective {
namespace {

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

Rendezvous::Rendezvous(const Group& group, const Layout& layout, Listener& listener, LocalShape shape,
                       const Options& options)
    : group_(group),
      layout_(layout),
      listener_(listener),
      shape_(std::move(shape)),
      clock_(options.clock),
      wait_{.deadline = options.clock.now() + options.connect_timeout, .stop = options.stop},
      timeout_(options.connect_timeout),
      security_(options.security),
      linked_(layout.lanes().size()),
      has_memory_(is_first() ? shape_.ranks.size() : 0) {
  for (const Lane& lane : layout_.lanes()) awaited_ += lane.peer > group_.rank ? 1 : 0;
  if (is_first()) awaited_ += shape_.ranks.size() - 1;
}

std::string Rendezvous::name(std::uint32_t rank) const {
  const Endpoint& endpoint = group_.endpoints[rank];
  return fmt::format("rank {} ({})", rank, net::to_string(net::Address{endpoint.address, endpoint.port}));
}

std::size_t Rendezvous::lane_to(std::uint32_t rank) const {
  const auto found = std::ranges::lower_bound(layout_.lanes(), rank, {}, &Lane::peer);
  const bool exists = found != layout_.lanes().end() && found->peer == rank;
  return exists ? static_cast<std::size_t>(found - layout_.lanes().begin()) : linked_.size();
}

// No rank waits for a welcome before all its own connections are made and accepted, so that no circle of
// ranks can wait for each other: making a connection needs only the other's queue.
Result<Connections> Rendezvous::meet() {
  if (!linked_.empty()) {
    MUSTER_TRY(offer_, link_offer(group_.transport, security_.get()));
  }
  MUSTER_TRY_VOID(make_memory());
  MUSTER_TRY(Handshakes handshakes, Handshakes::create({.tcp = listener_.tcp_, .local = &listener_.local_},
                                                       {.clock = clock_,
                                                        .own = origin(),
                                                        .members = linked_.size() + shape_.ranks.size(),
                                                        .security = security_}));
  handshakes_.emplace(std::move(handshakes));
  MUSTER_TRY_VOID(connect_to_hosts());
  MUSTER_TRY_VOID(connect_to_first());
  MUSTER_TRY_VOID(accept_all());
  MUSTER_TRY_VOID(await_all_welcomes());
  Connections met{
      .links = {}, .local = std::move(local_), .alarms = std::move(alarms_), .early = std::move(early_)};
  for (std::size_t i = 0; i < linked_.size(); ++i)
    met.links.push_back(
        {layout_.lanes()[i].peer, make_link(std::move(linked_[i]->socket), linked_[i]->kind)});
  return met;
}

Result<> Rendezvous::make_memory() {
  if (!is_first() || shape_.ranks.size() == 1) return {};
  MUSTER_TRY(LocalGroup made, LocalGroup::create(shape_, clock_));
  local_.emplace(std::move(made));
  if (layout_.has_one_host()) return {};
  MUSTER_TRY(net::Bell left, net::Bell::create());
  MUSTER_TRY(net::Bell ended, net::Bell::create());
  alarms_.emplace(Alarms{std::move(left), std::move(ended)});
  return {};
}

Result<> Rendezvous::connect_to_hosts() {
  for (std::size_t i = 0; i < linked_.size() && layout_.lanes()[i].peer < group_.rank; ++i) {
    MUSTER_TRY(linked_[i], connect_to(layout_.lanes()[i].peer));
  }
  return {};
}

Result<Rendezvous::Linked> Rendezvous::connect_to(std::uint32_t rank) {
  const Endpoint& endpoint = group_.endpoints[rank];
  auto socket = net::Socket::connect({endpoint.address, endpoint.port}, wait_);
  if (!socket)
    return fail(socket.error().code, fmt::format("cannot reach rank {}: {}", rank, socket.error().message));
  const auto sent = secure(*socket, rank).and_then([&] { return send_hello(*socket, rank); });
  if (sent) return Linked{*std::move(socket)};
  if (sent.error().code != Code::peer_lost) return fail(sent.error());
  return call_again(rank);
}

// Among too many unauthorized peers the other side may let this process go before it knows who it is. To wait
// for its welcome here closes no circle: it is a lower rank, which waits for none of us.
Result<Rendezvous::Linked> Rendezvous::call_again(std::uint32_t rank) {
  Reconnector reconnector({.endpoint = group_.endpoints[rank], .name = name(rank), .security = security_},
                          hello(rank), clock_);
  for (;;) {
    MUSTER_TRY(auto answer, reconnector.step());
    if (answer) return Linked{std::move(answer->socket), true, answer->welcome.link};
    WaitList waits;
    reconnector.add_to(waits);
    const TimePoint soon = std::min(wait_.deadline, reconnector.next_step());
    MUSTER_TRY(const auto readiness, waits.wait({.deadline = soon, .stop = wait_.stop}));
    if (readiness == net::Readiness::stopped) return fail(Code::aborted, "connecting the group was stopped");
    if (clock_.now() >= wait_.deadline)
      return fail(Code::timeout,
                  fmt::format("{} closed the connection, and did not answer again", name(rank)));
  }
}

Result<> Rendezvous::connect_to_first() {
  if (is_first()) return {};
  const std::uint32_t rank = shape_.ranks.front();
  auto socket = net::Socket::connect_local(group_.endpoints[rank].local_name, wait_);
  if (!socket)
    return fail(socket.error().code,
                fmt::format("cannot reach rank {} on this host: {}", rank, socket.error().message));
  MUSTER_TRY_VOID(secure(*socket, rank));
  MUSTER_TRY_VOID(send_hello(*socket, rank));
  first_ = *std::move(socket);
  return {};
}

// A handshake needs the other side's turn. Every rank that waits for one waits for a lower rank, so that no
// circle of ranks can wait for each other here either.
Result<> Rendezvous::secure(net::Socket& socket, std::uint32_t rank) const {
  if (!security_) return {};
  auto done = socket.start_tls(
      {.security = security_, .expected = group_.endpoints[rank].identity, .peer_name = name(rank)}, wait_);
  if (done) return {};
  return fail(done.error().code, fmt::format("cannot reach rank {}: {}", rank, done.error().message));
}

Result<> Rendezvous::send_hello(net::Socket& socket, std::uint32_t to) {
  return socket.send_all(encode_hello(hello(to)), wait_);
}

Hello Rendezvous::hello(std::uint32_t to) const {
  return {.origin = origin(),
          .from = group_.rank,
          .to = to,
          .size = layout_.size(),
          .purpose = Purpose::calls,
          .intent = Intent::join,
          .link = offer_};
}

bool Rendezvous::is_awaited(std::uint32_t rank) const {
  if (rank <= group_.rank) return false;
  if (layout_.is_local(rank)) return is_first() && !has_memory_[layout_.place_of(rank)];
  const std::size_t lane = lane_to(rank);
  return lane < linked_.size() && !linked_[lane];
}

std::vector<std::uint32_t> Rendezvous::missing() const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = group_.rank + 1; rank < layout_.size(); ++rank)
    if (is_awaited(rank)) ranks.push_back(rank);
  return ranks;
}

Result<> Rendezvous::accept_all() {
  while (awaited_ > 0) {
    WaitList waits;
    waits.add(handshakes_->fd(), {.reading = true});
    const TimePoint deadline = std::min(wait_.deadline, handshakes_->deadline());
    MUSTER_TRY(const net::Readiness readiness, waits.wait({.deadline = deadline, .stop = wait_.stop}));
    if (readiness == net::Readiness::stopped) return fail(Code::aborted, "connecting the group was stopped");
    if (readiness == net::Readiness::deadline && clock_.now() >= wait_.deadline) {
      std::vector<std::string> names;
      for (const std::uint32_t rank : missing()) names.push_back(name(rank));
      const std::chrono::duration<double> waited = timeout_;
      return fail(Code::timeout, fmt::format("connecting the group waited {:.3g} s for {}", waited.count(),
                                             fmt::join(names, ", ")));
    }
    for (Handshakes::Candidate& candidate : handshakes_->hear())
      MUSTER_TRY_VOID(welcome(std::move(candidate)));
  }
  return {};
}

Result<> Rendezvous::welcome(Handshakes::Candidate candidate) {
  if (comes_early(candidate)) {
    early_.push_back(std::move(candidate));
    return {};
  }
  if (const auto reason = reason_to_refuse(candidate); !reason.empty()) {
    handshakes_->refuse(candidate.socket, reason);
    return {};
  }
  // An unauthenticated peer that goes away while it is welcomed may come again.
  const LinkKind kind = candidate.local ? LinkKind::socket : link_with(candidate.hello).value();
  const auto bytes = encode_welcome(origin(), {.link = kind});
  if (!candidate.socket.send_all(bytes, wait_)) return {};
  const std::uint32_t rank = candidate.hello.from;
  if (candidate.local && !hand_over_memory(candidate.socket)) return {};
  if (candidate.local)
    has_memory_[layout_.place_of(rank)] = true;
  else
    linked_[lane_to(rank)] = Linked{std::move(candidate.socket), true, kind};
  --awaited_;
  return {};
}

// A rank for which all have come makes its first calls while others still wait.
bool Rendezvous::comes_early(const Handshakes::Candidate& candidate) const {
  return !candidate.local && candidate.hello.intent != Intent::join &&
         check_hello(candidate.hello, candidate.socket, group_) &&
         early_.size() < all_purposes.size() * layout_.size();
}

bool Rendezvous::hand_over_memory(net::Socket& socket) {
  if (!socket.send_fd(local_->segment().fd(), wait_)) return false;
  return !alarms_ ||
         (socket.send_fd(alarms_->left.fd(), wait_) && socket.send_fd(alarms_->ended.fd(), wait_));
}

std::string Rendezvous::reason_to_refuse(const Handshakes::Candidate& candidate) const {
  const Hello& hello = candidate.hello;
  if (auto honest = check_hello(hello, candidate.socket, group_); !honest) return honest.error().message;
  if (hello.intent != Intent::join || hello.purpose != Purpose::calls)
    return fmt::format("a connection for purpose {}, intent {} is unknown",
                       static_cast<std::uint32_t>(hello.purpose), static_cast<std::uint32_t>(hello.intent));
  if (candidate.local != layout_.is_local(hello.from))
    return fmt::format("rank {} {} this host", hello.from, candidate.local ? "is not on" : "is on");
  if (!is_awaited(hello.from))
    return fmt::format("rank {} is not awaited by rank {}", hello.from, group_.rank);
  if (candidate.local) return {};
  const auto kind = link_with(hello);
  return kind ? std::string() : kind.error().message;
}

Result<LinkKind> Rendezvous::link_with(const Hello& hello) const {
  return link_between(hello.link, offer_, hello.from, group_.rank);
}

Result<Welcome> Rendezvous::await_welcome(net::Socket& socket, std::uint32_t rank) {
  auto answer = receive_frame(socket, wait_);
  if (!answer)
    return fail(answer.error().code,
                fmt::format("{} did not welcome this process: {}", name(rank), answer.error().message));
  return check_welcome(*answer, origin(), name(rank));
}

Result<> Rendezvous::await_all_welcomes() {
  for (std::size_t i = 0; i < linked_.size() && layout_.lanes()[i].peer < group_.rank; ++i) {
    const std::uint32_t rank = layout_.lanes()[i].peer;
    if (linked_[i]->is_welcomed) continue;
    const auto welcomed = await_welcome(linked_[i]->socket, rank);
    if (welcomed) linked_[i]->kind = welcomed->link;
    if (welcomed) continue;
    if (welcomed.error().code != Code::peer_lost) return fail(welcomed.error());
    MUSTER_TRY(linked_[i], call_again(rank));
  }
  if (!first_) return {};
  MUSTER_TRY_VOID(await_welcome(*first_, shape_.ranks.front()));
  return take_memory();
}

Result<> Rendezvous::take_memory() {
  MUSTER_TRY(net::ProcessDescriptor memory, first_->receive_fd(wait_));
  MUSTER_TRY(LocalGroup opened, LocalGroup::open(shape_, std::move(memory), clock_));
  local_.emplace(std::move(opened));
  if (layout_.has_one_host()) return {};
  MUSTER_TRY(net::ProcessDescriptor left, first_->receive_fd(wait_));
  MUSTER_TRY(net::ProcessDescriptor ended, first_->receive_fd(wait_));
  alarms_.emplace(Alarms{net::Bell::of(std::move(left)), net::Bell::of(std::move(ended))});
  return {};
}

}  // namespace muster::collective
