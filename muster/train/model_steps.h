// Private to train: steps that trainings and evaluations of a Model share.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "muster/data/data.h"
#include "muster/nn/nn.h"

namespace muster::train {

// `step` numbers what is random in it; an evaluation draws nothing that matters. `commit` as in
// graph::RunContext.
Result<std::vector<Tensor>> run_step(nn::Cell& cell, std::span<const Tensor> inputs,
                                     std::optional<std::int64_t> step = {},
                                     graph::Interruption commit = nullptr);

Result<> check_columns(const data::Dataset& dataset, bool has_loss_fn, std::string_view what);

}  // namespace muster::train
