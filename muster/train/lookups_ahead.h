// Private to train: rows of tables on parameter servers that are asked for while the step before computes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "muster/data/data.h"
#include "muster/graph/served.h"
#include "muster/server/server.h"

namespace muster::train {

// Ids of the next step are told by the script, or found in its next batch: in columns whose numbers were
// looked up as they are. Hints: rows that do not come this way are asked for in their step.
class LookupsAhead {
 public:
  // The step behind `now` looks these up. They are asked for behind the lookups of this one, so that those do
  // not wait: where they were made, ask().
  void expect(std::int64_t number, const Tensor& ids, std::uint64_t now);
  bool has_looked_up(std::int64_t number, std::uint64_t step) const;
  // `table`: as the servers call it.
  Result<> ask(server::ParameterClient& client, std::uint64_t now, std::uint32_t table, std::int64_t number);
  // What this step has looked up.
  Result<> looked_up(server::ParameterClient& client, std::uint64_t step, std::uint32_t table,
                     const graph::ServedLookup& lookup);
  // A training makes a step with this batch, and then one with the next, if that is known.
  void begin_step(std::span<const Tensor> batch, const data::Item* next, std::uint64_t now);
  // Whether a look at the next batch is of use.
  bool wants_next() const { return !columns_.empty(); }
  void clear();

 private:
  struct Expected {
    std::vector<std::uint64_t> ids = {};
    bool is_asked = false;
    std::optional<std::uint64_t> step = {};  // for which they were asked last
  };
  Expected& expected_behind(std::int64_t number, std::uint64_t step);
  void find_columns(const graph::ServedLookup& lookup);

  std::map<std::int64_t, Expected> expected_;        // by number of the table, as all
  std::map<std::int64_t, std::uint64_t> looked_up_;  // in which step last
  std::map<std::int64_t, std::set<std::size_t>> columns_;
  std::map<std::int64_t, int> compared_;  // lookups that were compared with columns
  std::vector<Tensor> batch_;
};

}  // namespace muster::train
