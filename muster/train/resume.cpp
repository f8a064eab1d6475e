#include "muster/train/resume.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "muster/train/data_settings.h"
#include "muster/train/job.h"
#include "muster/train/process.h"
#include "muster/train/row_files.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

constexpr const char* seed_name = "seed";
constexpr const char* data_seed_name = "data_seed";
// Of which each worker tells the others; more are rarely kept.
constexpr std::size_t keys_max = 64;

// One row of the rendezvous: fixed in size, so that all ranks have equal ones.
struct OfferRow {
  std::uint64_t count = 0;
  std::array<ResumeKey, keys_max> keys = {};

  std::vector<ResumeKey> known() const {
    return {keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(std::min(count, keys_max))};
  }
};

OfferRow row_of(const std::vector<ResumeKey>& keys) {
  OfferRow row{.count = std::min(keys.size(), keys_max)};
  std::copy(keys.end() - static_cast<std::ptrdiff_t>(row.count), keys.end(), row.keys.begin());
  return row;
}

std::string told(const ResumeKey& key) { return fmt::format("epoch {}, step {}", key.epoch, key.step); }

Result<std::vector<OfferRow>> gather(const std::vector<ResumeKey>& keys) {
  const OfferRow mine = row_of(keys);
  std::vector<OfferRow> rows(world_size());
  MUSTER_TRY_VOID(Session::current()->collectives().call_all(
      [&](Communicator& all) { return all.all_gather(&mine, rows.data(), sizeof(OfferRow)); }));
  return rows;
}

// The newest of each worker, for people.
Error nothing_in_common(const std::vector<OfferRow>& rows, const std::string& where) {
  std::vector<std::string> newest;
  for (std::size_t rank = 0; rank < rows.size(); ++rank)
    newest.push_back(fmt::format("worker {} has {}", rank,
                                 rows[rank].count == 0 ? "none" : told(rows[rank].known().back())));
  return {Code::invalid_argument,
          fmt::format("resume: there is no checkpoint that all workers have: {}. This worker looked in {}. "
                      "Bring the missing files there, with the same prefix and each worker's own .state, or "
                      "begin anew without resume",
                      fmt::join(newest, ", "), where)};
}

std::string seed_error(const char* what, std::uint64_t saved, std::uint64_t chosen, const std::string& path,
                       const char* function) {
  return fmt::format(
      "resume: '{}' comes from a training with the {} {}, and this script has chosen {}: with "
      "another one it would be another training. Say {}({}), or leave the call away",
      path, what, saved, chosen, function, saved);
}

}  // namespace

Result<std::optional<ResumeKey>> agree_on_resume(const ResumeOffer& mine, bool together) {
  if (!together) return mine.keys.empty() ? std::nullopt : std::optional(mine.keys.back());
  MUSTER_TRY(const std::vector<OfferRow> rows, gather(mine.keys));
  const auto is_empty = [](const OfferRow& row) { return row.count == 0; };
  if (std::all_of(rows.begin(), rows.end(), is_empty)) return std::nullopt;
  std::vector<ResumeKey> common = rows.front().known();
  for (const OfferRow& row : rows) {
    const std::vector<ResumeKey> known = row.known();
    std::erase_if(common, [&known](const ResumeKey& key) {
      return std::find(known.begin(), known.end(), key) == known.end();
    });
  }
  if (common.empty()) return fail(nothing_in_common(rows, mine.where));
  return common.back();
}

checkpoint::StateOwnership state_owner() { return {.world_size = world_size(), .rank = rank()}; }

Result<Resumption> load_resumption(const std::string& path) {
  return load_resumption_at(checkpoint::state_path(path, state_owner()));
}

Result<Resumption> load_resumption_at(const std::string& file) {
  const checkpoint::StateOwnership mine = state_owner();
  auto saved = checkpoint::load_state(file);
  if (!saved) {
    const bool is_missing = saved.error().code == Code::not_found;
    return fail(
        saved.error().code,
        fmt::format("resume: {}. {}", saved.error().message,
                    is_missing ? "Beside a checkpoint, this file says where the training was; one without "
                                 "it gives parameters only: load_checkpoint and load_param_into_net "
                                 "begin a new training with them"
                               : "Remove it to go on from the one before, or name another checkpoint "
                                 "by resume=PATH"));
  }
  if (saved->owner.world_size != mine.world_size || saved->owner.rank != mine.rank)
    return fail(
        Code::invalid_argument,
        fmt::format("resume: '{}' is the state of worker {} of {}, and this is worker {} of {}: start "
                    "as many workers as before, each with its own file; load_checkpoint and "
                    "load_param_into_net begin a new training with the parameters alone",
                    file, saved->owner.rank, saved->owner.world_size, mine.rank, mine.world_size));
  MUSTER_TRY(saved->point.tensors, with_rows_beside(std::move(saved->point.tensors), file));
  return Resumption{.point = std::move(saved->point), .path = file};
}

void put_seeds(StateValues& values) {
  values.set(seed_name, static_cast<std::int64_t>(seed()));
  if (const auto chosen = data_settings().seed)
    values.set(data_seed_name, static_cast<std::int64_t>(*chosen));
}

Result<> take_seeds(const StateValues& values, const std::string& path) {
  MUSTER_TRY(const std::int64_t number, values.integer(seed_name));
  const auto saved = static_cast<std::uint64_t>(number);
  std::optional<std::uint64_t>& chosen = process().choices.seed;
  if (chosen && *chosen != saved)
    return fail(Code::invalid_argument, seed_error("seed", saved, *chosen, path, "set_seed"));
  chosen = saved;
  if (!values.has(data_seed_name)) return {};
  MUSTER_TRY(const std::int64_t data_number, values.integer(data_seed_name));
  const auto saved_of_data = static_cast<std::uint64_t>(data_number);
  if (const auto now = data_settings().seed; now && *now != saved_of_data)
    return fail(Code::invalid_argument,
                seed_error("data's seed", saved_of_data, *now, path, "dataset.config.set_seed"));
  set_data_seed(saved_of_data);
  return {};
}

Error unfitting(Error error, const std::string& path) {
  if (error.code == Code::invalid_argument)
    error.message = fmt::format(
        "resume: '{}' does not fit this script: {}. Start the script as it was; load_checkpoint and "
        "load_param_into_net begin a new training with the parameters alone",
        path, error.message);
  return error;
}

}  // namespace muster::train
