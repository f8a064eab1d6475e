// Saved rows: how a parameter server writes rows for a checkpoint, and begins with those of one. What the
// files are like is the caller's business.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/server/sharding.h"
#include "muster/server/table_spec.h"

namespace muster::server {

// The file of one server while it is written. Destroyed before finish(), it leaves nothing.
class RowsWriter {
 public:
  virtual ~RowsWriter() = default;
  // Whole rows (whole_width numbers each) of the table at this place among those that are saved, behind those
  // that were given before: no more than was said of it.
  virtual Result<> write(std::size_t table, std::span<const std::uint64_t> ids,
                         std::span<const float> rows) = 0;
  // All of it is on the disk, under its name. Of a table fewer rows may have come than was said.
  virtual Result<> finish() = 0;
};

struct RowFiles {
  struct Table {
    std::uint32_t number = 0;
    TableSpec spec = {};
    std::uint64_t rows = 0;
  };
  // `order` is what the worker has said, word for word. On a thread of its own, as all calls of the writer.
  std::function<Result<std::unique_ptr<RowsWriter>>(const std::string& order, Share share,
                                                    const std::vector<Table>& tables)>
      create = {};
  // Distinct ids, and whole rows or their values alone, as spec.saved says. All rows that may be this
  // share's; others may be among them.
  using Visit = std::function<Result<>(std::span<const std::uint64_t> ids, std::span<const float> rows)>;
  std::function<Result<>(const TableSpec& spec, Share share, const Visit& visit)> read = {};
};

// Rows as they are before their first update, from `first` on: `width` values of each.
void first_values(const TableSpec& spec, std::uint64_t first, std::span<float> values);

}  // namespace muster::server
