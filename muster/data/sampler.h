// Samplers: which rows of a source come, and in which order. A pure function of the source, the seed and the
// epoch; the rank counts only where it is an argument.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/base/base.h"

namespace muster::data {

// What a sampler may know of the source.
struct SourceFacts {
  std::uint32_t rows = 0;                      // at least 1
  std::span<const std::uint32_t> labels = {};  // of each row; none: the source has no labels
};

// One part of the rows of a source.
struct Shard {
  std::int64_t count = 1;  // parts in all
  std::int64_t index = 0;
  bool is_mixed = false;  // what was joined had been cut in different ways
  friend bool operator==(const Shard&, const Shard&) = default;
};

class Sampler {
 public:
  virtual ~Sampler() = default;
  // Rows in a pass over this source, or why the sampler cannot be used with it.
  virtual Result<std::int64_t> size(const SourceFacts& facts) const = 0;
  // The rows of one pass, size() of them. Only where size() gave no error.
  virtual std::vector<std::uint32_t> order(const SourceFacts& facts, std::uint64_t seed,
                                           std::uint64_t epoch) const = 0;
  // Whether order_behind() can tell.
  virtual bool continues() const { return true; }
  // order() where the first `before` rows of the list that all shards share have come already, in whatever
  // shards: fewer than list_size().
  virtual std::vector<std::uint32_t> order_behind(const SourceFacts& facts, std::uint64_t seed,
                                                  std::uint64_t epoch, std::uint32_t before) const;
  // Rows of that list.
  std::int64_t list_size(const SourceFacts& facts) const {
    return shard().count > 1 ? facts.rows : *size(facts);
  }
  // The part of the rows that it gives.
  virtual Shard shard() const { return {}; }
  // Rows at the end of order() that another shard gives too, so that all shards are equally long.
  virtual std::int64_t padding(const SourceFacts& facts) const {
    (void)facts;
    return 0;
  }
};

using SamplerPtr = std::shared_ptr<const Sampler>;

// Rows from `start` on, in their order.
SamplerPtr sequential_sampler(std::int64_t start = 0, std::optional<std::int64_t> num_samples = {});

struct RandomSamplerOptions {
  bool replacement = false;  // a row may come more than once
  std::optional<std::int64_t> num_samples = {};
};
SamplerPtr random_sampler(RandomSamplerOptions options = {});

struct DistributedSamplerOptions {
  std::int64_t num_shards = 1;
  std::int64_t shard_id = 0;
  bool shuffle = true;
  std::optional<std::int64_t> num_samples = {};  // of this shard
};
// As num_shards and shard_id of a source: see SourceOptions.
SamplerPtr distributed_sampler(DistributedSamplerOptions options);

// The rows of these numbers, in the order given; or shuffled.
SamplerPtr subset_sampler(std::vector<std::int64_t> indices, std::optional<std::int64_t> num_samples = {});
SamplerPtr subset_random_sampler(std::vector<std::int64_t> indices,
                                 std::optional<std::int64_t> num_samples = {});

struct PkSamplerOptions {
  std::int64_t num_val = 1;                    // rows of each class
  std::optional<std::int64_t> num_class = {};  // the first so many classes; not said: all
  bool shuffle = false;                        // the classes; not said: in the order of their labels
  std::optional<std::int64_t> num_samples = {};
};
// K rows of each of P classes, drawn anew for each pass, and with replacement: a class may have fewer. The
// source must have labels.
SamplerPtr pk_sampler(PkSamplerOptions options);

struct WeightedRandomSamplerOptions {
  std::vector<double> weights;  // of each row, in any unit; rows beyond the list never come
  std::optional<std::int64_t> num_samples = {};
  bool replacement = true;
};
SamplerPtr weighted_random_sampler(WeightedRandomSamplerOptions options);

}  // namespace muster::data
