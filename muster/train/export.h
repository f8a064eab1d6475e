// A network as an ONNX file, for inference elsewhere.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/nn/nn.h"

namespace muster::train {

struct ExportOptions {
  // Axis 0 of all inputs, which has the same size in each, may have any in the file.
  bool dynamic_batch = false;
  std::vector<std::string> input_names = {};   // "input" or "input_0", "input_1", ... by default
  std::vector<std::string> output_names = {};  // likewise
};

// What `cell` computes of inputs like these, not training, as ONNX (opset 17) with the parameters in it. The
// cell stays as it was. Durable, as checkpoint::save. An error names the op and the cell that cannot be
// exported, and what to do.
Result<> export_onnx(nn::Cell& cell, std::span<const Tensor> inputs, const std::string& path,
                     const ExportOptions& options = {}, Files& files = real_files());

}  // namespace muster::train
