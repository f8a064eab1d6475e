// A job with parameter servers in one thread: the real machines of workers and servers, a network, processes
// and disks that fail as a seed says, rows that are hashes of everything that was ever applied to them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/server/server_machine.h"

namespace muster::server::sim {

enum class FaultKind {
  kills_server,       // its log stays as it is
  loses_server_host,  // the log's end that was not on the disk is gone
  kills_worker,
  kills_all,
  loses_all_hosts,
  loses_disk,  // of a server, where its rows are on another one, too; else its log's end
  loses_two_disks,
};
inline constexpr std::uint64_t fault_kind_count = 7;

struct Fault {
  std::uint64_t when = 0;
  FaultKind kind = FaultKind::kills_server;
  std::uint64_t what = 0;  // which one, for how long: drawn from it
};

struct Plan {
  std::uint64_t seed = 0;
  std::uint32_t worker_num = 1;
  std::uint32_t server_num = 1;
  std::uint32_t copies = 1;
  Staleness staleness = 0;
  std::uint64_t steps = 4;
  std::uint64_t point_every = 2;
  std::uint64_t delay_max = 10;   // of a message
  std::uint64_t lost_of_100 = 0;  // messages
  std::uint64_t doubled_of_100 = 0;
  std::vector<Fault> faults = {};  // by time
};

struct RunResult {
  std::vector<std::string> broken = {};  // promises
  std::uint64_t generations = 0;
  std::uint64_t bases = 0;       // that servers began to stand on
  std::uint64_t resets = 0;      // of a server's rows
  std::uint64_t sent_again = 0;  // pushes that a server had already
  std::uint64_t changes = 0;     // answers to pulls whose rows were sent early
  std::uint64_t gave_up = 0;     // generations that ended since a push was nowhere
  std::uint64_t fetched = 0;     // times that a server got its rows from another one
  std::uint64_t told_lost = 0;   // whether the job ended since both holders had lost their rows
  std::vector<std::string> trace = {};
};

RunResult run(const Plan& plan, bool traces);

}  // namespace muster::server::sim
