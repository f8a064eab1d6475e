#include "muster/data/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "muster/data/source.h"

namespace muster::data {
namespace {

Result<> check_names(const std::vector<std::string>& names) {
  if (names.empty()) return fail(Code::invalid_argument, "the columns have no names");
  for (auto name = names.begin(); name != names.end(); ++name)
    if (std::find(names.begin(), name, *name) != name)
      return fail(Code::invalid_argument, fmt::format("two columns are named '{}'", *name));
  return {};
}

std::vector<Column> unknown_columns(const std::vector<std::string>& names) {
  std::vector<Column> columns;
  for (const std::string& name : names) columns.push_back({name, {}, {}});
  return columns;
}

class SliceSource final : public TableSource {
 public:
  SliceSource(std::vector<Column> columns, std::vector<Tensor> values)
      : TableSource(std::move(columns)), values_(std::move(values)) {}
  std::uint32_t rows() const override { return static_cast<std::uint32_t>(values_.front().shape()[0]); }

 protected:
  void copy(std::size_t column, std::uint32_t row, std::byte* out) const override {
    const Tensor& values = values_[column];
    const std::size_t row_bytes = values.size_bytes() / rows();
    if (row_bytes > 0) std::memcpy(out, values.bytes() + row * row_bytes, row_bytes);
  }

 private:
  const std::vector<Tensor> values_;
};

Result<NodePtr> make_slices(const std::vector<std::string>& names, std::vector<Tensor> values,
                            const RowOptions& options) {
  MUSTER_TRY_VOID(check_names(names));
  if (names.size() != values.size())
    return fail(Code::invalid_argument,
                fmt::format("there are {} column names for {} arrays", names.size(), values.size()));
  std::vector<Column> columns;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Shape& shape = values[i].shape();
    if (shape.rank() == 0 || shape[0] < 1 || static_cast<std::size_t>(shape[0]) > source_rows_max)
      return fail(Code::invalid_argument,
                  fmt::format("column '{}' has the shape {}: its first axis counts the rows, 1 to {}",
                              names[i], to_string(shape), source_rows_max));
    if (shape[0] != values.front().shape()[0])
      return fail(Code::invalid_argument,
                  fmt::format("column '{}' has {} rows and column '{}' has {}", names.front(),
                              values.front().shape()[0], names[i], shape[0]));
    columns.push_back({names[i], values[i].dtype(), without_leading(shape)});
  }
  return make_source(std::make_shared<SliceSource>(std::move(columns), std::move(values)), options);
}

// One row of the user's code as a block.
Result<std::vector<Tensor>> as_block(std::vector<Tensor> row, const std::vector<Column>& columns) {
  if (row.size() != columns.size())
    return fail(Code::invalid_argument,
                fmt::format("a row holds {} values for {} columns", row.size(), columns.size()));
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!row[i].defined())
      return fail(Code::invalid_argument,
                  fmt::format("a row holds nothing for column '{}'", columns[i].name));
    row[i] = row[i].reshaped(with_leading(1, row[i].shape()));
  }
  return row;
}

class GeneratedSource final : public Source {
 public:
  GeneratedSource(const std::vector<std::string>& names, std::shared_ptr<const RowSource> source)
      : columns_(unknown_columns(names)), source_(std::move(source)) {}
  const std::vector<Column>& columns() const override { return columns_; }
  std::uint32_t rows() const override { return static_cast<std::uint32_t>(source_->rows()); }
  bool foreign() const override { return true; }
  Result<std::vector<Tensor>> read(std::span<const std::uint32_t> rows, const BufferPool&) const override {
    MUSTER_TRY(auto row, source_->row(rows.front()));
    return as_block(std::move(row), columns_);
  }

 private:
  const std::vector<Column> columns_;
  const std::shared_ptr<const RowSource> source_;
};

class SequenceStream final : public Stream {
 public:
  SequenceStream(const BeginRows& begin, const std::vector<Column>& columns, Pass pass, std::int64_t rows_max)
      : begin_(begin), columns_(columns), pass_(pass), rows_max_(rows_max) {}

  Result<std::optional<Block>> next(std::size_t) override {
    if (row_ == rows_max_) return std::nullopt;
    if (!rows_) {
      MUSTER_TRY(rows_, begin_());
    }
    MUSTER_TRY(auto row, rows_->next());
    if (!row) return std::nullopt;
    MUSTER_TRY(auto columns, as_block(*std::move(row), columns_));
    return Block{1, std::move(columns), {row_key(pass_, static_cast<std::uint64_t>(row_++))}};
  }

 private:
  const BeginRows& begin_;
  const std::vector<Column>& columns_;
  const Pass pass_;
  const std::int64_t rows_max_;  // -1: all
  std::unique_ptr<RowSequence> rows_;
  std::int64_t row_ = 0;
};

class SequenceNode final : public Node {
 public:
  SequenceNode(const std::vector<std::string>& names, BeginRows begin, const SequenceOptions& options)
      : columns_(unknown_columns(names)), begin_(std::move(begin)), options_(options) {}
  const std::vector<Column>& columns() const override { return columns_; }
  std::int64_t size() const override {
    if (!options_.size) return size_unknown;
    return options_.num_samples ? std::min(*options_.size, *options_.num_samples) : *options_.size;
  }
  bool foreign() const override { return true; }
  std::uint64_t draws() const override { return 0; }
  std::unique_ptr<Stream> open(Pass pass) const override {
    return std::make_unique<SequenceStream>(begin_, columns_, pass, options_.num_samples.value_or(-1));
  }

 private:
  const std::vector<Column> columns_;
  const BeginRows begin_;
  const SequenceOptions options_;
};

}  // namespace

Dataset slices(std::vector<std::string> names, std::vector<Tensor> columns, const RowOptions& options) {
  return Dataset(make_slices(names, std::move(columns), options));
}

Dataset generated(std::vector<std::string> names, std::shared_ptr<const RowSource> source,
                  const RowOptions& options) {
  return Dataset([&]() -> Result<NodePtr> {
    MUSTER_TRY_VOID(check_names(names));
    if (source->rows() < 1 || source->rows() > static_cast<std::int64_t>(source_rows_max))
      return fail(Code::invalid_argument, fmt::format("the source has {} rows, it must have 1 to {}",
                                                      source->rows(), source_rows_max));
    return make_source(std::make_shared<GeneratedSource>(names, std::move(source)), options);
  }());
}

Dataset generated(std::vector<std::string> names, BeginRows begin, const SequenceOptions& options) {
  return Dataset([&]() -> Result<NodePtr> {
    MUSTER_TRY_VOID(check_names(names));
    if (options.num_samples && *options.num_samples < 1)
      return fail(Code::invalid_argument,
                  fmt::format("num_samples is {}, it must be at least 1", *options.num_samples));
    return std::make_shared<SequenceNode>(names, std::move(begin), options);
  }());
}

}  // namespace muster::data
