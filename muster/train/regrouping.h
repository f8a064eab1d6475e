// Private to train: a training that goes on with another number of workers than it was saved with (ADR 32).
#pragma once

#include <cstdint>
#include <optional>

#include "muster/data/data.h"
#include "muster/train/batches.h"
#include "muster/train/resume.h"
#include "muster/train/state.h"

namespace muster::train {

// What a regrouping has to know of the data.
void put_rows(const data::Dataset& dataset, StateValues& values);
// What it leaves behind: DataPosition::rows_before and items_before.
void put_rows_before(const DataPosition& position, StateValues& values);
Result<DataPosition> rows_before_in(const StateValues& values);
// Where a Model's training was.
Result<DataPosition> data_position_in(const checkpoint::Point& point);

// Where these workers are in a pass of which others had `items`; a pass of theirs has `batches`. The rows
// that have come are left out, and as many items count as done as leave those that the rest of the rows
// makes. An error (invalid_argument) says why the rest is not known: at the begin and at the end of a pass it
// is.
Result<DataPosition> regrouped(const Resumption& found, const StateValues& values, std::int64_t items,
                               const data::Dataset& dataset, std::optional<std::int64_t> batches);
// Gives a state of a Model's training that place, and counters of steps that fit it.
Result<> regroup(Resumption& found, const data::Dataset& dataset, std::optional<std::int64_t> batches);

}  // namespace muster::train
