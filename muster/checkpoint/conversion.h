// Conversion: checkpoints of one layout over ranks into those of another, piece by piece in little memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/checkpoint/mesh_layout.h"
#include "muster/checkpoint/store.h"

namespace muster::checkpoint {

// The files that make up one checkpoint, by rank: `path` itself; of a folder those whose names, or whose
// folders' names, have "rank_N" in them, of several of a rank the last as people count; of a job's recovery
// points those of the newest point that all workers hold. An error says what there is instead.
Result<std::vector<std::string>> files_of_checkpoint(const std::string& path,
                                                     const Storage& storage = real_storage());

struct Conversion {
  std::vector<std::string> sources = {};       // by rank; files that hold wholes may be one or several
  std::optional<MeshLayout> from = {};         // of sources that do not say it themselves
  std::vector<std::string> destinations = {};  // one for each rank of `to`, or any number of wholes
  std::optional<MeshLayout> to = {};           // nothing: each destination gets the whole
};
struct Converted {
  std::vector<std::string> tensors = {};  // their names
  std::size_t cut = 0;                    // of these, those that are cut in the destinations
  std::uint64_t bytes = 0;                // of the elements of the whole
};
// The same bits, in pieces as `to` says, with a manifest of the layout; a name that ends in .safetensors gets
// that format, every other one that of .ckpt. Some 20 MB of memory, however large the tensors are. State of
// an optimizer ("moments.fc.weight" beside "fc.weight", of the same shape) is cut as its parameter is. Each
// file is whole, or not there. Errors name the tensor, its shapes and what would do.
Result<Converted> convert(const Conversion& conversion, Storage& storage = real_storage());

// The wholes of files of pieces, or of wholes, in memory.
Result<std::vector<Entry>> load_joined(const std::vector<std::string>& files,
                                       const std::optional<MeshLayout>& from = {},
                                       const Storage& storage = real_storage());

}  // namespace muster::checkpoint
