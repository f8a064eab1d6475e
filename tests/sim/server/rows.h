// Rows of the simulation: what is pushed, what is applied, and what should come of it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/server/server_machine.h"
#include "tests/sim/server/simulator.h"

namespace muster::server::sim {

inline constexpr std::uint64_t row_num = 8;

std::uint64_t mix(std::uint64_t a, std::uint64_t b);

using Contents = std::map<std::uint64_t, std::uint64_t>;  // by row

struct PushBody {
  std::uint32_t worker = 0;
  std::uint64_t step = 0;
  Contents contents;
};
struct RowsBody {
  Contents values;
};

// What a worker reads and writes in a step, and what comes of its state and of the rows that it has read.
class Script {
 public:
  explicit Script(const Plan& plan) : plan_(plan) {}
  std::set<std::uint64_t> rows(std::uint32_t worker, std::uint64_t step) const;
  std::uint32_t owner(std::uint64_t row) const { return static_cast<std::uint32_t>(row % plan_.server_num); }
  Contents contents(std::uint32_t worker, std::uint64_t step, std::uint64_t state,
                    const Contents& values) const;
  std::uint64_t first_state(std::uint32_t worker) const { return mix(plan_.seed, worker); }
  std::uint64_t next_state(std::uint64_t state, const Contents& values) const;

 private:
  const Plan& plan_;
};

// The rows of one server, or of all.
class RowTable {
 public:
  explicit RowTable(const Plan& plan) : plan_(&plan) {}
  std::uint64_t value(std::uint64_t row) const;
  // One update with all pushes of a step, by rank; of staleness none with one push, which others may
  // overtake.
  void apply(std::uint64_t step, const std::vector<const PushBody*>& pushes);
  // What was applied twice or in the wrong order; empty: nothing.
  const std::string& fault() const { return fault_; }
  std::uint64_t applied() const { return applied_; }
  const std::map<std::uint64_t, std::uint64_t>& values() const { return values_; }

 private:
  const Plan* plan_;
  std::map<std::uint64_t, std::uint64_t> values_;
  std::uint64_t applied_ = 0;
  std::set<std::pair<std::uint32_t, std::uint64_t>> seen_;  // of staleness none
  std::string fault_;
};

// The rows of a job of staleness 0 in which nothing goes wrong.
RowTable undisturbed(const Plan& plan);

}  // namespace muster::server::sim
