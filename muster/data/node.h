// Private: what a Dataset is made of. A Node describes a step of the pipeline, a Stream runs it for one pass.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "muster/data/dataset.h"

namespace muster::data {

// Some rows side by side: every column has one more axis in front, of size `rows`. Rows travel in blocks so
// that a batch is a block under another name, made once, and operations run over all its rows at a time.
struct Block {
  std::size_t rows = 0;
  std::vector<Tensor> columns;
};

class Stream {
 public:
  virtual ~Stream() = default;
  // Between one and `want` rows in order, or nothing at the end of the pass.
  virtual Result<std::optional<Block>> next(std::size_t want) = 0;
};

// Which pass over the rows.
struct Pass {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
};

class Node {
 public:
  virtual ~Node() = default;
  virtual const std::vector<Column>& columns() const = 0;
  // Items in one pass; -1 without end.
  virtual std::int64_t size() const = 0;
  // Whether operations of others (Python functions) run in it.
  virtual bool foreign() const = 0;
  // The node outlives its streams: see Iterator.
  virtual std::unique_ptr<Stream> open(Pass pass) const = 0;
};

using NodePtr = std::shared_ptr<const Node>;

// `shape` with an axis in front.
Shape with_leading(std::int64_t size, const Shape& shape);
// `shape` without its first axis.
Shape without_leading(const Shape& shape);

Result<NodePtr> make_map(NodePtr child, std::vector<OperationPtr> operations,
                         std::vector<std::string> input_columns);
Result<NodePtr> make_batch(NodePtr child, std::int64_t rows, bool drop_remainder);
Result<NodePtr> make_repeat(NodePtr child, std::int64_t count);
Result<NodePtr> make_take(NodePtr child, std::int64_t count);
Result<NodePtr> make_skip(NodePtr child, std::int64_t count);

}  // namespace muster::data
