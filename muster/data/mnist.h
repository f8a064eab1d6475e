// Handwritten digits from IDX files (docs/formats/idx.md).
#pragma once

#include "muster/data/dataset.h"

namespace muster::data {

struct MnistOptions {
  std::string folder;
  // "train" reads train-*, "test" reads t10k-*, "all" or nothing every pair of IDX files in the folder, in
  // the order of their names.
  std::string usage = {};
  std::optional<bool> shuffle = {};              // not said: yes
  std::optional<std::int64_t> num_samples = {};  // at most so many rows (of this shard)
  // Both or neither. Shard s of S has ceil(rows / S) rows; its k-th is row (S * k + s) mod rows of the list
  // that all shards shuffle alike: the shards are of equal length, and the first rows fill up the last
  // shards.
  std::optional<std::int64_t> num_shards = {};
  std::optional<std::int64_t> shard_id = {};
};

// Columns "image" (28, 28, 1) uint8 and "label" () uint32. Reads and checks the files now; a file that is
// missing, truncated or not what its name says is an error that names the file and the byte offset.
Dataset mnist(const MnistOptions& options, const Files& files = real_files());

}  // namespace muster::data
