// The callback that writes TensorBoard's event files.
#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "muster/train/job.h"
#include "muster/train/metric_rows.h"
#include "muster/train/network_trace.h"
#include "muster/train/step_logger.h"

namespace muster::train {

TensorBoard::TensorBoard(std::string folder, const TensorBoardOptions& options, const Clock& clock)
    : StepLogger(options.logger, clock), folder_(std::move(folder)), options_(options) {}

Result<> TensorBoard::on_train_begin(CallbackContext& context) {
  file_.reset();
  return StepLogger::on_train_begin(context);
}

Result<> TensorBoard::open(bool goes_on) {
  const std::string name = std::to_string(rank());
  MUSTER_TRY(telemetry::EventFile file, goes_on ? telemetry::EventFile::go_on(folder_, name)
                                                : telemetry::EventFile::create(folder_, name));
  file_ = std::move(file);
  return {};
}

Result<> TensorBoard::write(const StepNumbers& numbers, CallbackContext& context) {
  if (options_.graph && file_->last_steps().empty()) add_graph(context);
  for (const auto& [name, value] : numbers.values) {
    const std::string tag = numbers.is_evaluation ? "eval/" + name : name;
    add(tag, numbers.step, telemetry::scalar_summary(tag, value));
  }
  if (!numbers.is_evaluation && options_.histograms > 0 && numbers.step % options_.histograms == 0)
    add_histograms(numbers.step, context);
  return file_->flush();
}

// Steps of a training only grow, but for those that are made anew.
void TensorBoard::add(std::string_view tag, std::int64_t step, std::span<const std::byte> value) {
  const auto known = file_->last_steps().find(tag);
  if (known == file_->last_steps().end() || step > known->second) file_->add(tag, step, value);
}

// Of the parameters that are here.
void TensorBoard::add_histograms(std::int64_t step, CallbackContext& context) {
  for (const graph::ParameterPtr& parameter : context.network->parameters()) {
    if (parameter->absence() != nullptr || !is_floating(parameter->type().dtype)) continue;
    const auto numbers = as_float64(parameter->materialize(seed()));
    if (!numbers) continue;
    std::string tag = parameter->name();
    std::ranges::replace(tag, '.', '/');
    add(tag, step, telemetry::Histogram(numbers->span<double>()).summary(tag));
  }
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
    file_->add_graph(*graph);
  else
    log::warning(fmt::format("TensorBoard gets no graph of the network: {}", graph.error().message));
}

Result<telemetry::Bytes> graph_of_network(nn::Cell& network, std::span<const graph::TensorType> types) {
  const InferenceScope not_training(network);
  MUSTER_TRY(const graph::Graph graph, trace_network(network, types));
  return telemetry::graph_bytes(nodes_to_draw(graph));
}

}  // namespace muster::train
