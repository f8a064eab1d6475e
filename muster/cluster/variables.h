// One table of every environment variable: parsing, error messages, `muster env` and the page of the guide
// are read from it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"
#include "muster/cluster/roster.h"
#include "muster/cluster/security_settings.h"

namespace muster::cluster {

struct Variable {
  enum class Type { text, integer, choice };

  std::string_view name = {};
  Type type = Type::text;
  std::string_view default_value = {};  // what holds when it is not set; empty: there is none
  std::string_view default_note = {};   // said of a default that is not a constant, e.g. "made by Muster"
  std::int64_t min = 0;                 // of an integer
  std::int64_t max = 0;
  std::string_view choices = {};  // of a choice: "0 | 1"
  std::string_view note = {};     // what a text has to be
  std::string_view documentation = {};
};

// Every variable that Muster reads, in the order in which people meet them.
std::span<const Variable> variables();
const Variable* find_variable(std::string_view name);

// "a whole number from 1024 to 65535".
std::string allowed_range(const Variable& variable);

// Of names that are set and look like a variable of Muster's.
std::vector<std::string> typo_warnings(const Environment& environment);

// What MS_NODE_ID allows.
bool is_node_id(std::string_view text);

// What a variable is now. `problem` is empty when the value can be used.
struct VariableState {
  const Variable* variable = nullptr;
  std::string value = {};
  bool from_environment = false;
  std::string problem = {};
};
std::vector<VariableState> inspect_variables(const Environment& environment);

// What `muster env` prints, and the table of the guide in Markdown.
std::string variables_text(const Environment& environment);
std::string variables_markdown();

// The settings of this process, read and checked. What needs the network or the file system (the host's name,
// the worker's address, the recovery folder) is checked when the process joins.
struct Settings {
  Role role = Role::worker;
  std::string scheduler_host = {};
  std::uint16_t scheduler_port = 0;
  std::string node_id = {};  // empty: one is made
  std::uint32_t worker_num = 1;
  std::uint32_t server_num = 0;
  std::string worker_ip = {};  // empty: the local address of the route to the scheduler
  std::string bind = {};       // MUSTER_BIND; empty: what scheduler_host means
  std::string host_key = {};   // empty: from the kernel
  bool enable_recovery = false;
  std::string recovery_path = {};
  bool fresh = false;  // MUSTER_FRESH
  std::chrono::milliseconds topo_timeout{};
  std::chrono::milliseconds retry_timeout{};  // MS_CLUSTER_RETRY_NUM times 3 s
  std::chrono::milliseconds node_timeout{};
  std::chrono::milliseconds receive_timeout{};
  std::chrono::milliseconds resolve_timeout{};
  std::string transport = {};      // MUSTER_TRANSPORT
  bool reads_neighbours = true;    // MUSTER_READ_NEIGHBOURS
  bool strict = false;             // MUSTER_STRICT
  std::uint32_t max_restarts = 0;  // MUSTER_MAX_RESTARTS
  SecuritySettings security = {};
  std::optional<std::chrono::milliseconds> stuck_limit = {};  // nothing: learned
  std::uint64_t server_log_bytes = std::uint64_t{64} << 20;   // from which on a server's log is cut off
  std::uint64_t server_shared_bytes = 0;                      // from which on a batch lies in shared memory
  std::uint32_t server_copies = 1;                            // of each row on parameter servers
  Traits traits = {};                      // what the environment says of that: see fingerprint.h
  std::vector<std::string> notes = {};     // worth a line of information, for the caller to log
  std::vector<std::string> warnings = {};  // e.g. of a variable that looks like a typo
};

// The most workers, and the most servers, of one job.
inline constexpr std::uint32_t worker_num_max = 16384;

// Those of them that say how connections are protected, for processes that are no part of a job.
SecuritySettings read_security_settings(const Environment& environment);

// The error names the variable, its value and the allowed range.
Result<Settings> read_settings(const Environment& environment);

// ---- A process that no cluster is described to: it is the only worker of its job (alone.cpp) ----

// Whether no MS_* variable of the table is set. A half-described cluster is none of this: read_settings()
// says what is missing.
bool is_alone(const Environment& environment);

// Warnings for people, of variables that hint at a job of several processes: those of other launchers, and
// names that look like a variable of Muster's. An error names a MUSTER_* variable that cannot be used; under
// MUSTER_STRICT=1 each of those warnings is one.
Result<std::vector<std::string>> check_alone(const Environment& environment);

}  // namespace muster::cluster
