#include <fmt/format.h>

#include <cerrno>

#include "muster/net/accepting.h"
#include "muster/net/descriptor_limit.h"
#include "muster/net/host.h"
#include "muster/net/loop_implementation.h"
#include "muster/net/pending_connections.h"

namespace muster::net {
namespace {

constexpr auto pause_when_full = std::chrono::milliseconds(100);
// Unauthorized peers who come in crowds are looked at in batches: were each to wake this process, those who
// train on its cores would be interrupted as often.
constexpr auto pause_when_flooded = std::chrono::milliseconds(2);
constexpr int accepted_at_once_max = 64;  // then those who are connected have their turn

Result<ProcessDescriptor> open_listening(const Address& address) {
  MUSTER_TRY(const SocketAddress wanted, to_socket_address(address));
  ProcessDescriptor fd(open_socket(wanted.family()));
  const int on = 1;
  if (!fd) return fail_errno("cannot open a socket", errno);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (wanted.family() == AF_INET6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(fd.get(), wanted.get(), wanted.size_bytes) == 0 && ::listen(fd.get(), backlog) == 0) return fd;
  const int error = errno;
  if (error == EADDRINUSE)
    return fail(Code::refused, fmt::format("port {} of {} is taken by {}", address.port, address.ip,
                                           port_owner(address.port)));
  return fail_errno(fmt::format("cannot listen on {}", to_string(address)), error);
}

}  // namespace

class ConnectionListener::Implementation
    : public std::enable_shared_from_this<ConnectionListener::Implementation> {
 public:
  Implementation(Loop& loop, ProcessDescriptor fd, Address address, ConnectionLimits limits,
                 std::function<void(std::unique_ptr<Connection>)> accepted,
                 std::shared_ptr<const ListenerSecurity> security)
      : loop_(loop),
        fd_(std::move(fd)),
        watched_(loop.implementation().context, fd_.get()),
        pause_(loop.implementation().context),
        address_(std::move(address)),
        limits_(limits),
        unauthenticated_(std::make_shared<UnauthenticatedPool>(loop, limits.unauthenticated, limits.members)),
        accepted_(std::move(accepted)),
        security_(std::move(security)) {}

  Result<> screen(Screening screening) {
    if (!screening.may_begin) return {};
    MUSTER_TRY(pending_, PendingConnections::open(
                             loop_, unauthenticated_,
                             {.screening = std::move(screening),
                              .expects_tls = security_->security != nullptr,
                              .payload_limit_bytes = std::min(limits_.payload_size_bytes,
                                                              limits_.unauthenticated.payload_size_bytes)},
                             [this](PendingConnections::Candidate candidate,
                                    std::span<const std::byte> said) { admit(std::move(candidate), said); }));
    return {};
  }

  void wait() {
    if (pending_ && pending_->is_flooded()) return look_again_after(pause_when_flooded);
    asio::error_code error;
    if (!watched_.is_open()) watched_.assign(fd_.get(), error);
    if (error) return look_again_after(pause_when_full);
    watched_.async_wait(asio::posix::stream_descriptor::wait_read,
                        [self = shared_from_this()](const asio::error_code& failure) {
                          if (!failure && !self->closed_) self->accept_some();
                        });
  }

  void close() {
    closed_ = true;
    if (pending_) pending_->close();
    pause_.cancel();
    if (watched_.is_open()) watched_.release();
    fd_ = ProcessDescriptor();
  }

  const Address& address() const { return address_; }

 private:
  void accept_some() {
    fill_descriptor_reserve();
    for (int count = 0; count < accepted_at_once_max && !closed_; ++count) {
      SocketAddress from;
      const Accepted accepted = accept_next(fd_.get(), &from);
      if (accepted.lacks_descriptor && unauthenticated_->make_room(no_descriptor_is_free)) continue;
      if (accepted.lacks_descriptor) return pause_for_lack();
      if (accepted.fd < 0) return wait();
      if (pending_)
        pending_->arrive(accepted.fd, from);
      else
        admit({ProcessDescriptor(accepted.fd), from, unauthenticated_->arrive(ip_of(from))}, {});
    }
    if (!closed_) look_again_after(Duration::zero());
  }

  // Who is missing is told nothing: they wait in the backlog.
  void pause_for_lack() {
    if (const auto more = lack_lines_.take(real_clock().now()))
      log::warning(fmt::format("new connections to {} have to wait: {}{}", to_string(address_),
                               no_descriptor_is_free, *more));
    look_again_after(pause_when_full);
  }

  static std::string ip_of(const SocketAddress& from) {
    return from_socket_address(from).value_or(Address{}).ip;
  }

  void admit(PendingConnections::Candidate candidate, std::span<const std::byte> said) {
    const auto connection = std::make_shared<Connection::Implementation>(
        loop_, std::move(candidate.fd), from_socket_address(candidate.from).value_or(Address{}),
        candidate.from.family(), limits_);
    connection->enter(unauthenticated_, candidate.id);
    connection->be_accepted(security_);
    const auto self = shared_from_this();  // the owner may end
    accepted_(std::make_unique<Connection>(connection));
    if (!said.empty()) connection->deliver(said);
  }

  // No peer that connects meanwhile wakes this process.
  void look_again_after(Duration pause) {
    if (watched_.is_open()) watched_.release();
    pause_.expires_after(pause);
    pause_.async_wait([self = shared_from_this()](const asio::error_code& error) {
      if (!error && !self->closed_) self->accept_some();
    });
  }

  Loop& loop_;
  ProcessDescriptor fd_;
  asio::posix::stream_descriptor watched_;
  asio::steady_timer pause_;
  Address address_;
  ConnectionLimits limits_;
  std::shared_ptr<UnauthenticatedPool> unauthenticated_;
  std::unique_ptr<PendingConnections> pending_;  // null: unauthenticated peers are connections at once
  std::function<void(std::unique_ptr<Connection>)> accepted_;
  const std::shared_ptr<const ListenerSecurity> security_;
  LineLimit lack_lines_;
  bool closed_ = false;
};

Result<std::unique_ptr<ConnectionListener>> ConnectionListener::open(
    Loop& loop, const Address& address, ConnectionLimits limits,
    std::function<void(std::unique_ptr<Connection>)> accepted, ListenerSecurity security,
    Screening screening) {
  raise_descriptor_limit();
  MUSTER_TRY(ProcessDescriptor fd, open_listening(address));
  fill_descriptor_reserve();
  SocketAddress bound;
  bound.size_bytes = sizeof bound.storage;
  ::getsockname(fd.get(), bound.get(), &bound.size_bytes);
  MUSTER_TRY(const Address actual, from_socket_address(bound));
  auto implementation =
      std::make_shared<Implementation>(loop, std::move(fd), actual, limits, std::move(accepted),
                                       std::make_shared<const ListenerSecurity>(std::move(security)));
  MUSTER_TRY_VOID(implementation->screen(std::move(screening)));
  implementation->wait();
  return std::unique_ptr<ConnectionListener>(new ConnectionListener(std::move(implementation)));
}

ConnectionListener::ConnectionListener(std::shared_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
ConnectionListener::~ConnectionListener() { implementation_->close(); }
const Address& ConnectionListener::address() const { return implementation_->address(); }

}  // namespace muster::net
