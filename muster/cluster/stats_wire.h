// Private to cluster: the numbers of processes inside of messages. Byte by byte: docs/formats/cluster.md.
#pragma once

#include <cstddef>
#include <optional>

#include "muster/cluster/process_stats.h"
#include "muster/net/net.h"

namespace muster::cluster {

inline constexpr std::size_t counters_size_bytes = 8 * (4 + work_phase_count);
inline constexpr std::size_t stats_size_bytes_min = 1;
inline constexpr std::size_t pace_size_bytes = 2 * 8 + counters_size_bytes;
inline constexpr std::size_t slow_rank_size_bytes = 4 + 1 + 3 * 8;

void write_stats(net::ByteWriter& out, const std::optional<ProcessStats>& stats);
void write_pace(net::ByteWriter& out, const Pace& pace);
void write_slow_rank(net::ByteWriter& out, const SlowRank& slow);

// `in_range` becomes false where a value is out of its range.
std::optional<ProcessStats> read_stats(net::ByteReader& in, bool& in_range);
Pace read_pace(net::ByteReader& in);
SlowRank read_slow_rank(net::ByteReader& in, bool& in_range);

}  // namespace muster::cluster
