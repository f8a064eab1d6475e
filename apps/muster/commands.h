// The commands of the program `muster`. Each adds itself to the command line; what it has to do runs after
// parsing and leaves the exit code in `exit_code`.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"
#include "muster/launch/launch.h"

namespace muster::app {

struct Invocation {
  std::string program;  // how the program was called: argv[0]
  int exit_code = 0;
};

// Where a program that is searched in PATH, or a module, has to be found: on the hosts of a job they are as
// its own Python and PATH have them.
enum class ProgramPlace { here, elsewhere };

// Whether a command names something that can be started: a script, a module (-m) or a program. Errors say
// what is missing, and what is near. `program` is this one, as it was called.
Result<> check_command(const std::vector<std::string>& command, const std::string& program,
                       ProgramPlace place);
// Whether the words behind the options of `command` begin with what was meant as one.
Result<> check_option(const CLI::App& command, const std::vector<std::string>& words);

// Takes the options of `command` that stand behind the script out of `words`, where none stands before it:
// `plan train.py -n 8` is `plan -n 8 train.py`. What is behind `--` is left to the script. Throws CLI::Error
// for values that do not fit.
void take_options_behind(CLI::App& command, std::vector<std::string>& words);

// A command that starts with a script (x.py) or -m gets Python before it. Errors as check_command's.
Result<> complete_command(std::vector<std::string>& command, const std::string& program);

// "package/train" of "package.train", and the file that Python runs for it, where it lies in this folder.
std::string path_of_module(std::string module);
std::optional<std::string> module_file(const std::string& module);

// The job file that --job names. Its relative paths start at `folder`; empty: they stay as they are.
Result<launch::PartialSettings> read_job_file(const std::string& name, const std::string& folder);

// Exit code of a command line that cannot be used, as most programs have it.
inline constexpr int exit_code_usage = 2;
// A program is not there, as a shell reports it.
inline constexpr int exit_code_no_program = 127;

// Prints "muster run: message" as an error and gives the exit code back. The command: "run", "certs new".
int refuse(std::string_view command, const std::string& message, int exit_code = exit_code_usage);
// The wait status of a child that has ended.
int wait_for(pid_t child);
// This process becomes another program; only an error returns, told as refuse() does.
int become(std::string_view command, std::vector<std::string> words, int exit_code = exit_code_usage);
// Runs a script whose use of Muster is to be shown, and ends as it does: with its exit code, or by its
// signal. Refused where it ends well and has never used Muster: the library adds a byte to MUSTER_USE_FILE.
// `used` is called behind the end of one that has.
int run_watched(std::string_view command, std::vector<std::string> words,
                const std::function<void()>& used = nullptr);
// Where a script that `command` starts finds how long calls between so many workers of this machine take;
// `anew`: whatever is known. What cannot be measured is told.
void provide_call_times(std::string_view command, std::uint32_t workers, bool anew);

void add_agent(CLI::App& app, Invocation& invocation);  // agent, mpi-daemon
void add_run(CLI::App& app, Invocation& invocation);
void add_explain(CLI::App& app, Invocation& invocation);
void add_plan(CLI::App& app, Invocation& invocation);
void add_profile(CLI::App& app, Invocation& invocation);
void add_checkpoint(CLI::App& app, Invocation& invocation);
void add_verify(CLI::App& app, Invocation& invocation);
void add_certs(CLI::App& app, Invocation& invocation);
void add_compat(CLI::App& app, Invocation& invocation);
void add_data(CLI::App& app, Invocation& invocation);
void add_ranktable(CLI::App& app, Invocation& invocation);
void add_kubernetes(CLI::App& app, Invocation& invocation);   // k8s, sidecar
void add_information(CLI::App& app, Invocation& invocation);  // env, compat-path, cmake-path, version, help
void add_watching(CLI::App& app, Invocation& invocation);     // status, metrics, doctor
void add_dashboard(CLI::App& app, Invocation& invocation);
void add_runs(CLI::App& app, Invocation& invocation);

}  // namespace muster::app
