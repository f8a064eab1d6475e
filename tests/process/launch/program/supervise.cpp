// supervise <log folder> <settle ms> <grace ms> <restarts> <restart delay ms> <shell command> ...: each
// command is a worker, which finds the folder in $FOLDER; one that begins with ": scheduler;" or ": service;"
// is that. With $LEASE, $FOLDER/lease is a FIFO of the rest of the job. $TAIL holds the one rank that is
// shown. $FOLDER/run is there while they run, with a file "secret".
//
// supervise agent <run folder> <lease ms>: an agent, as `muster agent` is one.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>

#include "muster/launch/hosts/agent.h"
#include "muster/launch/keeper.h"
#include "muster/launch/run_folder.h"
#include "muster/launch/supervisor.h"

namespace {

// The rest of the job is whoever writes "<exit code> <reason>" to a FIFO, and reads what this host says.
class FifoLease final : public muster::launch::Lease {
 public:
  explicit FifoLease(const std::string& path)
      : fifo_(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC)) {}
  int fd() const override { return fifo_.get(); }
  std::optional<End> take() override {
    std::array<char, 256> bytes{};
    const ssize_t size = ::read(fifo_.get(), bytes.data(), bytes.size());
    if (size <= 0) return std::nullopt;
    const std::string line(bytes.data(), static_cast<std::size_t>(size) - 1);
    const auto space = line.find(' ');
    return End{.exit_code = std::atoi(line.c_str()),
               .reason = space == std::string::npos ? "" : line.substr(space + 1)};
  }
  void work_ended(int exit_code) override {
    if (!std::exchange(is_told_, true)) std::fprintf(stderr, "own work ended with %d\n", exit_code);
  }

 private:
  muster::net::Descriptor fifo_;
  bool is_told_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  using namespace muster;
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  if (arguments.size() == 4 && std::string_view(arguments[1]) == "agent") {
    const auto lease = std::chrono::milliseconds(std::atoi(arguments[3]));
    const auto work = [&](int keeper_fd) {
      return launch::run_agent_kept(arguments[2], keeper_fd, lease, real_clock());
    };
    return launch::keep(work, {.clock = real_clock(), .run_folder = arguments[2], .stopped_max = lease});
  }
  if (arguments.size() < 7) return 2;
  launch::LaunchSpec spec;
  for (char* command : arguments.subspan(6)) {
    const bool is_scheduler = std::string_view(command).starts_with(": scheduler;");
    const bool is_service = std::string_view(command).starts_with(": service;");
    const std::string rank = std::to_string(spec.processes.size());
    spec.processes.push_back(
        {.kind = is_service ? launch::ProcessSpec::Kind::service : launch::ProcessSpec::Kind::work,
         .role = is_scheduler ? "scheduler" : "worker",
         .label = "worker " + rank,
         .arguments = {"sh", "-c", command},
         .environment = {{"RANK", rank}, {"FOLDER", arguments[1]}},
         .log_name = "worker_" + rank + ".log"});
  }
  const std::string run_folder = std::string(arguments[1]) + "/run";
  spec.files = {{.path = run_folder + "/secret", .contents = "sesame"}};
  launch::SupervisorOptions options = {
      .clock = real_clock(),
      .log_folder = arguments[1],
      .run_folder = run_folder,
      .settle = std::chrono::milliseconds(std::atoi(arguments[2])),
      .grace = std::chrono::milliseconds(std::atoi(arguments[3])),
      .restarts_max = static_cast<std::size_t>(std::atoi(arguments[4])),
      .recovery_folder = std::string(arguments[1]) + "/recovery",
      .restart_delay = std::chrono::milliseconds(std::atoi(arguments[5])),
      .restart_delay_max = std::chrono::milliseconds(std::atoi(arguments[5]))};
  if (const char* tail = std::getenv("TAIL"); tail != nullptr) options.tail = {std::atoi(tail)};
  std::optional<FifoLease> lease;
  if (std::getenv("LEASE") != nullptr) options.lease = &lease.emplace(std::string(arguments[1]) + "/lease");
  return launch::keep(
      [&](int keeper_fd) {
        options.keeper_fd = keeper_fd;
        if (!launch::make_run_folder(run_folder)) return 3;
        return launch::supervise(spec, options);
      },
      {.clock = real_clock(), .run_folder = run_folder});
}
