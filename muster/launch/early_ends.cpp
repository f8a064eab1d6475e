#include "muster/launch/early_ends.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <utility>

#include "muster/launch/child_environment.h"
#include "muster/launch/status.h"

namespace muster::launch {
namespace {

constexpr Duration moment = std::chrono::seconds(1);
constexpr timespec pause_between_tries{.tv_sec = 0, .tv_nsec = 500'000'000};
constexpr const char* node_id_variable = "MS_NODE_ID";

void tell_all(const std::vector<const ProcessSpec*>& ended, const std::string& token, TimePoint until,
              const Clock& clock) {
  const ChildEnvironment environment(*ended.front());
  const auto scheduler = find_scheduler("", environment);
  const auto security = token.empty() ? find_security(environment) : net::Security::from_token(token);
  if (!scheduler || !security) return;
  for (const ProcessSpec* spec : ended)
    while (!tell_of_early_end(*scheduler, *security, spec->environment.at(node_id_variable), clock)) {
      if (clock.now() >= until) return;
      ::nanosleep(&pause_between_tries, nullptr);
    }
}

}  // namespace

void EarlyEnds::note(const ProcessSpec& spec) {
  if (spec.role != "worker" || !spec.environment.contains(node_id_variable)) return;
  ended_.push_back(&spec);
  if (!due_) due_ = clock_.now() + moment;
}

void EarlyEnds::tell() {
  due_.reset();
  const auto ended = std::exchange(ended_, {});
  const pid_t parent = ::getpid();
  if (::fork() != 0) return;  // without memory for another process, the job waits as long as it is told to
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
  tell_all(ended, token_, TimePoint::max(), clock_);
  ::_exit(0);
}

void EarlyEnds::tell_before_end(Duration limit) {
  due_.reset();
  const auto ended = std::exchange(ended_, {});
  if (!ended.empty()) tell_all(ended, token_, clock_.now() + limit, clock_);
}

}  // namespace muster::launch
