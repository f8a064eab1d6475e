// Private to graph: origin of nodes, which they tell of while anomalies are detected.
#pragma once

#include <string_view>

#include "muster/graph/nodes.h"

namespace muster::graph {

// While it lives, nodes of this thread are a part of the way back through a node: of `passed`, which came
// from `forward`. Scopes nest.
class Backward {
 public:
  explicit Backward(OriginPtr forward = nullptr, std::string_view passed = {});
  ~Backward();
  Backward(const Backward&) = delete;
  Backward& operator=(const Backward&) = delete;

  OriginPtr origin() const;

 private:
  OriginPtr forward_;
  std::string_view passed_;
  const Backward* outer_;
};

// Of a node that is made now; null while no anomalies are detected.
OriginPtr current_origin();

}  // namespace muster::graph
