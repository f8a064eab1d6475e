#include "muster/cluster/variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "muster/cluster/fingerprint.h"

namespace muster::cluster {
namespace {

using Type = Variable::Type;

// Small enough that a few of them added to any clock cannot overflow.
constexpr std::int64_t seconds_max = 1'000'000'000;
constexpr std::int64_t retry_num_max = 100'000'000;
constexpr std::int64_t seconds_per_retry = 3;

constexpr auto table = std::to_array<Variable>({
    {.name = "MS_ROLE",
     .type = Type::choice,
     .default_note = "none, must be set",
     .choices = "MS_SCHED | MS_WORKER | MS_PSERVER",
     .documentation = "What this process is. Workers train; the scheduler brings the processes together and "
                      "watches over them; a parameter server keeps what the workers have put on it."},
    {.name = "MS_SCHED_HOST",
     .default_note = "none, must be set",
     .note = "an IPv4 or IPv6 address or a host name",
     .documentation = "Where the scheduler listens. The same for every process of the job."},
    {.name = "MS_SCHED_PORT",
     .type = Type::integer,
     .default_note = "none, must be set",
     .min = 1024,
     .max = 65535,
     .documentation = "The scheduler's port. The same for every process of the job."},
    {.name = "MS_WORKER_NUM",
     .type = Type::integer,
     .default_note = "none, must be set",
     .min = 1,
     .max = worker_num_max,
     .documentation = "How many workers the job has, on all hosts together. The same for every process."},
    {.name = "MS_SERVER_NUM",
     .type = Type::integer,
     .default_value = "0",
     .min = 0,
     .max = worker_num_max,
     .documentation = "How many parameter servers the job has. The same for every process."},
    {.name = "MS_NODE_ID",
     .default_note = "made by Muster",
     .note = "at most 128 printable characters, unique among the processes of a role",
     .documentation =
         "The name of this process. A whole number below MS_WORKER_NUM is also the worker's rank; "
         "other workers get the free ranks in the order in which they came. The scheduler's is only "
         "a label."},
    {.name = "MS_WORKER_IP",
     .default_note = "the local address of the route to the scheduler",
     .note = "an IPv4 or IPv6 address of this host",
     .documentation = "The address at which other workers reach this one."},
    {.name = "MS_TOPO_TIMEOUT",
     .type = Type::integer,
     .default_value = "1800",
     .min = 1,
     .max = seconds_max,
     .documentation = "Seconds in which all processes must have registered. After that each exits with a "
                      "list of those that are missing."},
    {.name = "MS_CLUSTER_RETRY_NUM",
     .type = Type::integer,
     .default_value = "610",
     .min = 1,
     .max = retry_num_max,
     .documentation = "Bounds how long a process tries to reach the scheduler: this many times 3 seconds. It "
                      "tries again after 10 ms at first and at most every second."},
    {.name = "MS_NODE_TIMEOUT",
     .type = Type::integer,
     .default_value = "600",
     .min = 1,
     .max = seconds_max,
     .documentation = "Seconds without a heartbeat after which a process counts as dead. A killed process is "
                      "noticed at once; this is for one that is stopped or cut off."},
    {.name = "MS_RECEIVE_MSG_TIMEOUT",
     .type = Type::integer,
     .default_value = "600",
     .min = 1,
     .max = seconds_max,
     .documentation =
         "Seconds to wait for the answer to one request. When none came, an error names the peer."},
    {.name = "MS_ENABLE_RECOVERY",
     .type = Type::choice,
     .default_value = "0",
     .choices = "0 | 1",
     .documentation =
         "1: the job outlives its processes. A process that dies is started again, by hand or by "
         "`muster run --max-restarts`, and training goes on from the newest recovery point. It "
         "needs MS_RECOVERY_PATH. 0: a lost process ends the job. The same for every process."},
    {.name = "MS_RECOVERY_PATH",
     .default_note = "none; must be set with MS_ENABLE_RECOVERY=1",
     .note = "a folder, absolute or relative to the current one; it is made when absent",
     .documentation =
         "Where recovery keeps its files: the scheduler's log and the workers' recovery points. A "
         "job that did not end well goes on from there; delete the folders of all processes to start fresh."},
    {.name = "MUSTER_FRESH",
     .type = Type::choice,
     .default_value = "0",
     .choices = "0 | 1",
     .documentation =
         "1: begin a new job although MS_RECOVERY_PATH has an unfinished one, which is given up. The same "
         "for every process, and for one start only: a job whose processes live is never given up."},
    {.name = "MS_HCCL_CM_INIT",
     .default_note = "none",
     .note = "any value",
     .documentation = "Only matters on Ascend devices; it is not needed here, for IPv6 neither."},
    {.name = "MUSTER_BIND",
     .default_note = "what MS_SCHED_HOST means",
     .note = "an IPv4 or IPv6 address of this host, or 0.0.0.0 or :: for all of them",
     .documentation = "The address at which the scheduler listens, where MS_SCHED_HOST is none of its host: "
                      "behind a NAT, or a service's name. Only the scheduler reads it."},
    {.name = "MUSTER_RESOLVE_TIMEOUT",
     .type = Type::integer,
     .default_value = "0",
     .min = 0,
     .max = seconds_max,
     .documentation =
         "Seconds to wait for the scheduler's host name to become known. 0: it must be known now."},
    {.name = "MUSTER_TRANSPORT",
     .type = Type::choice,
     .default_value = "auto",
     .choices = "auto | tcp | ucx",
     .documentation = "How tensors travel. auto: shared memory between processes of one host, TCP between "
                      "hosts; ucx: as auto, but UCX between hosts, whatever it has there; tcp: TCP always."},
    {.name = "MUSTER_HOST_KEY",
     .default_note = "from the kernel's boot id and the network namespace",
     .note = "at most 64 printable characters without '#'",
     .documentation =
         "Processes with equal host keys share memory. Different ones make processes of one host "
         "talk as if they were on several, for tests."},
    {.name = "MUSTER_TLS_CONFIG",
     .default_note = "none: without encryption",
     .note = "a JSON file",
     .documentation =
         "Encrypts and authenticates what processes of the job say to each other, as "
         "set_ps_context(enable_ssl=True, config_file_path=...) does: the file names certificates. The "
         "same for every process, with certificates of its own where you like."},
    {.name = "MUSTER_TLS_CLIENT_PASSWORD_FILE",
     .default_note = "none",
     .note = "a file of one line, or fd:N for a descriptor",
     .documentation = "Holds the password of client_cert_path."},
    {.name = "MUSTER_TLS_SERVER_PASSWORD_FILE",
     .default_note = "none",
     .note = "a file of one line, or fd:N for a descriptor",
     .documentation = "Holds the password of server_cert_path."},
    {.name = "MUSTER_TOKEN_FILE",
     .default_note = "none",
     .note = "a file of one line, or fd:N for a descriptor",
     .documentation = "Holds a secret that all processes of the job share: it keeps unauthorized peers out "
                      "and encrypts, without certificates. Not together with MUSTER_TLS_CONFIG. The same for "
                      "every process."},
    {.name = "MUSTER_RUN_TOKEN_FILE",
     .default_note = "none",
     .note = "a file of one line, or fd:N for a descriptor",
     .documentation =
         "Set by `muster run`: the token that it made for this job. Certificates and MUSTER_TOKEN_FILE go "
         "before it."},
    {.name = "MUSTER_STRICT",
     .type = Type::choice,
     .default_value = "0",
     .choices = "0 | 1",
     .documentation =
         "1: what would be a warning about a device that is not there, about a secret that every user of the "
         "host can read, about processes of the job that differ, about workers whose parameters differ, "
         "about a process that trains alone beside others, or about a script of a job that ends without "
         "init(), is an error."},
    {.name = "MUSTER_DETECT_ANOMALY",
     .type = Type::choice,
     .default_value = "0",
     .choices = "0 | 1",
     .documentation = "1: as train.detect_anomaly(): the first op that gives NaN, or infinity from finite "
                      "numbers, ends the process with its name and that of its cell. Slow."},
    {.name = "MUSTER_METRICS_FILE",
     .default_note = "none",
     .note = "a file; {rank} in it is the rank",
     .documentation =
         "Set by `muster run --metrics-file`: trainings of a Model append a line of JSON for each "
         "step to it. Rank 0 does, or with {rank} in the name every worker in a file of its own."},
    {.name = "MUSTER_SAMPLE_LOG",
     .default_note = "none",
     .note = "a folder",
     .documentation =
         "Each worker writes there which samples its trainings have had: `muster verify --samples` "
         "reads it."},
    {.name = "MUSTER_RUN_FOLDER",
     .default_note = "none",
     .note = "a folder",
     .documentation = "Set by `muster run` to the run's folder: each worker keeps its flight recorder there, "
                      "the last 2,000 collective calls and messages, for `muster autopsy`, "
                      "and rank 0 the picture of the network for the page."},
    {.name = "MUSTER_PROFILE",
     .default_note = "none",
     .note = "a folder",
     .documentation = "Set by `muster profile`: the script is recorded, and at its end its trace is written "
                      "there and rank 0 prints where the time went."},
    {.name = "MUSTER_USE_FILE",
     .default_note = "none",
     .note = "a file",
     .documentation = "Set by `muster explain`, `plan` and `profile`: Muster adds a byte to it, so that a "
                      "script that never uses it is told of."},
    {.name = "MUSTER_EXPLAIN",
     .type = Type::choice,
     .default_note = "none",
     .choices = "plan | trace | search",
     .documentation = "Set by `muster explain` and `muster plan`: the script shows its plans, its traces, or "
                      "how its step is best divided, as the one worker of no job."},
    {.name = "MUSTER_PLAN",
     .default_note = "none",
     .note = "workers, bytes, json",
     .documentation = "Set by `muster plan`: over how many workers a step is to be divided, within how many "
                      "bytes (0: any), and how plans are shown."},
    {.name = "MUSTER_EXPLAIN_SVG",
     .default_note = "none",
     .note = "a file",
     .documentation = "Set by `muster explain --svg`: the file for the picture of a placed network."},
    {.name = "MUSTER_EXPLAIN_WORKERS",
     .type = Type::integer,
     .default_value = "1",
     .min = 1,
     .max = 65536,
     .documentation = "Set by `muster explain --parallel`: of how many workers the script shows the first."},
    {.name = "MUSTER_EXPLAIN_COSTS",
     .type = Type::choice,
     .default_value = "0",
     .choices = "0 | 1",
     .documentation = "1: rank 0 predicts its step, and behind ten steps prints what each group of ops was "
                      "predicted to take, and took."},
    {.name = "MUSTER_CALL_TIMES",
     .default_note = "none",
     .note = "a file",
     .documentation = "Set by `muster explain --parallel`: how long collective calls take on this machine; "
                      "with it the time of the step is predicted."},
    {.name = "MUSTER_MAX_RESTARTS",
     .type = Type::integer,
     .default_value = "0",
     .min = 0,
     .max = seconds_max,
     .documentation =
         "Set by `muster run --max-restarts`: above 0, a worker that fails is waited for like one "
         "that died, since it is started again."},
    {.name = "MUSTER_STUCK_LIMIT",
     .type = Type::integer,
     .default_note = "learned from the job's own steps, at least 10",
     .min = 0,
     .max = seconds_max,
     .documentation = "Seconds without a finished step after which every process prints which worker waits "
                      "for which. 0: never. Only the scheduler's counts."},
    {.name = "MUSTER_READ_NEIGHBOURS",
     .type = Type::choice,
     .default_value = "1",
     .choices = "0 | 1",
     .documentation =
         "0: no worker reads large pieces of collective calls in the memory of the others of its "
         "host (process_vm_readv); all go through shared memory."},
    {.name = "MUSTER_SERVER_LOG_MIB",
     .type = Type::integer,
     .default_value = "64",
     .min = 0,
     .max = 1 << 20,
     .documentation = "In a job that recovers: from so many MiB of pushes on, and an eighth of its rows, a "
                      "parameter server writes its rows down anew and cuts its log off."},
    {.name = "MUSTER_SERVER_SHARED_KIB",
     .type = Type::integer,
     .default_value = "64",
     .min = 0,
     .max = 1 << 20,
     .documentation =
         "Batches of so many KiB and more lie in memory that a worker shares with parameter servers of "
         "its host, where connections are not encrypted. 1048576: none do."},
    {.name = "MUSTER_SERVER_COPIES",
     .type = Type::integer,
     .default_value = "1",
     .min = 1,
     .max = 2,
     .documentation =
         "On how many parameter servers each row is. With 2, which needs MS_ENABLE_RECOVERY=1, one "
         "that comes back on an empty disk gets its rows from another one."},
    {.name = "MUSTER_LOG",
     .type = Type::choice,
     .default_value = "warning",
     .choices = "debug | info | warning | error",
     .documentation = "Which log lines are written to standard error: these and more severe ones."},
});

bool is_printable(std::string_view text, std::size_t size_max) {
  return !text.empty() && text.size() <= size_max &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > 0x20 && c != 0x7f; });
}

bool is_choice(const Variable& variable, std::string_view value) {
  std::string_view rest = variable.choices;
  while (!rest.empty()) {
    const auto end = rest.find(" | ");
    if (rest.substr(0, end) == value) return !value.empty();
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 3);
  }
  return false;
}

std::optional<std::int64_t> to_integer(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// An exported but empty variable counts as absent where a default can stand in for it.
bool is_absent(const Variable& variable, const std::optional<std::string>& value) {
  if (!value) return true;
  return value->empty() && variable.type == Type::text && variable.name != "MS_SCHED_HOST";
}

bool is_required(const Variable& variable) { return variable.default_note == "none, must be set"; }

bool is_allowed(const Variable& variable, std::string_view value) {
  switch (variable.type) {
    case Type::integer: {
      const auto number = to_integer(value);
      return number && *number >= variable.min && *number <= variable.max;
    }
    case Type::choice:
      return is_choice(variable, value);
    case Type::text:
      if (variable.name == "MS_SCHED_HOST") return is_printable(value, 253);  // the longest name of DNS
      if (variable.name == "MS_NODE_ID") return is_node_id(value);
      if (variable.name == "MUSTER_HOST_KEY") return is_printable(value, 64) && value.find('#') == value.npos;
      return true;
  }
  return false;
}

std::string problem_of(const Variable& variable, std::string_view value) {
  if (is_allowed(variable, value)) return {};
  return fmt::format("{}='{}' cannot be used: allowed is {}", variable.name, value, allowed_range(variable));
}

// Reads values that `check_all` has found good.
class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  std::string text(std::string_view name) const {
    const Variable& variable = *find_variable(name);
    const auto value = environment_.get(name);
    return is_absent(variable, value) ? std::string(variable.default_value) : *value;
  }
  std::int64_t integer(std::string_view name) const { return to_integer(text(name)).value_or(0); }
  std::chrono::milliseconds seconds(std::string_view name) const {
    return std::chrono::seconds(integer(name));
  }

 private:
  const Environment& environment_;
};

// ", although MS_WORKER_NUM, MS_SCHED_PORT are": why a process without a role is not one that trains alone.
std::string what_is_set(const Environment& environment) {
  std::string names;
  for (const Variable& variable : table)
    if (variable.name.starts_with("MS_") && environment.get(variable.name))
      names += fmt::format("{}{}", names.empty() ? "" : ", ", variable.name);
  return names.empty() ? "" : fmt::format(", although {} is", names);
}

Result<> check_all(const Environment& environment) {
  if (!environment.get("MS_ROLE"))
    return fail(Code::invalid_argument,
                fmt::format("MS_ROLE is not set{}: allowed is {}. Set it with the other variables of a "
                            "cluster, or start the job with 'muster run -n <workers> <script>'",
                            what_is_set(environment), allowed_range(*find_variable("MS_ROLE"))));
  for (const VariableState& state : inspect_variables(environment)) {
    if (!state.problem.empty()) return fail(Code::invalid_argument, state.problem);
  }
  return {};
}

Role role_from(std::string_view name) {
  if (name == "MS_SCHED") return Role::scheduler;
  return name == "MS_WORKER" ? Role::worker : Role::server;
}

}  // namespace

std::span<const Variable> variables() { return table; }

std::vector<std::string> typo_warnings(const Environment& environment) {
  std::vector<std::string_view> known;
  for (const Variable& variable : table) known.push_back(variable.name);
  std::vector<std::string> warnings;
  for (const std::string_view prefix : {"MS_", "MUSTER_"}) {
    for (const std::string& name : environment.names(prefix)) {
      if (find_variable(name) != nullptr) continue;
      if (const auto meant = nearest_name(name, known))
        warnings.push_back(
            fmt::format("{} is set but is no variable of Muster; did you mean {}?", name, *meant));
    }
  }
  return warnings;
}

bool is_node_id(std::string_view text) { return is_printable(text, 128); }

const Variable* find_variable(std::string_view name) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const Variable& row) { return row.name == name; });
  return found == table.end() ? nullptr : &*found;
}

std::string allowed_range(const Variable& variable) {
  switch (variable.type) {
    case Type::integer:
      return fmt::format("a whole number from {} to {}", variable.min, variable.max);
    case Type::choice:
      return std::string(variable.choices);
    case Type::text:
      return std::string(variable.note);
  }
  return {};
}

std::vector<VariableState> inspect_variables(const Environment& environment) {
  std::vector<VariableState> states;
  for (const Variable& variable : table) {
    const auto value = environment.get(variable.name);
    VariableState state{.variable = &variable};
    if (!is_absent(variable, value)) {
      state.from_environment = true;
      state.value = *value;
      state.problem = problem_of(variable, *value);
    } else if (is_required(variable)) {
      state.problem = fmt::format("{} is not set: allowed is {}", variable.name, allowed_range(variable));
    } else {
      state.value = variable.default_value;
    }
    states.push_back(std::move(state));
  }
  return states;
}

std::string variables_text(const Environment& environment) {
  std::string text =
      fmt::format("{:<34}{:<24}{:<12}{:<12}{}\n", "variable", "value", "origin", "default", "allowed");
  for (const VariableState& state : inspect_variables(environment)) {
    const Variable& variable = *state.variable;
    const auto fallback = variable.default_value.empty() ? "-" : variable.default_value;
    text +=
        fmt::format("{:<34}{:<24}{:<12}{:<12}{}\n", variable.name, state.value.empty() ? "-" : state.value,
                    state.from_environment ? "environment" : "default", fallback, allowed_range(variable));
    if (!state.problem.empty() && state.from_environment) text += fmt::format("  ! {}\n", state.problem);
    if (!state.from_environment && !variable.default_note.empty())
      text += fmt::format("  default: {}\n", variable.default_note);
  }
  for (const std::string& warning : typo_warnings(environment)) text += fmt::format("  ! {}\n", warning);
  return text;
}

std::string variables_markdown() {
  std::string text = "| variable | default | allowed | meaning |\n| --- | --- | --- | --- |\n";
  for (const Variable& variable : table) {
    std::string allowed = allowed_range(variable);
    for (std::size_t at = 0; (at = allowed.find(" | ", at)) != std::string::npos;)
      allowed.replace(at, 3, ", ");
    const auto fallback = variable.default_value.empty() ? variable.default_note : variable.default_value;
    text += fmt::format("| {} | {} | {} | {} |\n", variable.name, fallback, allowed, variable.documentation);
  }
  return text;
}

SecuritySettings read_security_settings(const Environment& environment) {
  const Reader read(environment);
  return {.enable_ssl = !read.text("MUSTER_TLS_CONFIG").empty(),
          .config_path = read.text("MUSTER_TLS_CONFIG"),
          .client_password_file = read.text("MUSTER_TLS_CLIENT_PASSWORD_FILE"),
          .server_password_file = read.text("MUSTER_TLS_SERVER_PASSWORD_FILE"),
          .token_file = read.text("MUSTER_TOKEN_FILE"),
          .run_token_file = read.text("MUSTER_RUN_TOKEN_FILE")};
}

namespace {

Result<> check_server_copies(const Settings& settings) {
  if (settings.server_copies == 1) return {};
  if (settings.server_num < settings.server_copies)
    return fail(Code::invalid_argument,
                fmt::format("MUSTER_SERVER_COPIES is {}: each row is on so many parameter servers, and "
                            "MS_SERVER_NUM is {}: start more, or take 1 copy",
                            settings.server_copies, settings.server_num));
  if (settings.enable_recovery) return {};
  return fail(Code::invalid_argument,
              fmt::format("MUSTER_SERVER_COPIES is {}: without MS_ENABLE_RECOVERY=1 the death of a parameter "
                          "server ends the job, however many copies of its rows there are: set that, too",
                          settings.server_copies));
}

}  // namespace

Result<Settings> read_settings(const Environment& environment) {
  MUSTER_TRY_VOID(check_all(environment));
  const Reader read(environment);
  Settings settings{
      .role = role_from(read.text("MS_ROLE")),
      .scheduler_host = read.text("MS_SCHED_HOST"),
      .scheduler_port = static_cast<std::uint16_t>(read.integer("MS_SCHED_PORT")),
      .node_id = read.text("MS_NODE_ID"),
      .worker_num = static_cast<std::uint32_t>(read.integer("MS_WORKER_NUM")),
      .server_num = static_cast<std::uint32_t>(read.integer("MS_SERVER_NUM")),
      .worker_ip = read.text("MS_WORKER_IP"),
      .bind = read.text("MUSTER_BIND"),
      .host_key = read.text("MUSTER_HOST_KEY"),
      .enable_recovery = read.text("MS_ENABLE_RECOVERY") == "1",
      .recovery_path = read.text("MS_RECOVERY_PATH"),
      .fresh = read.text("MUSTER_FRESH") == "1",
      .topo_timeout = read.seconds("MS_TOPO_TIMEOUT"),
      .retry_timeout = read.seconds("MS_CLUSTER_RETRY_NUM") * seconds_per_retry,
      .node_timeout = read.seconds("MS_NODE_TIMEOUT"),
      .receive_timeout = read.seconds("MS_RECEIVE_MSG_TIMEOUT"),
      .resolve_timeout = read.seconds("MUSTER_RESOLVE_TIMEOUT"),
      .transport = read.text("MUSTER_TRANSPORT"),
      .reads_neighbours = read.text("MUSTER_READ_NEIGHBOURS") == "1",
      .strict = read.text("MUSTER_STRICT") == "1",
      .max_restarts = static_cast<std::uint32_t>(read.integer("MUSTER_MAX_RESTARTS")),
      .security = read_security_settings(environment),
  };
  settings.server_log_bytes = static_cast<std::uint64_t>(read.integer("MUSTER_SERVER_LOG_MIB")) << 20;
  settings.server_shared_bytes = static_cast<std::uint64_t>(read.integer("MUSTER_SERVER_SHARED_KIB")) << 10;
  settings.server_copies = static_cast<std::uint32_t>(read.integer("MUSTER_SERVER_COPIES"));
  MUSTER_TRY_VOID(check_server_copies(settings));
  if (!read.text("MUSTER_STUCK_LIMIT").empty()) settings.stuck_limit = read.seconds("MUSTER_STUCK_LIMIT");
  if (settings.enable_recovery && settings.recovery_path.empty())
    return fail(Code::invalid_argument,
                fmt::format("MS_RECOVERY_PATH is not set, which MS_ENABLE_RECOVERY=1 needs: allowed is {}",
                            allowed_range(*find_variable("MS_RECOVERY_PATH"))));
  if (environment.get("MS_HCCL_CM_INIT"))
    settings.notes.push_back(
        "MS_HCCL_CM_INIT only matters on Ascend devices; it is not needed here, for IPv6 neither");
  settings.warnings = typo_warnings(environment);
  settings.traits = traits_of(environment);
  return settings;
}

}  // namespace muster::cluster
