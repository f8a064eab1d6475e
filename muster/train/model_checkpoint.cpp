#include "muster/train/model_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "muster/train/activity_scope.h"
#include "muster/train/job.h"
#include "muster/train/parameter_servers.h"
#include "muster/train/parameters.h"
#include "muster/train/recoverable.h"
#include "muster/train/resume.h"
#include "muster/train/row_files.h"
#include "muster/train/run_context.h"

namespace muster::train {
namespace {

std::string told(const std::string& what, const Error& error) {
  return fmt::format("{} could not be saved, and training goes on without it: {}", what, error.message);
}

// What a state need not hold again. Two parameters of one name cannot be told apart in a checkpoint, and
// statistics are each worker's own, while workers may share a folder.
std::vector<std::string> shared_names(const nn::Cell& network, const nn::CellPtr& saved) {
  std::map<std::string, int> times;
  const auto trained = network.parameters();
  for (const auto& parameter : trained)
    times[parameter->name()] += parameter->is_statistic() && world_size() > 1 ? 2 : 1;
  std::vector<std::string> names;
  for (const auto& parameter : saved == nullptr ? trained : saved->parameters())
    if (times[parameter->name()] == 1 && std::ranges::find(trained, parameter) != trained.end())
      names.push_back(parameter->name());
  return names;
}

Tensor plus(const Tensor& number, std::int64_t added) {
  return Tensor::scalar<std::int64_t>(number.data<std::int64_t>()[0] + added);
}

// Whether this worker alone does not have its values: servers or the other workers have some.
bool is_elsewhere(const graph::ParameterPtr& parameter) {
  return is_on_servers(*parameter) || parameter->share();
}

// Of what a checkpoint has, the parameters that are elsewhere.
std::vector<checkpoint::Entry> entries_from_elsewhere(std::span<const checkpoint::Entry> entries,
                                                      std::span<const graph::ParameterPtr> parameters) {
  std::set<std::string> names;
  for (const graph::ParameterPtr& parameter : parameters)
    if (is_elsewhere(parameter))
      for (const std::string_view suffix : {std::string_view(), ids_suffix, rows_suffix})
        names.insert(parameter->name() + std::string(suffix));
  std::vector<checkpoint::Entry> found;
  for (const checkpoint::Entry& entry : entries)
    if (names.contains(entry.name)) found.push_back(entry);
  return found;
}

// A worker's own point has nothing of them, or a piece.
checkpoint::Point with_entries(checkpoint::Point point, std::span<const checkpoint::Entry> entries) {
  std::erase_if(point.tensors, is_saved_table);  // with which the training began
  for (const checkpoint::Entry& entry : entries) {
    const auto found = std::ranges::find(point.tensors, entry.name, &checkpoint::Entry::name);
    if (found != point.tensors.end())
      found->value = entry.value;
    else
      point.tensors.push_back(entry);
  }
  return point;
}

}  // namespace

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
  MUSTER_TRY_VOID(checkpoint::extension_of(config.format));
  if (config.save_checkpoint_steps == 0 && stages() != nullptr)
    return fail(
        Code::invalid_argument,
        "CheckpointConfig: the workers of a divided network save together, and their clocks differ: choose "
        "save_checkpoint_steps instead of save_checkpoint_seconds");
  if (options_.prefix.empty() || options_.prefix.find('/') != std::string::npos)
    return fail(Code::invalid_argument,
                fmt::format("ModelCheckpoint: prefix '{}' is no name of a file; folders go into directory",
                            options_.prefix));
  if ((context.recovers || world_size() > 1) && config.keep_checkpoint_max == 1) {
    log::warning(
        "ModelCheckpoint: keep_checkpoint_max is 1 and becomes 2, so that one is left when a save fails, and "
        "one that all workers have");
    retention_ = checkpoint::Retention(2);
  }
  MUSTER_TRY_VOID(storage_.make_folder(options_.directory));
  prefix_ = checkpoint::numbered_prefix(options_.prefix, std::max(free_number(), number_min_));
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

// Empty where a point of the training has them all, later.
Result<SavedRows> ModelCheckpoint::entries_to_gather(const CallbackContext& context,
                                                     const std::string& path) const {
  const nn::CellPtr& saved = options_.config.saved_network;
  if (saved != nullptr) return gather(saved->parameters(), path);
  const auto all = context.train_network->parameters();
  if (stages() != nullptr || !context.recovers || std::ranges::any_of(all, &is_elsewhere))
    // Of a divided network they come from other processes: a call of all workers, which may fail.
    return gather(all, path);
  return SavedRows{};
}

Result<SavedRows> ModelCheckpoint::gather(std::span<const graph::ParameterPtr> parameters,
                                          const std::string& path) const {
  std::vector<graph::ParameterPtr> here;
  for (const graph::ParameterPtr& parameter : parameters)
    if (options_.config.integrated_save || !has_rows_on_servers(*parameter)) here.push_back(parameter);
  MUSTER_TRY(std::vector<checkpoint::Entry> entries, gather_parameters(here));
  if (options_.config.integrated_save) return SavedRows{.entries = std::move(entries)};
  MUSTER_TRY(SavedRows rows, save_rows_beside(path, parameters));
  rows.entries.insert(rows.entries.begin(), entries.begin(), entries.end());
  return rows;
}

std::vector<checkpoint::Entry> ModelCheckpoint::further_entries(const CallbackContext& context) const {
  std::vector<checkpoint::Entry> entries = options_.config.append_info;
  for (checkpoint::Entry& entry : entries) {
    if (entry.value.dtype() != DType::int64 || entry.value.elements() != 1) continue;
    if (entry.name == "epoch_num") entry.value = plus(entry.value, context.cur_epoch_num);
    if (entry.name == "step_num") entry.value = plus(entry.value, context.cur_step_num);
  }
  return entries;
}

Result<> ModelCheckpoint::save(CallbackContext& context) {
  const ActivityScope saving(cluster::WorkPhase::saving);
  MUSTER_TRY(const std::string_view extension, checkpoint::extension_of(options_.config.format));
  const std::string path = fmt::format("{}/{}-{}_{}{}", options_.directory, prefix_, context.cur_epoch_num,
                                       context.step_in_epoch(), extension);
  saved_step_ = context.cur_step_num;
  saved_at_ = clock_.now();
  const auto all = context.train_network->parameters();
  MUSTER_TRY(SavedRows gathering, entries_to_gather(context, path));
  if (gathering.trouble) {
    log::error(told("a checkpoint", *gathering.trouble));
    return {};
  }
  if (body_is_void()) return {};
  std::vector<checkpoint::Entry> parameters = std::move(gathering.entries);
  std::vector<checkpoint::Entry> further = further_entries(context);
  std::vector<checkpoint::Entry> gathered = entries_from_elsewhere(parameters, all);
  std::vector<std::string> in_checkpoint =
      shared_names(*context.train_network, options_.config.saved_network);
  for (const checkpoint::Entry& entry : gathered) {
    in_checkpoint.push_back(entry.name);
    // What a worker has instead of the rows goes into its state.
    if (is_saved_table(entry)) std::erase(in_checkpoint, checkpoint::parameter_of_rows(entry.name));
  }
  if (!context.recovers) {
    if (!write(parameters, further, path)) return {};
    context.request_point(
        [this, path, in_checkpoint = std::move(in_checkpoint), gathered = std::move(gathered)](
            const auto& point, auto) { write_state(with_entries(point, gathered), in_checkpoint, path); });
    return {};
  }
  // The next steps change what is in the parameters' own memory.
  for (checkpoint::Entry& entry : parameters) entry.value = entry.value.clone();
  const std::lock_guard lock(mutex_);
  pending_ = path;
  context.request_point([this, path, parameters = std::move(parameters), gathered = std::move(gathered),
                         further = std::move(further),
                         in_checkpoint = std::move(in_checkpoint)](const auto& point, auto of_point) {
    if (write(parameters.empty() ? of_point : std::span<const checkpoint::Entry>(parameters), further, path))
      write_state(with_entries(point, gathered), in_checkpoint, path);
  });
  return {};
}

// The disk of one worker must not end the training of all.
bool ModelCheckpoint::write(std::span<const checkpoint::Entry> parameters,
                            std::span<const checkpoint::Entry> further, const std::string& path) {
  std::vector<checkpoint::Entry> entries(parameters.begin(), parameters.end());
  entries.insert(entries.end(), further.begin(), further.end());
  const Result<> written = checkpoint::save(path, entries, storage_);
  const std::lock_guard lock(mutex_);
  if (pending_ == path) pending_.clear();
  if (!written) {
    log::error(told("a checkpoint", written.error()));
    return false;
  }
  latest_ = path;
  remove_in_other_format(path);
  if (rank() == 0) remove_other_rows(path, entries);
  const auto gone = retention_.add(path, storage_);
  if (!gone) {
    log::error(told("room for a checkpoint", gone.error()));
    return true;
  }
  for (const std::string& file : *gone) {
    (void)storage_.remove(checkpoint::state_path(file, state_owner()));
    if (rank() == 0) remove_rows(file);
  }
  return true;
}

// The file of the same step in the other format, of a training that went on from before it: their state has
// one name.
void ModelCheckpoint::remove_in_other_format(const std::string& path) {
  const std::string stem = path.substr(0, path.size() - checkpoint::extension_in(path).size());
  std::deque<std::string> files = retention_.paths();
  for (const std::string_view ending : {checkpoint::extension, checkpoint::safetensors_extension}) {
    const std::string other = fmt::format("{}{}", stem, ending);
    if (other == path || std::erase(files, other) == 0) continue;
    (void)storage_.remove(other);
    retention_.restore(files);
  }
}

void ModelCheckpoint::write_state(const checkpoint::Point& point, std::span<const std::string> in_checkpoint,
                                  const std::string& path) {
  const checkpoint::StateOwnership owner = state_owner();
  const auto written = checkpoint::save_state(checkpoint::state_path(path, owner), point, owner,
                                              {.names = {in_checkpoint.begin(), in_checkpoint.end()},
                                               .ending = std::string(checkpoint::extension_in(path))},
                                              storage_);
  if (!written) log::error(told("the state of the training", written.error()));
}

std::vector<ModelCheckpoint::SavedFile> ModelCheckpoint::named_files(
    const std::vector<std::string>& names) const {
  std::vector<SavedFile> files;
  for (const std::string& name : names)
    if (const auto found = checkpoint::checkpoint_name(name, options_.prefix))
      files.push_back({.name = *found, .path = fmt::format("{}/{}", options_.directory, name)});
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return files;
}

std::vector<ModelCheckpoint::SavedFile> ModelCheckpoint::saved_files() const {
  const auto names = storage_.list(options_.directory);
  if (!names) return {};
  std::vector<SavedFile> files = named_files(*names);
  for (SavedFile& file : files) {
    const std::string name = file.path.substr(options_.directory.size() + 1);
    for (const std::string& state : checkpoint::states_beside(name, *names)) {
      const std::string path = fmt::format("{}/{}", options_.directory, state);
      const bool is_of_others = owner_is_another(path, storage_);
      if (is_of_others && file.state_of_others.empty()) file.state_of_others = path;
      file.has_state =
          file.has_state || (!is_of_others && state == checkpoint::state_path(name, state_owner()));
    }
  }
  return files;
}

std::int64_t ModelCheckpoint::free_number() const {
  const auto names = storage_.list(options_.directory);
  return checkpoint::free_number(options_.prefix, names ? *names : std::vector<std::string>{});
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
    const std::string_view whole = std::string_view(name).substr(0, end);
    const bool is_temporary =
        end != std::string::npos && name.size() - end == 7 &&
        (!checkpoint::extension_in(whole).empty() || whole.ends_with(checkpoint::state_extension));
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
  // Of a training that went on from another folder: files there are not this one's to remove.
  std::erase_if(files, [this](const std::string& file) {
    return file.substr(0, file.rfind('/')) != options_.directory;
  });
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
  if (number_min_ > 0) return {};  // it is of the training that this one goes on with
  // All workers have the same names, or none of the files would be one that each has. What lies here already
  // is this worker's, from before it died.
  MUSTER_TRY(prefix_, values.text("prefix"));
  std::deque<std::string> files;
  const auto names = storage_.list(options_.directory);
  for (const SavedFile& file : named_files(names.value_or(std::vector<std::string>{})))
    if (checkpoint::numbered_prefix(options_.prefix, file.name.number) == prefix_) files.push_back(file.path);
  const std::lock_guard lock(mutex_);
  remove_half_written();
  retention_.restore(std::move(files));
  return {};
}

}  // namespace muster::train
