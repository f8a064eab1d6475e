// batch: rows side by side become one row with an axis in front.
#include <fmt/format.h>

#include "muster/data/buffer_pool.h"
#include "muster/data/node.h"

namespace muster::data {
namespace {

class BatchStream final : public Stream {
 public:
  BatchStream(std::unique_ptr<Stream> child, const std::vector<Column>& columns, const BufferPool& pool,
              std::size_t rows, bool drop_remainder)
      : child_(std::move(child)),
        columns_(columns),
        pool_(pool),
        rows_(rows),
        drop_remainder_(drop_remainder) {}

  Result<std::optional<Block>> next(std::size_t) override {
    std::vector<Block> parts;
    std::size_t rows = 0;
    while (rows < rows_) {
      MUSTER_TRY(auto block, child_->next(rows_ - rows));
      if (!block) break;
      rows += block->rows;
      parts.push_back(*std::move(block));
    }
    if (rows == 0 || (rows < rows_ && drop_remainder_)) return std::nullopt;
    MUSTER_TRY(auto whole, joined(std::move(parts), columns_, pool_));
    for (Tensor& column : whole.columns) column = column.reshaped(with_leading(1, column.shape()));
    return Block{1, std::move(whole.columns), {whole.keys.front()}};
  }

  Result<std::size_t> skip(std::size_t batches) override {
    MUSTER_TRY(const std::size_t rows, child_->skip(batches * rows_));
    return rows / rows_ + (rows % rows_ != 0 && !drop_remainder_);
  }

 private:
  const std::unique_ptr<Stream> child_;
  const std::vector<Column>& columns_;
  const BufferPool& pool_;
  const std::size_t rows_;
  const bool drop_remainder_;
};

class BatchNode final : public FlowNode {
 public:
  BatchNode(NodePtr child, std::int64_t rows, bool drop_remainder)
      : FlowNode(std::move(child)),
        rows_(rows),
        drop_remainder_(drop_remainder),
        columns_(this->child()->columns()) {
    const std::int64_t size = this->child()->size();
    const bool always_full = drop_remainder || size == size_endless || (size >= 0 && size % rows == 0);
    for (Column& column : columns_)
      if (column.shape) column.shape = with_leading(always_full ? rows : -1, *column.shape);
  }

  const std::vector<Column>& columns() const override { return columns_; }
  std::int64_t size() const override { return batches_of(child()->size()); }
  std::optional<OrderedRows> ordered_rows() const override {
    std::optional<OrderedRows> rows = child()->ordered_rows();
    if (rows) rows->an_item *= rows_;
    return rows;
  }
  std::int64_t size_behind(std::uint32_t rows_before) const override {
    return batches_of(child()->size_behind(rows_before));
  }
  std::int64_t batch_size() const override { return rows_; }
  std::unique_ptr<Stream> open(Pass pass) const override {
    return std::make_unique<BatchStream>(child()->open(pass), child()->columns(), pool_,
                                         static_cast<std::size_t>(rows_), drop_remainder_);
  }

 private:
  std::int64_t batches_of(std::int64_t size) const {
    return size < 0 ? size : size / rows_ + (!drop_remainder_ && size % rows_ != 0);
  }

  const std::int64_t rows_;
  const bool drop_remainder_;
  std::vector<Column> columns_;
  const BufferPool pool_;
};

constexpr std::int64_t batch_rows_max = std::int64_t{1} << 31;

}  // namespace

Result<NodePtr> make_batch(NodePtr child, std::int64_t rows, bool drop_remainder) {
  if (rows < 1 || rows > batch_rows_max)
    return fail(Code::invalid_argument,
                fmt::format("batch size is {}, it must be 1 to {}", rows, batch_rows_max));
  return std::make_shared<BatchNode>(std::move(child), rows, drop_remainder);
}

}  // namespace muster::data
