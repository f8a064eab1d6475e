#include "muster/graph/run.h"

#include <array>
#include <utility>

namespace muster::graph {
namespace {
constexpr std::array<std::pair<Reduction, std::string_view>, 4> names{{
    {Reduction::sum, "sum"},
    {Reduction::mean, "mean"},
    {Reduction::max, "max"},
    {Reduction::min, "min"},
}};
ContextProvider context_provider = nullptr;
thread_local const RunContext* innermost = nullptr;
}  // namespace

void set_context_provider(ContextProvider provider) { context_provider = provider; }

RunContext default_context() {
  if (innermost != nullptr) return *innermost;
  return context_provider == nullptr ? RunContext{} : context_provider();
}

ContextScope::ContextScope(const RunContext& context)
    : context_(context), outer_(std::exchange(innermost, &context_)) {}
ContextScope::~ContextScope() { innermost = outer_; }

std::string_view to_string(Reduction reduction) {
  for (const auto& [value, name] : names)
    if (value == reduction) return name;
  return "unknown";
}

std::optional<Reduction> reduction_from_string(std::string_view text) {
  for (const auto& [value, name] : names)
    if (name == text) return value;
  return std::nullopt;
}

}  // namespace muster::graph
