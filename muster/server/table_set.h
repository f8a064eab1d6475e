// Table set: the tables of one parameter server, and what batches ask of them. Private to server.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/server/saved_rows.h"
#include "muster/server/table.h"
#include "muster/server/wire.h"

namespace muster::server {

// For each part of a pull, which of its rows.
using ChangedRows = std::vector<std::vector<bool>>;

// How many slots of a table are listed by one answer: some milliseconds of a server's time.
inline std::uint64_t slots_at_once(const TableSpec& spec) {
  constexpr std::uint64_t bytes = std::uint64_t{4} << 20;
  return std::max<std::uint64_t>(bytes / (sizeof(float) * spec.width), 1);
}

class TableSet {
 public:
  TableSet(Share share, std::uint32_t worker_num, bool takes_means)
      : share_(share), worker_num_(worker_num), takes_means_(takes_means) {}

  // Whether the table is new. An error where another worker has said something else about it.
  Result<bool> declare(std::uint32_t table, const TableSpec& spec);
  // A table that has no rows yet gets those of the checkpoint with which it begins, if there is one. Where
  // that fails it is not declared any more.
  Result<> load_saved(std::uint32_t table, const RowFiles& files);
  // Whether a batch asks for rows that are here, and no more; a push's ids ascend.
  Result<> check_pull(const Batch& batch) const;
  Result<> check_push(const Batch& batch) const;
  // The rows that a checked pull asks for.
  Result<std::vector<std::byte>> read(const Batch& pull, std::uint64_t applied) const;
  // The same into a place of `rows_size_bytes`, which is 0 where that is not known before.
  Result<> write_rows(const Batch& pull, BatchWriter& out) const;
  std::size_t rows_size_bytes(const Batch& pull) const;
  // Of these, with their ids, those that have changed.
  Result<std::vector<std::byte>> read_changed(const Batch& pull, const ChangedRows& changed,
                                              std::uint64_t applied) const;
  // What the pushes of a step, once applied, change of a pull's rows.
  void note_changes(const Batch& pull, std::uint64_t step, std::span<const Batch* const> pushes,
                    ChangedRows& changed) const;
  // One update with the checked pushes of a step, in the order of ranks.
  Result<> apply(std::uint64_t step, std::span<const Batch* const> pushes);
  // All rows as they were before any update.
  Result<> reset();

  // Rows that are kept of all tables, and their bytes.
  std::uint64_t rows() const;
  std::uint64_t size_bytes() const;
  // How much more than `memory_bytes` the rows of all tables could take here, for people; empty: no more.
  // Tables without a bound do not count.
  std::string excess_of(std::uint64_t memory_bytes) const;

  std::uint32_t size() const { return static_cast<std::uint32_t>(tables_.size()); }
  const Table* table(std::uint32_t index) const {
    return index < tables_.size() && tables_[index] ? &*tables_[index] : nullptr;
  }
  Table* table(std::uint32_t index) {
    return index < tables_.size() && tables_[index] ? &*tables_[index] : nullptr;
  }

 private:
  Result<> check(const Batch& batch, bool has_values) const;
  static Result<> check_slots(const Table& table, const TablePart& part, bool has_values);
  // `updates`: how many workers push gradients beside.
  static Result<> begin_rows(Table& table, std::uint64_t step, std::span<const TablePart> parts,
                             std::size_t updates);
  Result<> read_saved(Table& table, const RowFiles& files) const;
  Result<> apply_to(Table& table, std::uint64_t step, std::span<const TablePart> parts);

  Share share_;
  std::uint32_t worker_num_;
  bool takes_means_;
  std::vector<std::optional<Table>> tables_;
};

}  // namespace muster::server
