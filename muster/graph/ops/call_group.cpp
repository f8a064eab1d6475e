#include "muster/graph/ops/call_group.h"

#include <fmt/format.h>

namespace muster::graph {

CallGroup call_group(const Attributes& attributes) {
  return {.name = attributes.get("group", std::string()), .ranks = attributes.get("ranks", std::int64_t{1})};
}

Result<Communicator*> find_group(const CallGroup& group, const KernelCall& call) {
  if (group.name.empty()) return call.communicator;
  if (group.ranks == 1) return nullptr;
  if (call.context->group == nullptr)
    return fail(Code::invalid_argument, fmt::format("group '{}': this process has no groups", group.name));
  return call.context->group(group.name, {});
}

}  // namespace muster::graph
