// Loggers: callbacks that write the numbers of each step for other tools.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/base/base.h"
#include "muster/telemetry/telemetry.h"
#include "muster/train/callback.h"

namespace muster::train {

// Numbers of a step by name, in this order: "loss", where the network gives one; "learning_rate" that the
// step took, where all parameters have the same; "step_seconds" from the end of the step before, its data and
// callbacks with it. Behind an evaluation of fit: its metrics by their names, and "eval_loss".
struct StepNumbers {
  std::int64_t step = 0;   // from 1, over all epochs
  std::int64_t epoch = 0;  // from 1
  bool is_evaluation = false;
  std::vector<std::pair<std::string, double>> values = {};
};

// The learning rate that the next step takes; nothing where groups differ, or another worker has it.
std::optional<double> rate_of_next_step(const CallbackContext& context);

struct LoggerOptions {
  std::int64_t every = 1;  // steps
  bool all_ranks = false;  // else rank 0 alone writes
};

// A training that goes on, in this process or in another one, goes on in the same file, and what that holds
// of a step already is not written again: the step made anew gives the same numbers.
class StepLogger : public Callback {
 public:
  explicit StepLogger(const LoggerOptions& options = {}, const Clock& clock = real_clock())
      : options_(options), clock_(clock) {}

  Result<> on_train_begin(CallbackContext& context) override;
  Result<> on_train_step_begin(CallbackContext& context) override;
  Result<> on_train_step_end(CallbackContext& context) override;
  Result<> on_train_epoch_end(CallbackContext& context) override;
  // Nothing but that the training goes on.
  Result<State> state() override { return State{.text = StateValues().to_json()}; }
  bool shares_state() const override { return true; }
  Result<> load_state(const State&) override;

 protected:
  // Called before the first write() of a training of this process. `goes_on`: behind what another process has
  // written.
  virtual Result<> open(bool goes_on) = 0;
  virtual Result<> write(const StepNumbers& numbers, CallbackContext& context) = 0;

 private:
  Result<> write_opened(const StepNumbers& numbers, CallbackContext& context);
  bool writes_here() const;

  LoggerOptions options_;
  const Clock& clock_;
  bool is_open_ = false;
  bool goes_on_ = false;
  std::optional<double> rate_;
  TimePoint step_begin_{};
};

// A line of JSON for each step: {"step": 1, "epoch": 1, "rank": 0, "time": 1700000000.1, "loss": 2.3, ...}.
// Each is one write(2), which the end of the process cannot take back. A number that JSON has no word for is
// null.
class JsonLines : public StepLogger {
 public:
  // "{rank}" in `path` is the rank: then every worker writes a file of its own.
  explicit JsonLines(std::string path, const LoggerOptions& options = {}, const Clock& clock = real_clock());

 protected:
  Result<> open(bool goes_on) override;
  Result<> write(const StepNumbers& numbers, CallbackContext& context) override;

 private:
  std::string path_;
  telemetry::AppendFile file_;
  std::string line_;  // the last one; its memory is used again
  // What an earlier process has written at last.
  std::int64_t last_step_ = 0;
  std::int64_t last_evaluated_ = 0;
};

struct TensorBoardOptions {
  LoggerOptions logger = {};
  std::int64_t histograms = 0;  // of the parameters, every so many steps; 0: none
  bool graph = true;            // of the network, once
};

// Scalars "loss", "learning_rate", "step_seconds" and "eval/<metric>", histograms of the parameters and the
// network's graph, as event files in `folder`.
class TensorBoard : public StepLogger {
 public:
  explicit TensorBoard(std::string folder, const TensorBoardOptions& options = {},
                       const Clock& clock = real_clock());
  Result<> on_train_begin(CallbackContext& context) override;

 protected:
  Result<> open(bool goes_on) override;
  Result<> write(const StepNumbers& numbers, CallbackContext& context) override;

 private:
  // Unless the file has it.
  void add(std::string_view tag, std::int64_t step, std::span<const std::byte> value);
  void add_histograms(std::int64_t step, CallbackContext& context);
  void add_graph(CallbackContext& context);

  std::string folder_;
  TensorBoardOptions options_;
  std::optional<telemetry::EventFile> file_;
};

// What the network computes of a batch of these types, not training, as event files have it (a GraphDef).
Result<telemetry::Bytes> graph_of_network(nn::Cell& network, std::span<const graph::TensorType> types);

// The callback that MUSTER_METRICS_FILE asks for; null: none.
CallbackPtr metrics_file_callback();

}  // namespace muster::train
