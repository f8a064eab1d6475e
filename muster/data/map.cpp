// map: operations on columns, whole blocks of rows at a time where they are built in, row by row where not.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "muster/data/buffer_pool.h"
#include "muster/data/chain.h"
#include "muster/data/node.h"

namespace muster::data {
namespace {

class MapNode : public Node {
 public:
  MapNode(NodePtr child, std::vector<Column> columns)
      : child_(std::move(child)), columns_(std::move(columns)) {}
  const std::vector<Column>& columns() const override { return columns_; }
  std::int64_t size() const override { return child_->size(); }

 protected:
  const Node& child() const { return *child_; }
  const BufferPool& pool() const { return pool_; }

 private:
  const NodePtr child_;
  const std::vector<Column> columns_;
  const BufferPool pool_;
};

// Built-in operations on one column.
class TransformStream final : public Stream {
 public:
  TransformStream(std::unique_ptr<Stream> child, const std::vector<TransformPtr>& transforms,
                  std::size_t column, const BufferPool& pool)
      : child_(std::move(child)), transforms_(transforms), column_(column), pool_(pool) {}

  Result<std::optional<Block>> next(std::size_t want) override {
    MUSTER_TRY(auto block, child_->next(want));
    if (!block) return block;
    Tensor& values = block->columns[column_];
    MUSTER_TRY_VOID(compile_for({values.dtype(), without_leading(values.shape())}));
    Tensor made = pool_.make(chain_->output().dtype,
                             with_leading(static_cast<std::int64_t>(block->rows), chain_->output().shape));
    chain_->run(block->rows, values.bytes(), made.bytes());
    values = std::move(made);
    return block;
  }

 private:
  Result<> compile_for(const ValueType& input) {
    if (chain_ && chain_->input() == input) return {};
    MUSTER_TRY(chain_, Chain::compile(transforms_, input));
    return {};
  }

  const std::unique_ptr<Stream> child_;
  const std::vector<TransformPtr>& transforms_;
  const std::size_t column_;
  const BufferPool& pool_;
  std::optional<Chain> chain_;  // for the values that came last
};

class TransformNode final : public MapNode {
 public:
  TransformNode(NodePtr child, std::vector<Column> columns, std::vector<TransformPtr> transforms,
                std::size_t column)
      : MapNode(std::move(child), std::move(columns)), transforms_(std::move(transforms)), column_(column) {}
  bool foreign() const override { return child().foreign(); }
  std::unique_ptr<Stream> open(Pass pass) const override {
    return std::make_unique<TransformStream>(child().open(pass), transforms_, column_, pool());
  }

 private:
  const std::vector<TransformPtr> transforms_;
  const std::size_t column_;
};

// Any operations, on one or several columns, row by row.
class OperationStream final : public Stream {
 public:
  OperationStream(std::unique_ptr<Stream> child, const std::vector<OperationPtr>& operations,
                  const std::vector<std::size_t>& columns, const BufferPool& pool)
      : child_(std::move(child)), operations_(operations), columns_(columns), pool_(pool) {}

  Result<std::optional<Block>> next(std::size_t want) override {
    MUSTER_TRY(auto block, child_->next(want));
    if (!block) return block;
    std::vector<std::vector<Tensor>> made;  // for each row, its new values
    for (std::size_t row = 0; row < block->rows; ++row) {
      MUSTER_TRY(auto values, apply(row_of(*block, row)));
      made.push_back(std::move(values));
    }
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      MUSTER_TRY(block->columns[columns_[i]], stack(made, i));
    }
    return block;
  }

 private:
  // Views of the block's memory: nothing is copied.
  std::vector<Tensor> row_of(const Block& block, std::size_t row) const {
    std::vector<Tensor> values;
    for (const std::size_t column : columns_) {
      const Tensor& all = block.columns[column];
      const std::size_t row_bytes = all.size_bytes() / block.rows;
      values.emplace_back(all.dtype(), without_leading(all.shape()), all.buffer(),
                          all.offset_bytes() + row * row_bytes);
    }
    return values;
  }

  Result<std::vector<Tensor>> apply(std::vector<Tensor> values) const {
    for (const OperationPtr& operation : operations_) {
      MUSTER_TRY(values, operation->apply(values));
      if (values.size() != columns_.size())
        return fail(Code::invalid_argument, fmt::format("map: '{}' gave {} values for {} input columns",
                                                        operation->name(), values.size(), columns_.size()));
      for (const Tensor& value : values)
        if (!value.defined())
          return fail(Code::invalid_argument,
                      fmt::format("map: '{}' gave a value that is empty", operation->name()));
    }
    return values;
  }

  Result<Tensor> stack(const std::vector<std::vector<Tensor>>& rows, std::size_t i) const {
    const Tensor& first = rows.front()[i];
    const Shape shape = with_leading(static_cast<std::int64_t>(rows.size()), first.shape());
    if (rows.size() == 1) return first.reshaped(shape);
    Tensor stacked = pool_.make(first.dtype(), shape);
    std::byte* end = stacked.bytes();
    for (const auto& row : rows) {
      if (row[i].dtype() != first.dtype() || row[i].shape() != first.shape())
        return fail(
            Code::invalid_argument,
            fmt::format("map: '{}' gave {} {} for one row and {} {} for another of the same batch",
                        operations_.back()->name(), to_string(first.dtype()), to_string(first.shape()),
                        to_string(row[i].dtype()), to_string(row[i].shape())));
      if (row[i].size_bytes() > 0) std::memcpy(end, row[i].bytes(), row[i].size_bytes());
      end += row[i].size_bytes();
    }
    return stacked;
  }

  const std::unique_ptr<Stream> child_;
  const std::vector<OperationPtr>& operations_;
  const std::vector<std::size_t>& columns_;
  const BufferPool& pool_;
};

class OperationNode final : public MapNode {
 public:
  OperationNode(NodePtr child, std::vector<Column> columns, std::vector<OperationPtr> operations,
                std::vector<std::size_t> mapped)
      : MapNode(std::move(child), std::move(columns)),
        operations_(std::move(operations)),
        mapped_(std::move(mapped)) {}
  bool foreign() const override { return true; }
  std::unique_ptr<Stream> open(Pass pass) const override {
    return std::make_unique<OperationStream>(child().open(pass), operations_, mapped_, pool());
  }

 private:
  const std::vector<OperationPtr> operations_;
  const std::vector<std::size_t> mapped_;
};

Result<std::vector<std::size_t>> find_columns(const std::vector<Column>& columns,
                                              const std::vector<std::string>& names) {
  if (names.empty()) return std::vector<std::size_t>{0};
  std::vector<std::size_t> found;
  for (const std::string& name : names) {
    const auto column =
        std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return c.name == name; });
    if (column == columns.end()) {
      std::vector<std::string> there;
      for (const Column& c : columns) there.push_back(c.name);
      return fail(Code::invalid_argument, fmt::format("map: there is no column '{}'; the columns are '{}'",
                                                      name, fmt::join(there, "', '")));
    }
    const auto index = static_cast<std::size_t>(column - columns.begin());
    if (std::find(found.begin(), found.end(), index) != found.end())
      return fail(Code::invalid_argument, fmt::format("map: column '{}' is named twice", name));
    found.push_back(index);
  }
  return found;
}

// The operations as transforms, if all of them are.
std::vector<TransformPtr> as_transforms(const std::vector<OperationPtr>& operations) {
  std::vector<TransformPtr> transforms;
  for (const OperationPtr& operation : operations)
    if (auto transform = std::dynamic_pointer_cast<const Transform>(operation))
      transforms.push_back(std::move(transform));
  if (transforms.size() != operations.size()) transforms.clear();
  return transforms;
}

}  // namespace

Result<NodePtr> make_map(NodePtr child, std::vector<OperationPtr> operations,
                         std::vector<std::string> input_columns) {
  if (operations.empty()) return fail(Code::invalid_argument, "map: there is no operation");
  if (std::find(operations.begin(), operations.end(), nullptr) != operations.end())
    return fail(Code::invalid_argument, "map: an operation is empty");
  std::vector<Column> columns = child->columns();
  MUSTER_TRY(auto mapped, find_columns(columns, input_columns));

  auto transforms = as_transforms(operations);
  if (transforms.empty()) {
    for (const std::size_t column : mapped) columns[column] = {columns[column].name, {}, {}};
    return std::make_shared<OperationNode>(std::move(child), std::move(columns), std::move(operations),
                                           std::move(mapped));
  }
  if (mapped.size() != 1)
    return fail(Code::invalid_argument,
                fmt::format("map: {} takes one column, not {}", operations.front()->name(), mapped.size()));
  Column& column = columns[mapped.front()];
  if (column.dtype && column.shape) {
    auto type = infer(transforms, {*column.dtype, *column.shape});
    if (!type)
      return fail(type.error().code,
                  fmt::format("map of column '{}': {}", column.name, type.error().message));
    column = {column.name, type->dtype, type->shape};
  }
  return std::make_shared<TransformNode>(std::move(child), std::move(columns), std::move(transforms),
                                         mapped.front());
}

}  // namespace muster::data
