// The command that a user gives: a script, a module or a program, and its arguments. What cannot be started
// is told before anything is.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "commands.h"
#include "muster/launch/call_times.h"
#include "muster/launch/launch.h"
#include "muster/net/net.h"
#include "places.h"
#include "suggestions.h"

extern char** environ;

namespace muster::app {
namespace {

namespace fs = std::filesystem;

bool is_in_path(const std::string& program) {
  const auto folders = CLI::detail::split(real_environment().get("PATH").value_or(""), ':');
  return std::any_of(folders.begin(), folders.end(), [&](const std::string& folder) {
    const fs::path file = fs::path(folder.empty() ? "." : folder) / program;
    std::error_code ignored;
    return fs::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0;
  });
}

// A program without a folder is searched in PATH, as a shell does.
Result<> check_in_path(const std::string& program) {
  if (is_in_path(program)) return {};
  if (is_there(fs::path(program) / "__main__.py"))
    return fail(Code::not_found,
                fmt::format("'{}' is a package of Python, and no program: -m {}", program, program));
  if (std::error_code ignored; fs::is_regular_file(program, ignored))
    return fail(Code::not_found,
                fmt::format("there is no program '{}' in PATH: did you mean './{}'?", program, program));
  return fail(Code::not_found,
              fmt::format("there is no program '{}' in PATH{}", program, did_you_mean_program(program)));
}

// A file that is named with its folder can be looked at.
Result<> check_file(const std::string& program) {
  std::error_code ignored;
  if (!is_there(program))
    return fail(Code::not_found,
                fmt::format("there is no program '{}'{}", program, did_you_mean_file(program)));
  if (fs::is_directory(program, ignored))
    return fail(Code::invalid_argument, fmt::format("'{}' is a folder: name a script or a program", program));
  if (::access(program.c_str(), X_OK) != 0)
    return fail(
        Code::invalid_argument,
        fmt::format("'{}' is not executable: make it so (chmod +x {}), or name what runs it (bash {})",
                    program, program, program));
  return {};
}

Result<> check_script(const std::string& script) {
  std::error_code ignored;
  if (!is_there(script))
    return fail(Code::not_found, fmt::format("there is no script '{}' in {}{}", script,
                                             fs::current_path(ignored).string(), did_you_mean_file(script)));
  if (fs::is_directory(script, ignored))
    return fail(Code::invalid_argument,
                fmt::format("'{}' is a folder: name a script in it, or a module with -m", script));
  if (::access(script.c_str(), R_OK) != 0)
    return fail(Code::invalid_argument,
                fmt::format("the script '{}' cannot be read: chmod +r {}", script, script));
  return {};
}

// The script of `python3 -u train.py`, as far as it can be told without Python's own rules.
std::optional<std::string> script_behind_python(const std::vector<std::string>& command) {
  if (!fs::path(command.front()).filename().string().starts_with("python")) return std::nullopt;
  for (auto word = command.begin() + 1; word != command.end(); ++word) {
    if (*word == "-c" || *word == "-m") return std::nullopt;
    if (!word->starts_with('-')) return launch::is_python_script(*word) ? std::optional(*word) : std::nullopt;
  }
  return std::nullopt;
}

// Whether Python knows the package that a module is in; looking for it runs none of its code.
bool knows_package(const std::string& python, std::string package) {
  std::string program = python, flag = "-c";
  std::string text =
      "import importlib.util as u, sys; sys.path.insert(0, ''); sys.exit(u.find_spec(sys.argv[1]) is None)";
  char* const words[] = {program.data(), flag.data(), text.data(), package.data(), nullptr};
  pid_t pid = -1;
  if (::posix_spawnp(&pid, python.c_str(), nullptr, nullptr, words, environ) != 0) return true;
  const int status = wait_for(pid);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 1;
}

Result<> check_module(const std::vector<std::string>& command, const std::string& python) {
  if (command.size() < 2 || command[1].empty())
    return fail(Code::invalid_argument, "-m: name a module, as in -m package.train");
  const std::string& module = command[1];
  if (launch::is_python_script(module)) {
    std::string name = module.substr(0, module.size() - 3);
    std::replace(name.begin(), name.end(), '/', '.');
    return fail(Code::invalid_argument,
                fmt::format("-m {}: a module is named without .py: -m {}, or leave -m out", module, name));
  }
  if (module_file(module)) return {};
  const std::string package = module.substr(0, module.find('.'));
  if (is_there(fs::path(package) / "__init__.py")) {
    const std::string path = path_of_module(module);
    return fail(Code::not_found, fmt::format("-m {}: there is neither {}.py nor {}/__main__.py{}", module,
                                             path, path, did_you_mean_file(path + ".py")));
  }
  if (knows_package(python, package)) return {};  // and Python will say if the module is not in it
  return fail(Code::not_found, fmt::format("-m {}: Python finds no module '{}'{}", module, package,
                                           did_you_mean_file(package + ".py")));
}

}  // namespace

std::string path_of_module(std::string module) {
  std::replace(module.begin(), module.end(), '.', '/');
  return module;
}

std::optional<std::string> module_file(const std::string& module) {
  const std::string path = path_of_module(module);
  for (const char* const ending : {".py", "/__main__.py"})
    if (is_there(path + ending)) return path + ending;
  return std::nullopt;
}

Result<> check_command(const std::vector<std::string>& command, const std::string& program,
                       ProgramPlace place) {
  if (command.empty()) return {};
  const std::string& first = command.front();
  if (first.empty()) return fail(Code::invalid_argument, "the name of the script or program is empty");
  if (first == launch::module_flag)
    return place == ProgramPlace::here ? check_module(command, python_for_scripts(program)) : Result<>();
  if (launch::is_python_script(first)) return check_script(first);
  if (first.find('/') != std::string::npos)
    MUSTER_TRY_VOID(check_file(first));
  else if (place == ProgramPlace::here)
    MUSTER_TRY_VOID(check_in_path(first));
  if (const auto script = script_behind_python(command)) return check_script(*script);
  return {};
}

Result<> check_option(const CLI::App& command, const std::vector<std::string>& words) {
  if (words.empty() || !words.front().starts_with('-') || words.front() == launch::module_flag) return {};
  return fail(Code::invalid_argument, unknown_word(command, words.front()));
}

void take_options_behind(CLI::App& command, std::vector<std::string>& words) {
  const auto is_given = [](const CLI::Option* option) { return option->count() > 0; };
  if (words.empty() || !launch::needs_python(words) || std::ranges::any_of(command.get_options(), is_given))
    return;
  const std::ptrdiff_t script = words.front() == launch::module_flag ? 2 : 1;
  std::vector<std::string> kept(words.begin(), words.begin() + std::min(script, std::ssize(words)));
  for (auto word = words.begin() + std::ssize(kept); word != words.end(); ++word) {
    if (*word == "--") {
      kept.insert(kept.end(), word + 1, words.end());
      break;
    }
    const std::size_t equals = word->find('=');
    CLI::Option* const option =
        word->starts_with('-') ? command.get_option_no_throw(word->substr(0, equals)) : nullptr;
    if (option == nullptr || option == command.get_help_ptr()) {
      kept.push_back(*word);
    } else if (option->get_items_expected_max() == 0) {
      option->add_result("true");
    } else if (equals != std::string::npos) {
      option->add_result(word->substr(equals + 1));
    } else if (word + 1 == words.end()) {
      throw CLI::ArgumentMismatch::TypedAtLeast(option->get_name(), 1, option->get_type_name());
    } else {
      option->add_result(*++word);
    }
  }
  for (CLI::Option* const option : command.get_options())
    if (is_given(option)) option->run_callback();
  words = std::move(kept);
}

Result<> complete_command(std::vector<std::string>& command, const std::string& program) {
  MUSTER_TRY_VOID(check_command(command, program, ProgramPlace::here));
  if (launch::needs_python(command)) command.insert(command.begin(), python_for_scripts(program));
  return {};
}

Result<launch::PartialSettings> read_job_file(const std::string& name, const std::string& folder) {
  auto file = net::read_small_file(name, launch::job_file_bytes_max);
  if (!file) return fail(file.error().code, fmt::format("--job {}: {}", name, file.error().message));
  return launch::parse_job_file(file->text, {.name = name, .folder = folder});
}

int refuse(std::string_view command, const std::string& message, int exit_code) {
  fmt::print(stderr, "muster {}: {}\n", command, message);
  return exit_code;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

int become(std::string_view command, std::vector<std::string> words, int exit_code) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  return refuse(command, fmt::format("cannot start '{}': {}", words.front(), std::strerror(errno)),
                exit_code);
}

void provide_call_times(std::string_view command, std::uint32_t workers, bool anew) {
  Result<std::string> path = std::string();
  if (workers > 1) path = launch::prepare_call_times(real_environment(), workers, anew);
  if (!path) fmt::print(stderr, "muster {}: calls are not timed: {}\n", command, path.error().message);
  ::setenv("MUSTER_CALL_TIMES", path.value_or("").c_str(), 1);
}

}  // namespace muster::app
