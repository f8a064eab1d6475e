#include "muster/train/step_logger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "muster/json/json.h"
#include "muster/train/job.h"
#include "muster/train/process.h"

namespace muster::train {

std::optional<double> rate_of_next_step(const CallbackContext& context) {
  const auto& optimizer = context.optimizer;
  if (optimizer == nullptr || !optimizer->has_one_rate() || optimizer->updated_parameters().empty())
    return std::nullopt;
  const auto& steps = optimizer->global_step();
  if (steps != nullptr && steps->absence() != nullptr) return std::nullopt;
  const auto read = catch_error([&]() -> Result<Tensor> {
    const graph::Value rate = optimizer->rate_of(0);
    return rate.is_parameter() ? rate.parameter()->materialize(0) : rate.read();  // a constant needs no seed
  });
  return read ? std::optional<double>(*read->data<float>()) : std::nullopt;
}

bool StepLogger::writes_here() const { return options_.all_ranks || rank() == 0; }

Result<> StepLogger::on_train_begin(CallbackContext&) {
  is_open_ = goes_on_ = false;
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
  if (!writes_here() || context.cur_step_num % options_.every != 0) return {};
  StepNumbers numbers{.step = context.cur_step_num, .epoch = context.cur_epoch_num};
  if (const auto loss = loss_of(context)) numbers.values.emplace_back("loss", *loss);
  if (rate_) numbers.values.emplace_back("learning_rate", *rate_);
  numbers.values.emplace_back("step_seconds", seconds);
  return write_opened(numbers, context);
}

Result<> StepLogger::on_train_epoch_end(CallbackContext& context) {
  step_begin_ = clock_.now();  // an evaluation is no part of the next step
  if (!writes_here() || context.eval_results.empty()) return {};
  StepNumbers numbers{.step = context.cur_step_num, .epoch = context.cur_epoch_num, .is_evaluation = true};
  for (const auto& [name, value] : context.eval_results)
    if (const auto number = number_of(value)) numbers.values.emplace_back(name, *number);
  return write_opened(numbers, context);
}

Result<> StepLogger::load_state(const State&) {
  goes_on_ = true;
  step_begin_ = clock_.now();
  return {};
}

Result<> StepLogger::write_opened(const StepNumbers& numbers, CallbackContext& context) {
  if (!is_open_) MUSTER_TRY_VOID(open(goes_on_));
  is_open_ = true;
  return write(numbers, context);
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

}  // namespace

JsonLines::JsonLines(std::string path, const LoggerOptions& options, const Clock& clock)
    : StepLogger(for_path(options, path), clock), path_(std::move(path)) {}

Result<> JsonLines::open(bool goes_on) {
  last_step_ = last_evaluated_ = 0;
  std::string end;
  const auto whole = [&](std::span<const std::byte> bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto last = text.rfind('\n');
    const std::size_t size = last == std::string_view::npos ? 0 : last + 1;
    end = text.substr(0, size).substr(size - std::min(size, std::size_t{4096}));
    return size;
  };
  MUSTER_TRY(file_, telemetry::AppendFile::open_behind(with_rank(path_), whole));
  if (!goes_on) return {};
  // The last lines say up to where; before them may stand those of another training.
  for (std::size_t begin = 0; begin < end.size();) {
    const auto line_end = end.find('\n', begin);
    const auto line = muster::json::parse(std::string_view(end).substr(begin, line_end - begin), path_);
    begin = line_end + 1;
    if (!line || !line->is_object()) continue;  // the first of them may be cut
    const std::int64_t step = line->value("step", std::int64_t{0});
    (line->contains("step_seconds") ? last_step_ : last_evaluated_) = step;
  }
  return {};
}

Result<> JsonLines::write(const StepNumbers& numbers, CallbackContext&) {
  std::int64_t& last = numbers.is_evaluation ? last_evaluated_ : last_step_;
  if (numbers.step <= last) return {};
  last = numbers.step;
  line_ = fmt::format("{{\"step\":{},\"epoch\":{},\"rank\":{}", numbers.step, numbers.epoch, rank());
  add_number(line_, "time", telemetry::wall_seconds());
  for (const auto& [name, value] : numbers.values) add_number(line_, name, value);
  line_ += "}\n";
  return file_.append(line_);
}

CallbackPtr metrics_file_callback() {
  const std::string& path = process().metrics_file;
  return path.empty() ? nullptr : std::make_shared<JsonLines>(path);
}

}  // namespace muster::train
