// Automatic mixed precision: a network that computes in bfloat16 where that is enough, over parameters that
// stay float32 and are what the optimizer updates.
#pragma once

#include <functional>
#include <string>

#include "muster/nn/cell.h"

namespace muster::nn {

struct AmpOptions {
  // "O0": as it is. At "O1" and "auto" cells that to_float was called for keep their dtype.
  // "O1": products (Conv2d, Dense, matmul, batch_matmul) and relu in `dtype`, their results in float32.
  // "O2": everything in `dtype` but what BatchNorm and LayerNorm compute, with outputs in float32.
  // "O3": the same; BatchNorm and LayerNorm compute in float32 at every level, since their sums need it and
  // it
  //       costs nothing.
  // "auto": op by op: products in `dtype`; what loses digits or overflows (normalisation, softmax, losses,
  // exp, log,
  //       pow, …) in float32; the others in what they are given.
  std::string level = "O0";
  DType dtype = DType::bfloat16;
};

// Sets how `network` computes from now on. An error when the level or the dtype is none of those. On a
// processor without instructions for bfloat16 products are computed in float32 and rounded; a warning says
// so.
Result<> auto_mixed_precision(Cell& network, const AmpOptions& options);

struct CustomAmpOptions {
  // One of the two. White: these cells compute in `dtype` and give float32. Black: all but these do, and the
  // network gives float32.
  std::function<bool(const Cell&)> white = nullptr;
  std::function<bool(const Cell&)> black = nullptr;
  DType dtype = DType::bfloat16;
};
Result<> custom_mixed_precision(Cell& network, const CustomAmpOptions& options);

// Whether the level is one of those.
Result<> check_amp_level(const AmpOptions& options);

}  // namespace muster::nn
