// Input consumer: the worker that uses the first input of a placed network, found before its type is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "muster/nn/cell.h"

namespace muster::nn {

// The rank of the first placed op that depends on the first of `inputs` inputs. Found by tracing construct
// with made-up types: they hardly fit, but where they do not fit they are used. Nothing: with none of them
// construct comes to a placed op. The trace is dropped; construct runs a few times at most.
std::optional<std::uint32_t> input_consumer(Cell& network, std::size_t inputs);

}  // namespace muster::nn
