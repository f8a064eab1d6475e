// A process of a job that does what it is told over standard input, for the process tests. Like a user's
// script, it takes its role from the environment alone.
//
//   step <n>              reports a step
//   progress <n>          reports n finished calls, whose ends it has kept
//   at <what> [<number>]  is from now on reading-data or computing, or in all_reduce with this number
//   link-lost <epoch>     reports that its data plane broke in that epoch
//   leave                 leaves done, and prints how many threads it has then
//   fail <status> <why>   leaves failed, then exits with the status
//   fork                  forks a child that outlives this process and says what a cluster call gives there
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

#include "muster/cluster/cluster.h"

namespace {

using namespace muster;
using namespace muster::cluster;

std::atomic<bool> interrupted{false};
std::atomic<bool> reads_data{false};
std::atomic<std::uint64_t> all_reduce{0};

void say(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

std::ptrdiff_t count_threads() {
  const auto all = std::filesystem::directory_iterator("/proc/self/task");
  return std::distance(begin(all), end(all));
}

// A thread that has been joined stays in /proc until the system has taken it away.
void print_threads() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (count_threads() > 1 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  say(fmt::format("threads {}", count_threads()));
}

int end_by(const Failure& failure) {
  say("failure: " + failure.message);
  return failure.exit_code;
}

void fork_child(const Node& node) {
  if (::fork() != 0) return;
  const auto failure = node.failure();
  say(fmt::format("child {}: {}", ::getpid(), failure ? failure->message : "no failure"));
  ::pause();
  ::_exit(0);
}

int obey(Node& node) {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    if (command == "step") {
      std::uint64_t step = 0;
      words >> step;
      node.report_step(step);
      say(fmt::format("at step {}", step));
    } else if (command == "progress") {
      Progress progress;
      words >> progress.calls;
      progress.kept_calls = progress.calls;
      node.report_progress(progress);
      say(fmt::format("has finished {} calls", progress.calls));
    } else if (command == "at") {
      std::string what;
      std::uint64_t number = 0;
      words >> what >> number;
      reads_data = what == "reading-data";
      all_reduce = number;
      say("is at " + what);
    } else if (command == "link-lost") {
      std::uint64_t epoch = 0;
      words >> epoch;
      node.report_link_lost(epoch, "no answer on its data port");
    } else if (command == "leave") {
      node.leave(0, "");
      print_threads();
      return 0;
    } else if (command == "fail") {
      int status = 1;
      std::string why;
      words >> status;
      std::getline(words >> std::ws, why);
      node.leave(status, why);
      return status;
    } else if (command == "fork") {
      fork_child(node);
    }
  }
  node.leave(exit_code_interrupted, "its standard input ended");
  return exit_code_interrupted;
}

std::string describe(const Roster& roster) {
  std::string text =
      fmt::format("epoch {} job {:016x} finished {}", roster.epoch, roster.job_id, roster.finished_calls);
  for (const Member& worker : roster.workers)
    text += fmt::format(" {}:{}:{}", worker.node_id, worker.pid, worker.data_port);
  return text;
}

// Its data plane is one number, another in each epoch.
void follow_epochs(Node& node) {
  node.on_epoch({.lost = [port = std::uint16_t{100}](const Failure& reason) mutable -> Result<DataEndpoint> {
                   say("lost: " + reason.message);
                   return DataEndpoint{++port, "there"};
                 },
                 .formed = [](const auto& roster) { say(describe(*roster)); }});
}

int run_node(const Settings& settings) {
  const Interrupted is_interrupted = [] { return interrupted.load(); };
  auto registration = describe_host(settings, is_interrupted);
  if (!registration) return end_by(failure_from(registration.error()));
  registration->data_port = 100;
  auto node = Node::join(settings, *registration, is_interrupted);
  if (!node) return end_by(node.error());
  const Roster roster = *(*node)->roster();
  say(fmt::format("rank {} of {} seed {} address {}", (*node)->rank(), roster.workers.size(), roster.seed,
                  registration->address));
  if (settings.role == Role::server) {
    const auto failure = (*node)->wait(is_interrupted);
    return failure ? end_by(*failure) : 0;
  }
  if (roster.recovers) {
    say(describe(roster));
    follow_epochs(**node);
  }
  (*node)->on_beat([] {
    const std::uint64_t number = all_reduce;
    return Activity{.phase = reads_data ? WorkPhase::reading_data : WorkPhase::computing,
                    .call = number == 0 ? CallKind::none : CallKind::all_reduce,
                    .call_number = number};
  });
  (*node)->on_failure([](const Failure& failure) { ::_exit(end_by(failure)); });
  return obey(**node);
}

// Whom the file PROBE_HELD_BY names: no recovery points are kept here, and so nobody locks any.
std::optional<std::string> held_by() {
  const char* path = std::getenv("PROBE_HELD_BY");
  std::ifstream file(path != nullptr ? path : "");
  std::string who;
  if (!std::getline(file, who)) return std::nullopt;
  return who;
}

}  // namespace

int main() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  ::sigaction(SIGINT, &action, nullptr);
  const auto settings = read_settings(real_environment());
  if (!settings) return end_by(failure_from(settings.error()));
  for (const std::string& warning : settings->warnings) log::warning(warning);
  if (settings->role != Role::scheduler) return run_node(*settings);
  const auto failure = run_scheduler(*settings, {.interrupted = [] { return interrupted.load(); },
                                                 .holders = [](std::uint64_t) { return held_by(); }});
  return failure ? end_by(*failure) : 0;
}
