#include "muster/base/termination.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <utility>

#include "muster/base/log.h"
#include "muster/base/process.h"

namespace muster {
namespace {

// For workers that end in order when all are told to: Slurm and Kubernetes kill after 30.
constexpr std::chrono::seconds patience{20};
// What a batch system sends to all processes, a launcher among them sends on to its own.
constexpr Duration time_of_request = std::chrono::seconds(1);
constexpr int exit_code_of_signals = 128;  // as a shell reports them

void note_termination(int /*number*/) { process().terminations.fetch_add(1); }

}  // namespace

Termination::Termination() {
  process().terminations = 0;  // made before a handler may look for it
  struct sigaction action = {};
  if (::sigaction(SIGTERM, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;
  action = {};
  action.sa_handler = note_termination;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  has_taken_over_ = ::sigaction(SIGTERM, &action, nullptr) == 0;
}

Termination::~Termination() {
  if (has_taken_over_) ::signal(SIGTERM, SIG_DFL);
}

void Termination::look(bool is_needed, TimePoint now) {
  if (!is_asked(now)) return;
  if (!is_needed || is_due(now)) end_process();
  if (std::exchange(has_said_, true)) return;
  log::warning(fmt::format(
      "told to end (SIGTERM): it ends when the last worker has left, or in {} s; told again, at once",
      patience.count()));
}

bool Termination::is_asked(TimePoint now) {
  const unsigned signals = process().terminations;
  if (signals == 0) return false;
  if (!asked_at_) asked_at_ = now;
  if (now < *asked_at_ + time_of_request) counted_ = signals;
  return true;
}

bool Termination::is_due(TimePoint now) {
  return is_asked(now) && (process().terminations > counted_ || now >= *asked_at_ + patience);
}

void Termination::end_process() {
  ::signal(SIGTERM, SIG_DFL);
  ::kill(::getpid(), SIGTERM);
  ::_exit(exit_code_of_signals + SIGTERM);  // where it is blocked
}

}  // namespace muster
