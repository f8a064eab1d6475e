#include "muster/data/row_order.h"

#include <numeric>
#include <utility>

#include "muster/base/base.h"

namespace muster::data {
namespace {

// Fisher and Yates. The stream depends on the epoch and never on the rank.
void shuffle_rows(std::vector<std::uint32_t>& rows, std::uint64_t seed, std::uint64_t epoch) {
  const RandomStream random(seed, hash_bytes(&epoch, sizeof epoch, hash_text("muster.data.shuffle")));
  for (std::size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[random.below(i, i)]);
}

}  // namespace

std::uint32_t shard_size(std::uint32_t rows, std::uint32_t num_shards) {
  return rows / num_shards + (rows % num_shards != 0);
}

std::int64_t shard_padding(std::uint32_t rows, const Shard& shard, std::int64_t size) {
  return size > 0 && shard.count * (size - 1) + shard.index >= rows ? 1 : 0;
}

std::vector<std::uint32_t> row_order(const RowOrderOptions& options, std::uint64_t seed,
                                     std::uint64_t epoch) {
  std::vector<std::uint32_t> all(options.rows);
  std::iota(all.begin(), all.end(), 0U);
  if (options.shuffle) shuffle_rows(all, seed, epoch);
  all.erase(all.begin(), all.begin() + options.before);
  if (options.num_shards == 1) return all;
  std::vector<std::uint32_t> mine(shard_size(static_cast<std::uint32_t>(all.size()), options.num_shards));
  for (std::uint64_t k = 0; k < mine.size(); ++k)
    mine[k] = all[(options.num_shards * k + options.shard_id) % all.size()];
  return mine;
}

}  // namespace muster::data
