#include "muster/train/loss_watch.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "muster/train/aborted_step.h"
#include "muster/train/context.h"
#include "muster/train/job.h"
#include "muster/train/process.h"
#include "muster/train/run_context.h"
#include "muster/train/session.h"
#include "muster/train/training_numbers.h"
#include "muster/train/updates.h"

namespace muster::train {
namespace {

// From 1. Of a loop by hand the last optimizer that was called knows how many steps are done, with this one
// where it `is_done`.
std::int64_t step_now(bool is_done) {
  const NumberWatch& watch = process().numbers;
  if (watch.model_step != nullptr) return *watch.model_step;
  const graph::ParameterPtr done = watch.global_step.lock();
  if (done == nullptr || done->absence() != nullptr || !done->materialized()) return 1;
  return *done->storage().data<std::int32_t>() + (is_done ? 0 : 1);
}

std::string name_of_step(std::int64_t step) { return fmt::format("step {} of worker {}", step, rank()); }

std::string step_text() { return name_of_step(step_now(false)); }

void tell_of_loss(double loss, bool is_done) {
  if (step_is_aborted() || std::exchange(process().numbers.told, true)) return;
  log::warning(
      fmt::format("the loss is {} in {}, and the training goes on with it: "
                  "train.detect_anomaly() or MUSTER_DETECT_ANOMALY=1 shows the first op that gives "
                  "such a number; a smaller learning rate may help, and LossMonitor ends a training "
                  "of a Model there",
                  number_text(loss), name_of_step(step_now(is_done))));
}

void look_at_loss(double loss, bool is_done) {
  note_loss(loss);
  if (!std::isfinite(loss)) tell_of_loss(loss, is_done);
}

// A Model knows its own.
void note_batch_by_hand(std::span<const Tensor> inputs) {
  if (process().numbers.model_step == nullptr) note_batch(inputs);
}

}  // namespace

void note_step_by_hand(bool is_done) {
  Session* const session = Session::current();
  if (session == nullptr || process().numbers.model_step != nullptr) return;
  const std::uint64_t before = process().numbers.steps_by_hand++;
  session->membership().report_step(is_done ? before + 1 : before);
}

void note_counted_steps() {
  NumberWatch& numbers = process().numbers;
  if (numbers.steps_by_hand > 0 || numbers.model_step != nullptr) return;
  const std::int64_t counted = steps_of_all_optimizers();
  if (std::exchange(numbers.steps_counted, counted) == counted || counted == 0) return;
  if (Session* const session = Session::current())
    session->membership().report_step(static_cast<std::uint64_t>(counted));
}

ModelSteps::ModelSteps(const std::int64_t& step)
    : outer_(std::exchange(process().numbers.model_step, &step)),
      told_outside_(std::exchange(process().numbers.told, false)) {}

ModelSteps::~ModelSteps() {
  process().numbers.model_step = outer_;
  process().numbers.steps_counted = steps_of_all_optimizers();  // which it has told
  process().numbers.told = told_outside_;
}

void watch_numbers(const Environment& environment) {
  graph::set_anomaly_hooks({.line = graph::anomaly_hooks().line,
                            .step = &step_text,
                            .loss = &look_at_loss,
                            .batch = &note_batch_by_hand,
                            .trains = &note_step_by_hand});
  if (environment.get("MUSTER_DETECT_ANOMALY") == "1") detect_anomaly();
  process().metrics_file = environment.get("MUSTER_METRICS_FILE").value_or("");
  process().page_requests_folder = environment.get("MUSTER_PAGE_REQUESTS").value_or("");
}

}  // namespace muster::train
