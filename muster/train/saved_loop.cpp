#include "muster/train/saved_loop.h"

#include <fmt/format.h>

#include <vector>

#include "muster/train/activity_scope.h"
#include "muster/train/front_end.h"
#include "muster/train/job.h"
#include "muster/train/parameter_servers.h"
#include "muster/train/point_shares.h"
#include "muster/train/recoverable.h"
#include "muster/train/recovery_point.h"
#include "muster/train/regrouping.h"
#include "muster/train/resume.h"

namespace muster::train {
namespace {

constexpr const char* epoch_name = "loop_epoch";
constexpr const char* step_name = "loop_step";
constexpr const char* pass_name = "loop_pass";
constexpr const char* items_name = "loop_items";

// States of this worker, or of a job of another number of workers.
struct Found {
  FoundKey key;
  std::string path;
};
struct FoundStates {
  std::vector<Found> own = {};  // the oldest first: in a job the one before the newest stays
  std::optional<Found> of_others = {};
};

Result<Found> found_at(const std::string& path, const checkpoint::StateHead& head) {
  MUSTER_TRY(const StateValues values, StateValues::from_json(head.training));
  MUSTER_TRY(const std::int64_t runs, values.integer("runs"));
  return Found{.key = {.key = {.epoch = static_cast<std::int64_t>(head.id.call),
                               .step = static_cast<std::int64_t>(head.id.step)},
                       .runs = runs},
               .path = path};
}

Error unreadable(const Error& error) {
  return {error.code, fmt::format("load_state: {}. Remove this file{}, or name another one", error.message,
                                  world_size() > 1 ? " on every worker to go on from the state before it"
                                                   : " to begin anew")};
}

Result<FoundStates> states_at(const std::string& path) {
  const checkpoint::StateOwnership mine = state_owner();
  const std::string own = checkpoint::state_path(path, mine);
  std::vector<std::string> files = states_beside(checkpoint::previous_state_path(path, mine));
  for (std::string& file : states_beside(own)) files.push_back(std::move(file));
  FoundStates states;
  for (const std::string& file : files) {
    const auto head = checkpoint::state_head(file);
    const bool is_own_name = file == own || file == checkpoint::previous_state_path(path, mine);
    if (!head && is_own_name) return fail(unreadable(head.error()));
    if (!head) continue;
    const bool is_of_others = head->owner.world_size != mine.world_size;
    if (!is_of_others && head->owner != mine) continue;
    Result<Found> found = found_at(file, *head);
    if (!found && is_of_others) continue;
    if (!found) return fail(unreadable(found.error()));
    if (!is_of_others)
      states.own.push_back(*std::move(found));
    else if (!states.of_others || is_newer(found->key, states.of_others->key))
      states.of_others = *std::move(found);
  }
  return states;
}

// A worker that is killed between its save and that of another one has lost nothing: both have the state
// before.
Result<> keep_previous(const std::string& path, const checkpoint::StateOwnership& owner) {
  if (owner.world_size == 1) return {};
  checkpoint::Storage& storage = checkpoint::real_storage();
  const std::string file = checkpoint::state_path(path, owner);
  if (!storage.open(file)) return {};
  return storage.rename(file, checkpoint::previous_state_path(path, owner));
}

Result<std::optional<LoopPosition>> begin_anew(const std::string& where, const LoadStateOptions& options) {
  if (!options.missing_ok)
    return fail(Code::not_found, fmt::format("load_state: there is no {}: with missing_ok the loop begins "
                                             "anew where nothing was saved yet",
                                             where));
  if (rank() == 0) print_line(fmt::format("load_state: no {} yet, so the loop begins anew", where));
  return std::nullopt;
}

Result<LoopPosition> loop_position(const StateValues& values, const std::string& path) {
  if (!values.has(epoch_name))
    return fail(Code::invalid_argument,
                fmt::format("load_state: '{}' was written by a ModelCheckpoint: Model.train(..., "
                            "resume='{}') goes on from it",
                            path, path));
  LoopPosition position;
  MUSTER_TRY(position.epoch, values.integer(epoch_name));
  MUSTER_TRY(position.step, values.integer(step_name));
  MUSTER_TRY(const std::int64_t pass, values.integer(pass_name));
  MUSTER_TRY(const std::int64_t items, values.integer(items_name));
  MUSTER_TRY(const DataPosition begun, rows_before_in(values));
  position.rows_before = begun.rows_before;
  position.items_before = begun.items_before;
  position.pass = static_cast<std::uint64_t>(pass);
  position.items = static_cast<std::uint64_t>(items);
  return position;
}

const NamedMetrics& no_metrics() {
  static const NamedMetrics none;
  return none;
}

// Nothing where only a pass can count them.
std::optional<std::int64_t> counted_items(const data::Dataset& dataset) {
  const auto size = dataset.size();
  return size && *size >= 0 ? std::optional(*size) : std::nullopt;
}

}  // namespace

namespace {

// What parameter servers have, instead of what stands here for it. A call of all workers.
Result<> put_rows_of_servers(std::span<const graph::ParameterPtr> parameters, checkpoint::Point& point) {
  for (const graph::ParameterPtr& parameter : parameters) {
    if (!is_on_servers(*parameter)) continue;
    const std::string& name = parameter->name();
    MUSTER_TRY(const auto entries, entries_on_servers(parameter, name));
    std::erase_if(point.tensors, [&](const checkpoint::Entry& each) {
      return each.name == name || each.name == name + std::string(checkpoint::rows_suffix);
    });
    point.tensors.insert(point.tensors.end(), entries.begin(), entries.end());
  }
  return {};
}

}  // namespace

Result<> save_state(const std::string& path, std::span<const nn::CellPtr> cells, const LoopPosition& position,
                    const data::Dataset* dataset) {
  const ActivityScope saving(cluster::WorkPhase::saving);
  if (position.epoch < 0 || position.step < 0)
    return fail(Code::invalid_argument, fmt::format("save_state: epoch is {} and step {}: both count from 0",
                                                    position.epoch, position.step));
  const auto parameters = parameters_of(cells);
  TrainingPosition here;
  here.values.set(epoch_name, position.epoch)
      .set(step_name, position.step)
      .set(pass_name, static_cast<std::int64_t>(position.pass))
      .set(items_name, static_cast<std::int64_t>(position.items));
  put_rows_before({.rows_before = position.rows_before, .items_before = position.items_before}, here.values);
  put_seeds(here.values);
  TrainingParts parts{.parameters = parameters, .metrics = no_metrics()};
  if (dataset != nullptr) {
    put_rows(*dataset, here.values);
    parts.batches = counted_items(*dataset);
  }
  SnapshotMemory memory;
  const checkpoint::PointId id{.call = static_cast<std::uint64_t>(position.epoch),
                               .moment = checkpoint::PointId::Moment::step,
                               .step = static_cast<std::uint64_t>(position.step)};
  MUSTER_TRY(checkpoint::Point point, capture(id, parts, here, memory));
  MUSTER_TRY_VOID(put_rows_of_servers(parameters, point));
  if (body_is_void()) return {};
  const checkpoint::StateOwnership owner = state_owner();
  MUSTER_TRY_VOID(keep_previous(path, owner));
  return checkpoint::save_state(checkpoint::state_path(path, owner), point, owner);
}

namespace {

// The state as of a job of this number of workers.
Result<LoopPosition> take(const Resumption& saved, std::span<const nn::CellPtr> cells) {
  MUSTER_TRY(const TrainingPosition there, position_in(saved.point));
  MUSTER_TRY(const LoopPosition position, loop_position(there.values, saved.path));
  MUSTER_TRY_VOID(take_seeds(there.values, saved.path));
  const auto parameters = parameters_of(cells);
  MUSTER_TRY_VOID(
      restore(saved.point, {.parameters = parameters, .metrics = no_metrics()}).map_error([&](Error error) {
        return unfitting(std::move(error), saved.path);
      }));
  return position;
}

// Of one that others have saved: the place in the data of these workers. A step that the script has not
// counted itself is that place.
Result<LoopPosition> regrouped_position(const Resumption& saved, LoopPosition position,
                                        const data::Dataset& dataset) {
  MUSTER_TRY(const TrainingPosition there, position_in(saved.point));
  const auto items = static_cast<std::int64_t>(position.items);
  MUSTER_TRY(const DataPosition now, regrouped(saved, there.values, items, dataset, counted_items(dataset)));
  if (position.step == items) position.step = static_cast<std::int64_t>(now.items);
  position.items = now.items;
  position.rows_before = now.rows_before;
  position.items_before = now.items_before;
  return position;
}

}  // namespace

Result<std::optional<LoopPosition>> load_state(const std::string& path, std::span<const nn::CellPtr> cells,
                                               const LoadStateOptions& options) {
  MUSTER_TRY(const FoundStates found, states_at(path));
  ResumeOffer offer{.where = fmt::format("'{}'", checkpoint::state_path(path, state_owner()))};
  for (const Found& state : found.own) offer.keys.push_back(state.key.key);
  if (!found.own.empty()) offer.runs = found.own.back().key.runs;
  if (found.of_others) offer.of_others = found.of_others->key;
  MUSTER_TRY(const std::optional<ResumeChoice> chosen, agree_on_resume(offer, world_size() > 1));
  if (!chosen) return begin_anew(offer.where, options);
  if (chosen->giver) {
    MUSTER_TRY(Resumption saved,
               shared_resumption(found.of_others ? found.of_others->path : "", *chosen->giver));
    if (options.dataset == nullptr || is_divided(saved.point))
      return fail(not_as_many(saved.path, saved.owner));
    forget_shares(saved.point);
    MUSTER_TRY(const LoopPosition position, take(saved, cells));
    return regrouped_position(saved, position, *options.dataset);
  }
  for (const Found& state : found.own) {
    if (state.key.key != chosen->key) continue;
    MUSTER_TRY(const Resumption saved, load_resumption_at(state.path));
    return take(saved, cells);
  }
  return std::nullopt;
}

}  // namespace muster::train
