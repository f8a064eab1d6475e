#include "muster/train/data_settings.h"

#include <fmt/format.h>

#include "muster/train/activity_scope.h"
#include "muster/train/job.h"
#include "muster/train/process.h"

namespace muster::train {
namespace {

DataSettings& settings() { return process().choices.data; }

}  // namespace

const DataSettings& data_settings() { return settings(); }
void set_data_seed(std::optional<std::uint64_t> seed) { settings().seed = seed; }

Result<> set_data_prefetch(std::int64_t items) {
  if (items < 1 || items > 1000000)
    return fail(Code::invalid_argument,
                fmt::format("the prefetch size is {}; it must be from 1 to 1000000", items));
  settings().prefetch_items = static_cast<std::size_t>(items);
  return {};
}

Result<> set_data_workers(std::int64_t workers) {
  if (workers < 1 || workers > 1024)
    return fail(Code::invalid_argument,
                fmt::format("num_parallel_workers is {}; it must be from 1 to 1024", workers));
  settings().workers = static_cast<int>(workers);
  return {};
}

Result<> set_data_worker_limits(Duration warning, Duration deadline) {
  if (warning < Duration::zero() || deadline < Duration::zero())
    return fail(Code::invalid_argument, "a time for data workers is negative; it is in seconds, 0 for ever");
  settings().worker_warning = warning;
  settings().worker_deadline = deadline;
  return {};
}

data::IterateOptions data_options(std::uint64_t epoch) {
  return {.seed = settings().seed.value_or(seed()),
          .epoch = epoch,
          .prefetch_items = settings().prefetch_items,
          .worker_warning = settings().worker_warning,
          .worker_deadline = settings().worker_deadline,
          .workers = settings().workers,
          .times = process().item_times};
}

data::DataLoader batches(const data::Dataset& dataset, std::uint64_t epoch) {
  return data::DataLoader(dataset.iterate(data_options(epoch)).value(), [](data::Iterator& items) {
    const ActivityScope reading(cluster::WorkPhase::reading_data);
    note_finished();
    return items.next();
  });
}

}  // namespace muster::train
