// The state of a training whose loop is written by hand, as a file and back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "muster/base/base.h"
#include "muster/data/data.h"
#include "muster/nn/nn.h"

namespace muster::train {

// Where such a loop is. `epoch` and `step` are whatever the loop counts.
struct LoopPosition {
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  std::uint64_t pass = 0;   // over the data, from 0
  std::uint64_t items = 0;  // of it that were taken
  // Of a pass that another number of workers began: data::IterateOptions::rows_before, and the number of the
  // item that comes first behind them.
  std::uint32_t rows_before = 0;
  std::uint64_t items_before = 0;
};

// Everything that the loop needs to go on from here: the parameters of `cells` (networks and optimizers), the
// position, and the random numbers. Durable. In a job all workers call it behind the same step, and each
// writes a file of its own: "run.state" becomes "run.rank_1.state", and the one before it stays as
// "run.previous.rank_1.state". With the dataset another number of workers can go on from there.
Result<> save_state(const std::string& path, std::span<const nn::CellPtr> cells, const LoopPosition& position,
                    const data::Dataset* dataset = nullptr);
struct LoadStateOptions {
  bool missing_ok = false;  // where no worker has one the loop begins, and a line says so; else an error
  const data::Dataset* dataset = nullptr;
};
// Sets the cells and the random numbers, and gives the position. In a job a collective call: all go on from
// the newest state that all have; with the dataset also from that of another number of workers, with the rows
// that these have not had. Nothing where none is; errors name the file and the way out.
Result<std::optional<LoopPosition>> load_state(const std::string& path, std::span<const nn::CellPtr> cells,
                                               const LoadStateOptions& options = {});

}  // namespace muster::train
