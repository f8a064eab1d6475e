#include "muster/train/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "muster/train/job.h"
#include "muster/train/run_context.h"
#include "muster/train/session.h"

namespace muster::train {

Result<std::vector<checkpoint::Entry>> gather_parameters(std::span<const graph::ParameterPtr> parameters) {
  std::vector<checkpoint::Entry> entries;
  for (const graph::ParameterPtr& parameter : parameters) {
    const bool is_here = parameter->absence() == nullptr;
    entries.push_back({parameter->name(), is_here ? parameter->materialize(seed())
                                                  : Tensor(parameter->dtype(), parameter->shape())});
    if (stages() == nullptr || !parameter->home()) continue;  // every worker has it
    const Tensor& value = entries.back().value;
    // The first replica's; the others' are equal.
    MUSTER_TRY_VOID(
        Session::current()->recovery().explicit_collective("gather_parameters", {}, [&](Communicator& all) {
          return all.broadcast(value.bytes(), value.size_bytes(), parameter->home()->rank);
        }));
  }
  return entries;
}

Result<> save_parameters(std::span<const graph::ParameterPtr> parameters, const std::string& path,
                         Files& files) {
  MUSTER_TRY(const std::vector<checkpoint::Entry> entries, gather_parameters(parameters));
  return checkpoint::save(path, entries, files);
}

Result<Unmatched> load_parameters(std::span<const graph::ParameterPtr> parameters,
                                  std::span<const checkpoint::Entry> entries) {
  std::map<std::string, const Tensor*> values;
  for (const checkpoint::Entry& entry : entries) values[entry.name] = &entry.value;
  Unmatched unmatched;
  std::vector<std::pair<graph::ParameterPtr, const Tensor*>> found;
  for (const graph::ParameterPtr& parameter : parameters) {
    const auto at = values.find(parameter->name());
    if (at == values.end()) {
      unmatched.parameters.push_back(parameter->name());
      continue;
    }
    const graph::TensorType type{at->second->dtype(), at->second->shape()};
    if (type != parameter->type())
      return fail(Code::invalid_argument,
                  fmt::format("parameter '{}' is {}, but the checkpoint holds {}", parameter->name(),
                              to_string(parameter->type()), to_string(type)));
    found.emplace_back(parameter, at->second);
  }
  for (const auto& [parameter, value] : found) MUSTER_TRY_VOID(parameter->set(*value));
  for (const checkpoint::Entry& entry : entries) {
    const bool used = std::any_of(parameters.begin(), parameters.end(),
                                  [&](const auto& parameter) { return parameter->name() == entry.name; });
    if (!used) unmatched.entries.push_back(entry.name);
  }
  return unmatched;
}

}  // namespace muster::train
