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

const ModelCheckpoint* checkpoint_among(const std::vector<CallbackPtr>& callbacks) {
  for (const CallbackPtr& callback : callbacks)
    if (const auto* saver = dynamic_cast<const ModelCheckpoint*>(callback.get())) return saver;
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
  const ModelCheckpoint* const saver = checkpoint_among(options_.callbacks);
  if (saver == nullptr)
    return fail(Code::invalid_argument,
                "train: resume='last' looks in the folder of the ModelCheckpoint among the callbacks, and "
                "there is none: add one (on every worker), or name a checkpoint by resume=PATH");
  const std::vector<ModelCheckpoint::SavedFile> files = saver->saved_files();
  ResumeOffer offer{.where = fmt::format("'{}'", saver->directory())};
  for (const auto& file : files)
    if (file.has_state) offer.keys.push_back(key_of(file.name));
  if (offer.keys.empty() && !files.empty())
    return fail(Code::invalid_argument,
                fmt::format("train: resume='last' finds '{}', but no '{}' beside it, which says where the "
                            "training was. Without it there are parameters only: load_checkpoint and "
                            "load_param_into_net begin a new training with them. To begin anew, remove these "
                            "files or leave resume away",
                            files.back().path, checkpoint::state_path(files.back().path, state_owner())));
  MUSTER_TRY(const std::optional<ResumeKey> chosen,
             agree_on_resume(offer, makes_steps_together() || stages() != nullptr));
  if (!chosen) {
    say_once_a_job(fmt::format("resume='last': no checkpoint in '{}' yet, so the training begins anew",
                               saver->directory()));
    return std::nullopt;
  }
  for (const auto& file : files) {
    if (key_of(file.name) != *chosen || !file.has_state) continue;
    MUSTER_TRY(Resumption found, load_resumption(file.path));
    say_once_a_job(fmt::format("resume='last': going on from '{}'{}", file.path,
                               *chosen == offer.keys.back() ? "" : ", the newest that all workers have"));
    return found;
  }
  return std::nullopt;
}

Result<std::optional<Resumption>> Model::Training::resume_from(const std::string& path) {
  MUSTER_TRY(Resumption found, load_resumption(path));
  const ResumeOffer offer{.keys = {{.step = static_cast<std::int64_t>(found.point.id.step)}},
                          .where = fmt::format("'{}'", found.path)};
  MUSTER_TRY_VOID(agree_on_resume(offer, makes_steps_together() || stages() != nullptr));
  say_once_a_job(fmt::format("resume: going on from '{}'", found.path));
  return found;
}

}  // namespace muster::train
