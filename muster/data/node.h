// Private: parts of a Dataset. A Node describes a step of the pipeline, a Stream runs it for one pass.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "muster/data/dataset.h"
#include "muster/data/sampler.h"

namespace muster::data {

class Workers;

// Some rows side by side: every column has one more axis in front, of size `rows`. Rows travel in blocks so
// that a batch is a block under another name, made once, and operations run over all its rows at a time.
struct Block {
  std::size_t rows = 0;
  std::vector<Tensor> columns;
  // One for each row: a hash of seed, epoch and sample (Draw::row). It stays with the row wherever it goes.
  std::vector<std::uint64_t> keys = {};
};

class Stream {
 public:
  virtual ~Stream() = default;
  // Between one and `want` rows in order, or nothing at the end of the pass.
  virtual Result<std::optional<Block>> next(std::size_t want) = 0;
  // Passes over the next `rows` rows as if they had been taken; how many there were: fewer only at the end of
  // the pass. By default they are made and dropped; where a row needs none of those before it, they are not
  // made.
  virtual Result<std::size_t> skip(std::size_t rows);
};

// Which pass over the rows.
struct Pass {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint32_t rows_before = 0;  // see IterateOptions
  bool padding = true;            // likewise
  Workers* workers = nullptr;     // they share the work; null: the caller does it alone
  // For processes that make rows; see IterateOptions.
  std::size_t prefetch_items = IterateOptions{}.prefetch_items;
  Duration worker_warning = IterateOptions{}.worker_warning;
  Duration worker_deadline = IterateOptions{}.worker_deadline;
  const std::atomic<bool>* ended = nullptr;  // no more rows are wanted: a caller that waits for one gives up
};

// The key of a row that is number `row` of its source.
std::uint64_t row_key(const Pass& pass, std::uint64_t row);

class Node {
 public:
  virtual ~Node() = default;
  virtual const std::vector<Column>& columns() const = 0;
  // Items in one pass; size_endless or size_unknown.
  virtual std::int64_t size() const = 0;
  // Whether operations of others (Python functions) run in it.
  virtual bool foreign() const = 0;
  // How many things upstream draw random numbers: what draws next takes this as its number.
  virtual std::uint64_t draws() const = 0;
  // The node outlives its streams: see Iterator.
  virtual std::unique_ptr<Stream> open(Pass pass) const = 0;
  // The same items shuffled through a buffer, if it is all the same whether the rows are shuffled before this
  // step or after it, and before is cheaper: then no row is copied once more.
  virtual Result<std::shared_ptr<const Node>> shuffled_before(std::int64_t) const { return nullptr; }
  // What the user set upstream, innermost last: see Dataset.
  virtual std::int64_t batch_size() const { return 1; }
  // Whether an item is a batch: axis 0 of its columns counts rows. Batches of other libraries tell no size.
  virtual bool is_batched() const { return batch_size() > 1; }
  virtual std::int64_t repeat_count() const { return 1; }
  virtual Shard shard() const { return {}; }
  virtual std::int64_t source_rows() const { return size_unknown; }
  virtual ItemOrder item_order() const { return ItemOrder::known; }
  virtual std::optional<OrderedRows> ordered_rows() const { return std::nullopt; }
  // Items of a pass behind so many rows of the list, where ordered_rows() tells of one.
  virtual std::int64_t size_behind(std::uint32_t rows_before) const {
    (void)rows_before;
    return size_unknown;
  }
};

using NodePtr = std::shared_ptr<const Node>;

// A node with one child that it resembles.
class FlowNode : public Node {
 public:
  explicit FlowNode(NodePtr child) : child_(std::move(child)) {}
  const std::vector<Column>& columns() const override { return child_->columns(); }
  std::int64_t size() const override { return child_->size(); }
  bool foreign() const override { return child_->foreign(); }
  std::uint64_t draws() const override { return child_->draws(); }
  std::int64_t batch_size() const override { return child_->batch_size(); }
  bool is_batched() const override { return batch_size() > 1 || child_->is_batched(); }
  std::int64_t repeat_count() const override { return child_->repeat_count(); }
  Shard shard() const override { return child_->shard(); }
  std::int64_t source_rows() const override { return child_->source_rows(); }
  ItemOrder item_order() const override { return child_->item_order(); }

 protected:
  const NodePtr& child() const { return child_; }

 private:
  const NodePtr child_;
};

// Its items are those of its child, one by one.
class OneByOneNode : public FlowNode {
 public:
  using FlowNode::FlowNode;
  std::optional<OrderedRows> ordered_rows() const override { return child()->ordered_rows(); }
  std::int64_t size_behind(std::uint32_t rows_before) const override {
    return child()->size_behind(rows_before);
  }
};

// `shape` with an axis in front.
Shape with_leading(std::int64_t size, const Shape& shape);
// `shape` without its first axis.
Shape without_leading(const Shape& shape);
// Rows `begin` to `begin + rows` - 1 of a block's column, without a copy.
Tensor rows_of(const Tensor& column, std::size_t begin, std::size_t rows);
Block rows_of(const Block& block, std::size_t begin, std::size_t rows);

// Where the columns of new rows come from: the k-th value that was made, or a column as it was.
struct Place {
  bool made = false;
  std::size_t index = 0;
};

// The places of the named columns; `what` begins the message when there is none, or one is named twice.
Result<std::vector<std::size_t>> find_columns(const std::vector<Column>& columns,
                                              const std::vector<std::string>& names, const std::string& what);

class BufferPool;

// Whether the rows of both have the same dtypes and shapes, so that they can lie in one block.
bool alike(const Block& a, const Block& b);
bool alike(const std::vector<Block>& parts);
// The blocks' rows one after the other in one block; an error when the rows are not alike.
Result<Block> joined(std::vector<Block> parts, const std::vector<Column>& columns, const BufferPool& pool);

Result<NodePtr> make_map(NodePtr child, std::vector<OperationPtr> operations, MapOptions options);
Result<NodePtr> make_batch(NodePtr child, std::int64_t rows, bool drop_remainder);
Result<NodePtr> make_repeat(NodePtr child, std::int64_t count);
Result<NodePtr> make_take(NodePtr child, std::int64_t count);
Result<NodePtr> make_skip(NodePtr child, std::int64_t count);
Result<NodePtr> make_shuffle(NodePtr child, std::int64_t buffer_rows);
Result<NodePtr> make_marked(NodePtr child, const Shard& shard);
Result<NodePtr> make_filter(NodePtr child, OperationPtr predicate, std::vector<std::string> input_columns);
Result<NodePtr> make_project(NodePtr child, const std::vector<std::string>& names);
Result<NodePtr> make_rename(NodePtr child, const std::vector<std::string>& from,
                            const std::vector<std::string>& to);
Result<NodePtr> make_zip(std::vector<NodePtr> children);
Result<NodePtr> make_concat(std::vector<NodePtr> children);

}  // namespace muster::data
