// Parameters to files and back.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/nn/nn.h"

namespace muster::train {

// The elements of all, made first where they are not yet. In a divided job they come from the workers that
// have them, and all workers make this call with the same parameters.
Result<std::vector<checkpoint::Entry>> gather_parameters(std::span<const graph::ParameterPtr> parameters);

// The same as a checkpoint file.
Result<> save_parameters(std::span<const graph::ParameterPtr> parameters, const std::string& path,
                         Files& files = real_files());

// Names that found no counterpart.
struct Unmatched {
  std::vector<std::string> parameters;  // of the network, without values in the file
  std::vector<std::string> entries;     // of the file, without a parameter
};

// Sets each parameter to the entry of its name. An error, before anything is set, names the first whose dtype
// or shape differs.
Result<Unmatched> load_parameters(std::span<const graph::ParameterPtr> parameters,
                                  std::span<const checkpoint::Entry> entries);

}  // namespace muster::train
