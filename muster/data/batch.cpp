// batch: rows side by side become one row with an axis in front.
#include <fmt/format.h>

#include <cstring>

#include "muster/data/buffer_pool.h"
#include "muster/data/node.h"

namespace muster::data {
namespace {

// The blocks' rows one after the other in one block. Rows of a batch must be alike.
Result<Block> concatenate(const std::vector<Block>& parts, const std::vector<Column>& columns,
                          const BufferPool& pool) {
  Block whole;
  for (const Block& part : parts) whole.rows += part.rows;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Tensor& first = parts.front().columns[i];
    const Shape row = without_leading(first.shape());
    Tensor stacked = pool.make(first.dtype(), with_leading(static_cast<std::int64_t>(whole.rows), row));
    std::byte* end = stacked.bytes();
    for (const Block& part : parts) {
      const Tensor& values = part.columns[i];
      const Shape other = without_leading(values.shape());
      if (values.dtype() != first.dtype() || other != row)
        return fail(
            Code::invalid_argument,
            fmt::format("column '{}' cannot be batched: it holds {} {} in one row and {} {} in another",
                        columns[i].name, to_string(first.dtype()), to_string(row), to_string(values.dtype()),
                        to_string(other)));
      if (values.size_bytes() > 0) std::memcpy(end, values.bytes(), values.size_bytes());
      end += values.size_bytes();
    }
    whole.columns.push_back(std::move(stacked));
  }
  return whole;
}

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
    if (parts.size() > 1) {
      MUSTER_TRY(auto whole, concatenate(parts, columns_, pool_));
      parts = {std::move(whole)};
    }
    for (Tensor& column : parts.front().columns) column = column.reshaped(with_leading(1, column.shape()));
    return Block{1, std::move(parts.front().columns)};
  }

 private:
  const std::unique_ptr<Stream> child_;
  const std::vector<Column>& columns_;
  const BufferPool& pool_;
  const std::size_t rows_;
  const bool drop_remainder_;
};

class BatchNode final : public Node {
 public:
  BatchNode(NodePtr child, std::int64_t rows, bool drop_remainder)
      : child_(std::move(child)), rows_(rows), drop_remainder_(drop_remainder), columns_(child_->columns()) {
    const bool always_full = drop_remainder || child_->size() < 0 || child_->size() % rows == 0;
    for (Column& column : columns_)
      if (column.shape) column.shape = with_leading(always_full ? rows : -1, *column.shape);
  }

  const std::vector<Column>& columns() const override { return columns_; }
  std::int64_t size() const override {
    if (child_->size() < 0) return child_->size();
    return child_->size() / rows_ + (!drop_remainder_ && child_->size() % rows_ != 0);
  }
  bool foreign() const override { return child_->foreign(); }
  std::unique_ptr<Stream> open(Pass pass) const override {
    return std::make_unique<BatchStream>(child_->open(pass), child_->columns(), pool_,
                                         static_cast<std::size_t>(rows_), drop_remainder_);
  }

 private:
  const NodePtr child_;
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
