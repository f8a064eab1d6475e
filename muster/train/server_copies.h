// Copies of the rows of parameter servers: which hosts they are on. Private to train.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "muster/cluster/cluster.h"

namespace muster::train {

// Pairs of servers that have copies of the same rows on one host, though others of the job's servers run on
// another one: each pair's rows are lost with its host. Empty where all are on one host: nothing could be
// better.
std::vector<std::pair<std::uint32_t, std::uint32_t>> copies_on_one_host(const cluster::Roster& roster,
                                                                        std::uint32_t copies);

}  // namespace muster::train
