#include "muster/train/monitors.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "muster/train/front_end.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

double milliseconds(Duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

// In the digits of the loss's own dtype.
Result<std::string> loss_text(const CallbackContext& context) {
  MUSTER_TRY(const double loss, loss_of(context));
  const bool is_double = context.net_outputs.front().dtype() == DType::float64;
  return is_double ? number_text(loss) : number_text(static_cast<float>(loss));
}

// A clock begins anew in each process, so what has passed is kept.
State state_of_time(Duration passed) {
  return {.text = StateValues().set("passed_ns", std::int64_t{passed.count()}).to_json()};
}

Result<Duration> time_of_state(const State& state) {
  MUSTER_TRY(const StateValues values, StateValues::from_json(state.text));
  MUSTER_TRY(const std::int64_t passed, values.integer("passed_ns"));
  return Duration(passed);
}

}  // namespace

Result<> LossMonitor::step_end(CallbackContext& context) {
  MUSTER_TRY(const double loss, loss_of(context));
  MUSTER_TRY(const std::string text, loss_text(context));
  const std::int64_t epoch = context.cur_epoch_num;
  const std::int64_t step = context.step_in_epoch();
  if (!std::isfinite(loss))
    return fail(Code::invalid_argument,
                fmt::format("In epoch: {} step: {}, loss is {}: the training cannot go on from a loss that "
                            "is no number; try a smaller learning rate, or look for such values in the data",
                            epoch, step, text));
  if (context.cur_step_num <= last_printed_) last_printed_ = 0;  // another training
  if (per_print_times_ == 0 || context.cur_step_num - last_printed_ < per_print_times_) return {};
  last_printed_ = context.cur_step_num;
  print_line(fmt::format("epoch: {} step: {}, loss is {}", epoch, step, text));
  return {};
}

Result<> LossMonitor::on_train_epoch_end(CallbackContext& context) {
  MetricValues results = context.eval_results;
  if (results.empty() || per_print_times_ == 0) return {};
  if (results.size() > 1)  // the model's own metrics say it
    std::erase_if(results, [](const auto& result) { return result.first == "eval_loss"; });
  print_line(fmt::format("Eval result: epoch {}, metrics: {}", context.cur_epoch_num, to_string(results)));
  return {};
}

Result<State> LossMonitor::state() {
  return State{.text = StateValues().set("last_printed", last_printed_).to_json()};
}

Result<> LossMonitor::load_state(const State& state) {
  MUSTER_TRY(const StateValues values, StateValues::from_json(state.text));
  MUSTER_TRY(last_printed_, values.integer("last_printed"));
  return {};
}

Result<> TimeMonitor::epoch_begin(CallbackContext& context) {
  const TimePoint now = clock_.now();
  if (context.mode == CallbackContext::Mode::train) {
    train_begin_ = idle_since_ = now;
    idle_ = {};
  } else {
    eval_begin_ = now;
  }
  return {};
}

Result<> TimeMonitor::on_train_step_begin(CallbackContext&) {
  idle_ += clock_.now() - idle_since_;
  return {};
}

Result<> TimeMonitor::on_train_step_end(CallbackContext&) {
  idle_since_ = clock_.now();
  return {};
}

Result<> TimeMonitor::epoch_end(CallbackContext& context) {
  const bool trains = context.mode == CallbackContext::Mode::train;
  const double spent = milliseconds(clock_.now() - (trains ? train_begin_ : eval_begin_));
  const auto steps = static_cast<double>(
      std::max<std::int64_t>(1, options_.data_size > 0 ? options_.data_size : context.batch_num));
  const double idle = trains ? milliseconds(std::exchange(idle_, Duration{})) : 0;
  std::string between;
  if (trains && options_.data_time)
    between = fmt::format(" (data time: {:5.3f} ms)", idle / steps);
  else if (idle > 0 && idle >= spent / 10)
    between = fmt::format(", of which {:5.3f} ms between steps", idle / steps);
  print_line(fmt::format("{} epoch time: {:5.3f} ms, per step time: {:5.3f} ms{}", trains ? "Train" : "Eval",
                         spent, spent / steps, between));
  return {};
}

Result<State> TimeMonitor::state() { return state_of_time(clock_.now() - train_begin_); }

Result<> TimeMonitor::load_state(const State& state) {
  MUSTER_TRY(const Duration passed, time_of_state(state));
  train_begin_ = clock_.now() - passed;
  return {};
}

// ---- ProgressBar ------------------------------------------------------------------------------------------

namespace {

constexpr auto redraw_after = std::chrono::milliseconds(100);

bool is_rank_0() {
  Session* const session = Session::current();
  return session == nullptr || session->membership().rank() == 0;
}

// "0:09", "1:02:03".
std::string time_text(double seconds) {
  const auto all = static_cast<std::int64_t>(std::min(std::ceil(seconds), 1e9));
  const std::int64_t hours = all / 3600, minutes = all / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, all % 60)
                   : fmt::format("{}:{:02}", minutes, all % 60);
}

// The time that the steps take which are left of the training; without evaluations, and nothing at first.
std::string eta_text(const CallbackContext& context, std::int64_t done, double seconds) {
  const std::int64_t left =
      (context.epoch_num - context.cur_epoch_num) * context.batch_num + context.batch_num - done;
  if (done == 0 || left <= 0) return {};
  return fmt::format(", ETA {}", time_text(seconds / static_cast<double>(done) * static_cast<double>(left)));
}

std::string bar(std::int64_t done, std::int64_t all, int width) {
  if (all <= 0) return {};
  const auto filled = static_cast<std::size_t>(std::min(done, all) * width / all);
  std::string text(filled, '=');
  if (done < all) text += '>';
  text.resize(static_cast<std::size_t>(width), ' ');
  return fmt::format("[{}] ", text);
}

}  // namespace

ProgressBar::ProgressBar(ProgressBarOptions options, const Clock& clock)
    : options_(options), clock_(clock), live_(options.live.value_or(isatty(STDERR_FILENO) != 0)) {}

Result<> ProgressBar::on_train_begin(CallbackContext&) {
  results_.clear();
  return {};
}

Result<> ProgressBar::on_train_epoch_begin(CallbackContext&) {
  epoch_begin_ = clock_.now();
  drawn_ = {};
  return {};
}

Result<> ProgressBar::on_train_step_end(CallbackContext& context) {
  if (live_ && clock_.now() - drawn_ >= redraw_after) draw(context, false);
  return {};
}

Result<> ProgressBar::on_train_epoch_end(CallbackContext& context) {
  if (!context.eval_results.empty()) results_ = context.eval_results;
  draw(context, true);
  return {};
}

Result<> ProgressBar::on_eval_step_end(CallbackContext& context) {
  if (!live_ || clock_.now() - drawn_ < redraw_after) return {};
  const std::string epoch =
      context.epoch_num > 0 ? fmt::format("epoch {}/{} ", context.cur_epoch_num, context.epoch_num) : "";
  show(
      fmt::format("{}evaluating {}{}/{}", epoch, bar(context.cur_step_num, context.batch_num, options_.width),
                  context.cur_step_num, context.batch_num),
      false);
  return {};
}

// Of an evaluation by itself nothing stays; behind one of fit the line of the epoch comes.
Result<> ProgressBar::on_eval_end(CallbackContext&) {
  if (live_) show("", false);
  return {};
}

Result<State> ProgressBar::state() { return state_of_time(clock_.now() - epoch_begin_); }

Result<> ProgressBar::load_state(const State& state) {
  MUSTER_TRY(const Duration passed, time_of_state(state));
  epoch_begin_ = clock_.now() - passed;
  drawn_ = {};
  return {};
}

std::string ProgressBar::line(const CallbackContext& context) const {
  const std::int64_t done = context.cur_step_num == 0 ? 0 : context.step_in_epoch();
  const double seconds = milliseconds(clock_.now() - epoch_begin_) / 1000;
  const auto loss = loss_of(context);
  const MetricValues& results = context.eval_results.empty() ? results_ : context.eval_results;
  const std::string metrics = results.empty() ? "" : ", " + results_text(results);
  return fmt::format("epoch {}/{} {}{}/{}, {:.3g} steps/s{}, loss {}{}", context.cur_epoch_num,
                     context.epoch_num, bar(done, context.batch_num, options_.width), done, context.batch_num,
                     seconds > 0 ? static_cast<double>(done) / seconds : 0.0,
                     eta_text(context, done, seconds), loss ? fmt::format("{:.4f}", *loss) : "-", metrics);
}

void ProgressBar::draw(const CallbackContext& context, bool last) { show(line(context), last); }

void ProgressBar::show(const std::string& text, bool last) {
  if (!is_rank_0()) return;
  drawn_ = clock_.now();
  // "\033[K" clears what a longer line left.
  fmt::print(stderr, "{}{}{}{}", live_ ? "\r" : "", text, live_ ? "\033[K" : "", last ? "\n" : "");
  std::fflush(stderr);
}

}  // namespace muster::train
