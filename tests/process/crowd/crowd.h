// Many peers of one scheduler, from one process: nodes that register, or unauthorized peers that flood it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "muster/net/net.h"

namespace muster::crowd {

struct NodesOptions {
  net::Address scheduler;
  std::uint32_t count = 1000;
  std::uint32_t worker_num = 1000;  // of the job
  std::uint32_t first_id = 0;
  double seconds =
      10;  // from the roster until all leave; without a roster, from the start until they are cut
  double interval_s = 0;  // between the starts of two of them
};
// Real node machines on real connections; they have no process of their own. Prints how long it took until
// each was accepted and until all had the roster.
int run_nodes(const NodesOptions& options);

struct FloodOptions {
  net::Address target;
  std::size_t silent = 2000;          // connections that say nothing, opened again when they are closed
  double frames_per_second = 20'000;  // malformed, each on a connection of its own
  double seconds = 60;
};
int run_flood(const FloodOptions& options);

// Accepts, reads and closes, and does nothing else.
int run_sink(const net::Address& address, double seconds);

}  // namespace muster::crowd
