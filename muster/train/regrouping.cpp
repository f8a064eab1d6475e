#include "muster/train/regrouping.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "muster/train/front_end.h"
#include "muster/train/job.h"
#include "muster/train/point_shares.h"
#include "muster/train/recovery_point.h"

namespace muster::train {
namespace {

constexpr const char* list_name = "list_rows";
constexpr const char* rows_name = "rows_an_item";
constexpr const char* shards_name = "shards";
constexpr const char* rows_before_name = "rows_before";
constexpr const char* items_before_name = "items_before";

Error not_known(const Resumption& found, const std::string& why) {
  return {
      Code::invalid_argument,
      fmt::format("resume: '{}' was saved in the middle of an epoch by {} workers, and now there are {}: {}. "
                  "Start {} workers to end the epoch, or go on from a checkpoint behind the last step of one",
                  found.path, found.owner.world_size, world_size(), why, found.owner.world_size)};
}

// Rows of the list that had come behind so many items.
Result<std::int64_t> rows_done(const Resumption& found, const StateValues& values, std::int64_t items,
                               const data::Dataset& dataset) {
  const std::optional<data::OrderedRows> now = dataset.ordered_rows();
  if (!now)
    return fail(not_known(found,
                          "which rows had come is not known behind what mixes, picks or repeats rows "
                          "(shuffle(), filter(), repeat(), num_samples of a shard, an iterable)"));
  if (!values.has(list_name)) return fail(not_known(found, "it does not say which rows had come"));
  MUSTER_TRY(const std::int64_t list, values.integer(list_name));
  if (list != now->list)
    return fail(
        not_known(found, fmt::format("its data had {} rows, and this script's has {}", list, now->list)));
  MUSTER_TRY(const std::int64_t an_item, values.integer(rows_name));
  MUSTER_TRY(const std::int64_t shards, values.integer(shards_name));
  MUSTER_TRY(const DataPosition begun, rows_before_in(values));
  return begun.rows_before + (items - static_cast<std::int64_t>(begun.items_before)) * an_item * shards;
}

}  // namespace

void put_rows_before(const DataPosition& position, StateValues& values) {
  if (position.rows_before > 0)
    values.set(rows_before_name, std::int64_t{position.rows_before})
        .set(items_before_name, static_cast<std::int64_t>(position.items_before));
}

void put_rows(const data::Dataset& dataset, StateValues& values) {
  const auto rows = dataset.ordered_rows();
  if (!rows) return;
  values.set(list_name, rows->list).set(rows_name, rows->an_item).set(shards_name, dataset.num_shards());
}

Result<DataPosition> rows_before_in(const StateValues& values) {
  DataPosition position;
  if (!values.has(rows_before_name)) return position;
  MUSTER_TRY(const std::int64_t rows, values.integer(rows_before_name));
  MUSTER_TRY(const std::int64_t items, values.integer(items_before_name));
  position.rows_before = static_cast<std::uint32_t>(rows);
  position.items_before = static_cast<std::uint64_t>(items);
  return position;
}

Result<DataPosition> data_position_in(const checkpoint::Point& point) {
  MUSTER_TRY(const TrainingPosition position, position_in(point));
  MUSTER_TRY(DataPosition made, rows_before_in(position.values));
  MUSTER_TRY(const std::int64_t pass, position.values.integer("pass"));
  MUSTER_TRY(const std::int64_t items, position.values.integer("items"));
  made.pass = static_cast<std::uint64_t>(pass);
  made.items = static_cast<std::uint64_t>(items);
  return made;
}

Result<DataPosition> regrouped(const Resumption& found, const StateValues& values, std::int64_t items,
                               const data::Dataset& dataset, std::optional<std::int64_t> batches_now) {
  if (items == 0) return DataPosition{};
  if (!batches_now || !values.has(batches_name))
    return fail(not_known(found,
                          "how many steps an epoch has is not known (sink_size, a dataset of unknown length, "
                          "or a state without one)"));
  const std::int64_t batches = *batches_now;
  MUSTER_TRY(const std::int64_t all_items, values.integer(batches_name));
  if (items == all_items) return DataPosition{.items = static_cast<std::uint64_t>(batches)};
  MUSTER_TRY(const std::int64_t rows, rows_done(found, values, items, dataset));
  const std::int64_t list = dataset.ordered_rows()->list;
  const std::int64_t left = rows < list ? dataset.size_behind(static_cast<std::uint32_t>(rows)) : 0;
  const auto done = static_cast<std::uint64_t>(batches - left);
  if (rank() == 0)
    print_line(
        fmt::format("resume: {} of {} rows of the epoch have come with {} workers, and the others come with "
                    "{}: {} of {} steps are done",
                    rows, list, found.owner.world_size, world_size(), done, batches));
  if (left == 0) return DataPosition{.items = done};
  return DataPosition{.items = done, .rows_before = static_cast<std::uint32_t>(rows), .items_before = done};
}

Result<> regroup(Resumption& found, const data::Dataset& dataset, std::optional<std::int64_t> batches) {
  MUSTER_TRY(TrainingPosition position, position_in(found.point));
  if (is_divided(found.point)) return fail(not_as_many(found.path, found.owner));
  StateValues& values = position.values;
  MUSTER_TRY(const std::int64_t epochs, values.integer("epochs_done"));
  MUSTER_TRY(const std::int64_t items, values.integer("items"));
  MUSTER_TRY(const DataPosition now, regrouped(found, values, items, dataset, batches));
  const auto done = static_cast<std::int64_t>(now.items);
  if (!batches) return fail(not_known(found, "its epochs are no passes over the data (sink_size)"));
  values.set("items", done)
      .set("steps_in_epoch", done)
      .set("steps", epochs * *batches + done)
      .set(rows_before_name, std::int64_t{now.rows_before})
      .set(items_before_name, static_cast<std::int64_t>(now.items_before))
      .set(batches_name, *batches);
  put_position(values, found.point);
  forget_shares(found.point);
  return {};
}

}  // namespace muster::train
