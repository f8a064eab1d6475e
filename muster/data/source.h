// Private: rows that can be read in any order.
#pragma once

#include "muster/data/buffer_pool.h"
#include "muster/data/node.h"
#include "muster/data/source_options.h"

namespace muster::data {

// Immutable. Threads: one at a time for foreign ones, else any.
class Source {
 public:
  virtual ~Source() = default;
  virtual const std::vector<Column>& columns() const = 0;
  virtual std::uint32_t rows() const = 0;
  // Of each row, where rows have labels.
  virtual std::span<const std::uint32_t> labels() const { return {}; }
  virtual bool foreign() const { return false; }
  // Processes that call read(), for one row each; none: this process does.
  virtual const ProcessOptions& processes() const;
  // The first of the rows asked for (at least one), side by side: one tensor a column.
  virtual Result<std::vector<Tensor>> read(std::span<const std::uint32_t> rows,
                                           const BufferPool& pool) const = 0;
};

// A source whose rows are in memory: every column has one dtype and shape.
class TableSource : public Source {
 public:
  explicit TableSource(std::vector<Column> columns) : columns_(std::move(columns)) {}
  const std::vector<Column>& columns() const final { return columns_; }
  Result<std::vector<Tensor>> read(std::span<const std::uint32_t> rows, const BufferPool& pool) const final;

 protected:
  // Writes the value of one row.
  virtual void copy(std::size_t column, std::uint32_t row, std::byte* out) const = 0;

 private:
  const std::vector<Column> columns_;
};

constexpr std::size_t source_rows_max = 1U << 30;  // row numbers are 32 bits wide

// Whether `usage` is one of `known`, or nothing.
Result<> check_usage(const std::string& usage, const std::vector<std::string>& known);

// Checks the options against the source.
Result<NodePtr> make_source(std::shared_ptr<const Source> source, const RowOptions& options);

}  // namespace muster::data
