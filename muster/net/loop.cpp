#include "muster/net/loop.h"

#include "muster/net/host.h"
#include "muster/net/loop_implementation.h"

namespace muster::net {

Loop::Loop() : implementation_(std::make_unique<Implementation>()) {}

Loop::~Loop() {
  for (auto& process : implementation_->processes) process.watched.release();
}

void Loop::run() {
  implementation_->context.restart();
  const auto work = asio::make_work_guard(implementation_->context);
  implementation_->context.run();
}

void Loop::run_for(Duration time) {
  implementation_->context.restart();
  const auto work = asio::make_work_guard(implementation_->context);
  implementation_->context.run_for(time);
}

void Loop::run_ready() {
  constexpr int rounds_max = 64;  // a peer may send faster than this reads
  implementation_->context.restart();
  for (int round = 0; round < rounds_max && implementation_->context.poll() > 0; ++round)
    implementation_->context.restart();
}

void Loop::stop() { implementation_->context.stop(); }

void Loop::post(std::function<void()> act) { asio::post(implementation_->context, std::move(act)); }

void Loop::set_timer(TimePoint when, std::function<void()> act) {
  asio::steady_timer& timer = implementation_->timer;
  if (when == TimePoint::max()) {
    timer.cancel();
    return;
  }
  timer.expires_at(when);  // cancels the earlier wait
  timer.async_wait([act = std::move(act)](const asio::error_code& error) {
    if (!error) act();
  });
}

void Loop::watch_process(std::int32_t pid, std::function<void(std::optional<int>)> act) {
  auto process = open_process(pid);
  if (!process) {
    if (process.error().code == Code::not_found) post([act = std::move(act)] { act(std::nullopt); });
    return;
  }
  const int fd = process->get();
  Implementation& all = *implementation_;
  all.processes.push_front({*std::move(process), asio::posix::stream_descriptor(all.context, fd),
                            std::move(act), asio::steady_timer(all.context)});
  const auto place = all.processes.begin();
  place->watched.async_wait(asio::posix::stream_descriptor::wait_read,
                            [&all, place](const asio::error_code& error) {
                              if (!error) all.tell_of_end(place);
                            });
}

// The status is there once the parent has waited for the process: worth a moment, in which it usually does.
void Loop::Implementation::tell_of_end(Place process) {
  constexpr int asked_max = 5;  // 1 + 2 + 4 + 8 + 16 ms
  const std::optional<int> status = wait_status(process->fd);
  if (!status && process->asked < asked_max) {
    process->timer.expires_after(std::chrono::milliseconds(1 << process->asked++));
    process->timer.async_wait([this, process](const asio::error_code& error) {
      if (!error) tell_of_end(process);
    });
    return;
  }
  const auto act = std::move(process->act);
  process->watched.release();
  processes.erase(process);
  act(status);
}

LoopSocket::LoopSocket(asio::io_context& context, ProcessDescriptor fd, int family)
    : socket(context), fd_(std::move(fd)) {
  asio::error_code ignored;  // a descriptor that cannot be watched fails its first operation
  socket.assign(family == AF_INET6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), fd_.get(), ignored);
}

void LoopSocket::close() {
  asio::error_code ignored;
  if (socket.is_open()) socket.release(ignored);
  fd_ = ProcessDescriptor();
}

}  // namespace muster::net
