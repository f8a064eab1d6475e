// Loggers: callbacks that write the numbers of each step for other tools.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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

class MetricWriter;
struct MetricRow;

// The learning rate that the next step takes; nothing where groups differ, or another worker has it.
std::optional<double> rate_of_next_step(const CallbackContext& context);

struct LoggerOptions {
  std::int64_t every = 1;  // steps
  bool all_ranks = false;  // else rank 0 alone writes
};

// Numbers of each step: "loss", where the network gives one; "learning_rate" that the step took, where all
// parameters have the same; "step_seconds" from the end of the step before, its data and callbacks with it.
// Behind an evaluation of fit: its metrics by their names, and "eval_loss".
//
// Steps are written by another thread, at most a tenth of a second later, and before the training ends,
// however it does, and before a checkpoint that it can be resumed from. Where the job recovers from the loss
// of processes, each is written before the step's callbacks are done: who comes back goes on behind any step.
// An error of the file ends the training at the next step, or at its end.
//
// A training that goes on, in this process or in another one, goes on in the same file, and what that holds
// of a step already is not written again: the step made anew gives the same numbers.
class StepLogger : public Callback {
 public:
  explicit StepLogger(const LoggerOptions& options = {}, const Clock& clock = real_clock());
  ~StepLogger() override;

  Result<> on_train_begin(CallbackContext& context) override;
  Result<> on_train_step_begin(CallbackContext& context) override;
  Result<> on_train_step_end(CallbackContext& context) override;
  Result<> on_train_epoch_end(CallbackContext& context) override;
  Result<> on_train_end(CallbackContext& context) override;
  // Nothing but that the training goes on.
  Result<State> state() override { return State{.text = StateValues().to_json()}; }
  bool shares_state() const override { return true; }
  Result<> load_state(const State&) override;
  Result<> flush() override;

 protected:
  struct Evaluation {
    std::int64_t step = 0;   // the last one before it, from 1
    std::int64_t epoch = 0;  // from 1
    std::vector<std::pair<std::string, double>> values = {};
  };
  // Writes rows of steps. Called on any thread; never at the same time as what is below.
  using WriteRows = std::function<Result<>(std::span<const MetricRow>)>;

  // Called before the first row of a training of this process. `goes_on`: behind what another process has
  // written.
  virtual Result<WriteRows> open(bool goes_on, CallbackContext& context) = 0;
  virtual Result<> write_evaluation(const Evaluation& evaluation) = 0;
  // What else a step has, behind its row; only where it has some.
  virtual bool has_more(std::int64_t step) const {
    (void)step;
    return false;
  }
  virtual Result<> write_more(std::int64_t step, CallbackContext& context) {
    (void)step, (void)context;
    return {};
  }

 private:
  Result<> open_once(CallbackContext& context);
  bool writes_here() const;

  LoggerOptions options_;
  const Clock& clock_;
  WriteRows write_;  // empty: not open
  std::unique_ptr<MetricWriter> writer_;
  bool goes_on_ = false;
  std::optional<double> rate_;
  TimePoint step_begin_{};
};

// A line of JSON for each step: {"step": 1, "epoch": 1, "rank": 0, "time": 1700000000.1, "loss": 2.3, ...}.
// Whole lines go to the file, whose end no killed process takes back. A number that JSON has no word for is
// null.
class JsonLines : public StepLogger {
 public:
  // "{rank}" in `path` is the rank: then every worker writes a file of its own.
  explicit JsonLines(std::string path, const LoggerOptions& options = {}, const Clock& clock = real_clock());

 protected:
  Result<WriteRows> open(bool goes_on, CallbackContext& context) override;
  Result<> write_evaluation(const Evaluation& evaluation) override;

 private:
  class Lines;

  std::string path_;
  std::shared_ptr<Lines> lines_;  // with the thread that writes
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

 protected:
  Result<WriteRows> open(bool goes_on, CallbackContext& context) override;
  Result<> write_evaluation(const Evaluation& evaluation) override;
  bool has_more(std::int64_t step) const override;
  Result<> write_more(std::int64_t step, CallbackContext& context) override;

 private:
  class Board;
  void add_graph(CallbackContext& context);

  std::string folder_;
  TensorBoardOptions options_;
  std::shared_ptr<Board> board_;  // with the thread that writes
};

// What the network computes of a batch of these types, not training, as event files have it (a GraphDef).
Result<telemetry::Bytes> graph_of_network(nn::Cell& network, std::span<const graph::TensorType> types);

// The callback that MUSTER_METRICS_FILE asks for; null: none.
CallbackPtr metrics_file_callback();

}  // namespace muster::train
