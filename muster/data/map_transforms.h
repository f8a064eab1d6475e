// Private: built-in operations on one column, shared out among the workers.
#pragma once

#include "muster/data/node.h"
#include "muster/data/transform.h"

namespace muster::data {

struct TransformSettings {
  std::vector<TransformPtr> transforms;
  std::size_t column = 0;
  std::vector<Column> columns;  // after the transforms
  int workers_max = 0;
};

NodePtr make_transform_node(NodePtr child, TransformSettings settings);

}  // namespace muster::data
