// shuffle: each row is drawn from a buffer of those that came before it.
#include <fmt/format.h>

#include <algorithm>

#include "muster/data/buffer_pool.h"
#include "muster/data/node.h"

namespace muster::data {
namespace {

// Rows asked of the child at one time. A row that waits in the buffer keeps its whole block in memory.
constexpr std::size_t fill_rows_max = 16;

class ShuffleStream final : public Stream {
 public:
  ShuffleStream(std::unique_ptr<Stream> child, const std::vector<Column>& columns, const BufferPool& pool,
                std::size_t buffer_rows, RandomStream random)
      : child_(std::move(child)),
        columns_(columns),
        pool_(pool),
        buffer_rows_(buffer_rows),
        random_(random) {}

  Result<std::optional<Block>> next(std::size_t want) override {
    std::vector<Block> drawn;
    while (drawn.size() < want) {
      MUSTER_TRY_VOID(fill(want - drawn.size()));
      if (waiting_.empty()) break;
      std::swap(waiting_[random_.below(drawn_++, waiting_.size())], waiting_.back());
      drawn.push_back(std::move(waiting_.back()));
      waiting_.pop_back();
      // Rows of other sizes cannot lie beside those before them: they begin the next block.
      if (drawn.size() > 1 && !alike(drawn.front(), drawn.back())) {
        put_back(std::move(drawn.back()));
        drawn.pop_back();
        break;
      }
    }
    if (drawn.empty()) return std::nullopt;
    return joined(std::move(drawn), columns_, pool_);
  }

 private:
  // The draw is undone, so that the rows come in the same order however many are asked for at a time.
  void put_back(Block row) {
    --drawn_;
    waiting_.push_back(std::move(row));
    std::swap(waiting_[random_.below(drawn_, waiting_.size())], waiting_.back());
  }

  // The next rows of the child, until the buffer is full.
  Result<> fill(std::size_t wanted) {
    while (waiting_.size() < buffer_rows_) {
      if (position_ == incoming_.rows) {
        if (ended_) return {};
        const std::size_t rows = std::min(fill_rows_max, buffer_rows_ - waiting_.size() + wanted - 1);
        MUSTER_TRY(auto block, child_->next(rows));
        ended_ = !block;
        if (ended_) return {};
        incoming_ = *std::move(block);
        position_ = 0;
      }
      waiting_.push_back(rows_of(incoming_, position_++, 1));
      if (position_ == incoming_.rows) {
        incoming_ = {};
        position_ = 0;
      }
    }
    return {};
  }

  const std::unique_ptr<Stream> child_;
  const std::vector<Column>& columns_;
  const BufferPool& pool_;
  const std::size_t buffer_rows_;
  const RandomStream random_;
  Block incoming_;  // its rows before `position_` were taken
  std::size_t position_ = 0;
  std::vector<Block> waiting_;  // one row each
  std::uint64_t drawn_ = 0;
  bool ended_ = false;
};

class ShuffleNode final : public FlowNode {
 public:
  ShuffleNode(NodePtr child, std::int64_t buffer_rows)
      : FlowNode(std::move(child)), buffer_rows_(buffer_rows) {}
  std::uint64_t draws() const override { return child()->draws() + 1; }
  std::unique_ptr<Stream> open(Pass pass) const override {
    const std::uint64_t stream[] = {hash_text("muster.data.shuffle_buffer"), pass.epoch, child()->draws()};
    return std::make_unique<ShuffleStream>(child()->open(pass), columns(), pool_,
                                           static_cast<std::size_t>(buffer_rows_),
                                           RandomStream(pass.seed, hash_bytes(stream, sizeof stream)));
  }

 private:
  const std::int64_t buffer_rows_;
  const BufferPool pool_;
};

}  // namespace

Result<NodePtr> make_shuffle(NodePtr child, std::int64_t buffer_rows) {
  if (buffer_rows < 2 || buffer_rows > std::int64_t{1} << 31)
    return fail(Code::invalid_argument,
                fmt::format("shuffle: the buffer size is {}, it must be 2 to 2147483648", buffer_rows));
  MUSTER_TRY(auto before, child->shuffled_before(buffer_rows));
  if (before) return before;
  return std::make_shared<ShuffleNode>(std::move(child), buffer_rows);
}

}  // namespace muster::data
