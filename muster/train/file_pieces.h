// Private to train: files of pieces, and parameters that are held in such.
#pragma once

#include <string>
#include <vector>

#include "muster/train/parameters.h"

namespace muster::train {

// Whether this worker holds its parameter as the file of pieces says of the one of this name.
bool is_held_so(const graph::Parameter& parameter, const checkpoint::LayoutManifest& layout,
                const std::string& name);

// The files of all workers, by rank: the one of the piece, and those that are named as it is but for the
// number of the worker. An error says which file is missing, and what else goes.
Result<std::vector<std::string>> files_beside(const FilePiece& piece);

}  // namespace muster::train
