// Parameters on the job's parameter servers (docs/guide/parameter-servers.md). Main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/graph/graph.h"

namespace muster::train {

struct ParameterServers {
  bool enabled = false;
  // How many steps a worker may be ahead of what the servers have applied; nothing: as many as it likes.
  std::optional<std::uint64_t> staleness = 0;
  friend bool operator==(const ParameterServers&, const ParameterServers&) = default;
};

// Before init(); afterwards an error, unless nothing changes.
Result<> set_parameter_servers(const ParameterServers& chosen);
const ParameterServers& parameter_servers();

struct TableOptions {
  // So many rows a worker keeps of those that it looks up, for as long as the staleness allows.
  std::int64_t cached_rows = 0;
  // Of a table without vocabulary: rows leave that no step has updated for so many steps (of all optimizers
  // together), and where a server has more rows than that, those that were updated longest ago. 0: none. Who
  // leaves begins anew.
  std::int64_t age_max = 0;
  std::int64_t rows_max = 0;
  // In which the servers have the rows: float32, or bfloat16 in half of the memory, rounded after each
  // update. What an optimizer keeps for them is float32.
  DType row_dtype = DType::float32;
  friend bool operator==(const TableOptions&, const TableOptions&) = default;
};
// From here on the servers update the parameter, by the rule of its optimizer. In a process that trains alone
// it stays there. Options are of tables.
Result<> put_on_servers(const graph::ParameterPtr& parameter, const TableOptions& options = {});

// The next training step looks these rows up, and this one has not called its optimizers yet: they travel
// while it computes. A hint, which changes no number; nothing in a process that trains alone.
Result<> look_up_ahead(const graph::ParameterPtr& table, const Tensor& ids);

// Whether data parallel workers have the same values of it: not of what lives on servers that a worker may be
// ahead of.
bool is_equal_in_workers(const graph::Parameter& parameter);
// Whether servers have its values: a table that is there, what an optimizer keeps for a parameter that is,
// or, where a worker may be ahead of what is applied, any parameter there.
bool is_on_servers(const graph::Parameter& parameter);
// What a checkpoint has of such a parameter, under this name: all rows (rows, width); of a table that takes
// any number those rows that were updated, and in `name`.ids, int64 (rows,), their numbers, ascending. All
// steps before count, whatever the staleness (but where it has no bound those that have come).
// Lookups, which all workers make where they recover.
Result<std::vector<checkpoint::Entry>> entries_on_servers(const graph::ParameterPtr& parameter,
                                                          const std::string& name);
inline constexpr std::string_view ids_suffix = ".ids";
// The same of tables, and of what optimizers keep for them, whose rows the servers write themselves, beside
// `ckpt` (of worker 0): an entry of each says where they are (docs/formats/row-files.md), and no worker ever
// has them. Of parameters that have no such rows nothing. A call of all workers.
struct SavedRows {
  std::vector<checkpoint::Entry> entries = {};
  std::optional<Error> trouble = {};  // of a server's disk, the same on all workers: then there are none
};
Result<SavedRows> save_rows_beside(const std::string& ckpt, std::span<const graph::ParameterPtr> parameters);
bool has_rows_on_servers(const graph::Parameter& parameter);
// What such an entry says, as the parameter's rows: those on servers read them, all others get the whole.
Result<> set_saved_rows(graph::Parameter& parameter, const Tensor& entry);
// Of the saves of this checkpoint all files but those that `entries` name: worker 0 calls it once they are
// safe.
void remove_other_rows(const std::string& ckpt, std::span<const checkpoint::Entry> entries);
void remove_rows(const std::string& ckpt);
// All steps before are done, and those of the other workers where the staleness has a bound.
Result<> finish_steps(const graph::ParameterPtr& parameter);
// An error for a table, or for what an optimizer keeps, of which the servers have heard: nothing sets it any
// more.
Result<> check_settable(const graph::Parameter& parameter);

}  // namespace muster::train
