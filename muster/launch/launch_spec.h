// Launch specification of one host: the value between the presets, which translate settings into it, and the
// supervisor, which starts it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::launch {

// A process of Python that begins with modules imported: it is forked from one that has imported them, with
// these variables, for all processes of its host.
struct Preload {
  std::vector<std::string> modules = {};  // in this order
  std::string origin = {};                // who asked for them: "--preload"
  std::map<std::string, std::string> environment = {};

  friend bool operator==(const Preload&, const Preload&) = default;
};

struct ProcessSpec {
  enum class Kind {
    work,     // the job has ended when all of these have
    service,  // started before the work and ended after it, like a daemon that the work needs
  };
  Kind kind = Kind::work;
  std::string role = {};                    // "scheduler", "worker", "server", "ps", "mpirun", ...
  std::string label = {};                   // "worker 2": stands before its lines
  std::vector<std::string> arguments = {};  // the program first; it is searched in PATH as a shell does
  std::map<std::string, std::string> environment = {};  // set on top of the launcher's own variables
  std::string log_name = {};                            // its log's name in the folder of logs
  std::optional<Preload> preload = {};                  // `arguments` are a command of Python's then

  friend bool operator==(const ProcessSpec&, const ProcessSpec&) = default;
};

// A file that is there, readable for this user alone, from before the first process starts until the last has
// ended.
struct FileSpec {
  std::string path = {};
  std::string contents = {};
  bool is_secret = false;  // kept in memory: `path` is a link to it, and no disk ever has it

  friend bool operator==(const FileSpec&, const FileSpec&) = default;
};

struct LaunchSpec {
  std::vector<FileSpec> files = {};
  std::vector<ProcessSpec> processes = {};
  // No work of its own: this host's services stay until the first host says that the job has ended.
  bool waits_for_release = false;

  friend bool operator==(const LaunchSpec&, const LaunchSpec&) = default;
};

}  // namespace muster::launch
