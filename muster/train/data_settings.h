// Settings of this process's passes over its data: what mindspore.dataset.config sets.
#pragma once

#include <cstdint>
#include <optional>

#include "muster/data/data.h"

namespace muster::train {

struct DataSettings {
  std::optional<std::uint64_t> seed;  // not said: seed() of the session
  std::size_t prefetch_items = data::IterateOptions{}.prefetch_items;
  int workers = 0;  // 0: by the processors
  // See data::IterateOptions.
  Duration worker_warning = data::IterateOptions{}.worker_warning;
  Duration worker_deadline = data::IterateOptions{}.worker_deadline;
};

// The process's settings. Main thread only.
const DataSettings& data_settings();
void set_data_seed(std::optional<std::uint64_t> seed);  // nothing: that of the session again
Result<> set_data_prefetch(std::int64_t items);         // 1 to 10^6
Result<> set_data_workers(std::int64_t workers);        // 1 to 1024
// How long a process that makes rows may take for one: until a warning, until an error. 0: for ever.
Result<> set_data_worker_limits(Duration warning, Duration deadline);

// What Dataset::iterate takes for one pass under these settings.
data::IterateOptions data_options(std::uint64_t epoch);

// Pass number `epoch` under these settings: `for (const data::Item& batch : train::batches(dataset, epoch))`.
data::DataLoader batches(const data::Dataset& dataset, std::uint64_t epoch);

}  // namespace muster::train
