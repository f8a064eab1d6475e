#include "muster/data/dataset.h"

#include "muster/data/iterator_state.h"
#include "muster/data/node.h"

namespace muster::data {
namespace {

Result<std::vector<NodePtr>> nodes_of(const std::vector<Result<NodePtr>>& results) {
  std::vector<NodePtr> nodes;
  for (const auto& result : results) {
    if (!result) return fail(result.error());
    nodes.push_back(*result);
  }
  return nodes;
}

}  // namespace

Dataset Dataset::map(std::vector<OperationPtr> operations, std::vector<std::string> input_columns) const {
  return map(std::move(operations), MapOptions{.input_columns = std::move(input_columns)});
}

Dataset Dataset::map(std::vector<OperationPtr> operations, MapOptions options) const {
  return Dataset(node_.and_then(
      [&](const NodePtr& node) { return make_map(node, std::move(operations), std::move(options)); }));
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

Dataset Dataset::shuffle(std::int64_t buffer_rows) const {
  return Dataset(node_.and_then([&](const NodePtr& node) { return make_shuffle(node, buffer_rows); }));
}

Dataset Dataset::mark_shard(std::int64_t num_shards, std::int64_t shard_id) const {
  return Dataset(node_.and_then(
      [&](const NodePtr& node) { return make_marked(node, {.count = num_shards, .index = shard_id}); }));
}

Dataset Dataset::filter(OperationPtr predicate, std::vector<std::string> input_columns) const {
  return Dataset(node_.and_then([&](const NodePtr& node) {
    return make_filter(node, std::move(predicate), std::move(input_columns));
  }));
}

Dataset Dataset::project(const std::vector<std::string>& names) const {
  return Dataset(node_.and_then([&](const NodePtr& node) { return make_project(node, names); }));
}

Dataset Dataset::rename(const std::vector<std::string>& from, const std::vector<std::string>& to) const {
  return Dataset(node_.and_then([&](const NodePtr& node) { return make_rename(node, from, to); }));
}

Dataset Dataset::zip(const std::vector<Dataset>& datasets) {
  std::vector<Result<NodePtr>> nodes;
  for (const Dataset& dataset : datasets) nodes.push_back(dataset.node_);
  return Dataset(nodes_of(nodes).and_then(make_zip));
}

Dataset Dataset::concat(const std::vector<Dataset>& datasets) {
  std::vector<Result<NodePtr>> nodes;
  for (const Dataset& dataset : datasets) nodes.push_back(dataset.node_);
  return Dataset(nodes_of(nodes).and_then(make_concat));
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

Result<std::int64_t> Dataset::count_items(IterateOptions options) const {
  MUSTER_TRY(const auto known, size());
  if (known != size_unknown) return known;
  MUSTER_TRY(auto iterator, iterate(std::move(options)));
  for (std::int64_t items = 0;; ++items) {
    MUSTER_TRY(const auto item, iterator.next());
    if (!item) return items;
  }
}

std::int64_t Dataset::source_rows() const { return node_ ? (*node_)->source_rows() : size_unknown; }
Shard Dataset::shard() const { return node_ ? (*node_)->shard() : Shard{}; }
ItemOrder Dataset::item_order() const { return node_ ? (*node_)->item_order() : ItemOrder::known; }
std::optional<OrderedRows> Dataset::ordered_rows() const {
  return node_ ? (*node_)->ordered_rows() : std::nullopt;
}
std::int64_t Dataset::size_behind(std::uint32_t rows_before) const {
  return (*node_)->size_behind(rows_before);
}
bool Dataset::is_batched() const { return node_ && (*node_)->is_batched(); }
std::int64_t Dataset::batch_size() const { return node_ ? (*node_)->batch_size() : 1; }
std::int64_t Dataset::repeat_count() const { return node_ ? (*node_)->repeat_count() : 1; }

Result<Iterator> Dataset::iterate(IterateOptions options) const {
  if (!node_) return fail(node_.error());
  if (options.prefetch_items < 1)
    return fail(Code::invalid_argument, "prefetch_items is 0, it must be at least 1");
  if (options.workers < 0)
    return fail(Code::invalid_argument, "workers is negative, it must be 0 (by the processors) or more");
  return Iterator(std::make_unique<Iterator::State>(*node_, options));
}

}  // namespace muster::data
