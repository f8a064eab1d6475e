#include "muster/graph/ops/window.h"

#include <algorithm>
#include <utility>

namespace muster::graph {

Result<std::vector<std::int64_t>> numbers(std::string_view op, std::string_view name,
                                          const Attributes& attributes, std::vector<std::int64_t> otherwise,
                                          std::int64_t least) {
  const std::size_t count = otherwise.size();
  std::vector<std::int64_t> found = attributes.get(name, std::move(otherwise));
  if (found.size() != count || std::any_of(found.begin(), found.end(), [&](auto n) { return n < least; }))
    return bad("{}: {} must be {} numbers of at least {}, not {}", op, name, count, least,
               to_string(Attribute(found)));
  return found;
}

Result<> require_images(std::string_view op, std::string_view what, const TensorType& type) {
  if (type.shape.rank() == 4) return {};
  return bad("{}: {} must be images (N, C, H, W), not {}", op, what, muster::to_string(type.shape));
}

Attributes only(const Attributes& attributes, std::initializer_list<std::string_view> names) {
  Attributes kept;
  for (const std::string_view name : names)
    if (const Attribute* found = attributes.find(name)) kept.set(name, *found);
  return kept;
}

}  // namespace muster::graph
