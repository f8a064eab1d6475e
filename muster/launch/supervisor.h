// Starts the processes of a job's hosts, shows and keeps what they write, and ends all of them when one
// fails; or starts those that die again, where the job can bear that.
//
// It decides; crews (crew.h) do: one starts processes on this host, each other one speaks with an agent.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/launch/crew.h"
#include "muster/launch/launch_spec.h"
#include "muster/launch/lease.h"

namespace muster::launch {

class JobServer;
class RunRecord;

struct SupervisorOptions {
  const Clock& clock;           // borrowed
  std::string log_folder = {};  // exists; gets one file for each process
  // Exists, for the spec's files; removed in the end. Empty: there are no files.
  std::string run_folder = {};
  // After the first failure the others may notice it themselves and say so; then they are asked to end
  // (SIGTERM), and after the grace they are killed. A forwarded signal is followed by the grace alone.
  Duration settle = std::chrono::seconds(3);
  Duration grace = std::chrono::seconds(5);
  // How often each process that dies or fails is started again, and how long the second restart waits; each
  // after it waits twice as long, until the job gets on. It gets on when a newer recovery point lies in
  // `recovery_folder`.
  std::size_t restarts_max = 0;
  std::string recovery_folder = {};
  // When one of them dies or fails, all are ended and started again, up to restarts_max times.
  bool restarts_group = false;
  Duration restart_delay = std::chrono::seconds(1);
  Duration restart_delay_max = std::chrono::seconds(30);
  std::vector<std::int64_t> tail = {};   // the ranks whose lines are shown; empty: all
  bool is_colored = false;               // on a terminal
  bool asks_scheduler = false;           // Muster's own, for the live line of a terminal
  std::string token = {};                // with which it lets itself be asked; empty: as its process says
  std::vector<JobServer*> servers = {};  // borrowed; to show the job while it runs
  RunRecord* record = nullptr;           // borrowed; hears of deaths, restarts and the end; may be null
  std::string host = {};                 // this one's name in reports, where the job has several
  Lease* lease = nullptr;                // borrowed; ties the job here to the rest of it
  int keeper_fd = -1;                    // readable: the keeper is gone, and everything has to end at once
};

// What runs on one host.
struct HostWork {
  std::string name = {};
  LaunchSpec spec = {};
  std::unique_ptr<Crew> agent = {};  // null: this host
};

// Blocks until every process has ended. Returns 0, or the exit code of the process that failed first, or 128
// and the number of the signal that ended the job (0 where all handle SIGTERM and exit well). Whatever else
// the processes left behind is killed.
//
// It is meant to be the whole work of a process: it has one thread, takes over the signals, and reaps every
// child.
int supervise(std::vector<HostWork> hosts, const SupervisorOptions& options);
// All of it runs on this host.
int supervise(const LaunchSpec& spec, const SupervisorOptions& options);

}  // namespace muster::launch
