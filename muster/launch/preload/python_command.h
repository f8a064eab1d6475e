// The parts of a command of Python's: "python3 -u train.py --epochs 10".
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "muster/base/base.h"

namespace muster::launch {

struct PythonCommand {
  enum class Kind { script, module, code };
  std::vector<std::string> interpreter = {};  // the program and its own options
  Kind kind = Kind::script;
  std::string target = {};       // the script, the module behind -m, the code behind -c
  std::size_t arguments_at = 0;  // where the arguments of the target begin among the words

  friend bool operator==(const PythonCommand&, const PythonCommand&) = default;
};

// Errors name the word that no other process can do in Python's place.
Result<PythonCommand> parse_python_command(const std::vector<std::string>& words);

}  // namespace muster::launch
