#include "muster/train/model_steps.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "muster/train/front_end.h"
#include "muster/train/run_context.h"

namespace muster::train {

using nn::Value;
using nn::Values;

Result<std::vector<Tensor>> run_step(nn::Cell& cell, std::span<const Tensor> inputs,
                                     std::optional<std::int64_t> step, graph::Interruption commit) {
  MUSTER_TRY_VOID(look_for_interruption());
  MUSTER_TRY(graph::RunContext context, run_context());
  if (step) context.step = static_cast<std::uint64_t>(*step);
  context.commit = commit;
  const Values given(inputs.begin(), inputs.end());
  return catch_error([&] {
    std::vector<Tensor> outputs;
    for (const Value& value : cell.call(given, context)) outputs.push_back(value.read().value());
    return outputs;
  });
}

Result<> check_columns(const data::Dataset& dataset, bool has_loss_fn, std::string_view what) {
  const std::size_t columns = dataset.columns().size();
  if (!has_loss_fn || columns == 2) return {};
  std::string names;
  for (const data::Column& column : dataset.columns()) names += (names.empty() ? "" : ", ") + column.name;
  return fail(Code::invalid_argument,
              fmt::format("with a loss_fn the {} dataset has two columns, data and label, not {} ({}): leave "
                          "out loss_fn and let the network take all columns and give the loss",
                          what, columns, names));
}

}  // namespace muster::train
