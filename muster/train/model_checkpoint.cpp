#include "muster/train/model_checkpoint.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "muster/train/activity_scope.h"
#include "muster/train/parameters.h"
#include "muster/train/run_context.h"

namespace muster::train {

ModelCheckpoint::ModelCheckpoint(ModelCheckpointOptions options, checkpoint::Storage& storage,
                                 const Clock& clock)
    : options_(std::move(options)),
      storage_(storage),
      clock_(clock),
      retention_(static_cast<std::size_t>(options_.config.keep_checkpoint_max)) {}

Result<> ModelCheckpoint::on_train_begin(CallbackContext& context) {
  const CheckpointConfig& config = options_.config;
  if (config.save_checkpoint_steps < 0 || config.save_checkpoint_seconds < 0 ||
      config.keep_checkpoint_max < 0)
    return fail(Code::invalid_argument,
                "CheckpointConfig: steps, seconds and the files to keep count from 0");
  if (config.save_checkpoint_steps == 0 && config.save_checkpoint_seconds == 0)
    return fail(Code::invalid_argument,
                "CheckpointConfig: one of save_checkpoint_steps and save_checkpoint_seconds is needed");
  if (config.save_checkpoint_steps == 0 && stages() != nullptr)
    return fail(
        Code::invalid_argument,
        "CheckpointConfig: the workers of a divided network save together, and their clocks differ: choose "
        "save_checkpoint_steps instead of save_checkpoint_seconds");
  if (options_.prefix.empty() || options_.prefix.find('/') != std::string::npos)
    return fail(Code::invalid_argument,
                fmt::format("ModelCheckpoint: prefix '{}' is no name of a file; folders go into directory",
                            options_.prefix));
  if (context.recovers && config.keep_checkpoint_max == 1) {
    log::warning(
        "ModelCheckpoint: keep_checkpoint_max is 1 and becomes 2, so that one is left when a save fails");
    retention_ = checkpoint::Retention(2);
  }
  MUSTER_TRY_VOID(storage_.make_folder(options_.directory));
  const auto names = storage_.list(options_.directory);
  prefix_ = checkpoint::free_prefix(options_.prefix, names ? *names : std::vector<std::string>{});
  saved_step_ = context.cur_step_num;
  saved_at_ = clock_.now();
  return {};
}

bool ModelCheckpoint::is_due(const CallbackContext& context) const {
  const CheckpointConfig& config = options_.config;
  if (config.save_checkpoint_steps > 0)
    return context.cur_step_num - saved_step_ >= config.save_checkpoint_steps;
  return clock_.now() - saved_at_ >= std::chrono::seconds(config.save_checkpoint_seconds);
}

Result<> ModelCheckpoint::on_train_step_end(CallbackContext& context) {
  if (!is_due(context)) return {};
  return save(context);
}

Result<> ModelCheckpoint::on_train_end(CallbackContext& context) {
  if (context.cur_step_num == saved_step_) return {};
  return save(context);
}

Result<> ModelCheckpoint::save(CallbackContext& context) {
  const ActivityScope saving(cluster::WorkPhase::saving);
  const std::string path = fmt::format("{}/{}-{}_{}{}", options_.directory, prefix_, context.cur_epoch_num,
                                       context.step_in_epoch(), checkpoint::extension);
  saved_step_ = context.cur_step_num;
  saved_at_ = clock_.now();
  std::vector<checkpoint::Entry> parameters;
  if (stages() != nullptr || !context.recovers) {
    // Of a divided network they come from other workers: a call of all of them, which may fail.
    MUSTER_TRY(parameters, gather_parameters(context.train_network->parameters()));
  }
  if (!context.recovers) {
    write(parameters, path);
    return {};
  }
  // The next steps change what is in the parameters' own memory.
  for (checkpoint::Entry& entry : parameters) entry.value = entry.value.clone();
  const std::lock_guard lock(mutex_);
  pending_ = path;
  context.request_point([this, path, parameters = std::move(parameters)](const auto& of_point) {
    write(parameters.empty() ? of_point : parameters, path);
  });
  return {};
}

// The disk of one worker must not end the training of all.
void ModelCheckpoint::write(const std::vector<checkpoint::Entry>& parameters, const std::string& path) {
  Result<> written = checkpoint::save(path, parameters, storage_);
  const std::lock_guard lock(mutex_);
  if (pending_ == path) pending_.clear();
  if (written) {
    latest_ = path;
    written = retention_.add(path, storage_);
  }
  if (!written)
    log::error(fmt::format("a checkpoint could not be saved, and training goes on without it: {}",
                           written.error().message));
}

std::string ModelCheckpoint::latest_ckpt_file_name() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

// What a process was writing when it was killed: PREFIX-1_200.ckpt.XXXXXX. No worker writes while all go
// back.
void ModelCheckpoint::remove_half_written() {
  const auto names = storage_.list(options_.directory);
  if (!names) return;
  for (const std::string& name : *names) {
    const std::size_t end = name.rfind('.');
    const bool is_temporary = end != std::string::npos && name.size() - end == 7 &&
                              std::string_view(name).substr(0, end).ends_with(checkpoint::extension);
    if (is_temporary && name.starts_with(prefix_ + "-"))
      (void)storage_.remove(fmt::format("{}/{}", options_.directory, name));
  }
}

Result<State> ModelCheckpoint::state() {
  const std::lock_guard lock(mutex_);
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(clock_.now() - saved_at_);
  return State{.text = StateValues()
                           .set("prefix", prefix_)
                           .set("saved_step", saved_step_)
                           .set("since_saved_ns", std::int64_t{since.count()})
                           .set("latest", latest_)
                           .set("pending", pending_)
                           .set("files", std::vector<std::string>(retention_.paths().begin(),
                                                                  retention_.paths().end()))
                           .to_json()};
}

Result<> ModelCheckpoint::load_state(const State& state) {
  MUSTER_TRY(const StateValues values, StateValues::from_json(state.text));
  MUSTER_TRY(prefix_, values.text("prefix"));
  MUSTER_TRY(saved_step_, values.integer("saved_step"));
  MUSTER_TRY(const std::int64_t since, values.integer("since_saved_ns"));
  MUSTER_TRY(std::string latest, values.text("latest"));
  MUSTER_TRY(const std::string pending, values.text("pending"));
  MUSTER_TRY(std::vector<std::string> files, values.texts("files"));
  saved_at_ = clock_.now() - std::chrono::nanoseconds(since);
  // It may be there or not: the state does not say.
  if (!pending.empty()) files.push_back(pending);
  const std::lock_guard lock(mutex_);
  latest_ = pending.empty() || !storage_.open(pending) ? std::move(latest) : pending;
  pending_.clear();
  remove_half_written();
  retention_.restore({files.begin(), files.end()});
  return {};
}

Result<> ModelCheckpoint::load_state_of_another(const State& state) {
  MUSTER_TRY(const StateValues values, StateValues::from_json(state.text));
  MUSTER_TRY(saved_step_, values.integer("saved_step"));
  MUSTER_TRY(const std::int64_t since, values.integer("since_saved_ns"));
  saved_at_ = clock_.now() - std::chrono::nanoseconds(since);
  return {};
}

}  // namespace muster::train
