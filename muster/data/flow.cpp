// repeat, take, skip and mark_shard: they change which items come, never what is in them.
#include <fmt/format.h>

#include <algorithm>

#include "muster/data/node.h"

namespace muster::data {
namespace {

class RepeatStream final : public Stream {
 public:
  // Passes `first` to `end` - 1 of the child; without `end`, all from `first` on.
  RepeatStream(const Node& child, Pass first, std::optional<std::uint64_t> end)
      : child_(child), pass_(first), end_(end), stream_(child.open(first)) {}

  Result<std::optional<Block>> next(std::size_t want) override {
    while (true) {
      MUSTER_TRY(auto block, stream_->next(want));
      if (block) {
        yielded_ = true;
        return block;
      }
      // A pass with nothing in it, repeated for ever, would never return.
      if (!yielded_ || pass_.epoch + 1 == end_) return std::nullopt;
      begin_next();
    }
  }

  Result<std::size_t> skip(std::size_t rows) override {
    std::size_t done = 0;
    while (true) {
      MUSTER_TRY(const std::size_t passed, stream_->skip(rows - done));
      done += passed;
      yielded_ = yielded_ || passed > 0;
      if (done == rows || !yielded_ || pass_.epoch + 1 == end_) return done;
      begin_next();
    }
  }

 private:
  void begin_next() {
    ++pass_.epoch;
    stream_ = child_.open(pass_);
  }

  const Node& child_;
  Pass pass_;
  const std::optional<std::uint64_t> end_;
  std::unique_ptr<Stream> stream_;
  bool yielded_ = false;
};

class RepeatNode final : public FlowNode {
 public:
  RepeatNode(NodePtr child, std::int64_t count) : FlowNode(std::move(child)), count_(count) {}
  std::int64_t size() const override {
    if (count_ == size_endless || child()->size() == size_endless) return size_endless;
    return child()->size() < 0 ? child()->size() : child()->size() * count_;
  }
  std::int64_t repeat_count() const override { return count_; }
  // Each repetition is an epoch of the child, numbered on from one pass of ours to the next.
  std::unique_ptr<Stream> open(Pass pass) const override {
    if (count_ == size_endless) return std::make_unique<RepeatStream>(*child(), pass, std::nullopt);
    pass.epoch *= static_cast<std::uint64_t>(count_);
    return std::make_unique<RepeatStream>(*child(), pass, pass.epoch + static_cast<std::uint64_t>(count_));
  }

 private:
  const std::int64_t count_;
};

class TakeStream final : public Stream {
 public:
  TakeStream(std::unique_ptr<Stream> child, std::int64_t count)
      : child_(std::move(child)), left_(static_cast<std::size_t>(count)) {}

  Result<std::optional<Block>> next(std::size_t want) override {
    if (left_ == 0) return std::nullopt;
    MUSTER_TRY(auto block, child_->next(std::min(want, left_)));
    if (block) left_ -= block->rows;
    return block;
  }

  Result<std::size_t> skip(std::size_t rows) override {
    MUSTER_TRY(const std::size_t done, child_->skip(std::min(rows, left_)));
    left_ -= done;
    return done;
  }

 private:
  const std::unique_ptr<Stream> child_;
  std::size_t left_;
};

class TakeNode final : public FlowNode {
 public:
  TakeNode(NodePtr child, std::int64_t count) : FlowNode(std::move(child)), count_(count) {}
  std::int64_t size() const override {
    if (child()->size() == size_unknown) return size_unknown;
    return child()->size() == size_endless ? count_ : std::min(child()->size(), count_);
  }
  std::unique_ptr<Stream> open(Pass pass) const override {
    return std::make_unique<TakeStream>(child()->open(pass), count_);
  }

 private:
  const std::int64_t count_;
};

class SkipStream final : public Stream {
 public:
  SkipStream(std::unique_ptr<Stream> child, std::int64_t count)
      : child_(std::move(child)), left_(static_cast<std::size_t>(count)) {}

  Result<std::optional<Block>> next(std::size_t want) override {
    MUSTER_TRY_VOID(pass_over());
    return child_->next(want);
  }

  Result<std::size_t> skip(std::size_t rows) override {
    MUSTER_TRY_VOID(pass_over());
    return child_->skip(rows);
  }

 private:
  Result<> pass_over() {
    if (left_ > 0) MUSTER_TRY_VOID(child_->skip(left_));
    left_ = 0;
    return {};
  }

  const std::unique_ptr<Stream> child_;
  std::size_t left_;
};

class SkipNode final : public FlowNode {
 public:
  SkipNode(NodePtr child, std::int64_t count) : FlowNode(std::move(child)), count_(count) {}
  std::int64_t size() const override {
    return child()->size() < 0 ? child()->size() : std::max<std::int64_t>(child()->size() - count_, 0);
  }
  std::unique_ptr<Stream> open(Pass pass) const override {
    return std::make_unique<SkipStream>(child()->open(pass), count_);
  }

 private:
  const std::int64_t count_;
};

// A part of the rows that the script has cut out itself. How many there are in all only it knows.
class MarkedNode final : public FlowNode {
 public:
  MarkedNode(NodePtr child, const Shard& shard) : FlowNode(std::move(child)), shard_(shard) {}
  Shard shard() const override { return shard_; }
  std::int64_t source_rows() const override { return size_unknown; }
  std::unique_ptr<Stream> open(Pass pass) const override { return child()->open(pass); }

 private:
  const Shard shard_;
};

}  // namespace

Result<NodePtr> make_marked(NodePtr child, const Shard& shard) {
  if (child->shard().count > 1)
    return fail(Code::invalid_argument,
                fmt::format("mark_shard: the rows are shard {} of {} already, as num_shards and shard_id say",
                            child->shard().index, child->shard().count));
  if (shard.count < 1 || shard.index < 0 || shard.index >= shard.count)
    return fail(Code::invalid_argument,
                fmt::format("mark_shard: shard_id is {}, it must be 0 to {} (num_shards is {})", shard.index,
                            shard.count - 1, shard.count));
  return std::make_shared<MarkedNode>(std::move(child), shard);
}

Result<NodePtr> make_repeat(NodePtr child, std::int64_t count) {
  if (count != size_endless && (count < 1 || count > std::int64_t{1} << 31))
    return fail(Code::invalid_argument,
                fmt::format("repeat count is {}, it must be -1 (without end) or 1 to 2147483648", count));
  if (count == 1 && child->repeat_count() == 1) return child;
  return std::make_shared<RepeatNode>(std::move(child), count);
}

Result<NodePtr> make_take(NodePtr child, std::int64_t count) {
  if (count == -1) return child;
  if (count < 1)
    return fail(Code::invalid_argument,
                fmt::format("take count is {}, it must be -1 (all) or at least 1", count));
  return std::make_shared<TakeNode>(std::move(child), count);
}

Result<NodePtr> make_skip(NodePtr child, std::int64_t count) {
  if (count < 0)
    return fail(Code::invalid_argument, fmt::format("skip count is {}, it must be at least 0", count));
  return std::make_shared<SkipNode>(std::move(child), count);
}

}  // namespace muster::data
