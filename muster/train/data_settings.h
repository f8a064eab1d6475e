// Settings of this process's passes over its data: what mindspore.dataset.config sets.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "muster/data/data.h"

namespace muster::train {

// A column of which each worker reads a slice; the batch is joined from those of the same rows.
struct ColumnSlices {
  std::vector<std::int64_t> cuts = {};  // into how many parts each dimension is cut; empty: it is whole
  // The number of each worker's slice, in row-major order of the cuts. Empty: slice w mod their product.
  std::vector<std::int64_t> numbers = {};
};

struct DataSettings {
  std::optional<std::uint64_t> seed;  // not said: seed() of the session
  std::size_t prefetch_items = data::IterateOptions{}.prefetch_items;
  int workers = 0;  // 0: by the processors
  // See data::IterateOptions.
  Duration worker_warning = data::IterateOptions{}.worker_warning;
  Duration worker_deadline = data::IterateOptions{}.worker_deadline;
  std::vector<ColumnSlices> slices = {};  // of the columns of every dataset, in their order
};

// The process's settings. Main thread only.
const DataSettings& data_settings();
void set_data_seed(std::optional<std::uint64_t> seed);  // nothing: that of the session again
Result<> set_data_prefetch(std::int64_t items);         // 1 to 10^6
Result<> set_data_workers(std::int64_t workers);        // 1 to 1024
// How long a process that makes rows may take for one: until a warning, until an error. 0: for ever.
Result<> set_data_worker_limits(Duration warning, Duration deadline);

void set_column_slices(std::vector<ColumnSlices> columns);  // nothing: what is read is whole

// A column as all workers have it together, each of which makes this call with the slice that it has read; a
// column that is not cut along more than its rows as it is. The error says what does not fit.
Result<Tensor> joined_slices(std::size_t column, const Tensor& piece);

// What Dataset::iterate takes for one pass under these settings.
data::IterateOptions data_options(std::uint64_t epoch);

// Pass number `epoch` under these settings: `for (const data::Item& batch : train::batches(dataset, epoch))`.
data::DataLoader batches(const data::Dataset& dataset, std::uint64_t epoch);

}  // namespace muster::train
