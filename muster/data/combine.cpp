// zip and concat: several datasets as one.
#include <fmt/format.h>

#include <algorithm>

#include "muster/data/node.h"

namespace muster::data {
namespace {

// A node with several children.
class CombinedNode : public Node {
 public:
  explicit CombinedNode(std::vector<NodePtr> children) : children_(std::move(children)) {}
  bool foreign() const override {
    return std::any_of(children_.begin(), children_.end(), [](const NodePtr& c) { return c->foreign(); });
  }
  std::uint64_t draws() const override {
    std::uint64_t draws = 0;
    for (const NodePtr& child : children_) draws = std::max(draws, child->draws());
    return draws;
  }
  std::int64_t batch_size() const override { return children_.front()->batch_size(); }
  Shard shard() const override {
    Shard first = children_.front()->shard();
    for (const NodePtr& child : children_) first.is_mixed = first.is_mixed || child->shard() != first;
    return first;
  }
  std::int64_t source_rows() const override { return children_.front()->source_rows(); }

 protected:
  const std::vector<NodePtr>& children() const { return children_; }

 private:
  const std::vector<NodePtr> children_;
};

class ZipStream final : public Stream {
 public:
  explicit ZipStream(std::vector<std::unique_ptr<Stream>> children)
      : children_(std::move(children)), left_(children_.size()) {}

  Result<std::optional<Block>> next(std::size_t want) override {
    std::size_t rows = want;
    for (std::size_t i = 0; i < children_.size(); ++i) {
      if (left_[i].rows == 0) {
        MUSTER_TRY(auto block, children_[i]->next(want));
        if (!block) return std::nullopt;
        left_[i] = *std::move(block);
      }
      rows = std::min(rows, left_[i].rows);
    }
    Block zipped{rows, {}};
    for (Block& left : left_) {
      const Block part = rows_of(left, 0, rows);
      zipped.columns.insert(zipped.columns.end(), part.columns.begin(), part.columns.end());
      if (zipped.keys.empty()) zipped.keys = part.keys;
      left = rows == left.rows ? Block{} : rows_of(left, rows, left.rows - rows);
    }
    return zipped;
  }

 private:
  const std::vector<std::unique_ptr<Stream>> children_;
  std::vector<Block> left_;  // rows that a child gave and another has not met yet
};

class ZipNode final : public CombinedNode {
 public:
  ZipNode(std::vector<NodePtr> children, std::vector<Column> columns)
      : CombinedNode(std::move(children)), columns_(std::move(columns)) {}
  const std::vector<Column>& columns() const override { return columns_; }
  std::int64_t size() const override {
    std::int64_t least = size_endless;
    for (const NodePtr& child : children()) {
      const std::int64_t size = child->size();
      if (size == size_unknown) return size_unknown;
      if (size != size_endless) least = least == size_endless ? size : std::min(least, size);
    }
    return least;
  }
  std::unique_ptr<Stream> open(Pass pass) const override {
    std::vector<std::unique_ptr<Stream>> streams;
    for (const NodePtr& child : children()) streams.push_back(child->open(pass));
    return std::make_unique<ZipStream>(std::move(streams));
  }

 private:
  const std::vector<Column> columns_;
};

class ConcatStream final : public Stream {
 public:
  ConcatStream(const std::vector<NodePtr>& children, const std::vector<Column>& columns, Pass pass)
      : children_(children), columns_(columns), pass_(pass) {}

  Result<std::optional<Block>> next(std::size_t want) override {
    for (; current_ < children_.size(); ++current_, stream_ = nullptr) {
      if (!stream_) stream_ = children_[current_]->open(pass_);
      MUSTER_TRY(auto block, stream_->next(want));
      if (!block) continue;
      MUSTER_TRY_VOID(check_kinds(block->columns));
      // Row 5 of the second dataset is another sample than row 5 of the first.
      if (current_ > 0)
        for (std::uint64_t& key : block->keys) key = hash_bytes(&key, sizeof key, current_);
      return block;
    }
    return std::nullopt;
  }

  Result<std::size_t> skip(std::size_t rows) override {
    std::size_t done = 0;
    for (; current_ < children_.size(); ++current_, stream_ = nullptr) {
      if (!stream_) stream_ = children_[current_]->open(pass_);
      MUSTER_TRY(const std::size_t passed, stream_->skip(rows - done));
      done += passed;
      if (done == rows) break;
    }
    return done;
  }

 private:
  // A generator's columns are known by their rows alone, so that make_concat cannot have compared them.
  Result<void> check_kinds(const std::vector<Tensor>& columns) {
    if (first_.empty())
      for (const Tensor& column : columns) first_.emplace_back(column.dtype(), column.shape().rank());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto [dtype, dimensions] = first_[i];
      if (columns[i].dtype() == dtype && columns[i].shape().rank() == dimensions) continue;
      return fail(Code::invalid_argument,
                  fmt::format("concat: column '{}' is {} of rank {} in one dataset and {} of rank {} in "
                              "another; map one of them to the other's",
                              columns_[i].name, to_string(dtype), dimensions - 1,
                              to_string(columns[i].dtype()), columns[i].shape().rank() - 1));
    }
    return {};
  }

  const std::vector<NodePtr>& children_;
  const std::vector<Column>& columns_;
  const Pass pass_;
  std::vector<std::pair<DType, std::size_t>> first_;  // dtype and dimensions (rows too) of the first rows
  std::size_t current_ = 0;
  std::unique_ptr<Stream> stream_;
};

class ConcatNode final : public CombinedNode {
 public:
  ConcatNode(std::vector<NodePtr> children, std::vector<Column> columns)
      : CombinedNode(std::move(children)), columns_(std::move(columns)) {}
  const std::vector<Column>& columns() const override { return columns_; }
  std::int64_t size() const override {
    std::int64_t sum = 0;
    for (const NodePtr& child : children()) {
      if (child->size() < 0) return child->size();
      sum += child->size();
    }
    return sum;
  }
  std::unique_ptr<Stream> open(Pass pass) const override {
    return std::make_unique<ConcatStream>(children(), columns_, pass);
  }

 private:
  const std::vector<Column> columns_;
};

std::vector<std::string> names_of(const std::vector<Column>& columns) {
  std::vector<std::string> names;
  for (const Column& column : columns) names.push_back(column.name);
  return names;
}

// What is known of a column that holds values of two kinds.
Column either(const Column& a, const Column& b) {
  Column column{a.name, {}, {}};
  if (a.dtype == b.dtype) column.dtype = a.dtype;
  if (a.shape == b.shape) column.shape = a.shape;
  return column;
}

}  // namespace

Result<NodePtr> make_zip(std::vector<NodePtr> children) {
  if (children.size() < 2) return fail(Code::invalid_argument, "zip needs at least two datasets");
  std::vector<Column> columns;
  for (const NodePtr& child : children)
    for (const Column& column : child->columns()) {
      if (std::any_of(columns.begin(), columns.end(), [&](const Column& c) { return c.name == column.name; }))
        return fail(Code::invalid_argument,
                    fmt::format("zip: two datasets have a column '{}'; rename one of them", column.name));
      columns.push_back(column);
    }
  return std::make_shared<ZipNode>(std::move(children), std::move(columns));
}

Result<NodePtr> make_concat(std::vector<NodePtr> children) {
  if (children.size() < 2) return fail(Code::invalid_argument, "concat needs at least two datasets");
  std::vector<Column> columns = children.front()->columns();
  for (const NodePtr& child : children) {
    if (names_of(child->columns()) != names_of(columns))
      return fail(
          Code::invalid_argument,
          fmt::format("concat: the datasets have different columns, '{}' and '{}'",
                      fmt::join(names_of(columns), "', '"), fmt::join(names_of(child->columns()), "', '")));
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Column& other = child->columns()[i];
      if (columns[i].dtype && other.dtype && columns[i].dtype != other.dtype)
        return fail(Code::invalid_argument,
                    fmt::format("concat: column '{}' is {} in one dataset and {} in another", other.name,
                                to_string(*columns[i].dtype), to_string(*other.dtype)));
      columns[i] = either(columns[i], other);
    }
  }
  return std::make_shared<ConcatNode>(std::move(children), std::move(columns));
}

}  // namespace muster::data
