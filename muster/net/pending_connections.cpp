#include "muster/net/pending_connections.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace muster::net {
namespace {

constexpr auto tell_interval = std::chrono::milliseconds(100);
constexpr std::size_t read_size_bytes = 4 << 10;  // at a time: members come first
// A peer that speaks TLS where there is none, or the reverse, is told so; it takes a connection to do it.
constexpr int answers_max = 100;
constexpr auto answers_time = std::chrono::seconds(1);

}  // namespace

Result<std::unique_ptr<PendingConnections>> PendingConnections::open(
    Loop& loop, std::shared_ptr<UnauthenticatedPool> pool, Options options, Admit admit) {
  ProcessDescriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return fail_errno("cannot make a descriptor to wait with", errno);
  std::unique_ptr<PendingConnections> made(
      new PendingConnections(loop, std::move(pool), std::move(options), std::move(admit), std::move(epoll)));
  made->wait();
  return made;
}

PendingConnections::PendingConnections(Loop& loop, std::shared_ptr<UnauthenticatedPool> pool, Options options,
                                       Admit admit, ProcessDescriptor epoll)
    : loop_(loop),
      pool_(std::move(pool)),
      options_(std::move(options)),
      admit_(std::move(admit)),
      epoll_(std::move(epoll)),
      watched_(loop.implementation().context, epoll_.get()),
      tell_timer_(loop.implementation().context) {
  pool_->set_drop_pending([this, alive = alive_](UnauthenticatedPeers::Id id, const std::string& why) {
    if (*alive) drop(id, why);
  });
}

void PendingConnections::close() {
  if (std::exchange(closed_, true)) return;
  *alive_ = false;
  tell_timer_.cancel();
  watched_.release();
  for (const auto& [id, waiting] : std::exchange(waiting_, {})) pool_->leave(id);
  epoll_ = ProcessDescriptor();
}

void PendingConnections::arrive(int fd, const SocketAddress& from) {
  const std::span<std::byte> buffer = std::span(loop_.implementation().read_buffer).first(read_size_bytes);
  const ssize_t size = ::recv(fd, buffer.data(), buffer.size(), 0);
  const bool is_silent = size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  const auto said = buffer.first(size > 0 ? static_cast<std::size_t>(size) : 0);
  const Verdict verdict = is_silent ? Verdict::waits : size <= 0 ? Verdict::leaves : judge(said, from);
  if (verdict == Verdict::leaves) {
    ::close(fd);
    return;
  }
  ProcessDescriptor descriptor(fd);
  const UnauthenticatedPeers::Id id = pool_->arrive(from_socket_address(from).value_or(Address{}).ip);
  if (verdict == Verdict::comes_in) return admit_({std::move(descriptor), from, id}, said);
  // Edges only: a descriptor that a forked child still has open must not be reported again and again.
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data = {.u64 = id}};
  waiting_.emplace(id, Waiting{std::move(descriptor), from, {said.begin(), said.end()}});
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);  // without it, its time is over some day
  if (!said.empty()) pool_->hold(id, said.size());
}

void PendingConnections::wait() {
  watched_.async_wait(asio::posix::stream_descriptor::wait_read,
                      [this, alive = alive_](const asio::error_code& error) {
                        if (!error && *alive) serve();
                      });
}

void PendingConnections::serve() {
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count && !closed_; ++i) listen_to(events[static_cast<std::size_t>(i)].data.u64);
  if (!closed_) wait();
}

void PendingConnections::listen_to(UnauthenticatedPeers::Id id) {
  const std::span<std::byte> buffer = std::span(loop_.implementation().read_buffer).first(read_size_bytes);
  for (;;) {
    const auto found = waiting_.find(id);
    if (found == waiting_.end()) return;  // it had to go for another
    Waiting& waiting = found->second;
    const ssize_t size = ::recv(waiting.fd.get(), buffer.data(), buffer.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (size <= 0) {
      waiting_.erase(found);
      return pool_->leave(id);
    }
    waiting.said.insert(waiting.said.end(), buffer.begin(), buffer.begin() + size);
    const Verdict verdict = judge(waiting.said, waiting.from);
    if (verdict == Verdict::waits) {
      pool_->hold(id, waiting.said.size());
      continue;
    }
    Waiting gone = std::move(waiting);
    waiting_.erase(found);
    if (verdict == Verdict::comes_in) {
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, gone.fd.get(), nullptr);
      return admit_({std::move(gone.fd), gone.from, id}, gone.said);
    }
    return pool_->leave(id);
  }
}

void PendingConnections::drop(UnauthenticatedPeers::Id id, const std::string& why) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return;
  const SocketAddress from = found->second.from;
  waiting_.erase(found);
  turn_away(from, fmt::format("closed its connection: {}", why));
}

PendingConnections::Verdict PendingConnections::judge(std::span<const std::byte> said,
                                                      const SocketAddress& from) {
  const std::byte first = said.front();
  if (options_.expects_tls) {
    const bool is_plain = check_frame_begin(said.first(1)).has_value();
    if (first == tls_handshake_record || (is_plain && may_be_answered())) return Verdict::comes_in;
    turn_away(from, is_plain ? "it does not use TLS, and this process does"
                             : "it sent bytes that are neither TLS nor Muster's");
    return Verdict::leaves;
  }
  if (first == tls_handshake_record || first == tls_alert_record) {
    if (may_be_answered()) return Verdict::comes_in;
    turn_away(from, "it uses TLS, and this process does not");
    return Verdict::leaves;
  }
  const auto whole = look_at_first_frame(said, options_.payload_limit_bytes, options_.screening.may_begin);
  if (whole) return *whole ? Verdict::comes_in : Verdict::waits;
  turn_away(from, whole.error().message);
  return Verdict::leaves;
}

bool PendingConnections::may_be_answered() {
  const TimePoint now = real_clock().now();
  if (now - answers_since_ >= answers_time) {
    answers_since_ = now;
    answers_ = 0;
  }
  return answers_++ < answers_max;
}

void PendingConnections::turn_away(const SocketAddress& from, const std::string& reason) {
  tally_.add(from_socket_address(from).value_or(Address{}).ip, reason);
  if (!tells_) tell_later();
}

void PendingConnections::tell_later() {
  tells_ = true;
  tell_timer_.expires_after(tell_interval);
  tell_timer_.async_wait([this, alive = alive_](const asio::error_code& error) {
    if (error || !*alive) return;
    tells_ = false;
    const auto rejected_peers = tally_.take();
    if (options_.screening.turned_away) options_.screening.turned_away(rejected_peers);
  });
}

}  // namespace muster::net
