// Starting processes and ending them, on Linux.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "muster/launch/launch_spec.h"
#include "muster/net/net.h"

namespace muster::launch {

// A process that was started: leader of its own process group, killed by the kernel when its parent ends. The
// read ends of its standard output and error do not block.
struct ChildProcess {
  pid_t pid = -1;
  net::Descriptor out;
  net::Descriptor error;
};

struct Pipe {
  net::Descriptor read, write;
};
// Programs that are started do not inherit it.
Result<Pipe> make_pipe();
// Gives what is there to be read at once; at the end of the pipe `output` is closed. It does not block.
void read_some(net::Descriptor& output, const std::function<void(std::string_view)>& give);

// Fails when the program cannot be started, naming it. Standard input is `input`, or empty; `kept` is
// inherited under its own number. To be called by a process with one thread.
Result<ChildProcess> start_process(const ProcessSpec& spec, int input = -1, int kept = -1);

// The launcher's variables with others on top, "NAME=value" each.
std::vector<std::string> merged_environment(const std::map<std::string, std::string>& on_top);

// Orphans below this process become its children from here on, whatever session or group they moved to.
Result<> adopt_orphans();

// Kills every child but those spared, and the children that it adopts thereby, until none is left or
// `timeout` has passed. Returns whether none is left.
bool kill_descendants(Duration timeout, const Clock& clock, const std::vector<pid_t>& spared = {});
inline constexpr Duration kill_timeout = std::chrono::seconds(5);  // enough on a busy machine

// Whether the process has a handler for the signal; a process that is gone has none.
bool catches(pid_t pid, int signal_number);

// Shell's view of a wait status: the exit code, or 128 and the signal's number.
int exit_code_of(int wait_status);
// "exited with code 3", "was killed by signal 9 (Killed)".
std::string describe_exit(int wait_status);

}  // namespace muster::launch
