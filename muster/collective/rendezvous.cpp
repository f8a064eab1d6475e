#include "muster/collective/rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "muster/collective/redial.h"

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

Rendezvous::Rendezvous(const Group& group, Listener& listener, LocalShape shape, const Options& options)
    : group_(group),
      listener_(listener),
      shape_(std::move(shape)),
      wait_{.deadline = real_clock().now() + options.connect_timeout, .stop = options.stop},
      timeout_(options.connect_timeout),
      security_(options.security) {}

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
  MUSTER_TRY(Reception reception, Reception::create({.tcp = listener_.tcp_, .local = &listener_.local_},
                                                    {.own = origin(),
                                                     .members = all_purposes.size() * group_.endpoints.size(),
                                                     .security = security_}));
  reception_.emplace(std::move(reception));
  MUSTER_TRY_VOID(connect_to_hosts());
  MUSTER_TRY_VOID(connect_to_first());
  MUSTER_TRY_VOID(accept_all());
  MUSTER_TRY_VOID(await_all_welcomes());
  std::sort(hosts_.begin(), hosts_.end(), [](const Peer& a, const Peer& b) { return a.rank < b.rank; });
  return connections();
}

Connections Rendezvous::connections() {
  Connections met{.links = {}, .messages_to_them = {}, .messages_to_us = {}, .local = std::move(local_)};
  for (Peer& peer : hosts_) {
    const bool is_ours = peer.purpose == message_purpose(group_.rank, peer.rank);
    auto& same = peer.purpose == Purpose::calls ? met.links
                 : is_ours                      ? met.messages_to_them
                                                : met.messages_to_us;
    same.push_back({peer.rank, std::move(peer.socket)});
  }
  return met;
}

Result<> Rendezvous::connect_to_hosts() {
  for (std::uint32_t rank = 0; rank < group_.rank; ++rank) {
    if (is_local(rank)) continue;
    for (const Purpose purpose : all_purposes) MUSTER_TRY_VOID(connect_to(rank, purpose));
  }
  return {};
}

Result<> Rendezvous::connect_to(std::uint32_t rank, Purpose purpose) {
  const Endpoint& endpoint = group_.endpoints[rank];
  auto socket = net::Socket::connect({endpoint.address, endpoint.port}, wait_);
  if (!socket)
    return fail(socket.error().code, fmt::format("cannot reach rank {}: {}", rank, socket.error().message));
  const auto sent = secure(*socket, rank).and_then([&] { return send_hello(*socket, rank, purpose); });
  if (sent) {
    hosts_.push_back({rank, purpose, *std::move(socket)});
  } else {
    if (sent.error().code != Code::peer_lost) return sent;
    MUSTER_TRY(net::Socket again, call_again(rank, purpose));
    hosts_.push_back({rank, purpose, std::move(again), true});
  }
  return {};
}

// Among too many strangers the other side may let this process go before it knows who it is. To wait for its
// welcome here closes no circle: it is a lower rank, which waits for none of us.
Result<net::Socket> Rendezvous::call_again(std::uint32_t rank, Purpose purpose) {
  Redial redial({.endpoint = group_.endpoints[rank], .name = name(rank), .security = security_},
                hello(rank, purpose));
  for (;;) {
    MUSTER_TRY(auto answer, redial.step());
    if (answer) return std::move(answer->socket);
    std::vector<pollfd> polled;
    redial.add_to(polled);
    polled.emplace_back();
    const TimePoint soon = std::min(wait_.deadline, redial.next_step());
    MUSTER_TRY(const auto readiness, net::poll_until(polled, {.deadline = soon, .stop = wait_.stop}));
    if (readiness == net::Readiness::stopped) return fail(Code::aborted, "connecting the group was stopped");
    if (real_clock().now() >= wait_.deadline)
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
  return socket.send_all(encode_hello(hello(to, purpose)), wait_);
}

Hello Rendezvous::hello(std::uint32_t to, Purpose purpose) const {
  return {.origin = origin(),
          .from = group_.rank,
          .to = to,
          .size = static_cast<std::uint32_t>(group_.endpoints.size()),
          .purpose = purpose,
          .wish = Wish::meet};
}

bool Rendezvous::has_met(std::uint32_t rank, Purpose purpose) const {
  if (is_local(rank)) return !is_first() || std::ranges::find(local_met_, rank) != local_met_.end();
  return std::ranges::any_of(hosts_,
                             [&](const Peer& peer) { return peer.rank == rank && peer.purpose == purpose; });
}

std::vector<std::uint32_t> Rendezvous::missing() const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = group_.rank + 1; rank < group_.endpoints.size(); ++rank)
    if (!std::ranges::all_of(all_purposes, [&](Purpose purpose) { return has_met(rank, purpose); }))
      ranks.push_back(rank);
  return ranks;
}

Result<> Rendezvous::accept_all() {
  while (!missing().empty()) {
    std::array<pollfd, 2> polled{pollfd{.fd = reception_->fd(), .events = POLLIN, .revents = 0}};
    const TimePoint deadline = std::min(wait_.deadline, reception_->deadline());
    MUSTER_TRY(const net::Readiness readiness,
               net::poll_until(polled, {.deadline = deadline, .stop = wait_.stop}));
    if (readiness == net::Readiness::stopped) return fail(Code::aborted, "connecting the group was stopped");
    if (readiness == net::Readiness::deadline && real_clock().now() >= wait_.deadline) {
      std::vector<std::string> names;
      for (const std::uint32_t rank : missing()) names.push_back(name(rank));
      const std::chrono::duration<double> waited = timeout_;
      return fail(Code::timeout, fmt::format("connecting the group waited {:.3g} s for {}", waited.count(),
                                             fmt::join(names, ", ")));
    }
    for (Reception::Visitor& visitor : reception_->hear()) MUSTER_TRY_VOID(welcome(std::move(visitor)));
  }
  return {};
}

Result<> Rendezvous::welcome(Reception::Visitor visitor) {
  if (const auto reason = reason_to_refuse(visitor); !reason.empty()) {
    reception_->refuse(visitor.socket, reason);
    return {};
  }
  // A guest that goes away while it is welcomed may come again.
  const auto bytes = encode_welcome(origin(), {});
  if (!visitor.socket.send_all(bytes, wait_)) return {};
  if (visitor.local) {
    if (!visitor.socket.send_fd(local_->segment().fd(), wait_)) return {};
    local_met_.push_back(visitor.hello.from);
  } else {
    hosts_.push_back({visitor.hello.from, visitor.hello.purpose, std::move(visitor.socket)});
  }
  return {};
}

std::string Rendezvous::reason_to_refuse(const Reception::Visitor& visitor) const {
  const Hello& hello = visitor.hello;
  if (auto honest = check_hello(hello, visitor.socket, group_); !honest) return honest.error().message;
  if (hello.wish != Wish::meet || hello.purpose > (visitor.local ? Purpose::calls : all_purposes.back()))
    return fmt::format("a connection for purpose {}, wish {} is unknown",
                       static_cast<std::uint32_t>(hello.purpose), static_cast<std::uint32_t>(hello.wish));
  if (hello.from <= group_.rank || has_met(hello.from, hello.purpose))
    return fmt::format("rank {} is not awaited by rank {}", hello.from, group_.rank);
  if (visitor.local != is_local(hello.from))
    return fmt::format("rank {} {} this host", hello.from, visitor.local ? "is not on" : "is on");
  return {};
}

Result<> Rendezvous::await_welcome(net::Socket& socket, std::uint32_t rank) {
  auto answer = receive_frame(socket, wait_);
  if (!answer)
    return fail(answer.error().code,
                fmt::format("{} did not welcome this process: {}", name(rank), answer.error().message));
  MUSTER_TRY_VOID(check_welcome(*answer, origin(), name(rank)));
  return {};
}

Result<> Rendezvous::await_all_welcomes() {
  for (Peer& peer : hosts_) {
    if (peer.rank > group_.rank || peer.is_welcomed) continue;
    const auto welcomed = await_welcome(peer.socket, peer.rank);
    if (welcomed) continue;
    if (welcomed.error().code != Code::peer_lost) return welcomed;
    MUSTER_TRY(peer.socket, call_again(peer.rank, peer.purpose));
  }
  if (!first_) return {};
  MUSTER_TRY_VOID(await_welcome(*first_, shape_.ranks.front()));
  MUSTER_TRY(net::ProcessDescriptor memory, first_->receive_fd(wait_));
  MUSTER_TRY(LocalGroup opened, LocalGroup::open(shape_, std::move(memory)));
  local_.emplace(std::move(opened));
  return {};
}

}  // namespace muster::collective
