// Blocks in parts and put together; the places of columns.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "muster/data/buffer_pool.h"
#include "muster/data/node.h"

namespace muster::data {

Result<std::size_t> Stream::skip(std::size_t rows) {
  constexpr std::size_t rows_max = 64;  // bounds the memory of what is dropped
  std::size_t done = 0;
  while (done < rows) {
    MUSTER_TRY(const auto block, next(std::min(rows - done, rows_max)));
    if (!block) break;
    done += block->rows;
  }
  return done;
}

Shape with_leading(std::int64_t size, const Shape& shape) {
  std::vector<std::int64_t> sizes = {size};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  return Shape(std::move(sizes));
}

Shape without_leading(const Shape& shape) {
  MUSTER_CHECK(shape.rank() > 0, "a scalar has no first axis");
  return Shape(std::vector<std::int64_t>(shape.begin() + 1, shape.end()));
}

Tensor rows_of(const Tensor& column, std::size_t begin, std::size_t rows) {
  const auto all = static_cast<std::size_t>(column.shape()[0]);
  const std::size_t row_bytes = column.size_bytes() / all;
  return Tensor(column.dtype(),
                with_leading(static_cast<std::int64_t>(rows), without_leading(column.shape())),
                column.buffer(), column.offset_bytes() + begin * row_bytes);
}

Block rows_of(const Block& block, std::size_t begin, std::size_t rows) {
  if (begin == 0 && rows == block.rows) return block;
  Block part{rows, {}};
  for (const Tensor& column : block.columns) part.columns.push_back(rows_of(column, begin, rows));
  const auto first = block.keys.begin() + static_cast<std::ptrdiff_t>(begin);
  part.keys.assign(first, first + static_cast<std::ptrdiff_t>(rows));
  return part;
}

bool alike(const Block& a, const Block& b) {
  for (std::size_t i = 0; i < a.columns.size(); ++i) {
    const Tensor& x = a.columns[i];
    const Tensor& y = b.columns[i];
    if (x.dtype() != y.dtype() ||
        !std::equal(x.shape().begin() + 1, x.shape().end(), y.shape().begin() + 1, y.shape().end()))
      return false;
  }
  return true;
}

bool alike(const std::vector<Block>& parts) {
  return std::all_of(parts.begin(), parts.end(),
                     [&](const Block& part) { return alike(parts.front(), part); });
}

Result<Block> joined(std::vector<Block> parts, const std::vector<Column>& columns, const BufferPool& pool) {
  if (parts.size() == 1) return std::move(parts.front());
  Block whole;
  for (const Block& part : parts) {
    whole.rows += part.rows;
    whole.keys.insert(whole.keys.end(), part.keys.begin(), part.keys.end());
  }
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

Result<std::vector<std::size_t>> find_columns(const std::vector<Column>& columns,
                                              const std::vector<std::string>& names,
                                              const std::string& what) {
  std::vector<std::size_t> found;
  for (const std::string& name : names) {
    const auto column =
        std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return c.name == name; });
    if (column == columns.end()) {
      std::vector<std::string> there;
      for (const Column& c : columns) there.push_back(c.name);
      return fail(Code::invalid_argument, fmt::format("{}: there is no column '{}'; the columns are '{}'",
                                                      what, name, fmt::join(there, "', '")));
    }
    const auto index = static_cast<std::size_t>(column - columns.begin());
    if (std::find(found.begin(), found.end(), index) != found.end())
      return fail(Code::invalid_argument, fmt::format("{}: column '{}' is named twice", what, name));
    found.push_back(index);
  }
  return found;
}

}  // namespace muster::data
