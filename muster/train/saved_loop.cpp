#include "muster/train/saved_loop.h"

#include <fmt/format.h>

#include <vector>

#include "muster/train/activity_scope.h"
#include "muster/train/front_end.h"
#include "muster/train/job.h"
#include "muster/train/recovery_point.h"
#include "muster/train/resume.h"

namespace muster::train {
namespace {

constexpr const char* epoch_name = "loop_epoch";
constexpr const char* step_name = "loop_step";
constexpr const char* pass_name = "loop_pass";
constexpr const char* items_name = "loop_items";

// The state and, in a job, the one before it; of both the oldest first.
struct Found {
  ResumeKey key;
  std::string path;
};

Result<std::vector<Found>> states_at(const std::string& path) {
  const checkpoint::StateOwnership owner = state_owner();
  std::vector<std::string> paths{checkpoint::state_path(path, owner)};
  if (owner.world_size > 1) paths.insert(paths.begin(), checkpoint::previous_state_path(path, owner));
  std::vector<Found> found;
  for (const std::string& file : paths) {
    const auto head = checkpoint::state_head(file);
    if (!head && head.error().code == Code::not_found) continue;
    if (!head)
      return fail(head.error().code,
                  fmt::format("load_state: {}. Remove this file{}, or name another one", head.error().message,
                              owner.world_size > 1 ? " on every worker to go on from the state before it"
                                                   : " to begin anew"));
    found.push_back({.key = {.epoch = static_cast<std::int64_t>(head->id.call),
                             .step = static_cast<std::int64_t>(head->id.step)},
                     .path = file});
  }
  return found;
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
  position.pass = static_cast<std::uint64_t>(pass);
  position.items = static_cast<std::uint64_t>(items);
  return position;
}

}  // namespace

Result<> save_state(const std::string& path, std::span<const nn::CellPtr> cells,
                    const LoopPosition& position) {
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
  put_seeds(here.values);
  SnapshotMemory memory;
  const NamedMetrics no_metrics;
  const checkpoint::PointId id{.call = static_cast<std::uint64_t>(position.epoch),
                               .moment = checkpoint::PointId::Moment::step,
                               .step = static_cast<std::uint64_t>(position.step)};
  MUSTER_TRY(const checkpoint::Point point,
             capture(id, {.parameters = parameters, .metrics = no_metrics}, here, memory));
  const checkpoint::StateOwnership owner = state_owner();
  MUSTER_TRY_VOID(keep_previous(path, owner));
  return checkpoint::save_state(checkpoint::state_path(path, owner), point, owner);
}

Result<std::optional<LoopPosition>> load_state(const std::string& path, std::span<const nn::CellPtr> cells,
                                               const LoadStateOptions& options) {
  MUSTER_TRY(const std::vector<Found> found, states_at(path));
  ResumeOffer offer{.where = fmt::format("'{}'", checkpoint::state_path(path, state_owner()))};
  for (const Found& state : found) offer.keys.push_back(state.key);
  MUSTER_TRY(const std::optional<ResumeChoice> chosen, agree_on_resume(offer, world_size() > 1));
  if (!chosen) return begin_anew(offer.where, options);
  for (const Found& state : found) {
    if (state.key != chosen->key) continue;
    MUSTER_TRY(const Resumption saved, load_resumption(state.path));
    MUSTER_TRY(const TrainingPosition there, position_in(saved.point));
    MUSTER_TRY(const LoopPosition position, loop_position(there.values, state.path));
    MUSTER_TRY_VOID(take_seeds(there.values, state.path));
    const auto parameters = parameters_of(cells);
    const NamedMetrics no_metrics;
    MUSTER_TRY_VOID(
        restore(saved.point, {.parameters = parameters, .metrics = no_metrics}).map_error([&](Error error) {
          return unfitting(std::move(error), state.path);
        }));
    return position;
  }
  return std::nullopt;
}

}  // namespace muster::train
