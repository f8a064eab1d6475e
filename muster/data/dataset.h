// Descriptions of what to read and how to change it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/data/iterator.h"
#include "muster/data/operation.h"

namespace muster::data {

// A column of the rows. dtype and shape are unknown behind an operation that is not built in; a size of -1
// differs between rows (a batch's first axis, when the last batch is smaller).
struct Column {
  std::string name;
  std::optional<DType> dtype;
  std::optional<Shape> shape;
};

class Node;  // private to the room

// An immutable description, cheap to copy. Each call returns a new dataset and leaves this one as it was:
//
//   auto dataset = mnist({.folder = path, .num_shards = 4, .shard_id = rank})
//                      .map({rescale(1 / 255.f, 0), hwc2chw()}, {"image"})
//                      .batch(32);
//
// The first mistake in a chain stays in the dataset: status(), size() and iterate() all report it.
// Threads: may be shared; iterators are independent.
class Dataset {
 public:
  explicit Dataset(Result<std::shared_ptr<const Node>> node) : node_(std::move(node)) {}

  // Applies the operations one after the other to the named columns (none named: the first).
  Dataset map(std::vector<OperationPtr> operations, std::vector<std::string> input_columns = {}) const;
  // Stacks `rows` rows into one; the last batch is smaller unless it is dropped.
  Dataset batch(std::int64_t rows, bool drop_remainder = false) const;
  // All items `count` times, shuffled anew each time; -1 without end.
  Dataset repeat(std::int64_t count = -1) const;
  // At most the first `count` items (-1: all); all but the first `count` items.
  Dataset take(std::int64_t count = -1) const;
  Dataset skip(std::int64_t count) const;

  // Whether the description is usable.
  Result<> status() const;
  // What each item holds. Only for a usable dataset.
  const std::vector<Column>& columns() const;
  // Items in one pass; -1 without end.
  Result<std::int64_t> size() const;
  Result<Iterator> iterate(IterateOptions options) const;

 private:
  Result<std::shared_ptr<const Node>> node_;
};

}  // namespace muster::data
