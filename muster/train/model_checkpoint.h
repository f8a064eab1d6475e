// A callback that saves the training as it goes.
#pragma once

#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/train/callback.h"

namespace muster::train {

struct SavedRows;

// Steps or seconds may be 0, not both: then that reason to save is none.
struct CheckpointConfig {
  std::int64_t save_checkpoint_steps = 1;
  std::int64_t save_checkpoint_seconds = 0;  // counts only without save_checkpoint_steps
  std::int64_t keep_checkpoint_max = 5;      // 0 keeps all
  // Instead of the network that is trained with its optimizer.
  nn::CellPtr saved_network = {};
  // Further entries of each file. To whole numbers named epoch_num and step_num those of the save are added.
  std::vector<checkpoint::Entry> append_info = {};
  // Whether a file has the rows of tables on parameter servers. Else each server writes its own, beside it,
  // and no worker has them in its memory (docs/guide/parameter-servers.md).
  bool integrated_save = true;
  std::string format = "ckpt";  // or "safetensors": files are named so
};

struct ModelCheckpointOptions {
  std::string prefix = "CKP";
  std::string directory = ".";
  CheckpointConfig config = {};
};

// Writes DIRECTORY/PREFIX-EPOCH_STEP.ckpt (or .safetensors) with the parameters of network and optimizer,
// each durable before training goes on, and once more at the end. Where files of an earlier training lie,
// PREFIX becomes PREFIX_1 and so on. A file that cannot be written (a full disk) is an alert in the log, and
// training goes on with those that are there. In a divided job every worker must have one with the same
// number of steps, and writes a whole file; seconds cannot be used.
//
// Beside each, PREFIX-EPOCH_STEP.state holds what else the training needs to go on from there
// (TrainOptions::resume); in a job each worker's is PREFIX-EPOCH_STEP.rank_N.state.
//
// In a job that recovers, its steps are also those of the recovery points, and files are written while the
// training goes on; all of them are durable when it ends.
class ModelCheckpoint : public Callback {
 public:
  explicit ModelCheckpoint(ModelCheckpointOptions options = {},
                           checkpoint::Storage& storage = checkpoint::real_storage(),
                           const Clock& clock = real_clock());
  bool gathers() const override { return true; }
  bool requests_points() const override { return options_.config.save_checkpoint_steps > 0; }
  Result<> on_train_begin(CallbackContext& context) override;
  Result<> on_train_step_end(CallbackContext& context) override;
  Result<> on_train_end(CallbackContext& context) override;
  Result<> on_eval_begin(CallbackContext&) override { return {}; }
  // Prefix and files stay those of before.
  Result<State> state() override;
  Result<> load_state(const State& state) override;
  // When to save next is the same for all, files are each worker's own.
  bool shares_state() const override { return true; }
  Result<> load_state_of_another(const State& state) override;
  void note_saved_at(std::int64_t step) override { saved_step_ = step; }

  // Now, whatever the config says. Between on_train_begin and the end of the training.
  Result<> save(CallbackContext& context);
  // The last file that was written; empty before.
  std::string latest_ckpt_file_name() const;

  // A checkpoint of this or an earlier training with this prefix, in the folder.
  struct SavedFile {
    checkpoint::CheckpointName name;
    std::string path;
    bool has_state = false;            // of this worker
    std::string state_of_others = {};  // of a job of another number of workers: a path
  };
  // The oldest first; none where there is no such folder.
  std::vector<SavedFile> saved_files() const;
  const std::string& directory() const { return options_.directory; }
  // The number of a training that begins here now; and the least that the next one may have, so that all
  // workers have the same.
  std::int64_t free_number() const;
  void number_from(std::int64_t number) { number_min_ = number; }

 private:
  // Checkpoints among the names in the folder, the oldest first; of their states nothing is said.
  std::vector<SavedFile> named_files(const std::vector<std::string>& names) const;
  bool is_due(const CallbackContext& context) const;
  Result<SavedRows> entries_to_gather(const CallbackContext& context, const std::string& path) const;
  Result<SavedRows> gather(std::span<const graph::ParameterPtr> parameters, const std::string& path) const;
  std::vector<checkpoint::Entry> further_entries(const CallbackContext& context) const;
  // Whether it was written.
  bool write(std::span<const checkpoint::Entry> parameters, std::span<const checkpoint::Entry> further,
             const std::string& path);
  void write_state(const checkpoint::Point& point, std::span<const std::string> in_checkpoint,
                   const std::string& path);
  void remove_half_written();
  void remove_in_other_format(const std::string& path);

  ModelCheckpointOptions options_;
  checkpoint::Storage& storage_;
  const Clock& clock_;
  std::string prefix_;  // without files of an earlier training
  std::int64_t number_min_ = 0;
  std::int64_t saved_step_ = 0;
  TimePoint saved_at_{};
  mutable std::mutex mutex_;  // guards what follows: files may be written on another thread
  checkpoint::Retention retention_;
  std::string latest_;
  std::string pending_;  // is being written, or about to be
};

}  // namespace muster::train
