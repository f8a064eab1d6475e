#include "muster/data/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "muster/data/process_stream.h"
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
  GeneratedSource(const std::vector<std::string>& names, std::shared_ptr<const RowSource> source,
                  ProcessOptions processes)
      : columns_(unknown_columns(names)), source_(std::move(source)), processes_(std::move(processes)) {}
  const std::vector<Column>& columns() const override { return columns_; }
  std::uint32_t rows() const override { return static_cast<std::uint32_t>(source_->rows()); }
  bool foreign() const override { return true; }
  const ProcessOptions& processes() const override { return processes_; }
  Result<std::vector<Tensor>> read(std::span<const std::uint32_t> rows, const BufferPool&) const override {
    MUSTER_TRY(auto row, source_->row(rows.front()));
    return as_block(std::move(row), columns_);
  }

 private:
  const std::vector<Column> columns_;
  const std::shared_ptr<const RowSource> source_;
  const ProcessOptions processes_;
};

class SequenceNode;

class SequenceStream final : public Stream {
 public:
  SequenceStream(const SequenceNode& node, Pass pass) : node_(node), pass_(pass) {}
  Result<std::optional<Block>> next(std::size_t) override;

 private:
  Result<> check_end() const;

  const SequenceNode& node_;
  const Pass pass_;
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
  bool is_batched() const override { return !options_.external.empty(); }
  ItemOrder item_order() const override { return options_.order; }
  std::unique_ptr<Stream> open(Pass pass) const override {
    return std::make_unique<SequenceStream>(*this, pass);
  }

  const SequenceOptions& options() const { return options_; }
  Result<std::unique_ptr<RowSequence>> begin(std::uint64_t pass) const { return begin_(pass); }
  // Whether any pass had rows.
  std::atomic<bool>& had_rows() const { return had_rows_; }

 private:
  const std::vector<Column> columns_;
  const BeginRows begin_;
  const SequenceOptions options_;
  mutable std::atomic<bool> had_rows_ = false;
};

Result<std::optional<Block>> SequenceStream::next(std::size_t) {
  const SequenceOptions& options = node_.options();
  if (row_ == options.num_samples) return std::nullopt;
  if (!rows_) {
    MUSTER_TRY(rows_, node_.begin(pass_.epoch));
  }
  MUSTER_TRY(auto row, rows_->next());
  if (!row) {
    MUSTER_TRY_VOID(check_end());
    return std::nullopt;
  }
  node_.had_rows().store(true, std::memory_order_relaxed);
  if (!options.external.empty() && !options.size_varies && row_ == options.size)
    return fail(Code::invalid_argument, fmt::format("{} says that it has {} items (__len__), and gives more",
                                                    options.external, *options.size));
  MUSTER_TRY(auto columns, as_block(*std::move(row), node_.columns()));
  return Block{1, std::move(columns), {row_key(pass_, static_cast<std::uint64_t>(row_++))}};
}

// Fewer items than were said would leave other workers waiting for this one.
Result<> SequenceStream::check_end() const {
  const SequenceOptions& options = node_.options();
  const std::string& name = options.external;
  if (row_ == 0 && node_.had_rows().load(std::memory_order_relaxed))
    return fail(
        Code::invalid_argument,
        fmt::format(
            "{} gave nothing: it was gone through before, as a generator can be once. Each pass begins "
            "it anew: give what makes it, such as the function of a generator, a list, or a class whose "
            "__iter__ begins at the front",
            name.empty() ? "the source of rows" : name));
  if (!name.empty() && !options.size_varies && options.size && row_ < *options.size)
    return fail(Code::invalid_argument, fmt::format("{} says that it has {} items (__len__), and gave {}",
                                                    name, *options.size, row_));
  return {};
}

}  // namespace

Dataset slices(std::vector<std::string> names, std::vector<Tensor> columns, const RowOptions& options) {
  return Dataset(make_slices(names, std::move(columns), options));
}

Dataset generated(std::vector<std::string> names, std::shared_ptr<const RowSource> source,
                  const RowOptions& options, ProcessOptions processes) {
  return Dataset([&]() -> Result<NodePtr> {
    MUSTER_TRY_VOID(check_names(names));
    MUSTER_TRY_VOID(check_processes(processes));
    if (source->rows() < 1 || source->rows() > static_cast<std::int64_t>(source_rows_max))
      return fail(Code::invalid_argument, fmt::format("the source has {} rows, it must have 1 to {}",
                                                      source->rows(), source_rows_max));
    return make_source(std::make_shared<GeneratedSource>(names, std::move(source), std::move(processes)),
                       options);
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
