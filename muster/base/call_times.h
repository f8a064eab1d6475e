// CallTimes: how long collective calls between workers of this machine take, as they were measured. Public
// for graph, train and launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/communicator.h"
#include "muster/base/environment.h"

namespace muster {

// A table: the calls of groups of `ranks`, while all workers call at once, each group for itself.
struct CallTimes {
  struct Entry {
    CallKind kind = CallKind::none;
    std::uint32_t ranks = 0;
    std::size_t bytes = 0;  // that a rank gives to the call
    Duration time{};        // the middle one of some

    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::uint32_t workers = 0;
  std::int64_t measured_at_s = 0;   // since 1970
  std::vector<Entry> entries = {};  // those of one kind and number of ranks by their bytes

  // Between two measured sizes along the line through them, above the largest along that of the last two.
  // Nothing where no such call was measured.
  std::optional<Duration> time_of(CallKind kind, std::uint32_t ranks, std::size_t bytes) const;

  friend bool operator==(const CallTimes&, const CallTimes&) = default;
};

// As text, one line for each entry, and back. An error names the first line that is none.
std::string to_text(const CallTimes& times);
Result<CallTimes> call_times_from(std::string_view text);

// The kind of that name: "all_reduce". Nothing where there is none.
std::optional<CallKind> call_kind_from(std::string_view name);

// The file of a table between so many workers of this host: below XDG_CACHE_HOME, or ~/.cache. An error where
// there is neither.
Result<std::string> call_times_file(const Environment& environment, std::string_view host,
                                    std::uint32_t workers);

// Measures all_reduce, all_gather, reduce_scatter and all_to_all between all ranks and in groups of each
// number that divides theirs. A collective call: every rank makes it, and gets a table of its own times. A
// second or two.
Result<CallTimes> measure_calls(Communicator& all);

}  // namespace muster
