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
  std::uint64_t has_others = 0;
  FoundKey of_others = {};
  std::int64_t runs = 0;
  std::int64_t free_number = 0;

  std::vector<ResumeKey> known() const {
    return {keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(std::min(count, keys_max))};
  }
};

OfferRow row_of(const ResumeOffer& offer) {
  OfferRow row{.count = std::min(offer.keys.size(), keys_max),
               .has_others = offer.of_others ? 1U : 0U,
               .of_others = offer.of_others.value_or(FoundKey{}),
               .runs = offer.runs,
               .free_number = offer.free_number};
  std::copy(offer.keys.end() - static_cast<std::ptrdiff_t>(row.count), offer.keys.end(), row.keys.begin());
  return row;
}

std::string told(const ResumeKey& key) { return fmt::format("epoch {}, step {}", key.epoch, key.step); }

Result<std::vector<OfferRow>> gather(const ResumeOffer& offer) {
  const OfferRow mine = row_of(offer);
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

std::optional<ResumeKey> newest_of_all(const std::vector<OfferRow>& rows) {
  std::vector<ResumeKey> common = rows.front().known();
  for (const OfferRow& row : rows) {
    const std::vector<ResumeKey> known = row.known();
    std::erase_if(common, [&known](const ResumeKey& key) {
      return std::find(known.begin(), known.end(), key) == known.end();
    });
  }
  return common.empty() ? std::nullopt : std::optional(common.back());
}

// The first rank that has it.
std::optional<std::uint32_t> newest_of_others(const std::vector<OfferRow>& rows) {
  std::optional<std::uint32_t> newest;
  for (std::uint32_t rank = 0; rank < rows.size(); ++rank)
    if (rows[rank].has_others != 0 && (!newest || is_newer(rows[rank].of_others, rows[*newest].of_others)))
      newest = rank;
  return newest;
}

std::string seed_error(const char* what, std::uint64_t saved, std::uint64_t chosen, const std::string& path,
                       const char* function) {
  return fmt::format(
      "resume: '{}' comes from a training with the {} {}, and this script has chosen {}: with "
      "another one it would be another training. Say {}({}), or leave the call away",
      path, what, saved, chosen, function, saved);
}

}  // namespace

bool is_newer(const FoundKey& one, const FoundKey& other) {
  return one.runs > 0 && other.runs > 0 ? one.runs > other.runs : one.key > other.key;
}

Result<std::optional<ResumeChoice>> agree_on_resume(const ResumeOffer& mine, bool together) {
  std::vector<OfferRow> rows{row_of(mine)};
  if (together) {
    MUSTER_TRY(rows, gather(mine));
  }
  const std::optional<ResumeKey> own = newest_of_all(rows);
  const std::optional<std::uint32_t> giver = newest_of_others(rows);
  const std::int64_t own_runs = std::ranges::max(rows, {}, &OfferRow::runs).runs;
  if (giver && (!own || is_newer(rows[*giver].of_others, {*own, own_runs}))) {
    ResumeChoice choice{.key = rows[*giver].of_others.key, .giver = together ? *giver : rank()};
    for (const OfferRow& row : rows) choice.free_number = std::max(choice.free_number, row.free_number);
    return choice;
  }
  if (own) return ResumeChoice{.key = *own};
  const auto is_empty = [](const OfferRow& row) { return row.count == 0; };
  if (std::all_of(rows.begin(), rows.end(), is_empty)) return std::nullopt;
  return fail(nothing_in_common(rows, mine.where));
}

checkpoint::StateOwnership state_owner() { return {.world_size = world_size(), .rank = rank()}; }

Error not_as_many(const std::string& file, const checkpoint::StateOwnership& owner) {
  return {Code::invalid_argument,
          fmt::format("resume: '{}' is the state of worker {} of {}, and this is worker {} of {}: start "
                      "as many workers as before, each with its own file; load_checkpoint and "
                      "load_param_into_net begin a new training with the parameters alone",
                      file, owner.rank, owner.world_size, rank(), world_size())};
}

bool owner_is_another(const std::string& state, const checkpoint::Storage& storage) {
  const auto head = checkpoint::state_head(state, storage);
  return head && head->owner.world_size != world_size();
}

std::vector<std::string> states_beside(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  const auto names = checkpoint::real_storage().list(folder.empty() ? "." : folder);
  std::vector<std::string> states;
  if (!names) return states;
  for (const std::string& name : checkpoint::states_beside(path.substr(folder.size()), *names))
    states.push_back(folder + name);
  return states;
}

std::optional<std::string> state_of_others(const std::string& path) {
  for (std::string& state : states_beside(path))
    if (owner_is_another(state)) return std::move(state);
  return std::nullopt;
}

Result<Resumption> load_resumption(const std::string& path) {
  MUSTER_TRY(Resumption found, load_resumption_at(checkpoint::state_path(path, state_owner())));
  if (found.owner != state_owner()) return fail(not_as_many(found.path, found.owner));
  return found;
}

Result<Resumption> load_resumption_at(const std::string& file) {
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
  MUSTER_TRY(saved->point.tensors, with_rows_beside(std::move(saved->point.tensors), file));
  return Resumption{.point = std::move(saved->point), .path = file, .owner = saved->owner};
}

// ---- From one worker to all -------------------------------------------------------------------------------

namespace {

// What comes first: an error's code and text, or whose state it is, its path and the sizes of what follows.
struct SharedHeader {
  std::uint64_t code = 0;  // 0: there is a state
  std::uint64_t text_bytes = 0;
  std::uint64_t label_bytes = 0;
  checkpoint::StateOwnership owner = {};
};

std::vector<Tensor> made(std::span<const checkpoint::TensorRecord> records) {
  std::vector<Tensor> tensors;
  for (const checkpoint::TensorRecord& record : records) tensors.emplace_back(record.dtype, record.shape);
  return tensors;
}

// `shared` becomes what the giver has, or why it has nothing.
Result<> broadcast(const std::optional<Result<Resumption>>& mine, std::uint32_t giver, Communicator& all,
                   Result<Resumption>& shared) {
  SharedHeader header;
  std::string text, label;
  if (mine && *mine) {
    MUSTER_TRY(label, checkpoint::label_of((*mine)->point));
    text = (*mine)->path;
    header.owner = (*mine)->owner;
  } else if (mine) {
    header.code = static_cast<std::uint64_t>(mine->error().code) + 1;
    text = mine->error().message;
  }
  header.text_bytes = text.size();
  header.label_bytes = label.size();
  MUSTER_TRY_VOID(all.broadcast(&header, sizeof header, giver));
  text.resize(header.text_bytes);
  label.resize(header.label_bytes);
  MUSTER_TRY_VOID(all.broadcast(text.data(), text.size(), giver));
  if (header.code != 0) {
    shared = fail(static_cast<Code>(header.code - 1), text);
    return {};
  }
  MUSTER_TRY_VOID(all.broadcast(label.data(), label.size(), giver));
  if (mine) {
    for (const std::span<const std::byte> piece : checkpoint::content_of((*mine)->point))
      MUSTER_TRY_VOID(all.broadcast(const_cast<std::byte*>(piece.data()), piece.size(), giver));
    shared = *mine;
    return {};
  }
  MUSTER_TRY(auto point, checkpoint::SerializedPoint::from_label(label, made));
  for (const std::span<std::byte> piece : point.content())
    MUSTER_TRY_VOID(all.broadcast(piece.data(), piece.size(), giver));
  shared = Resumption{.point = std::move(point).open(), .path = text, .owner = header.owner};
  return {};
}

}  // namespace

Result<Resumption> shared_resumption(const std::string& file, std::uint32_t giver) {
  std::optional<Result<Resumption>> mine;
  if (giver == rank()) mine = load_resumption_at(file);
  if (world_size() == 1) return *std::move(mine);
  Result<Resumption> shared = fail(Code::internal, "no worker has given a state");
  MUSTER_TRY_VOID(Session::current()->collectives().call_all(
      [&](Communicator& all) { return broadcast(mine, giver, all, shared); }));
  return shared;
}

// ---- Seeds ------------------------------------------------------------------------------------------------

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
