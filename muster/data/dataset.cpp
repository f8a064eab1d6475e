#include "muster/data/dataset.h"

#include "muster/data/iterator_state.h"
#include "muster/data/node.h"

namespace muster::data {

Shape with_leading(std::int64_t size, const Shape& shape) {
  std::vector<std::int64_t> sizes = {size};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  return Shape(std::move(sizes));
}

Shape without_leading(const Shape& shape) {
  MUSTER_CHECK(shape.rank() > 0, "a scalar has no first axis");
  return Shape(std::vector<std::int64_t>(shape.begin() + 1, shape.end()));
}

Dataset Dataset::map(std::vector<OperationPtr> operations, std::vector<std::string> input_columns) const {
  return Dataset(node_.and_then(
      [&](const NodePtr& node) { return make_map(node, std::move(operations), std::move(input_columns)); }));
}

Dataset Dataset::batch(std::int64_t rows, bool drop_remainder) const {
  return Dataset(node_.and_then([&](const NodePtr& node) { return make_batch(node, rows, drop_remainder); }));
}

Dataset Dataset::repeat(std::int64_t count) const {
  return Dataset(node_.and_then([&](const NodePtr& node) { return make_repeat(node, count); }));
}

Dataset Dataset::take(std::int64_t count) const {
  return Dataset(node_.and_then([&](const NodePtr& node) { return make_take(node, count); }));
}

Dataset Dataset::skip(std::int64_t count) const {
  return Dataset(node_.and_then([&](const NodePtr& node) { return make_skip(node, count); }));
}

Result<> Dataset::status() const {
  if (!node_) return fail(node_.error());
  return {};
}

const std::vector<Column>& Dataset::columns() const {
  MUSTER_CHECK(node_.has_value(), "columns() of a dataset that is not usable");
  return (*node_)->columns();
}

Result<std::int64_t> Dataset::size() const {
  return node_.map([](const NodePtr& node) { return node->size(); });
}

Result<Iterator> Dataset::iterate(IterateOptions options) const {
  if (!node_) return fail(node_.error());
  if (options.prefetch_items < 1)
    return fail(Code::invalid_argument, "prefetch_items is 0, it must be at least 1");
  return Iterator(std::make_unique<Iterator::State>(*node_, options));
}

}  // namespace muster::data
