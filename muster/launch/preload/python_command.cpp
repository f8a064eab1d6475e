#include "muster/launch/preload/python_command.h"

#include <fmt/format.h>

#include <filesystem>

#include "muster/launch/settings/wrong.h"

namespace muster::launch {
namespace {

bool is_python(const std::string& program) {
  const std::string name = std::filesystem::path(program).filename();
  return name.starts_with("python") || name.starts_with("pypy");
}

constexpr std::string_view plain_options = "bBdEIOPqRsSuv";
constexpr std::string_view options_with_value = "WX";
constexpr std::string_view long_option_with_value = "--check-hash-based-pycs";

// Reads options until the target has been found.
class Reader {
 public:
  explicit Reader(const std::vector<std::string>& words) : words_(words) {}

  Result<PythonCommand> read() {
    command_.interpreter.push_back(words_.front());
    for (at_ = 1; at_ < words_.size() && !is_found_; ++at_) MUSTER_TRY_VOID(read_word(words_[at_]));
    if (!is_found_) return wrong(fmt::format("'{}' names no script and no module", words_.front()));
    command_.arguments_at = at_;
    return command_;
  }

 private:
  Result<> read_word(const std::string& word) {
    if (word == "-" || word == "--") return wrong(fmt::format("Python's '{}' is not known here", word));
    if (word == long_option_with_value) {
      command_.interpreter.push_back(word);
      if (at_ + 1 < words_.size()) command_.interpreter.push_back(words_[++at_]);
      return {};
    }
    if (!word.starts_with('-')) {
      found(PythonCommand::Kind::script, word);
      return {};
    }
    return read_letters(word);
  }

  // "-uB", "-Werror", "-um" and "package.train".
  Result<> read_letters(const std::string& word) {
    std::string kept = "-";
    for (std::size_t i = 1; i < word.size(); ++i) {
      const char letter = word[i];
      const bool is_target = letter == 'c' || letter == 'm';
      if (plain_options.find(letter) != std::string_view::npos) {
        kept += letter;
        continue;
      }
      if (!is_target && options_with_value.find(letter) == std::string_view::npos)
        return wrong(fmt::format("Python's option '{}' in '{}' is not known here", letter, word));
      std::string value = word.substr(i + 1);
      if (value.empty() && at_ + 1 < words_.size()) value = words_[++at_];
      if (is_target) found(letter == 'c' ? PythonCommand::Kind::code : PythonCommand::Kind::module, value);
      if (!is_target) kept += letter + value;
      break;
    }
    if (kept.size() > 1) command_.interpreter.push_back(kept);
    return {};
  }

  void found(PythonCommand::Kind kind, const std::string& target) {
    is_found_ = !target.empty();
    command_.kind = kind;
    command_.target = target;
  }

  const std::vector<std::string>& words_;
  PythonCommand command_;
  std::size_t at_ = 1;
  bool is_found_ = false;
};

}  // namespace

Result<PythonCommand> parse_python_command(const std::vector<std::string>& words) {
  if (words.empty() || !is_python(words.front()))
    return wrong(
        fmt::format("the command '{}' is not Python's, as python3 train.py, train.py and -m train are",
                    words.empty() ? "" : words.front()));
  return Reader(words).read();
}

}  // namespace muster::launch
