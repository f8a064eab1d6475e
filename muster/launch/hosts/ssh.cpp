#include "muster/launch/hosts/ssh.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <array>

#include "muster/launch/process.h"

namespace muster::launch {
namespace {

constexpr int exit_code_of_ssh = 255;
constexpr int exit_code_no_program = 127;

// No question to the user, no old connection that outlives this one, and a dead one is noticed in 15 seconds.
constexpr std::array<const char*, 8> connection_options = {
    "BatchMode=yes",    "ConnectTimeout=10", "ServerAliveInterval=5",   "ServerAliveCountMax=3",
    "ControlMaster=no", "ControlPath=none",  "ClearAllForwardings=yes", "ForwardX11=no"};

// ssh hands one text to the user's shell there, which may be any: so it starts sh.
std::string command_there(const SshOptions& options) {
  if (!options.agent.empty()) return fmt::format("exec {} agent", shell_word(options.agent));
  const std::string script = "if [ -x \"$1\" ]; then exec \"$1\" agent; fi; exec muster agent";
  return fmt::format("exec sh -c {} sh {}", shell_word(script), shell_word(options.own_program));
}

}  // namespace

std::string shell_word(std::string_view word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  bool is_in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      is_in_word = false;
      continue;
    }
    if (!is_in_word) words.emplace_back();
    is_in_word = true;
    if (quote == 0 && (c == '\'' || c == '"'))
      quote = c;
    else if (c == quote && quote != 0)
      quote = 0;
    else if (c == '\\' && quote != '\'' && i + 1 < text.size())
      words.back() += text[++i];
    else
      words.back() += c;
  }
  if (quote != 0) return fail(Code::invalid_argument, fmt::format("a {} is not closed", quote));
  if (words.empty()) return fail(Code::invalid_argument, "it names no program");
  return words;
}

std::vector<std::string> ssh_arguments(const std::string& host, const SshOptions& options) {
  std::vector<std::string> arguments = options.words;
  arguments.emplace_back("-T");
  for (const char* option : connection_options) {
    arguments.emplace_back("-o");
    arguments.emplace_back(option);
  }
  arguments.emplace_back("--");
  arguments.push_back(host);
  arguments.push_back(command_there(options));
  return arguments;
}

std::string describe_ssh_failure(const std::string& host, int wait_status,
                                 const std::vector<std::string>& said, const SshOptions& options) {
  const std::string words = said.empty() ? "" : fmt::format("{}", fmt::join(said, " | "));
  const bool has_exited = WIFEXITED(wait_status);
  if (has_exited && WEXITSTATUS(wait_status) == exit_code_of_ssh)
    return fmt::format("{}; it has to work without a question: {} {} true",
                       words.empty() ? "ssh cannot reach it" : words, fmt::join(options.words, " "), host);
  if (has_exited && WEXITSTATUS(wait_status) == exit_code_no_program)
    return fmt::format(
        "the program muster is not there ({}): install Muster there, or say where it is by "
        "MUSTER_AGENT=/folder/muster",
        !words.empty()          ? words
        : options.agent.empty() ? "neither " + options.own_program + " nor in PATH"
                                : options.agent);
  return fmt::format("the agent there {}{}", describe_exit(wait_status), words.empty() ? "" : ": " + words);
}

}  // namespace muster::launch
