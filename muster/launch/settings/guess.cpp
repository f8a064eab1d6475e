#include "muster/launch/settings/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace muster::launch {
namespace {

std::string_view trimmed_left(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view{} : text.substr(first);
}

constexpr std::string_view torch_backend = "muster.torch";

// "torch" of "torch.nn as nn": up to the first character that a module's own name cannot have. A script of
// PyTorch may import Muster's backend.
std::string_view module_name(std::string_view text) {
  if (text.starts_with(torch_backend) || text.starts_with("muster import torch")) return torch_backend;
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  const auto end = std::find_if_not(text.begin(), text.end(), is_letter);
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

void add_imports(std::string_view line, std::set<std::string, std::less<>>& modules) {
  line = trimmed_left(line);
  if (line.starts_with("from ")) {
    modules.emplace(module_name(trimmed_left(line.substr(5))));
  } else if (line.starts_with("import ")) {
    for (std::string_view rest = line.substr(7); !rest.empty();) {  // import torch, numpy as np
      modules.emplace(module_name(trimmed_left(rest)));
      const auto comma = rest.find(',');
      rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    }
  }
}

std::set<std::string, std::less<>> imports_of(std::string_view text) {
  std::set<std::string, std::less<>> modules;
  for (text = text.substr(0, guess_bytes_max); !text.empty();) {
    const auto end = std::min(text.find('\n'), text.size());
    add_imports(text.substr(0, end), modules);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return modules;
}

struct Sign {
  std::string_view module;
  std::string_view preset;
};

// The first that fits: a script of Horovod imports torch or tensorflow too, one of Muster may compare itself
// with them.
constexpr auto signs = std::to_array<Sign>({
    {torch_backend, "pytorch"},
    {"muster", "muster"},
    {"horovod", "mpi"},
    {"mpi4py", "mpi"},
    {"mindspore", "mindspore"},
    {"torch", "pytorch"},
    {"tensorflow", "tensorflow"},
});

}  // namespace

std::optional<Setting<std::string>> guess_preset(std::string_view name, std::string_view text,
                                                 const Environment& environment) {
  const auto modules = imports_of(text);
  const auto imports = [&](const Sign& sign) { return modules.contains(sign.module); };
  if (!modules.contains("muster") && !environment.get("RANK_TABLE_FILE").value_or("").empty())
    return Setting<std::string>{"ascend", "guessed: RANK_TABLE_FILE is set"};
  const auto found = std::find_if(signs.begin(), signs.end(), imports);
  if (found == signs.end()) return std::nullopt;
  return Setting<std::string>{std::string(found->preset),
                              fmt::format("guessed: {} imports {}", name, found->module)};
}

}  // namespace muster::launch
