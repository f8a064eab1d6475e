// The callback that writes TensorBoard's event files.
#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "muster/train/job.h"
#include "muster/train/metric_rows.h"
#include "muster/train/metric_writer.h"
#include "muster/train/network_trace.h"
#include "muster/train/step_logger.h"

namespace muster::train {

// The file. Steps of a training only grow, but for those that are made anew: what it has is left out.
class TensorBoard::Board {
 public:
  explicit Board(telemetry::EventFile file) : file_(std::move(file)) {}

  bool is_new() const { return file_.last_steps().empty(); }
  void add_graph(std::span<const std::byte> graph) { file_.add_graph(graph); }
  void add(std::string_view tag, std::int64_t step, std::span<const std::byte> value) {
    if (lacks(tag, step)) file_.add(tag, step, value);
  }
  void add_scalar(std::string_view tag, std::int64_t step, double value, double time) {
    if (lacks(tag, step)) file_.add_scalar(tag, step, value, time);
  }
  Result<> write(std::span<const MetricRow> rows);
  Result<> flush() { return file_.flush(); }

 private:
  static constexpr std::size_t write_bytes = 64 * 1024;  // a process that is killed cuts at most one write

  bool lacks(std::string_view tag, std::int64_t step) const {
    const auto known = file_.last_steps().find(tag);
    return known == file_.last_steps().end() || step > known->second;
  }

  telemetry::EventFile file_;
};

Result<> TensorBoard::Board::write(std::span<const MetricRow> rows) {
  for (const MetricRow& row : rows) {
    if (row.loss) add_scalar("loss", row.step, *row.loss, row.time);
    if (row.learning_rate) add_scalar("learning_rate", row.step, *row.learning_rate, row.time);
    add_scalar("step_seconds", row.step, row.step_seconds, row.time);
    if (file_.waiting_bytes() >= write_bytes) MUSTER_TRY_VOID(file_.flush());
  }
  return file_.flush();
}

TensorBoard::TensorBoard(std::string folder, const TensorBoardOptions& options, const Clock& clock)
    : StepLogger(options.logger, clock), folder_(std::move(folder)), options_(options) {}

Result<StepLogger::WriteRows> TensorBoard::open(bool goes_on, CallbackContext& context) {
  const std::string name = std::to_string(rank());
  MUSTER_TRY(telemetry::EventFile file, goes_on ? telemetry::EventFile::go_on(folder_, name)
                                                : telemetry::EventFile::create(folder_, name));
  board_ = std::make_shared<Board>(std::move(file));
  if (options_.graph && board_->is_new()) {
    add_graph(context);
    MUSTER_TRY_VOID(board_->flush());
  }
  return WriteRows([board = board_](std::span<const MetricRow> rows) { return board->write(rows); });
}

Result<> TensorBoard::write_evaluation(const Evaluation& evaluation) {
  const double now = telemetry::wall_seconds();
  for (const auto& [name, value] : evaluation.values)
    board_->add_scalar("eval/" + name, evaluation.step, value, now);
  return board_->flush();
}

bool TensorBoard::has_more(std::int64_t step) const {
  return options_.histograms > 0 && step % options_.histograms == 0;
}

// Histograms of the parameters that are here: of tables on servers no row is.
Result<> TensorBoard::write_more(std::int64_t step, CallbackContext& context) {
  for (const graph::ParameterPtr& parameter : context.network->parameters()) {
    if (parameter->absence() != nullptr || parameter->served_rows()) continue;
    if (!is_floating(parameter->type().dtype)) continue;
    const auto numbers = as_float64(parameter->materialize(seed()));
    if (!numbers) continue;
    std::string tag = parameter->name();
    std::ranges::replace(tag, '.', '/');
    board_->add(tag, step, telemetry::Histogram(numbers->span<double>()).summary(tag));
  }
  return board_->flush();
}

// A network that cannot be traced so is not drawn: that is no reason to end a training.
void TensorBoard::add_graph(CallbackContext& context) {
  std::vector<graph::TensorType> types = context.batch_types;
  if (context.loss_fn != nullptr && types.size() > 1) types.pop_back();  // the label
  const auto graph = [&]() -> Result<telemetry::Bytes> {
    try {
      return graph_of_network(*context.network, types);
    } catch (const std::exception& exception) {
      return fail(Code::invalid_argument, exception.what());
    }
  }();
  if (graph)
    board_->add_graph(*graph);
  else
    log::warning(fmt::format("TensorBoard gets no graph of the network: {}", graph.error().message));
}

Result<telemetry::Bytes> graph_of_network(nn::Cell& network, std::span<const graph::TensorType> types) {
  const InferenceScope not_training(network);
  MUSTER_TRY(const graph::Graph graph, trace_network(network, types));
  return telemetry::graph_bytes(nodes_to_draw(graph));
}

}  // namespace muster::train
