#include "muster/data/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "muster/data/process_stream.h"
#include "muster/data/row_order.h"

namespace muster::data {
namespace {

// What the options name without a sampler: shards of one shuffled list.
class ShardSampler final : public Sampler {
 public:
  explicit ShardSampler(const RowOptions& options)
      : shuffle_(options.shuffle.value_or(true)),
        num_shards_(static_cast<std::uint32_t>(options.num_shards.value_or(1))),
        shard_id_(static_cast<std::uint32_t>(options.shard_id.value_or(0))),
        num_samples_(options.num_samples) {}

  Shard shard() const override { return {.count = num_shards_, .index = shard_id_}; }
  std::int64_t padding(const SourceFacts& facts) const override {
    return shard_padding(facts.rows, shard(), *size(facts));
  }
  Result<std::int64_t> size(const SourceFacts& facts) const override {
    const std::int64_t rows = shard_size(facts.rows, num_shards_);
    return num_samples_ ? std::min(rows, *num_samples_) : rows;
  }
  std::vector<std::uint32_t> order(const SourceFacts& facts, std::uint64_t seed,
                                   std::uint64_t epoch) const override {
    auto order = order_behind(facts, seed, epoch, 0);
    order.resize(static_cast<std::size_t>(*size(facts)));
    return order;
  }
  bool continues() const override { return !num_samples_; }
  std::vector<std::uint32_t> order_behind(const SourceFacts& facts, std::uint64_t seed, std::uint64_t epoch,
                                          std::uint32_t before) const override {
    return row_order({.rows = facts.rows,
                      .shuffle = shuffle_,
                      .num_shards = num_shards_,
                      .shard_id = shard_id_,
                      .before = before},
                     seed, epoch);
  }

 private:
  const bool shuffle_;
  const std::uint32_t num_shards_;
  const std::uint32_t shard_id_;
  const std::optional<std::int64_t> num_samples_;
};

Result<> check(const RowOptions& options) {
  if (options.sampler && (options.shuffle || options.num_samples || options.num_shards || options.shard_id))
    return fail(
        Code::invalid_argument,
        "a sampler says which rows come; give no shuffle, num_samples, num_shards or shard_id with it");
  if (options.num_samples && *options.num_samples < 1)
    return fail(Code::invalid_argument,
                fmt::format("num_samples is {}, it must be at least 1", *options.num_samples));
  if (options.num_shards.has_value() != options.shard_id.has_value())
    return fail(Code::invalid_argument, "num_shards and shard_id go together: one of them is missing");
  if (!options.num_shards) return {};
  if (*options.num_shards < 1 || *options.num_shards > std::numeric_limits<std::int32_t>::max())
    return fail(Code::invalid_argument,
                fmt::format("num_shards is {}, it must be at least 1", *options.num_shards));
  if (*options.shard_id < 0 || *options.shard_id >= *options.num_shards)
    return fail(Code::invalid_argument,
                fmt::format("shard_id is {}, it must be 0 to {} (num_shards is {})", *options.shard_id,
                            *options.num_shards - 1, *options.num_shards));
  return {};
}

class SourceStream final : public Stream {
 public:
  SourceStream(const Source& source, const BufferPool& pool, Pass pass, std::vector<std::uint32_t> order)
      : source_(source), pool_(pool), pass_(pass), order_(std::move(order)) {}

  Result<std::optional<Block>> next(std::size_t want) override {
    const std::size_t rows = std::min(want, order_.size() - position_);
    if (rows == 0) return std::nullopt;
    MUSTER_TRY(auto columns, source_.read(std::span(order_).subspan(position_, rows), pool_));
    Block block{static_cast<std::size_t>(columns.front().shape()[0]), std::move(columns)};
    for (std::size_t i = 0; i < block.rows; ++i) block.keys.push_back(row_key(pass_, order_[position_ + i]));
    position_ += block.rows;
    return block;
  }

  Result<std::size_t> skip(std::size_t rows) override {
    rows = std::min(rows, order_.size() - position_);
    position_ += rows;
    return rows;
  }

 private:
  const Source& source_;
  const BufferPool& pool_;
  const Pass pass_;
  const std::vector<std::uint32_t> order_;
  std::size_t position_ = 0;
};

// The rows of a pass, for processes that make them.
class SourceTasks final : public TaskFeed {
 public:
  SourceTasks(const Pass& pass, std::vector<std::uint32_t> order) : pass_(pass), order_(std::move(order)) {}

  Result<std::optional<GivenRow>> next() override {
    if (position_ == order_.size()) return std::nullopt;
    const std::uint32_t row = order_[position_++];
    const std::uint64_t key = row_key(pass_, row);
    const std::uint64_t seed[] = {key, hash_text("muster.data.source")};
    return GivenRow{.task = {.row = row, .key = key, .seed = hash_bytes(seed, sizeof seed)},
                    .rest = {.rows = 1, .columns = {}, .keys = {key}}};
  }

  Result<std::size_t> skip(std::size_t rows) override {
    rows = std::min(rows, order_.size() - position_);
    position_ += rows;
    return rows;
  }

 private:
  const Pass pass_;
  const std::vector<std::uint32_t> order_;
  std::size_t position_ = 0;
};

class SourceNode final : public Node {
 public:
  SourceNode(std::shared_ptr<const Source> source, SamplerPtr sampler, std::int64_t size)
      : source_(std::move(source)), sampler_(std::move(sampler)), size_(size) {}

  const std::vector<Column>& columns() const override { return source_->columns(); }
  std::int64_t size() const override { return size_; }
  bool foreign() const override { return source_->foreign(); }
  std::uint64_t draws() const override { return 0; }
  Shard shard() const override { return sampler_->shard(); }
  std::int64_t source_rows() const override { return source_->rows(); }
  std::optional<OrderedRows> ordered_rows() const override {
    if (!sampler_->continues()) return std::nullopt;
    return OrderedRows{.list = sampler_->list_size(facts()), .an_item = 1};
  }
  std::int64_t size_behind(std::uint32_t rows_before) const override {
    return shard_size(static_cast<std::uint32_t>(sampler_->list_size(facts())) - rows_before,
                      static_cast<std::uint32_t>(shard().count));
  }
  std::unique_ptr<Stream> open(Pass pass) const override {
    const SourceFacts facts = this->facts();
    std::vector<std::uint32_t> order =
        pass.rows_before == 0 ? sampler_->order(facts, pass.seed, pass.epoch)
                              : sampler_->order_behind(facts, pass.seed, pass.epoch, pass.rows_before);
    if (!pass.padding)
      order.resize(order.size() - static_cast<std::size_t>(
                                      sampler_->padding({facts.rows - pass.rows_before, facts.labels})));
    if (source_->processes().count > 0)
      return open_process_stream(std::make_unique<SourceTasks>(pass, std::move(order)), process_settings(),
                                 pool_, pass);
    return std::make_unique<SourceStream>(*source_, pool_, pass, std::move(order));
  }

 private:
  SourceFacts facts() const { return {source_->rows(), source_->labels()}; }

  ProcessStreamSettings process_settings() const {
    ProcessStreamSettings settings{
        .processes = source_->processes(),
        .job = {.make = [this](const WorkerTask& task) { return make(task.row); }, .what = "of the source"},
        .places = {},
        .columns = columns()};
    for (std::size_t i = 0; i < columns().size(); ++i) settings.places.push_back({.made = true, .index = i});
    return settings;
  }

  Result<std::vector<Tensor>> make(std::int64_t row) const {
    const auto number = static_cast<std::uint32_t>(row);
    MUSTER_TRY(auto values, source_->read({&number, 1}, BufferPool()));
    for (Tensor& value : values) value = value.reshaped(without_leading(value.shape()));
    return values;
  }

  const std::shared_ptr<const Source> source_;
  const SamplerPtr sampler_;
  const std::int64_t size_;
  const BufferPool pool_;
};

}  // namespace

const ProcessOptions& Source::processes() const {
  static const ProcessOptions none;
  return none;
}

std::uint64_t row_key(const Pass& pass, std::uint64_t row) {
  const std::uint64_t parts[] = {pass.seed, pass.epoch, row};
  return hash_bytes(parts, sizeof parts);
}

Result<std::vector<Tensor>> TableSource::read(std::span<const std::uint32_t> rows,
                                              const BufferPool& pool) const {
  std::vector<Tensor> values;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    Tensor column = pool.make(*columns_[i].dtype,
                              with_leading(static_cast<std::int64_t>(rows.size()), *columns_[i].shape));
    const std::size_t row_bytes = column.size_bytes() / rows.size();
    for (std::size_t k = 0; k < rows.size(); ++k) copy(i, rows[k], column.bytes() + k * row_bytes);
    values.push_back(std::move(column));
  }
  return values;
}

Result<> check_usage(const std::string& usage, const std::vector<std::string>& known) {
  if (usage.empty() || std::find(known.begin(), known.end(), usage) != known.end()) return {};
  return fail(Code::invalid_argument,
              fmt::format("usage is '{}', it must be '{}' or '{}'", usage,
                          fmt::join(known.begin(), known.end() - 1, "', '"), known.back()));
}

Result<NodePtr> make_source(std::shared_ptr<const Source> source, const RowOptions& options) {
  MUSTER_TRY_VOID(check(options));
  const SamplerPtr sampler = options.sampler ? options.sampler : std::make_shared<ShardSampler>(options);
  MUSTER_TRY(const auto size, sampler->size({source->rows(), source->labels()}));
  return std::make_shared<SourceNode>(std::move(source), sampler, size);
}

}  // namespace muster::data
