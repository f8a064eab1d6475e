#include "muster/data/map_transforms.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>

#include "muster/data/buffer_pool.h"
#include "muster/data/chain.h"
#include "muster/data/workers.h"

namespace muster::data {
namespace {

// Waking another thread takes as long as writing so many bytes.
constexpr std::size_t worth_sharing_bytes = 256 << 10;
// One worker's next piece: small enough to be spread evenly, large enough to be worth the asking.
constexpr std::size_t piece_bytes = 64 << 10;
// Blocks larger than what a core keeps in its caches are written past them.
constexpr std::size_t streaming_bytes = 2 << 20;

// Compiled chains by the type that goes in. Images in files come in many sizes: the oldest make room.
class ChainCache {
 public:
  explicit ChainCache(std::vector<TransformPtr> transforms) : transforms_(std::move(transforms)) {}

  bool empty() const { return transforms_.empty(); }
  Result<std::shared_ptr<const Chain>> get(const ValueType& input) {
    const std::lock_guard lock(mutex_);
    for (const auto& chain : chains_)
      if (chain->input() == input) return chain;
    MUSTER_TRY(auto made, Chain::compile(transforms_, input));
    if (chains_.size() == chains_max) chains_.pop_front();
    chains_.push_back(std::make_shared<const Chain>(std::move(made)));
    return chains_.back();
  }

 private:
  static constexpr std::size_t chains_max = 64;

  const std::vector<TransformPtr> transforms_;
  std::mutex mutex_;
  std::deque<std::shared_ptr<const Chain>> chains_;
};

// Transforms that go by the value stand alone; those between them are chains.
struct Segment {
  TransformPtr by_value;  // may be null; comes first
  std::unique_ptr<ChainCache> chain;
  std::uint64_t chain_operation = 0;  // Draw::operation of the chain's first
};

std::vector<Segment> segments_of(const std::vector<TransformPtr>& transforms, std::uint64_t operation) {
  std::vector<Segment> segments;
  for (auto next = transforms.begin(); next != transforms.end();) {
    Segment segment;
    if ((*next)->by_value()) segment.by_value = *next++;
    const auto by_value = [](const TransformPtr& t) { return t->by_value(); };
    const auto end = std::find_if(next, transforms.end(), by_value);
    segment.chain = std::make_unique<ChainCache>(std::vector(next, end));
    segment.chain_operation = operation + static_cast<std::uint64_t>(next - transforms.begin());
    segments.push_back(std::move(segment));
    next = end;
  }
  return segments;
}

class TransformStream final : public Stream {
 public:
  TransformStream(std::unique_ptr<Stream> child, const TransformSettings& settings,
                  const std::vector<Column>& child_columns, std::uint64_t operation, const BufferPool& pool,
                  Workers* workers)
      : child_(std::move(child)),
        settings_(settings),
        child_columns_(child_columns),
        segments_(segments_of(settings.transforms, operation)),
        pool_(pool),
        workers_(workers),
        scratch_(workers == nullptr ? 1 : static_cast<std::size_t>(workers->count())) {}

  Result<std::optional<Block>> next(std::size_t want) override {
    if (made_.empty()) {
      MUSTER_TRY(auto parts, gather(want));
      if (parts.empty()) return std::nullopt;
      MUSTER_TRY_VOID(transform(std::move(parts)));
    }
    Block& first = made_.front();
    if (first.rows > want) {
      Block part = rows_of(first, 0, want);
      first = rows_of(first, want, first.rows - want);
      return part;
    }
    Block block = std::move(first);
    made_.pop_front();
    return block;
  }

  // Only what is made already is dropped row by row.
  Result<std::size_t> skip(std::size_t rows) override {
    std::size_t made = 0;
    for (const Block& block : made_) made += block.rows;
    if (made > 0 || failed_ || ended_) {
      MUSTER_TRY(const std::size_t dropped, Stream::skip(std::min(rows, std::max<std::size_t>(made, 1))));
      if (dropped == 0 || dropped == rows) return dropped;
      MUSTER_TRY(const std::size_t more, skip(rows - dropped));
      return dropped + more;
    }
    return child_->skip(rows);
  }

 private:
  // As many rows as are wanted, also where the child gives them one by one, since they have different sizes:
  // the workers can share only what is there.
  Result<std::vector<Block>> gather(std::size_t want) {
    std::vector<Block> parts;
    if (failed_) return fail(*failed_);
    std::size_t rows = 0;
    while (rows < want && !ended_) {
      auto block = child_->next(want - rows);
      if (!block) {
        if (parts.empty()) return fail(block.error());
        failed_ = block.error();  // the rows before it come first
        break;
      }
      ended_ = !block->has_value();
      if (ended_) break;
      rows += (*block)->rows;
      parts.push_back(**std::move(block));
    }
    return parts;
  }

  Result<> transform(std::vector<Block> parts) {
    if (alike(parts)) {
      MUSTER_TRY(auto whole, joined(std::move(parts), child_columns_, pool_));
      if (segments_.size() == 1 && !segments_.front().by_value) return transform_alike(std::move(whole));
      parts.clear();
      parts.push_back(std::move(whole));
    }
    return transform_rows(parts);
  }

  // All rows have one type: they are written where they stay.
  Result<> transform_alike(Block block) {
    Tensor& values = block.columns[settings_.column];
    Segment& segment = segments_.front();
    MUSTER_TRY(const auto chain, segment.chain->get({values.dtype(), without_leading(values.shape())}));
    Tensor made = pool_.make(chain->output().dtype,
                             with_leading(static_cast<std::int64_t>(block.rows), chain->output().shape));
    const std::size_t in_bytes = values.size_bytes() / block.rows;
    const std::size_t out_bytes = made.size_bytes() / block.rows;
    const Stores stores = made.size_bytes() >= streaming_bytes ? Stores::streaming : Stores::cached;
    const std::size_t piece =
        workers_ == nullptr || made.size_bytes() + values.size_bytes() < worth_sharing_bytes
            ? block.rows
            : std::max<std::size_t>(piece_bytes / std::max<std::size_t>(in_bytes + out_bytes, 1), 1);
    share((block.rows + piece - 1) / piece, [&](int worker, std::size_t index) {
      const std::size_t begin = index * piece;
      const Rows rows{.count = std::min(piece, block.rows - begin),
                      .keys = block.keys.empty() ? nullptr : block.keys.data() + begin,
                      .operation = segment.chain_operation};
      chain->run({.rows = rows, .stores = stores}, values.bytes() + begin * in_bytes,
                 made.bytes() + begin * out_bytes, scratch_[static_cast<std::size_t>(worker)]);
    });
    values = std::move(made);
    made_.push_back(std::move(block));
    return {};
  }

  // Each row by itself: they may go in and come out with different sizes.
  Result<> transform_rows(const std::vector<Block>& parts) {
    std::vector<Block> rows;
    for (const Block& part : parts)
      for (std::size_t row = 0; row < part.rows; ++row) rows.push_back(rows_of(part, row, 1));
    std::vector<std::optional<Error>> errors(rows.size());
    share(rows.size(), [&](int worker, std::size_t index) {
      Tensor& value = rows[index].columns[settings_.column];
      const std::uint64_t key = rows[index].keys.empty() ? 0 : rows[index].keys.front();
      auto made = transform_value(value.reshaped(without_leading(value.shape())), key,
                                  scratch_[static_cast<std::size_t>(worker)]);
      if (made)
        value = made->reshaped(with_leading(1, made->shape()));
      else
        errors[index] = std::move(made).error();
    });
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!errors[i]) continue;
      if (i == 0) return fail(*errors[i]);
      failed_ = errors[i];  // the rows before it come first
      rows.resize(i);
      break;
    }
    if (!alike(rows)) {
      std::move(rows.begin(), rows.end(), std::back_inserter(made_));
      return {};
    }
    MUSTER_TRY(auto whole, joined(std::move(rows), settings_.columns, pool_));
    made_.push_back(std::move(whole));
    return {};
  }

  Result<Tensor> transform_value(Tensor value, std::uint64_t key, Chain::Scratch& scratch) {
    for (Segment& segment : segments_) {
      if (segment.by_value) {
        MUSTER_TRY(value, segment.by_value->apply_value(value));
      }
      if (segment.chain->empty()) continue;
      MUSTER_TRY(const auto chain, segment.chain->get({value.dtype(), value.shape()}));
      Tensor made(chain->output().dtype, chain->output().shape);
      chain->run({.rows = {.count = 1, .keys = &key, .operation = segment.chain_operation}}, value.bytes(),
                 made.bytes(), scratch);
      value = std::move(made);
    }
    return value;
  }

  void share(std::size_t count, const std::function<void(int, std::size_t)>& body) {
    if (workers_ != nullptr) return workers_->for_each(count, settings_.workers_max, body);
    for (std::size_t index = 0; index < count; ++index) body(0, index);
  }

  const std::unique_ptr<Stream> child_;
  const TransformSettings& settings_;
  const std::vector<Column>& child_columns_;
  std::vector<Segment> segments_;
  const BufferPool& pool_;
  Workers* const workers_;
  std::vector<Chain::Scratch> scratch_;  // one a worker
  std::deque<Block> made_;
  std::optional<Error> failed_;
  bool ended_ = false;
};

class TransformNode final : public OneByOneNode {
 public:
  TransformNode(NodePtr child, TransformSettings settings)
      : OneByOneNode(std::move(child)), settings_(std::move(settings)) {}
  const std::vector<Column>& columns() const override { return settings_.columns; }
  std::uint64_t draws() const override { return child()->draws() + settings_.transforms.size(); }
  std::unique_ptr<Stream> open(Pass pass) const override {
    return std::make_unique<TransformStream>(child()->open(pass), settings_, child()->columns(),
                                             child()->draws(), pool_, pass.workers);
  }
  // The transforms look at one row at a time, and a row's random numbers stay with it.
  Result<NodePtr> shuffled_before(std::int64_t buffer_rows) const override {
    MUSTER_TRY(auto shuffled, make_shuffle(child(), buffer_rows));
    return make_transform_node(std::move(shuffled), settings_);
  }

 private:
  const TransformSettings settings_;
  const BufferPool pool_;
};

}  // namespace

NodePtr make_transform_node(NodePtr child, TransformSettings settings) {
  return std::make_shared<TransformNode>(std::move(child), std::move(settings));
}

}  // namespace muster::data
