// muster run: starts a training script as the processes that its framework expects.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "commands.h"
#include "muster/launch/launch.h"
#include "muster/net/net.h"
#include "other_launchers.h"
#include "places.h"
#include "run_flags.h"

namespace muster::app {
namespace {

Result<std::string> made_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(Code::io, error.message());
  return folder;
}

Result<> make_logs(launch::JobSettings& job) {
  const std::string named = job.log_folder.value;
  auto made = named.empty() ? make_log_folder("muster-logs") : made_folder(named);
  if (!made)
    return fail(made.error().code,
                fmt::format("cannot make the folder '{}' for the logs: {}: name another with --log-dir",
                            named.empty() ? "muster-logs" : named, made.error().message));
  job.log_folder.value = *std::move(made);
  return {};
}

// Of train.py, of -m package.train, and also of python3 -u train.py.
std::optional<std::string> script_of(const std::vector<std::string>& command) {
  if (command.front() == launch::module_flag) return module_file(command[1]);
  const auto script = std::find_if(command.begin(), command.end(), launch::is_python_script);
  return script != command.end() ? std::optional(*script) : std::nullopt;
}

// What the script itself tells of the family that it belongs to.
void guess_preset(launch::PartialSettings& said) {
  if (said.preset || !said.command) return;
  const auto script = script_of(said.command->value);
  if (!script) return;
  std::string text(launch::guess_bytes_max, '\0');
  std::ifstream file(*script, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  said.preset =
      launch::guess_preset(std::filesystem::path(*script).filename().string(), text, real_environment());
}

// The hosts and slots of a job on Ascend cards are those of its rank table.
Result<> read_rank_table(launch::PartialSettings& said) {
  if (!said.preset || said.preset->value != "ascend") return {};
  constexpr const char* variable = "RANK_TABLE_FILE";
  if (const auto exported = real_environment().get(variable);
      !said.rank_table && !exported.value_or("").empty())
    said.rank_table = launch::Setting<std::string>{*exported, variable};
  if (!said.rank_table) return {};
  auto& [name, origin] = *said.rank_table;
  auto file = net::read_small_file(name, launch::rank_table_bytes_max);
  if (!file) return fail(file.error().code, fmt::format("{} {}: {}", origin, name, file.error().message));
  MUSTER_TRY(const auto table, launch::parse_rank_table(file->text, name));
  name = std::filesystem::absolute(name).string();  // as every process finds it
  MUSTER_TRY(said, with_rank_table(std::move(said), table));
  return {};
}

// What this machine's variables say, whichever system set them.
Result<launch::PartialSettings> find_platform(const launch::PartialSettings& asked) {
  MUSTER_TRY(launch::PartialSettings platform, launch::platform_settings(real_environment()));
  MUSTER_TRY(const auto slurm, launch::slurm_settings(real_environment(), asked));
  MUSTER_TRY(const auto kubernetes, launch::kubernetes_settings(real_environment(), asked));
  return launch::merged(launch::merged(std::move(platform), slurm), kubernetes);
}

// Hosts may have programs that this one lacks, and a PATH of the job's own may name other folders.
Result<> check_command(const launch::PartialSettings& asked, const std::string& program) {
  if (!asked.command || asked.command->value.empty()) return {};
  const bool is_elsewhere = asked.hosts || asked.environment.contains("PATH");
  return check_command(asked.command->value, program,
                       is_elsewhere ? ProgramPlace::elsewhere : ProgramPlace::here);
}

Result<launch::JobSettings> find_settings(const RunFlags& flags, const std::string& program) {
  MUSTER_TRY(launch::PartialSettings asked, settings_of(flags));
  if (!flags.job_file.empty()) {
    MUSTER_TRY(const auto written,
               read_job_file(flags.job_file, std::filesystem::absolute(flags.job_file).parent_path()));
    asked = merged(std::move(asked), written);
  }
  MUSTER_TRY_VOID(check_command(asked, program));
  guess_preset(asked);
  MUSTER_TRY(const auto platform, find_platform(asked));
  MUSTER_TRY_VOID(check_agreement(asked, platform));
  launch::PartialSettings said = merged(std::move(asked), platform);
  MUSTER_TRY_VOID(read_rank_table(said));
  MUSTER_TRY(launch::JobSettings job, launch::complete(said));
  job.python = python_for_scripts(program);
  return launch::prepared(std::move(job), real_environment());
}

// The newest of the traces that workers have written into a folder of profiles.
std::filesystem::file_time_type newest_trace(const std::string& folder) {
  auto newest = std::filesystem::file_time_type::min();
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().filename().string().starts_with("rank"))
      newest = std::max(newest, entry.last_write_time(error));
  return newest;
}

int run_and_tell_of_profile(const launch::JobSettings& job, const std::string& folder) {
  const auto before = newest_trace(folder);
  const int exit_code = run_job(job, real_environment(), real_clock());
  if (exit_code == 0 && newest_trace(folder) == before)
    fmt::print(
        stderr,
        "muster run: --profile {}: no worker of this host has recorded anything: did it import muster?\n",
        folder);
  return exit_code;
}

int run(const RunFlags& flags, const std::string& program) {
  auto job = find_settings(flags, program);
  if (!job) {
    // As torchrun has it, what stands behind the script is the script's: -n, too, whoever meant us.
    const bool is_behind = !flags.slots && std::ranges::count(flags.command, "-n") > 0;
    return refuse("run", job.error().message + (is_behind ? " before the script" : ""));
  }
  if (flags.is_dry || flags.explains) {
    const auto text = describe_job(*job, real_environment(),
                                   flags.explains ? launch::WithOrigins::yes : launch::WithOrigins::no);
    if (!text) return refuse("run", text.error().message);
    fmt::print("{}", *text);
    return 0;
  }
  if (const auto made = make_logs(*job); !made) return refuse("run", made.error().message);
  if (flags.profile) return run_and_tell_of_profile(*job, *flags.profile);
  return run_job(*job, real_environment(), real_clock());
}

}  // namespace

void add_run(CLI::App& app, Invocation& invocation) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand(
      "run",
      "Start a training script on this host or on several, with the variables that its framework expects");
  add_run_flags(*command, *flags);
  command->prefix_command();
  command->callback([command, flags, &invocation] {
    flags->command = command->remaining();
    if (const auto known = check_option(*command, flags->command); !known) {
      const auto elsewhere = said_here(flags->command.front());
      invocation.exit_code = refuse("run", elsewhere.value_or(known.error().message));
      return;
    }
    invocation.exit_code = run(*flags, invocation.program);
  });
}

}  // namespace muster::app
