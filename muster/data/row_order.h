// Private: order of the rows that a rank sees.
#pragma once

#include <cstdint>
#include <vector>

#include "muster/data/sampler.h"

namespace muster::data {

struct RowOrderOptions {
  std::uint32_t rows = 0;  // of all shards together, at least 1
  bool shuffle = true;
  std::uint32_t num_shards = 1;
  std::uint32_t shard_id = 0;
  // Rows of the list of all that have come already, in other shards; fewer than `rows`.
  std::uint32_t before = 0;
};

// Rows of one shard: ceil(rows / num_shards), so that all ranks make as many steps.
std::uint32_t shard_size(std::uint32_t rows, std::uint32_t num_shards);

// How many of the first `size` rows of a shard are there to fill it up: one at most, the last.
std::int64_t shard_padding(std::uint32_t rows, const Shard& shard, std::int64_t size);

// The rows of one shard in the order of one epoch. The list of all rows, shuffled by (seed, epoch), is the
// same on every rank; the k-th row of shard s is entry (num_shards * k + s) mod rows of it. Behind the first
// `before` rows of the list the rest of it is the list.
std::vector<std::uint32_t> row_order(const RowOrderOptions& options, std::uint64_t seed, std::uint64_t epoch);

}  // namespace muster::data
