// Descriptions of what to read and how to change it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/data/data_loader.h"
#include "muster/data/iterator.h"
#include "muster/data/operation.h"
#include "muster/data/sampler.h"

namespace muster::data {

// A column of the rows. dtype and shape are unknown behind an operation that is not built in; a size of -1
// differs between rows (a batch's first axis, when the last batch is smaller).
struct Column {
  std::string name;
  std::optional<DType> dtype;
  std::optional<Shape> shape;
};

// Whether each process gets the same items in a pass of the same number: by the library's own order; as the
// script promises of items that it makes by means of its own; or it is unknown.
enum class ItemOrder { known, promised, unknown };

// The rows that items are made of, where each comes at the place that it has in one list which all shards
// share: a source, whose rows nothing mixes, picks or repeats on their way.
struct OrderedRows {
  std::int64_t list = 0;     // rows of the list
  std::int64_t an_item = 1;  // of an item; the last one may have fewer
};

// What size() says where it cannot count.
inline constexpr std::int64_t size_endless = -1;
inline constexpr std::int64_t size_unknown = -2;  // a filter or a generator: only a pass can tell

struct MapOptions {
  std::vector<std::string> input_columns = {};  // none: the first column
  // The names of what the operations make; none: those of the input columns. As many as input columns take
  // their places; otherwise they come first, and the columns that were not mapped after them.
  std::vector<std::string> output_columns = {};
  int workers_max = 0;            // at most so many of the iterator's workers; 0: all
  ProcessOptions processes = {};  // for operations that are not all built in
};

class Node;  // private to the module

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
  Dataset map(std::vector<OperationPtr> operations, MapOptions options) const;
  // Stacks `rows` rows into one; the last batch is smaller unless it is dropped.
  Dataset batch(std::int64_t rows, bool drop_remainder = false) const;
  // All items `count` times, shuffled anew each time; -1 without end.
  Dataset repeat(std::int64_t count = -1) const;
  // At most the first `count` items (-1: all); all but the first `count` items.
  Dataset take(std::int64_t count = -1) const;
  Dataset skip(std::int64_t count) const;
  // Each item is drawn from the next `buffer_rows` (at least 2) that have not come yet. As many as there are
  // items: every order is as likely. The order depends on seed and epoch only.
  Dataset shuffle(std::int64_t buffer_rows) const;
  // Says that these rows are one part of `num_shards` which the script has cut out itself, each row in one
  // part; nothing is cut here. Evaluations over all workers count each part once.
  Dataset mark_shard(std::int64_t num_shards, std::int64_t shard_id) const;
  // The items for which `predicate`, given the named columns (none named: all), gives one value that is not
  // 0.
  Dataset filter(OperationPtr predicate, std::vector<std::string> input_columns = {}) const;
  // Only the named columns, in this order; other names for some columns.
  Dataset project(const std::vector<std::string>& names) const;
  Dataset rename(const std::vector<std::string>& from, const std::vector<std::string>& to) const;
  // The columns of all side by side, as long as each has items; the items of the first, then the second's, …
  static Dataset zip(const std::vector<Dataset>& datasets);
  static Dataset concat(const std::vector<Dataset>& datasets);

  // Whether the description is usable.
  Result<> status() const;
  // What each item holds. Only for a usable dataset.
  const std::vector<Column>& columns() const;
  // Items in one pass, size_endless or size_unknown.
  Result<std::int64_t> size() const;
  // Items in one pass as size() says, or else as a pass shows. Python must not hold the interpreter lock.
  Result<std::int64_t> count_items(IterateOptions options = {}) const;
  // Rows in the last batch() and repetitions in the last repeat() upstream; 1 without one.
  std::int64_t batch_size() const;
  // Whether items are batches, also of another library, whose size is not known.
  bool is_batched() const;
  std::int64_t repeat_count() const;
  // Which part of all rows this dataset reads, as the (first) source upstream was cut, or as mark_shard()
  // says.
  Shard shard() const;
  std::int64_t num_shards() const { return shard().count; }
  // Rows of that source, all its shards together; size_unknown behind what cannot tell.
  std::int64_t source_rows() const;
  ItemOrder item_order() const;
  // Nothing where there is no such list.
  std::optional<OrderedRows> ordered_rows() const;
  // Items of a pass with IterateOptions::rows_before. Only where ordered_rows() tells of a longer list.
  std::int64_t size_behind(std::uint32_t rows_before) const;
  Result<Iterator> iterate(IterateOptions options) const;
  // The same for a range-for; errors are thrown as Exceptions.
  DataLoader loader(IterateOptions options) const { return DataLoader(iterate(std::move(options)).value()); }

 private:
  Result<std::shared_ptr<const Node>> node_;
};

}  // namespace muster::data
