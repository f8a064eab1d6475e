// A recovering job and its disks in one thread: the real RecoveringCall and RunStore on fibers, processes
// that die, stop, wake and are started again, disks on which anything goes wrong. The same plan gives the
// same run.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "tests/sim/storage/book.h"
#include "tests/sim/storage/disk.h"
#include "tests/sim/storage/training.h"

namespace muster::train::sim {

enum class FaultKind {
  kills,                       // one, some or all
  kills_in_disk,               // one, in the middle of a later change
  starts_a_duplicate,          // of a process that is stopped at once
  starts_a_duplicate_in_disk,  // of a process that is stopped in the middle of a later change
  loses_folder,                // rm -rf below a process that lives
  kills_and_loses_folder,
  loses_power,  // all who use the disk die
  fills_disk,   // for a while, as the others below
  write_protects,
  breaks_disk,
  slows_disk,
  damages,          // a byte of a file
  loses_scheduler,  // and its log: the job comes back under another id
  second_job,
  second_job_anew,  // MUSTER_FRESH=1
};
inline constexpr std::uint64_t fault_kind_count = 15;

struct Fault {
  std::uint64_t when = 0;  // in turns
  FaultKind kind = FaultKind::kills;
  std::uint64_t lasts = 0;
  std::uint64_t what = 0;  // any number: of a worker, a set of them, an operation, a byte
};

struct Plan {
  std::uint64_t seed = 0;
  std::uint32_t worker_num = 2;
  bool has_one_disk = false;  // that all use; otherwise each has its own
  Script script = {};
  std::vector<Fault> faults = {};
};

struct RunResult {
  std::vector<std::string> broken = {};
  bool ended_well = false;
  bool was_refused = false;  // rightly: nobody could go on without the user
  std::uint64_t turns = 0;
  std::uint64_t saved = 0;  // points
  std::vector<std::string> trace = {};
};

class Simulator {
 public:
  Simulator(Plan plan, bool traces);
  ~Simulator();
  RunResult run();

 private:
  class Process;
  struct Gather {
    std::vector<Recovery::Words> rows;
    std::size_t arrived = 0;
    std::optional<PointId> floor = {};  // of those who say where they stand: what all can go on from
    std::optional<std::uint64_t> live_steps = {};           // what one has in memory and all can go on from
    std::vector<std::optional<PointId>> void_commons = {};  // as they were before it
    std::vector<bool> has_lost = {};  // by rank, as it said where it stands: what it had of the call
    bool has_more = false;            // one of them has a point behind the start of the call
    bool is_open = false;             // nobody has gone on yet
  };
  struct Epoch {
    bool is_broken = false;
    std::map<std::size_t, Gather> gathers = {};
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::byte>> mail = {};
  };
  struct Seat {
    Process* process = nullptr;  // null: nobody
    bool has_left = false;       // its script is through
    std::uint64_t opened = 0;    // the process that has opened the folder last
    std::uint64_t errors = 0;    // ends in a row
  };

  std::uint64_t draw(std::uint64_t bound) { return random_.below(drawn_++, bound); }
  template <class... Arguments>
  void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    if (traces_) note(fmt::format(format, std::forward<Arguments>(arguments)...));
  }
  void note(std::string text);
  void expect(bool holds, std::string otherwise);

  // ---- Time
  bool is_over() const { return result_.ended_well || result_.was_refused; }
  void turn();
  bool act();
  bool pass_time();
  void end_trouble(std::size_t disk);
  void form_epoch();
  void look_at_disks();

  // ---- Processes
  void start_process(std::uint32_t rank);
  void bury_the_dead();
  void kill(std::uint32_t rank);
  void kill_all();
  void replace(Process& process);
  bool is_stuck() const;
  void give_up();
  bool has_somebody_left() const;
  void note_change(const Process& process, const std::string& path);

  // ---- Where all go on
  void note_standing(Gather& gather, std::uint32_t rank, const Recovery::Words& row);
  void note_all_stand(Gather& gather);
  void goes_on(Gather& gather, std::uint32_t rank, std::uint64_t call, std::uint64_t steps,
               const RecoveringCall::Start& start);
  void lower_floors();
  std::optional<PointId> common_of(std::uint32_t rank) const;
  void note_void_commons(const PointId& gone_to);
  void forget_void_commons();
  std::optional<PointId> newest_usable() const;

  // ---- What goes wrong
  void meet(const Fault& fault);
  void meet_on_disk(const Fault& fault, std::uint32_t rank);
  void begin_trouble(std::size_t disk, Trouble trouble, std::uint64_t lasts);
  void lose_folder(std::uint32_t rank);
  void lose_power(std::size_t disk, bool truncates);
  void damage(std::uint64_t what, std::size_t disk);
  void lose_scheduler();
  void start_second_job(bool anew, std::size_t disk);
  void forget_opened(const std::vector<std::uint32_t>& ranks);

  std::size_t disk_of(std::uint32_t rank) const { return plan_.has_one_disk ? 0 : rank; }
  std::vector<std::uint32_t> ranks_of(std::size_t disk) const;
  bool is_in_use(std::size_t disk) const;
  std::string job_folder() const;
  std::string folder_of(std::uint32_t rank) const;
  checkpoint::RunOptions options_of(std::uint32_t rank, Storage& storage) const;

  Plan plan_;
  bool traces_;
  RandomStream random_;
  std::uint64_t drawn_ = 0;
  std::uint64_t turn_ = 0;
  std::size_t next_fault_ = 0;

  std::vector<std::vector<std::vector<State>>> right_;  // undisturbed: by rank, call, steps in it
  std::vector<std::unique_ptr<Disk>> disks_;
  std::vector<std::uint64_t> trouble_ends_;  // by disk, the turn
  std::vector<std::uint64_t> slow_until_;
  Book book_;
  std::vector<bool> has_lost_own_;     // by rank, with the end of a call
  std::vector<bool> has_lost_folder_;  // by rank, since all have begun a call
  // By rank, what its folder says that all had, and what all have gone back behind since. The next save
  // writes that down, which a disk may refuse.
  std::vector<std::optional<PointId>> void_commons_;

  std::string job_ = "0123456789abcdef";
  std::uint64_t jobs_ = 0;            // others
  std::uint64_t finished_calls_ = 0;  // as the scheduler knows
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<Seat> seats_;
  std::map<std::uint64_t, Epoch> epochs_;
  std::uint64_t epoch_ = 0;
  RunResult result_;
};

}  // namespace muster::train::sim
