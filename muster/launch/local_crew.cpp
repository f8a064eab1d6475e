#include "muster/launch/local_crew.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>

#include "muster/launch/process.h"
#include "muster/launch/run_folder.h"

namespace muster::launch {

void LocalCrew::make_files(const std::vector<FileSpec>& files) {
  auto made = launch::make_files(run_folder_, files);
  if (!made) return listener_->on_loss(*this, made.error().message);
  std::move(made->begin(), made->end(), std::back_inserter(secrets_));
}

void LocalCrew::start(std::size_t process, const ProcessSpec& spec) {
  if (spec.preload) return preloader_.order(process, spec);
  auto started = start_process(spec);
  if (!started)
    listener_->on_start_failure(process, started.error());
  else
    on_forked(process, *std::move(started));
}

void LocalCrew::on_forked(std::size_t process, ChildProcess started) {
  Child& child = children_[process];
  child = {.pid = started.pid};
  child.outputs[0] = std::move(started.out);
  child.outputs[1] = std::move(started.error);
  listener_->on_start(process, child.pid);
}

void LocalCrew::signal(std::size_t process, int number) {
  if (preloader_.cancel(process, number)) return;
  const auto found = children_.find(process);
  // The group's number is ours as long as its leader has not been reaped.
  if (found != children_.end() && !found->second.has_ended) ::kill(-found->second.pid, number);
}

void LocalCrew::add_polled(std::vector<pollfd>& polled, bool takes_output) const {
  preloader_.add_polled(polled, takes_output);
  for (const auto& [process, child] : children_)
    for (const net::Descriptor& output : child.outputs)
      polled.push_back({.fd = takes_output ? output.get() : -1, .events = POLLIN, .revents = 0});
}

void LocalCrew::take(std::span<const pollfd> polled) {
  std::size_t i = Preloader::polled_count;
  for (auto& [process, child] : children_)
    for (const Stream stream : both_streams)
      if (polled[i++].revents != 0) take_output(process, child, stream);
  preloader_.take(polled.first(Preloader::polled_count));
}

std::map<std::size_t, LocalCrew::Child>::iterator LocalCrew::find(pid_t pid) {
  return std::find_if(children_.begin(), children_.end(),
                      [&](const auto& entry) { return entry.second.pid == pid && !entry.second.has_ended; });
}

bool LocalCrew::take_child_end(pid_t pid, int wait_status) {
  if (preloader_.take_child_end(pid, wait_status)) return true;
  if (find(pid) == children_.end()) preloader_.take_messages();  // it may have begun a moment ago
  const auto found = find(pid);
  if (found == children_.end()) return false;
  found->second.has_ended = true;
  drain(found->first, found->second);
  listener_->on_end(found->first, wait_status);
  return true;
}

void LocalCrew::take_output(std::size_t process, Child& child, Stream stream) {
  read_some(child.outputs[static_cast<std::size_t>(stream)],
            [&](std::string_view bytes) { listener_->on_output(process, stream, bytes); });
}

void LocalCrew::drain(std::size_t process, Child& child) {
  // As many reads as a pipe can need: a child of it that goes on writing must not keep us here.
  for (const Stream stream : both_streams)
    for (int reads = 0; child.outputs[static_cast<std::size_t>(stream)] && reads < 4; ++reads)
      take_output(process, child, stream);
}

void LocalCrew::drain() {
  for (auto& [process, child] : children_) drain(process, child);
}

}  // namespace muster::launch
