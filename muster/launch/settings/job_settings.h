// Settings of a job, before it is known which processes that means: the value between the sources of settings
// (flags, job file, variables of a platform) and the presets.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"

namespace muster::launch {

inline constexpr std::string_view default_origin = "default";

// A value and who said so: "--port", "job.toml", "VC_TASK_INDEX", "default", "guessed: train.py imports
// torch".
template <class T>
struct Setting {
  T value = {};
  std::string origin = std::string(default_origin);

  friend bool operator==(const Setting&, const Setting&) = default;
};

struct HostSlots {
  std::string name = {};   // empty: a host without a name; this one, where the job has one host
  std::int64_t slots = 0;  // processes that do the work there; 0 in PartialSettings: not said

  friend bool operator==(const HostSlots&, const HostSlots&) = default;
};

// Who starts the processes of the other hosts.
enum class Reach {
  here,  // there are none
  each,  // the same line runs on each host
  ssh,   // this launcher does, through ssh
};

// What one source says; what it does not say is empty.
struct PartialSettings {
  template <class T>
  using Said = std::optional<Setting<T>>;

  Said<std::string> preset = {};
  Said<std::vector<std::string>> command = {};  // the script or program, and its arguments
  Said<std::vector<HostSlots>> hosts = {};
  Said<std::int64_t> host_count = {};  // where the hosts have no names
  Said<std::int64_t> self = {};        // which of the hosts this is, from 0
  Said<Reach> reach = {};
  Said<std::int64_t> slots = {};  // on each host
  Said<std::vector<std::string>> roles = {};
  Said<std::int64_t> servers = {};
  Said<std::string> scheduler = {};  // "host:port"
  Said<std::int64_t> port = {};
  Said<std::int64_t> max_restarts = {};
  Said<std::string> restart = {};  // "process" or "group"
  Said<std::string> style = {};
  Said<std::vector<std::string>> preload = {};
  Said<std::string> rank_table = {};
  Said<std::string> ssh = {};  // the ssh command, in words
  Said<std::string> log_folder = {};
  Said<std::string> recovery_folder = {};
  Said<std::string> metrics_port = {};
  Said<std::string> dashboard = {};
  Said<std::vector<std::int64_t>> tail = {};
  Said<std::string> tls_config = {};
  Said<std::string> client_password_file = {};
  Said<std::string> server_password_file = {};
  Said<std::string> token_file = {};
  Said<bool> is_open = {};
  std::map<std::string, Setting<std::string>> environment = {};

  friend bool operator==(const PartialSettings&, const PartialSettings&) = default;
};

// What both say together: `strong` wins where both say something.
PartialSettings merged(PartialSettings strong, const PartialSettings& weak);

struct JobSettings {
  Setting<std::string> preset = {"muster"};
  Setting<std::vector<std::string>> command = {};  // a script or a program, and its arguments
  std::string python = "python3";                  // what runs a script
  Setting<std::vector<HostSlots>> hosts = {{HostSlots{.slots = 1}}};  // all of the job, in order; never empty
  Setting<std::int64_t> self = {};                                    // which of them this is
  Setting<Reach> reach = {};
  std::optional<Setting<std::int64_t>> slots = {};  // said for every host; the result is in `hosts`
  Setting<std::vector<std::string>> roles = {};     // of the processes that start here; empty: all
  Setting<std::int64_t> servers = {};
  std::optional<Setting<std::string>> scheduler = {};  // "host:port" of the scheduler, master, first host
  std::optional<Setting<std::int64_t>> port = {};
  Setting<std::int64_t> max_restarts = {};
  Setting<std::string> restart = {"process"};  // what is started again: who died, or the whole "group"
  Setting<std::string> style = {};             // of the pytorch preset; empty: its default
  Setting<std::vector<std::string>> preload =
      {};                                // modules that are imported once for all processes of a host
  Setting<std::string> rank_table = {};  // a file, or empty
  Setting<std::string> ssh = {"ssh"};
  Setting<std::string> log_folder = {};       // empty: muster-logs/<time>
  Setting<std::string> recovery_folder = {};  // empty: below the logs
  Setting<std::string> metrics_port = {};     // "9400" or "10.0.0.5:9400", for Prometheus; empty: none
  Setting<std::string> dashboard = {};        // the same, for the page; "0": a free port
  Setting<std::vector<std::int64_t>> tail = {};
  Setting<std::string> tls_config = {}, client_password_file = {}, server_password_file = {}, token_file = {};
  Setting<bool> is_open = {};                                    // nothing keeps unauthorized peers out
  std::map<std::string, Setting<std::string>> environment = {};  // of the processes, on top of the launcher's

  // The command as it can be started: Python stands before a script.
  std::vector<std::string> argv() const;
  const HostSlots& own_host() const { return hosts.value[static_cast<std::size_t>(self.value)]; }
  std::int64_t slot_count() const;  // of all hosts
  bool restarts_group() const { return restart.value == "group" && max_restarts.value > 0; }
  // Whether all workers look for what a person asks on the page: one launcher starts them all.
  bool has_page_actions() const {
    return !dashboard.value.empty() && (hosts.value.size() <= 1 || reach.value == Reach::ssh);
  }
  std::int64_t first_slot() const;  // of this host: how many slots the hosts before it have

  friend bool operator==(const JobSettings&, const JobSettings&) = default;
};

bool is_python_script(std::string_view word);
// Whether a command has to be given to Python: it starts with a script, or with -m and a module.
bool needs_python(const std::vector<std::string>& command);
inline constexpr std::string_view module_flag = "-m";
// "b" of the host "user@b": what other hosts know it by.
std::string_view address_of_host(std::string_view name);

// The whole from its parts; `origin`s stay. Errors name the setting, its value and who said it.
Result<JobSettings> complete(const PartialSettings& said);

// An error where `asked` (flags and job file) and `platform` (its variables) say different things about which
// hosts there are and which this is: one of them is a mistake.
Result<> check_agreement(const PartialSettings& asked, const PartialSettings& platform);

}  // namespace muster::launch
