// Rows that are in memory, or that the caller's own code makes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/data/dataset.h"
#include "muster/data/source_options.h"

namespace muster::data {

// Row i holds element i of the first axis of each tensor; all have as many. The tensors are shared.
Dataset slices(std::vector<std::string> names, std::vector<Tensor> columns, const RowOptions& options = {});

// Code that makes any row. Called on one thread at a time; with `processes` in each of those instead.
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual std::int64_t rows() const = 0;
  // The values of one row, as many as there are columns.
  virtual Result<std::vector<Tensor>> row(std::int64_t index) const = 0;
};
Dataset generated(std::vector<std::string> names, std::shared_ptr<const RowSource> source,
                  const RowOptions& options = {}, ProcessOptions processes = {});

// Code that makes rows one after the other; one object for each pass.
class RowSequence {
 public:
  virtual ~RowSequence() = default;
  // The next row; nothing at the end.
  virtual Result<std::optional<std::vector<Tensor>>> next() = 0;
};
// `pass` is its number.
using BeginRows = std::function<Result<std::unique_ptr<RowSequence>>(std::uint64_t pass)>;

struct SequenceOptions {
  std::optional<std::int64_t> size = {};         // how many rows come, where that is known
  std::optional<std::int64_t> num_samples = {};  // at most so many
  // What a script calls items that it makes by means of its own, such as a loader of another library: named
  // in messages, and held to `size`.
  std::string external = {};
  // Whether a pass may have another number of rows than `size`, which is then the one that is expected.
  bool size_varies = false;
  // Unless it is known, a training that goes on in the middle of a pass compares the items.
  ItemOrder order = ItemOrder::known;
};
// Rows in the order in which they come: they cannot be shuffled or shared out but by what follows.
Dataset generated(std::vector<std::string> names, BeginRows begin, const SequenceOptions& options = {});

}  // namespace muster::data
