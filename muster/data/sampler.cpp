#include "muster/data/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "muster/data/row_order.h"

namespace muster::data {
namespace {

using RowNumbers = std::vector<std::uint32_t>;
using Count = std::optional<std::int64_t>;

RandomStream stream_of(const char* sampler, std::uint64_t seed, std::uint64_t epoch) {
  return RandomStream(seed, hash_bytes(&epoch, sizeof epoch, hash_text(sampler)));
}

Result<> check_count(const char* sampler, Count num_samples) {
  if (num_samples && *num_samples < 1)
    return fail(Code::invalid_argument,
                fmt::format("{}: num_samples is {}, it must be at least 1", sampler, *num_samples));
  return {};
}

std::int64_t at_most(std::int64_t rows, Count num_samples) {
  return num_samples ? std::min(rows, *num_samples) : rows;
}

class SequentialSampler final : public Sampler {
 public:
  SequentialSampler(std::int64_t start, Count num_samples) : start_(start), num_samples_(num_samples) {}
  Result<std::int64_t> size(const SourceFacts& facts) const override {
    MUSTER_TRY_VOID(check_count("SequentialSampler", num_samples_));
    if (start_ < 0 || start_ >= facts.rows)
      return fail(Code::invalid_argument,
                  fmt::format("SequentialSampler: start_index is {}, it must be 0 to {}, the last row",
                              start_, facts.rows - 1));
    return at_most(facts.rows - start_, num_samples_);
  }
  RowNumbers order(const SourceFacts& facts, std::uint64_t, std::uint64_t) const override {
    RowNumbers rows(static_cast<std::size_t>(*size(facts)));
    std::iota(rows.begin(), rows.end(), static_cast<std::uint32_t>(start_));
    return rows;
  }

 private:
  const std::int64_t start_;
  const Count num_samples_;
};

class RandomSampler final : public Sampler {
 public:
  explicit RandomSampler(RandomSamplerOptions options) : options_(options) {}
  Result<std::int64_t> size(const SourceFacts& facts) const override {
    MUSTER_TRY_VOID(check_count("RandomSampler", options_.num_samples));
    if (options_.replacement) return options_.num_samples.value_or(facts.rows);
    if (options_.num_samples && *options_.num_samples > facts.rows)
      return fail(Code::invalid_argument,
                  fmt::format("RandomSampler: num_samples is {}, but there are {} rows; more need "
                              "replacement=True",
                              *options_.num_samples, facts.rows));
    return at_most(facts.rows, options_.num_samples);
  }
  RowNumbers order(const SourceFacts& facts, std::uint64_t seed, std::uint64_t epoch) const override {
    const auto count = static_cast<std::size_t>(*size(facts));
    if (!options_.replacement) {
      auto rows = row_order({.rows = facts.rows}, seed, epoch);
      rows.resize(count);
      return rows;
    }
    const RandomStream random = stream_of("muster.data.RandomSampler", seed, epoch);
    RowNumbers rows(count);
    for (std::size_t i = 0; i < count; ++i) rows[i] = static_cast<std::uint32_t>(random.below(i, facts.rows));
    return rows;
  }

 private:
  const RandomSamplerOptions options_;
};

class DistributedSampler final : public Sampler {
 public:
  explicit DistributedSampler(DistributedSamplerOptions options) : options_(options) {}
  Shard shard() const override { return {.count = options_.num_shards, .index = options_.shard_id}; }
  std::int64_t padding(const SourceFacts& facts) const override {
    return shard_padding(facts.rows, shard(), *size(facts));
  }
  Result<std::int64_t> size(const SourceFacts& facts) const override {
    MUSTER_TRY_VOID(check_count("DistributedSampler", options_.num_samples));
    if (options_.num_shards < 1 || options_.num_shards > (std::int64_t{1} << 31) - 1)
      return fail(Code::invalid_argument, fmt::format("DistributedSampler: num_shards is {}, it must be at "
                                                      "least 1",
                                                      options_.num_shards));
    if (options_.shard_id < 0 || options_.shard_id >= options_.num_shards)
      return fail(Code::invalid_argument,
                  fmt::format("DistributedSampler: shard_id is {}, it must be 0 to {} (num_shards is {})",
                              options_.shard_id, options_.num_shards - 1, options_.num_shards));
    return at_most(shard_size(facts.rows, static_cast<std::uint32_t>(options_.num_shards)),
                   options_.num_samples);
  }
  RowNumbers order(const SourceFacts& facts, std::uint64_t seed, std::uint64_t epoch) const override {
    RowNumbers rows = order_behind(facts, seed, epoch, 0);
    rows.resize(static_cast<std::size_t>(*size(facts)));
    return rows;
  }
  bool continues() const override { return !options_.num_samples; }
  RowNumbers order_behind(const SourceFacts& facts, std::uint64_t seed, std::uint64_t epoch,
                          std::uint32_t before) const override {
    return row_order({.rows = facts.rows,
                      .shuffle = options_.shuffle,
                      .num_shards = static_cast<std::uint32_t>(options_.num_shards),
                      .shard_id = static_cast<std::uint32_t>(options_.shard_id),
                      .before = before},
                     seed, epoch);
  }

 private:
  const DistributedSamplerOptions options_;
};

class SubsetSampler final : public Sampler {
 public:
  SubsetSampler(std::vector<std::int64_t> indices, Count num_samples, bool shuffle)
      : indices_(std::move(indices)), num_samples_(num_samples), shuffle_(shuffle) {}
  Result<std::int64_t> size(const SourceFacts& facts) const override {
    const char* name = shuffle_ ? "SubsetRandomSampler" : "SubsetSampler";
    MUSTER_TRY_VOID(check_count(name, num_samples_));
    if (indices_.empty()) return fail(Code::invalid_argument, fmt::format("{}: there are no indices", name));
    for (const std::int64_t index : indices_)
      if (index < 0 || index >= facts.rows)
        return fail(Code::invalid_argument,
                    fmt::format("{}: index {} is out of range, rows are numbered 0 to {}", name, index,
                                facts.rows - 1));
    return at_most(static_cast<std::int64_t>(indices_.size()), num_samples_);
  }
  RowNumbers order(const SourceFacts& facts, std::uint64_t seed, std::uint64_t epoch) const override {
    RowNumbers rows(indices_.begin(), indices_.end());
    if (shuffle_) {
      const auto places = row_order({.rows = static_cast<std::uint32_t>(indices_.size())}, seed, epoch);
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint32_t>(indices_[places[i]]);
    }
    rows.resize(static_cast<std::size_t>(*size(facts)));
    return rows;
  }

 private:
  const std::vector<std::int64_t> indices_;
  const Count num_samples_;
  const bool shuffle_;
};

class PkSampler final : public Sampler {
 public:
  explicit PkSampler(PkSamplerOptions options) : options_(options) {}
  Result<std::int64_t> size(const SourceFacts& facts) const override {
    MUSTER_TRY_VOID(check_count("PKSampler", options_.num_samples));
    if (facts.labels.empty())
      return fail(Code::invalid_argument, "PKSampler needs a source with labels, and this one has none");
    if (options_.num_val < 1)
      return fail(Code::invalid_argument,
                  fmt::format("PKSampler: num_val is {}, it must be at least 1", options_.num_val));
    if (options_.num_class && *options_.num_class < 1)
      return fail(Code::invalid_argument,
                  fmt::format("PKSampler: num_class is {}, it must be at least 1", *options_.num_class));
    return at_most(options_.num_val * static_cast<std::int64_t>(classes(facts).size()), options_.num_samples);
  }
  RowNumbers order(const SourceFacts& facts, std::uint64_t seed, std::uint64_t epoch) const override {
    std::vector<RowNumbers> members;
    for (auto& [label, rows] : classes(facts)) members.push_back(std::move(rows));
    const auto count = static_cast<std::uint32_t>(members.size());
    const auto places = row_order({.rows = count, .shuffle = options_.shuffle}, seed, epoch);
    const RandomStream random = stream_of("muster.data.PKSampler", seed, epoch);
    RowNumbers rows(static_cast<std::size_t>(*size(facts)));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const RowNumbers& of_class = members[places[i / static_cast<std::size_t>(options_.num_val)]];
      rows[i] = of_class[random.below(i, of_class.size())];
    }
    return rows;
  }

 private:
  std::map<std::uint32_t, RowNumbers> classes(const SourceFacts& facts) const {
    std::map<std::uint32_t, RowNumbers> members;
    for (std::uint32_t row = 0; row < facts.rows; ++row) members[facts.labels[row]].push_back(row);
    while (options_.num_class && static_cast<std::int64_t>(members.size()) > *options_.num_class)
      members.erase(std::prev(members.end()));
    return members;
  }

  const PkSamplerOptions options_;
};

class WeightedRandomSampler final : public Sampler {
 public:
  explicit WeightedRandomSampler(WeightedRandomSamplerOptions options) : options_(std::move(options)) {}
  Result<std::int64_t> size(const SourceFacts& facts) const override {
    MUSTER_TRY_VOID(check_count("WeightedRandomSampler", options_.num_samples));
    const auto& weights = options_.weights;
    if (weights.empty() || weights.size() > facts.rows)
      return fail(
          Code::invalid_argument,
          fmt::format("WeightedRandomSampler: there are {} weights for {} rows", weights.size(), facts.rows));
    for (const double weight : weights)
      if (!std::isfinite(weight) || weight < 0)
        return fail(Code::invalid_argument,
                    fmt::format("WeightedRandomSampler: a weight is {}, it must be at least 0", weight));
    const auto possible =
        std::count_if(weights.begin(), weights.end(), [](double weight) { return weight > 0; });
    if (possible == 0) return fail(Code::invalid_argument, "WeightedRandomSampler: all weights are 0");
    const std::int64_t count = options_.num_samples.value_or(static_cast<std::int64_t>(weights.size()));
    if (!options_.replacement && count > possible)
      return fail(
          Code::invalid_argument,
          fmt::format("WeightedRandomSampler: num_samples is {}, but only {} rows have a weight above "
                      "0; more need replacement=True",
                      count, possible));
    return count;
  }
  RowNumbers order(const SourceFacts& facts, std::uint64_t seed, std::uint64_t epoch) const override {
    const RandomStream random = stream_of("muster.data.WeightedRandomSampler", seed, epoch);
    const auto count = static_cast<std::size_t>(*size(facts));
    return options_.replacement ? with_replacement(random, count) : without_replacement(random, count);
  }

 private:
  RowNumbers with_replacement(const RandomStream& random, std::size_t count) const {
    std::vector<double> sums(options_.weights.size());
    std::partial_sum(options_.weights.begin(), options_.weights.end(), sums.begin());
    RowNumbers rows(count);
    for (std::size_t i = 0; i < count; ++i) {
      const double drawn = random.uniform(i) * sums.back();
      const auto found = std::upper_bound(sums.begin(), sums.end(), drawn);
      rows[i] = static_cast<std::uint32_t>(
          std::min<std::ptrdiff_t>(found - sums.begin(), static_cast<std::ptrdiff_t>(sums.size()) - 1));
    }
    return rows;
  }
  // The rows with the smallest of as many exponential variables, each at the rate of its weight: they come
  // as if drawn one after the other (Efraimidis and Spirakis, 2006).
  RowNumbers without_replacement(const RandomStream& random, std::size_t count) const {
    std::vector<std::pair<double, std::uint32_t>> times;
    for (std::uint32_t row = 0; row < options_.weights.size(); ++row)
      if (options_.weights[row] > 0)
        times.emplace_back(-std::log1p(-random.uniform(row)) / options_.weights[row], row);
    std::sort(times.begin(), times.end());
    RowNumbers rows(count);
    for (std::size_t i = 0; i < count; ++i) rows[i] = times[i].second;
    return rows;
  }

  const WeightedRandomSamplerOptions options_;
};

}  // namespace

std::vector<std::uint32_t> Sampler::order_behind(const SourceFacts& facts, std::uint64_t seed,
                                                 std::uint64_t epoch, std::uint32_t before) const {
  std::vector<std::uint32_t> rows = order(facts, seed, epoch);
  rows.erase(rows.begin(), rows.begin() + before);
  return rows;
}

SamplerPtr sequential_sampler(std::int64_t start, Count num_samples) {
  return std::make_shared<SequentialSampler>(start, num_samples);
}
SamplerPtr random_sampler(RandomSamplerOptions options) { return std::make_shared<RandomSampler>(options); }
SamplerPtr distributed_sampler(DistributedSamplerOptions options) {
  return std::make_shared<DistributedSampler>(options);
}
SamplerPtr subset_sampler(std::vector<std::int64_t> indices, Count num_samples) {
  return std::make_shared<SubsetSampler>(std::move(indices), num_samples, false);
}
SamplerPtr subset_random_sampler(std::vector<std::int64_t> indices, Count num_samples) {
  return std::make_shared<SubsetSampler>(std::move(indices), num_samples, true);
}
SamplerPtr pk_sampler(PkSamplerOptions options) { return std::make_shared<PkSampler>(options); }
SamplerPtr weighted_random_sampler(WeightedRandomSamplerOptions options) {
  return std::make_shared<WeightedRandomSampler>(std::move(options));
}

}  // namespace muster::data
