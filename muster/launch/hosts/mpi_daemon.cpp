#include "muster/launch/hosts/mpi_daemon.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>

#include "muster/launch/hosts/ssh.h"

namespace muster::launch {
namespace {

namespace fs = std::filesystem;

constexpr auto daemons = std::to_array<std::string_view>({"orted", "prted"});
constexpr auto installation_variables =
    std::to_array<std::string_view>({"PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "OPAL_PREFIX"});

template <class List>
bool contains(const List& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

tl::unexpected<Error> refused(std::string_view asked) {
  constexpr std::size_t shown_max = 200;
  return fail(Code::refused, fmt::format("this sshd starts mpirun's daemon and nothing else, and was asked "
                                         "for: {}",
                                         asked.substr(0, shown_max)));
}

// What stands between the ';' of a shell.
std::vector<std::string> commands_of(std::string_view text) {
  std::vector<std::string> commands(1);
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      commands.back() += {c, text[++i]};
      continue;
    }
    if (quote == 0 && (c == '"' || c == '\''))
      quote = c;
    else if (c == quote)
      quote = 0;
    if (c == ';' && quote == 0)
      commands.emplace_back();
    else
      commands.back() += c;
  }
  return commands;
}

bool lies_in_path(const std::string& program, const Environment& environment) {
  const std::string folder = fs::path(program).parent_path().string();
  std::istringstream folders(environment.get("PATH").value_or(""));
  for (std::string each; std::getline(folders, each, ':');)
    if (each.starts_with('/') && each == folder) return true;
  return false;
}

// By its name alone, or in one of the folders where a name would be looked for.
bool is_daemon(const std::string& program, const Environment& environment) {
  const std::string name = fs::path(program).filename().string();
  return contains(daemons, name) && (program == name || lies_in_path(program, environment));
}

// "PATH=/opt/mpi/bin:$PATH" and its kin: a folder beside the daemon's, before those of the session.
bool take_assignment(const std::string& word, const std::string& daemon, const Environment& environment,
                     std::map<std::string, std::string>& variables) {
  const auto equals = word.find('=');
  if (equals == std::string::npos || !contains(installation_variables, word.substr(0, equals))) return false;
  const std::string name = word.substr(0, equals), value = word.substr(equals + 1);
  const std::string folder = value.substr(0, value.find_first_of(":$"));
  const std::array rests = {std::string(), fmt::format(":${}", name), fmt::format(":${{{}:-}}", name),
                            fmt::format("${{{0}:+:}}${0}", name)};
  const std::string installation = fs::path(daemon).parent_path().parent_path().string();
  const bool is_beside =
      !installation.empty() &&
      (folder == installation || folder.starts_with(installation == "/" ? "/" : installation + "/"));
  const std::string_view rest = std::string_view(value).substr(folder.size());
  if (!contains(rests, rest) || !is_beside || fs::path(folder).lexically_normal() != folder) return false;
  const std::string before = rest.empty() ? "" : environment.get(name).value_or("");
  variables[name] = before.empty() ? folder : fmt::format("{}:{}", folder, before);
  return true;
}

}  // namespace

Result<DaemonStart> daemon_start(std::string_view asked, const Environment& environment) {
  auto commands = commands_of(asked);
  auto words = split_words(commands.back());
  if (!words || !is_daemon(words->front(), environment)) return refused(asked);
  DaemonStart start{.words = *std::move(words)};
  commands.pop_back();
  for (const std::string& command : commands) {
    const auto parts = split_words(command);
    const bool is_export = parts && parts->size() == 2 && parts->front() == "export" &&
                           contains(installation_variables, parts->back());
    const bool is_assignment =
        parts && parts->size() == 1 &&
        take_assignment(parts->front(), start.words.front(), environment, start.environment);
    if (!is_export && !is_assignment) return refused(asked);
  }
  return start;
}

}  // namespace muster::launch
