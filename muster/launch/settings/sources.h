// Sources of the settings of a job besides flags: files, and the variables of whatever started this
// process. Each source is read by a pure function; merged() and complete() in job_settings.h join them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/launch/rank_table.h"
#include "muster/launch/settings/job_settings.h"

namespace muster::launch {

// ---- Lists of hosts with their slots ----------------------------------------------------------------------

inline constexpr std::size_t hosts_max = 16384;
inline constexpr std::size_t hostfile_bytes_max = 1 << 20;

// "a:4,b:4,10.0.0.3,[fd00::1]:2,user@c": a host without slots has 0 of them.
Result<std::vector<HostSlots>> parse_hosts(std::string_view text);

// A file with one host a line: "a slots=4" as Open MPI has it, "a:4", or "a"; '#' begins a comment. `name` of
// the file stands in errors, with the line's number.
Result<std::vector<HostSlots>> parse_hostfile(std::string_view text, std::string_view name);

// ---- The job file: all settings of a job in TOML (docs/formats/job.md); --dry-run prints one --------------

inline constexpr std::size_t job_file_bytes_max = 1 << 20;

struct JobFileName {
  std::string name;    // as the user wrote it: stands in errors and origins
  std::string folder;  // absolute; relative paths in the file start there
};

// Errors name the file, the line and the key; a key that does not exist is one, with the name it was likely
// meant to have.
Result<PartialSettings> parse_job_file(std::string_view text, const JobFileName& file);

enum class WithOrigins { no, yes };  // "slots = 4  # -n"

std::string job_file_text(const JobSettings& job, WithOrigins origins);

// What it says, line by line, the variables of the processes behind the rest.
struct JobFileEntry {
  std::string key = {};
  std::string value = {};  // as TOML has it
  std::string origin = {};
  bool is_variable = false;
  friend bool operator==(const JobFileEntry&, const JobFileEntry&) = default;
};
std::vector<JobFileEntry> job_file_entries(const JobSettings& job);
std::string job_file_text(const std::vector<JobFileEntry>& entries, WithOrigins origins);

// ---- Rank tables ------------------------------------------------------------------------------------------

// Settings whose hosts have the slots that the table (in said.rank_table's file) gives them. Errors name both
// sides where `said` and the table differ.
Result<PartialSettings> with_rank_table(PartialSettings said, const RankTable& table);

// The server of each host: by its name where servers have the hosts' names, else in the table's order. As
// many hosts as the table has servers.
Result<std::vector<std::size_t>> servers_of(const std::vector<HostSlots>& hosts, const RankTable& table,
                                            std::string_view table_name);

// ---- What started this process: each is empty where that did not ------------------------------------------

// A training platform, such as ModelArts, which sets MA_*, VC_* and VK_* in each container. Hosts are in
// VC_WORKER_HOSTS (names, by commas), or MA_NUM_HOSTS with MA_VJ_NAME and MA_TASK_NAME
// ("<job>-<task>-<i>.<job>"); this one is MA_TASK_INDEX, else VC_TASK_INDEX, else VK_TASK_INDEX; slots are
// MY_MPI_SLOTS, else MA_NUM_GPUS. Errors name the variable.
Result<PartialSettings> platform_settings(const Environment& environment);

// A pod of an Indexed Job: its completion index is the host's. Empty also where `asked` (flags and job file)
// speaks of one host: then the pods of a Job are jobs of their own.
Result<PartialSettings> kubernetes_settings(const Environment& environment, const PartialSettings& asked);

// Slurm: `srun muster run train.py`. One task on each node (srun --ntasks-per-node=1): each node is a host,
// with as many workers as -n says, or as there are GPUs. Several tasks on a node: each task is one worker, so
// that Slurm binds it to its cores and GPUs. What contradicts `asked` is an error that names both.
Result<PartialSettings> slurm_settings(const Environment& environment, const PartialSettings& asked);

// ---- The script itself ------------------------------------------------------------------------------------

inline constexpr std::size_t guess_bytes_max = 256 << 10;  // of a script are looked at

// The preset that it needs, from what the Python script imports and which variables are set; `name` of the
// script stands in the origin: "guessed: train.py imports torch". Nothing where nothing, or several things,
// speak for themselves.
std::optional<Setting<std::string>> guess_preset(std::string_view name, std::string_view text,
                                                 const Environment& environment);

}  // namespace muster::launch
