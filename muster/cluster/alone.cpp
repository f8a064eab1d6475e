#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/cluster/variables.h"

namespace muster::cluster {
namespace {

// A variable by which a launcher says that there are several processes.
struct Hint {
  std::string_view name;
  std::string_view launcher;
  std::int64_t least = 0;  // from which number on it says so; 0: whatever it is
};

constexpr auto hints = std::to_array<Hint>({
    {"WORLD_SIZE", "torchrun", 2},
    {"RANK", "torchrun", 1},
    {"OMPI_COMM_WORLD_SIZE", "mpirun", 2},
    {"PMI_SIZE", "mpiexec", 2},
    {"HOROVOD_SIZE", "horovodrun", 2},
    {"SLURM_NTASKS", "Slurm", 2},
    {"JOB_COMPLETION_INDEX", "Kubernetes", 1},
    {"TF_CONFIG", "TensorFlow", 0},
    {"RANK_TABLE_FILE", "Ascend", 0},
    {"RANK_SIZE", "Ascend", 2},
});

bool applies(const Hint& hint, const std::string& value) {
  if (value.empty()) return false;
  if (hint.least == 0) return true;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  return error == std::errc{} && end == value.data() + value.size() && number >= hint.least;
}

std::optional<std::string> hint_text(const Environment& environment) {
  constexpr std::size_t value_shown_max = 40;
  std::vector<std::string> said;
  for (const Hint& hint : hints)
    if (const auto value = environment.get(hint.name); value && applies(hint, *value))
      said.push_back(fmt::format("{}={}{} ({})", hint.name, value->substr(0, value_shown_max),
                                 value->size() > value_shown_max ? "…" : "", hint.launcher));
  if (said.empty()) return std::nullopt;
  return fmt::format(
      "this process trains alone, although a job of several processes is hinted at by {}: to train with the "
      "others, start the script with 'muster run -n <workers> <script>', or set MS_ROLE and its kin",
      fmt::join(said, ", "));
}

}  // namespace

bool is_alone(const Environment& environment) {
  return std::ranges::none_of(variables(), [&](const Variable& variable) {
    return variable.name.starts_with("MS_") && environment.get(variable.name);
  });
}

Result<std::vector<std::string>> check_alone(const Environment& environment) {
  bool is_strict = false;
  for (const VariableState& state : inspect_variables(environment)) {
    if (state.from_environment && !state.problem.empty()) return fail(Code::invalid_argument, state.problem);
    if (state.variable->name == "MUSTER_STRICT") is_strict = state.value == "1";
  }
  std::vector<std::string> warnings = typo_warnings(environment);
  if (auto hint = hint_text(environment)) warnings.push_back(*std::move(hint));
  if (is_strict && !warnings.empty())
    return fail(Code::invalid_argument,
                fmt::format("{} (MUSTER_STRICT=1 makes this an error)", fmt::join(warnings, "; ")));
  return warnings;
}

}  // namespace muster::cluster
