#include "muster/train/step_logger.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "muster/json/json.h"
#include "muster/train/job.h"
#include "muster/train/metric_writer.h"
#include "muster/train/process.h"
#include "muster/train/run_context.h"

namespace muster::train {

std::optional<double> rate_of_next_step(const CallbackContext& context) {
  const auto& optimizer = context.optimizer;
  if (optimizer == nullptr || !optimizer->has_one_rate() || optimizer->updated_parameters().empty())
    return std::nullopt;
  const auto& steps = optimizer->global_step();
  if (steps != nullptr && steps->absence() != nullptr) return std::nullopt;
  // Asking is no run: how often it is asked depends on the time, and on who writes numbers.
  const auto read = catch_error([&]() -> Result<Tensor> {
    MUSTER_TRY(const graph::RunContext made, tracing_context());
    const graph::ContextScope scope(made);
    const graph::Value rate = optimizer->rate_of(0);
    return rate.is_parameter() ? rate.parameter()->materialize(0) : rate.read();  // a constant needs no seed
  });
  return read ? std::optional<double>(*read->data<float>()) : std::nullopt;
}

StepLogger::StepLogger(const LoggerOptions& options, const Clock& clock) : options_(options), clock_(clock) {}
StepLogger::~StepLogger() {
  if (const Result<> done = StepLogger::flush(); !done) log::warning(done.error().message);
}

bool StepLogger::writes_here() const { return options_.all_ranks || rank() == 0; }

Result<> StepLogger::on_train_begin(CallbackContext&) {
  writer_.reset();
  write_ = nullptr;
  goes_on_ = false;
  step_begin_ = clock_.now();
  return {};
}

Result<> StepLogger::on_train_step_begin(CallbackContext& context) {
  if (writes_here()) rate_ = rate_of_next_step(context);
  return {};
}

Result<> StepLogger::on_train_step_end(CallbackContext& context) {
  const TimePoint now = clock_.now();
  const double seconds = std::chrono::duration<double>(now - std::exchange(step_begin_, now)).count();
  const std::int64_t step = context.cur_step_num;
  if (!writes_here() || step % options_.every != 0) return {};
  if (!write_) MUSTER_TRY_VOID(open_once(context));
  const auto found = loss_of(context);
  const std::optional<double> loss = found ? std::optional(*found) : std::nullopt;
  const MetricRow row{.step = step,
                      .epoch = context.cur_epoch_num,
                      .time = telemetry::wall_seconds(),
                      .step_seconds = seconds,
                      .loss = loss,
                      .learning_rate = rate_};
  const bool more = has_more(step);
  if (!more && !context.recovers) {
    if (writer_ == nullptr) writer_ = std::make_unique<MetricWriter>(write_);
    return writer_->push(row);
  }
  MUSTER_TRY_VOID(StepLogger::flush());
  MUSTER_TRY_VOID(write_(std::span(&row, 1)));
  return more ? write_more(step, context) : Result<>{};
}

Result<> StepLogger::on_train_epoch_end(CallbackContext& context) {
  step_begin_ = clock_.now();  // an evaluation is no part of the next step
  if (!writes_here() || context.eval_results.empty()) return {};
  Evaluation evaluation{.step = context.cur_step_num, .epoch = context.cur_epoch_num};
  for (const auto& [name, value] : context.eval_results)
    if (const auto number = number_of(value)) evaluation.values.emplace_back(name, *number);
  if (!write_) MUSTER_TRY_VOID(open_once(context));
  MUSTER_TRY_VOID(StepLogger::flush());
  return write_evaluation(evaluation);
}

Result<> StepLogger::on_train_end(CallbackContext&) { return StepLogger::flush(); }

Result<> StepLogger::load_state(const State&) {
  goes_on_ = true;
  step_begin_ = clock_.now();
  return {};
}

Result<> StepLogger::flush() { return writer_ != nullptr ? writer_->flush() : Result<>{}; }

Result<> StepLogger::open_once(CallbackContext& context) {
  MUSTER_TRY(write_, open(goes_on_, context));
  return {};
}

// ---- JSON lines -------------------------------------------------------------------------------------------

namespace {

constexpr std::string_view rank_word = "{rank}";

LoggerOptions for_path(LoggerOptions options, const std::string& path) {
  options.all_ranks = options.all_ranks || path.find(rank_word) != std::string::npos;
  return options;
}

std::string with_rank(std::string path) {
  if (const auto found = path.find(rank_word); found != std::string::npos)
    path.replace(found, rank_word.size(), std::to_string(rank()));
  return path;
}

// `,"name":value` behind a line of JSON. By hand, since a library's object of each line takes a seventh of a
// step of a small net. A number that JSON has no word for is null; one without a fraction keeps the point
// that says so.
void add_number(std::string& line, std::string_view name, double value) {
  constexpr auto is_plain = [](char c) { return c >= ' ' && c != '"' && c != '\\' && c != '\x7f'; };
  line += ',';
  if (std::ranges::all_of(name, is_plain))
    fmt::format_to(std::back_inserter(line), "\"{}\":", name);
  else
    line += nlohmann::json(name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + ':';
  if (!std::isfinite(value)) {
    line += "null";
    return;
  }
  const std::size_t begin = line.size();
  fmt::format_to(std::back_inserter(line), "{}", value);
  if (line.find_first_of(".e", begin) == std::string::npos) line += ".0";
}

// A metric with the name of what each line has is "eval/step": of two equal names readers take one.
std::string name_in_line(const std::string& name) {
  constexpr std::array<std::string_view, 4> of_each_line{"step", "epoch", "rank", "time"};
  return std::ranges::find(of_each_line, name) == of_each_line.end() ? name : "eval/" + name;
}

}  // namespace

// The file, and up to where it is.
class JsonLines::Lines {
 public:
  static Result<std::shared_ptr<Lines>> open(const std::string& path, bool goes_on);
  Result<> write(std::span<const MetricRow> rows);
  Result<> write(const Evaluation& evaluation);

 private:
  static constexpr std::size_t write_bytes = 64 * 1024;  // a process that is killed cuts at most one write

  void begin_line(std::int64_t step, std::int64_t epoch, double time);
  void add_row(const MetricRow& row);
  Result<> append();

  telemetry::AppendFile file_;
  std::string text_;  // its memory is used again
  std::int64_t last_step_ = 0;
  std::int64_t last_evaluated_ = 0;
};

Result<std::shared_ptr<JsonLines::Lines>> JsonLines::Lines::open(const std::string& path, bool goes_on) {
  std::string end;
  const auto whole = [&](std::span<const std::byte> bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto last = text.rfind('\n');
    const std::size_t size = last == std::string_view::npos ? 0 : last + 1;
    end = text.substr(0, size).substr(size - std::min(size, std::size_t{4096}));
    return size;
  };
  auto lines = std::make_shared<Lines>();
  MUSTER_TRY(lines->file_, telemetry::AppendFile::open_behind(path, whole));
  if (!goes_on) return lines;
  // The last lines say up to where; before them may stand those of another training.
  for (std::size_t begin = 0; begin < end.size();) {
    const auto line_end = end.find('\n', begin);
    const auto line = muster::json::parse(std::string_view(end).substr(begin, line_end - begin), path);
    begin = line_end + 1;
    if (!line || !line->is_object()) continue;  // the first of them may be cut
    const std::int64_t step = line->value("step", std::int64_t{0});
    (line->contains("step_seconds") ? lines->last_step_ : lines->last_evaluated_) = step;
  }
  return lines;
}

void JsonLines::Lines::begin_line(std::int64_t step, std::int64_t epoch, double time) {
  fmt::format_to(std::back_inserter(text_), "{{\"step\":{},\"epoch\":{},\"rank\":{}", step, epoch, rank());
  add_number(text_, "time", time);
}

void JsonLines::Lines::add_row(const MetricRow& row) {
  if (row.step <= last_step_) return;
  last_step_ = row.step;
  begin_line(row.step, row.epoch, row.time);
  if (row.loss) add_number(text_, "loss", *row.loss);
  if (row.learning_rate) add_number(text_, "learning_rate", *row.learning_rate);
  add_number(text_, "step_seconds", row.step_seconds);
  text_ += "}\n";
}

Result<> JsonLines::Lines::append() {
  const Result<> done = file_.append(text_);
  text_.clear();
  return done;
}

Result<> JsonLines::Lines::write(std::span<const MetricRow> rows) {
  for (const MetricRow& row : rows) {
    add_row(row);
    if (text_.size() >= write_bytes) MUSTER_TRY_VOID(append());
  }
  return append();
}

Result<> JsonLines::Lines::write(const Evaluation& evaluation) {
  if (evaluation.step <= last_evaluated_) return {};
  last_evaluated_ = evaluation.step;
  begin_line(evaluation.step, evaluation.epoch, telemetry::wall_seconds());
  for (const auto& [name, value] : evaluation.values) add_number(text_, name_in_line(name), value);
  text_ += "}\n";
  return append();
}

JsonLines::JsonLines(std::string path, const LoggerOptions& options, const Clock& clock)
    : StepLogger(for_path(options, path), clock), path_(std::move(path)) {}

Result<StepLogger::WriteRows> JsonLines::open(bool goes_on, CallbackContext&) {
  MUSTER_TRY(lines_, Lines::open(with_rank(path_), goes_on));
  return WriteRows([lines = lines_](std::span<const MetricRow> rows) { return lines->write(rows); });
}

Result<> JsonLines::write_evaluation(const Evaluation& evaluation) { return lines_->write(evaluation); }

CallbackPtr metrics_file_callback() {
  const std::string& path = process().metrics_file;
  return path.empty() ? nullptr : std::make_shared<JsonLines>(path);
}

}  // namespace muster::train
