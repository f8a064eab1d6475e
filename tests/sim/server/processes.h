// Processes of the simulation: a server with its disk (its base, and the log of pushes since), and a worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "muster/server/server_machine.h"
#include "muster/server/worker_machine.h"
#include "tests/sim/server/rows.h"

namespace muster::server::sim {

// Records, of which some were carried over from the log before: they count where a base begins here.
struct Segment {
  std::vector<LogRecord> carried = {};
  std::vector<LogRecord> records = {};
};

// Rows as of a position, and which segment follows.
struct RowsFile {
  explicit RowsFile(const Plan& plan) : rows(plan) {}
  Position position = {};
  std::uint64_t segment = 0;
  RowTable rows;
};

struct Disk {
  explicit Disk(const Plan& plan) : base(plan) {}
  std::map<std::uint64_t, Segment> segments = {{0, {}}};
  std::size_t synced = 0;  // records of the last segment; those before it are
  RowsFile base;
  std::vector<LogRecord>& last() { return segments.rbegin()->second.records; }
  // As it is read from the base on.
  std::vector<LogRecord> log() const {
    std::vector<LogRecord> all = segments.at(base.segment).carried;
    for (const auto& [number, segment] : segments)
      if (number >= base.segment) all.insert(all.end(), segment.records.begin(), segment.records.end());
    return all;
  }
};

// What a process does with its disk when it ends.
enum class Loss { nothing, end_of_log, disk };

// What one process has of one share.
struct Server {
  explicit Server(const Plan& plan) : disk(plan), rows(plan) {}
  Disk disk;
  bool has_lost_disk = false;  // it looks for what the other holder has, or will
  bool is_looking = false;
  bool is_unkept = false;  // what it has found there is not on its own disk yet
  std::optional<ServerMachine> machine = {};
  RowTable rows;
  std::optional<RowsFile> copy = {};  // whole, and not the base yet
  std::uint64_t incarnation = 0;
  std::uint64_t appended = 0;
  // By worker and serial of a pull whose rows were sent early: rows that have changed since.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::set<std::uint64_t>> changed = {};
};

struct Worker {
  std::optional<WorkerMachine> machine = {};
  std::uint64_t incarnation = 0;
  std::uint64_t pulled = 0;              // steps before this one were asked for
  std::vector<std::uint64_t> states;     // before each step, as far as it has come
  std::set<std::uint64_t> points = {0};  // steps
  std::vector<Contents> pushed;          // by step
  std::uint64_t position() const { return states.size() - 1; }
};

}  // namespace muster::server::sim
