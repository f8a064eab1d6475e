// Where a training goes on that a person starts again: TrainOptions::resume (ADR 32).
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "muster/train/front_end.h"
#include "muster/train/job.h"
#include "muster/train/model_checkpoint.h"
#include "muster/train/model_training.h"
#include "muster/train/resume.h"
#include "muster/train/run_context.h"

namespace muster::train {
namespace {

constexpr const char* last = "last";

ModelCheckpoint* checkpoint_among(const std::vector<CallbackPtr>& callbacks) {
  for (const CallbackPtr& callback : callbacks)
    if (auto* saver = dynamic_cast<ModelCheckpoint*>(callback.get())) return saver;
  return nullptr;
}

void say_once_a_job(const std::string& line) {
  if (rank() == 0) print_line(line);
}

ResumeKey key_of(const checkpoint::CheckpointName& name) { return {name.number, name.epoch, name.step}; }

}  // namespace

Result<std::optional<Resumption>> Model::Training::resume() {
  if (options_.resume.empty()) return std::nullopt;
  warn_of_callbacks();
  return options_.resume == last ? resume_last() : resume_from(options_.resume);
}

Result<std::optional<Resumption>> Model::Training::resume_last() {
  ModelCheckpoint* const saver = checkpoint_among(options_.callbacks);
  if (saver == nullptr)
    return fail(Code::invalid_argument,
                "train: resume='last' looks in the folder of the ModelCheckpoint among the callbacks, and "
                "there is none: add one (on every worker), or name a checkpoint by resume=PATH");
  const std::vector<ModelCheckpoint::SavedFile> files = saver->saved_files();
  ResumeOffer offer{.where = fmt::format("'{}'", saver->directory()), .free_number = saver->free_number()};
  std::string state_of_others;
  for (const auto& file : files) {
    if (file.has_state) offer.keys.push_back(key_of(file.name));
    if (file.state_of_others.empty()) continue;
    state_of_others = file.state_of_others;
    if (can_regroup()) offer.of_others = {.key = key_of(file.name)};
  }
  if (offer.keys.empty() && !offer.of_others && !state_of_others.empty()) {
    MUSTER_TRY(const checkpoint::StateHead head, checkpoint::state_head(state_of_others));
    return fail(not_as_many(state_of_others, head.owner));
  }
  if (offer.keys.empty() && !offer.of_others && !files.empty())
    return fail(Code::invalid_argument,
                fmt::format("train: resume='last' finds '{}', but no '{}' beside it, which says where the "
                            "training was. Without it there are parameters only: load_checkpoint and "
                            "load_param_into_net begin a new training with them. To begin anew, remove these "
                            "files or leave resume away",
                            files.back().path, checkpoint::state_path(files.back().path, state_owner())));
  MUSTER_TRY(const std::optional<ResumeChoice> chosen,
             agree_on_resume(offer, makes_steps_together() || stages() != nullptr));
  if (chosen && chosen->giver) {
    saver->number_from(chosen->free_number);
    MUSTER_TRY(Resumption found, shared_resumption(state_of_others, *chosen->giver));
    say_once_a_job(fmt::format("resume='last': going on from '{}'", found.path));
    return found;
  }
  if (!chosen) {
    say_once_a_job(fmt::format("resume='last': no checkpoint in '{}' yet, so the training begins anew",
                               saver->directory()));
    return std::nullopt;
  }
  for (const auto& file : files) {
    if (key_of(file.name) != chosen->key || !file.has_state) continue;
    MUSTER_TRY(Resumption found, load_resumption(file.path));
    say_once_a_job(fmt::format("resume='last': going on from '{}'{}", file.path,
                               chosen->key == offer.keys.back() ? "" : ", the newest that all workers have"));
    return found;
  }
  return std::nullopt;
}

Result<std::optional<Resumption>> Model::Training::resume_from(const std::string& path) {
  const std::optional<std::string> others = can_regroup() ? state_of_others(path) : std::nullopt;
  Result<Resumption> own = load_resumption(path);
  const bool another_may_have_one = makes_steps_together() && !own && own.error().code == Code::not_found;
  if (!own && !others && !another_may_have_one) return fail(own.error());
  ResumeOffer offer{.where = fmt::format("'{}'", checkpoint::state_path(path, state_owner()))};
  if (own) offer.keys.push_back({.step = static_cast<std::int64_t>(own->point.id.step)});
  if (others && !own) offer.of_others = FoundKey{};
  MUSTER_TRY(const std::optional<ResumeChoice> chosen,
             agree_on_resume(offer, makes_steps_together() || stages() != nullptr));
  if (!chosen) return fail(own.error());
  Result<Resumption> found = std::move(own);
  if (chosen->giver) found = shared_resumption(others.value_or(""), *chosen->giver);
  if (!found) return fail(found.error());
  say_once_a_job(fmt::format("resume: going on from '{}'", found->path));
  return *std::move(found);
}

// A part of a placed network is of no use to another number of workers, and workers that train apart go on
// apart.
bool Model::Training::can_regroup() const {
  return stages() == nullptr && (makes_steps_together() || world_size() == 1);
}

}  // namespace muster::train
