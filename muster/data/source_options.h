// Options that all sources share: where the rows are, which of them come.
#pragma once

#include <optional>
#include <string>

#include "muster/data/sampler.h"

namespace muster::data {

// Which rows of a source come. A sampler excludes the other four.
struct RowOptions {
  std::optional<bool> shuffle = {};              // not said: yes
  std::optional<std::int64_t> num_samples = {};  // at most so many rows (of this shard)
  // Both or neither. Shard s of S has ceil(rows / S) rows; its k-th is row (S * k + s) mod rows of the list
  // that all shards shuffle alike: the shards are of equal length, and the first rows fill up the last
  // shards.
  std::optional<std::int64_t> num_shards = {};
  std::optional<std::int64_t> shard_id = {};
  SamplerPtr sampler = {};
};

// Files in a folder, and which of their rows come (as RowOptions).
struct SourceOptions {
  std::string folder;
  std::string usage = {};  // "train", "test" or "all"; nothing: all
  std::optional<bool> shuffle = {};
  std::optional<std::int64_t> num_samples = {};
  std::optional<std::int64_t> num_shards = {};
  std::optional<std::int64_t> shard_id = {};
  SamplerPtr sampler = {};

  RowOptions rows() const {
    return {.shuffle = shuffle,
            .num_samples = num_samples,
            .num_shards = num_shards,
            .shard_id = shard_id,
            .sampler = sampler};
  }
};

}  // namespace muster::data
