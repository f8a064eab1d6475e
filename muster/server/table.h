// Table: the rows that one server has of a table on parameter servers.
//
// A row is kept from its first update on. Before, it has its first value, which is computed where it is read:
// reading changes nothing. So a table may be far larger than memory, as long as what was updated fits.
// One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "muster/base/base.h"
#include "muster/server/row_rule.h"
#include "muster/server/sharding.h"
#include "muster/server/table_copy.h"
#include "muster/server/table_spec.h"

namespace muster::server {

class Table {
 public:
  static Result<Table> make(TableSpec spec, Share share);
  Table(Table&&) noexcept;
  Table& operator=(Table&&) noexcept;
  ~Table();

  const TableSpec& spec() const;
  // Code::invalid_argument unless this server has both of these rows, and so all between them.
  Result<> check_range(std::uint64_t first, std::uint64_t last) const;
  // Writes the rows of the ids, one after the other: ids.size() * width values. Code::invalid_argument for an
  // id that this server does not have.
  Result<> read(std::span<const std::uint64_t> ids, std::span<float> values) const;
  // One update of each row; no id comes twice. An error changes nothing.
  Result<> update(std::span<const std::uint64_t> ids, std::span<const float> gradients,
                  const UpdateStep& step);
  // The rows get these values and the optimizer's first state: for parameters whose first values the workers
  // have made. With states: whole_width numbers for each, which have the states, too.
  struct Assigned {
    std::span<const std::uint64_t> ids = {};
    std::span<const float> values = {};
    bool has_states = false;
    std::uint64_t steps = 1;  // of the job, from which the rows' age counts
  };
  Result<> assign(const Assigned& rows);
  // Forgets the rows that leave after `steps` steps; returns how many.
  std::size_t evict(std::uint64_t steps);

  // Rows that are kept, and the memory for rows (the index not counted).
  std::size_t rows() const;
  std::size_t size_bytes() const;
  // Kept rows lie in slots, of which some may be empty: in the order in which they were made, until one
  // leaves.
  std::uint64_t slots() const;
  // Appends the ids and the values (with states: whole_width numbers) of rows in the slots [begin, end), of
  // which there may be less.
  void list(std::uint64_t begin, std::uint64_t end, std::vector<std::uint64_t>& ids,
            std::vector<float>& values, bool with_states = false) const;
  // The ids of the kept rows, ascending.
  std::vector<std::uint64_t> ids() const;
  // Values and states as they lie in memory, for files and comparisons; empty when the row is not kept.
  std::span<const std::byte> row_bytes(std::uint64_t id) const;

  // ---- Files (rows_file.h)

  // From here on the rows of now can be read with copy_block, whatever is updated, until end_copy.
  const SlotBlocks& begin_copy();
  // Blocks come in their order.
  void copy_block(std::uint64_t block, std::span<std::byte> bytes);
  void end_copy();
  // How rows come from a file; Code::corrupt where they cannot be this table's. It has no rows yet.
  Result<> begin_fill(const SlotBlocks& blocks);
  // Where the bytes of a block go.
  struct BlockPlaces {
    std::span<std::byte> keys;
    std::span<std::byte> rows;
  };
  BlockPlaces places(const SlotBlocks& blocks, std::uint64_t block);
  // A block is there. Threads: of different blocks at once.
  Result<> filled(const SlotBlocks& blocks, std::uint64_t block);
  Result<> end_fill();

 private:
  class Rows;
  template <class Index>
  class RowsWith;
  explicit Table(std::unique_ptr<Rows> rows);

  std::unique_ptr<Rows> rows_;
};

}  // namespace muster::server
