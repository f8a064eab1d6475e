// project, rename and filter.
#include <fmt/format.h>

#include <algorithm>

#include "muster/data/node.h"
#include "muster/data/with_type.h"

namespace muster::data {
namespace {

// Some of the child's columns, in some order, under some names.
class ColumnNode final : public OneByOneNode {
 public:
  ColumnNode(NodePtr child, std::vector<std::size_t> places, std::vector<Column> columns)
      : OneByOneNode(std::move(child)), places_(std::move(places)), columns_(std::move(columns)) {}
  const std::vector<Column>& columns() const override { return columns_; }
  std::unique_ptr<Stream> open(Pass pass) const override {
    return std::make_unique<Columns>(child()->open(pass), places_);
  }
  Result<NodePtr> shuffled_before(std::int64_t buffer_rows) const override {
    MUSTER_TRY(auto shuffled, make_shuffle(child(), buffer_rows));
    return std::make_shared<ColumnNode>(std::move(shuffled), places_, columns_);
  }

 private:
  struct Columns final : Stream {
    Columns(std::unique_ptr<Stream> stream, const std::vector<std::size_t>& columns)
        : child(std::move(stream)), places(columns) {}
    Result<std::optional<Block>> next(std::size_t want) override {
      MUSTER_TRY(auto block, child->next(want));
      if (!block) return block;
      std::vector<Tensor> chosen;
      for (const std::size_t place : places) chosen.push_back(block->columns[place]);
      block->columns = std::move(chosen);
      return block;
    }
    Result<std::size_t> skip(std::size_t rows) override { return child->skip(rows); }
    const std::unique_ptr<Stream> child;
    const std::vector<std::size_t>& places;
  };

  const std::vector<std::size_t> places_;
  const std::vector<Column> columns_;
};

class FilterStream final : public Stream {
 public:
  FilterStream(std::unique_ptr<Stream> child, const Operation& predicate,
               const std::vector<std::size_t>& inputs, std::uint64_t operation)
      : child_(std::move(child)), predicate_(predicate), inputs_(inputs), operation_(operation) {}

  Result<std::optional<Block>> next(std::size_t) override {
    while (true) {
      MUSTER_TRY(auto row, child_->next(1));
      if (!row) return row;
      MUSTER_TRY(const bool keep, keeps(*row));
      if (keep) return row;
    }
  }

 private:
  Result<bool> keeps(const Block& row) const {
    std::vector<Tensor> values;
    for (const std::size_t input : inputs_)
      values.push_back(row.columns[input].reshaped(without_leading(row.columns[input].shape())));
    MUSTER_TRY(const auto answers, predicate_.apply(values, {.row = row.keys.empty() ? 0 : row.keys.front(),
                                                             .operation = operation_}));
    if (answers.size() != 1 || !answers.front().defined() || answers.front().elements() != 1)
      return fail(Code::invalid_argument,
                  fmt::format("filter: '{}' must give one value, true or false", predicate_.name()));
    bool keep = false;
    convert_all(answers.front().dtype(), 1, answers.front().bytes(), &keep);
    return keep;
  }

  const std::unique_ptr<Stream> child_;
  const Operation& predicate_;
  const std::vector<std::size_t>& inputs_;
  const std::uint64_t operation_;
};

class FilterNode final : public FlowNode {
 public:
  FilterNode(NodePtr child, OperationPtr predicate, std::vector<std::size_t> inputs)
      : FlowNode(std::move(child)), predicate_(std::move(predicate)), inputs_(std::move(inputs)) {}
  std::int64_t size() const override { return child()->size() == size_endless ? size_endless : size_unknown; }
  bool foreign() const override { return true; }
  std::uint64_t draws() const override { return child()->draws() + 1; }
  std::unique_ptr<Stream> open(Pass pass) const override {
    return std::make_unique<FilterStream>(child()->open(pass), *predicate_, inputs_, child()->draws());
  }

 private:
  const OperationPtr predicate_;
  const std::vector<std::size_t> inputs_;
};

}  // namespace

Result<NodePtr> make_project(NodePtr child, const std::vector<std::string>& names) {
  if (names.empty()) return fail(Code::invalid_argument, "project: no column is named");
  MUSTER_TRY(auto places, find_columns(child->columns(), names, "project"));
  std::vector<Column> columns;
  for (const std::size_t place : places) columns.push_back(child->columns()[place]);
  return std::make_shared<ColumnNode>(std::move(child), std::move(places), std::move(columns));
}

Result<NodePtr> make_rename(NodePtr child, const std::vector<std::string>& from,
                            const std::vector<std::string>& to) {
  if (from.empty() || from.size() != to.size())
    return fail(Code::invalid_argument,
                fmt::format("rename: {} columns are to get {} names", from.size(), to.size()));
  MUSTER_TRY(const auto found, find_columns(child->columns(), from, "rename"));
  std::vector<Column> columns = child->columns();
  for (std::size_t i = 0; i < found.size(); ++i) columns[found[i]].name = to[i];
  for (const std::string& name : to)
    if (std::count_if(columns.begin(), columns.end(), [&](const Column& c) { return c.name == name; }) > 1)
      return fail(Code::invalid_argument, fmt::format("rename: two columns would be named '{}'", name));
  std::vector<std::size_t> places(columns.size());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
  return std::make_shared<ColumnNode>(std::move(child), std::move(places), std::move(columns));
}

Result<NodePtr> make_filter(NodePtr child, OperationPtr predicate, std::vector<std::string> input_columns) {
  if (!predicate) return fail(Code::invalid_argument, "filter: there is no predicate");
  MUSTER_TRY(auto inputs, find_columns(child->columns(), input_columns, "filter"));
  if (inputs.empty())
    for (std::size_t i = 0; i < child->columns().size(); ++i) inputs.push_back(i);
  return std::make_shared<FilterNode>(std::move(child), std::move(predicate), std::move(inputs));
}

}  // namespace muster::data
