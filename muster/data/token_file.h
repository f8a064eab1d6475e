// Text as numbers: a file of token ids, cut into windows.
#pragma once

#include "muster/base/base.h"
#include "muster/data/dataset.h"
#include "muster/data/source_options.h"

namespace muster::data {

struct TokenFileOptions {
  std::string file;
  std::int64_t window = 0;  // tokens of a row, at least 1
  DType dtype =
      DType::uint16;  // of the ids in the file: uint8 (the bytes of a text), uint16, uint32 or int32
  RowOptions rows = {};
};

// Columns "input" and "target", each (window,) int32: row i has the tokens i * window to (i + 1) * window -
// 1, and for each of them the one behind it. Ids lie one after the other, little-endian, without a header
// (docs/formats/tokens.md). The file is read when rows are needed, and may be larger than memory; one that is
// too short, or no whole number of ids, is an error now, and one that has been cut since then when the row
// comes.
Dataset token_file(const TokenFileOptions& options);

}  // namespace muster::data
