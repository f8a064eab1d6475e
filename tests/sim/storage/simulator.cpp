#include "tests/sim/storage/simulator.h"

#include <algorithm>
#include <utility>

#include "muster/checkpoint/retention.h"
#include "tests/sim/storage/process.h"

namespace muster::train::sim {
namespace {

using checkpoint::Standing;

constexpr std::uint64_t turns_max = 30'000;
constexpr std::uint64_t errors_max = 6;  // of a worker in a row, until the user is called
constexpr std::size_t keep_steps = 4;

// What a worker may have in its folder: twice what is kept (retention.h), and files of other kinds.
constexpr std::size_t names_max(std::size_t calls) { return 2 * (2 * keep_steps + calls + 4) + 10; }

bool lives(const Standing& row) {
  return row.state == Standing::State::live || row.state == Standing::State::committing;
}

std::vector<std::vector<std::vector<State>>> undisturbed(const Plan& plan) {
  std::vector<std::vector<std::vector<State>>> right(plan.worker_num);
  for (std::uint32_t rank = 0; rank < plan.worker_num; ++rank) {
    State state = first_state(plan.script, rank);
    for (const std::uint64_t steps : plan.script.calls) {
      auto& of_call = right[rank].emplace_back();
      of_call.push_back(state);
      for (std::uint64_t step = 0; step < steps; ++step) {
        make_step(state, std::vector<std::uint64_t>(plan.worker_num, state.shared));
        of_call.push_back(state);
      }
    }
  }
  return right;
}

}  // namespace

Simulator::Simulator(Plan plan, bool traces)
    : plan_(std::move(plan)),
      traces_(traces),
      random_(plan_.seed, hash_text("storage")),
      right_(undisturbed(plan_)),
      book_(plan_.worker_num, names_max(plan_.script.calls.size()),
            [this](std::string what) { result_.broken.push_back(std::move(what)); }) {
  seats_.resize(plan_.worker_num);
  has_lost_own_.resize(plan_.worker_num);
  has_lost_folder_.resize(plan_.worker_num);
  void_commons_.resize(plan_.worker_num);
  disks_.resize(plan_.has_one_disk ? 1 : plan_.worker_num);
  for (auto& disk : disks_) disk = std::make_unique<Disk>();
  trouble_ends_.resize(disks_.size());
  slow_until_.resize(disks_.size());
}

Simulator::~Simulator() {
  for (const auto& process : processes_) process->bury();
}

RunResult Simulator::run() {
  while (!is_over() && result_.broken.empty()) {
    if (++turn_ > turns_max) result_.broken.push_back("every job ends: this one goes on for ever");
    turn();
  }
  result_.turns = turn_;
  return std::move(result_);
}

void Simulator::note(std::string text) {
  result_.trace.push_back(fmt::format("turn {}: {}", turn_, std::move(text)));
}

void Simulator::expect(bool holds, std::string otherwise) {
  if (!holds) result_.broken.push_back(std::move(otherwise));
}

// ---- Time -------------------------------------------------------------------------------------------------

void Simulator::turn() {
  for (; next_fault_ < plan_.faults.size() && plan_.faults[next_fault_].when <= turn_; ++next_fault_)
    meet(plan_.faults[next_fault_]);
  for (std::size_t disk = 0; disk < disks_.size(); ++disk)
    if (disks_[disk]->trouble != Trouble::none && trouble_ends_[disk] <= turn_) end_trouble(disk);
  for (const auto& process : processes_)
    if (process->is_alive() && process->is_stopped_ && process->wakes_ <= turn_) {
      say("{} wakes", process->name());
      process->wake();
      for (Seat& seat : seats_) seat.errors = 0;
    }
  const bool acted = act();
  bury_the_dead();
  look_at_disks();
  form_epoch();
  if (is_stuck()) give_up();
  if (!acted && !is_over() && !pass_time()) expect(false, "every wait ends: all wait for each other");
}

// One of those who can do something does it.
bool Simulator::act() {
  std::vector<std::pair<Process*, bool>> able;  // and whether it saves
  for (const auto& process : processes_) {
    if (process->can_run()) able.emplace_back(process.get(), false);
    if (process->can_save() && slow_until_[disk_of(process->rank_)] <= turn_)
      able.emplace_back(process.get(), true);
  }
  std::vector<std::uint32_t> empty;
  for (std::uint32_t rank = 0; rank < seats_.size(); ++rank)
    if (seats_[rank].process == nullptr && !seats_[rank].has_left) empty.push_back(rank);
  if (able.empty() && empty.empty()) return false;
  const std::uint64_t drawn = draw(able.size() + empty.size());
  if (drawn >= able.size())
    start_process(empty[drawn - able.size()]);
  else if (const auto [process, saves] = able[drawn]; saves)
    process->run_save();
  else
    process->run();
  return true;
}

// Nobody can do anything: to the next moment at which something happens by itself.
bool Simulator::pass_time() {
  std::uint64_t next = ~std::uint64_t{0};
  const auto consider = [&](std::uint64_t when) {
    if (when > turn_) next = std::min(next, when);
  };
  if (next_fault_ < plan_.faults.size()) consider(plan_.faults[next_fault_].when);
  for (std::size_t disk = 0; disk < disks_.size(); ++disk) {
    if (disks_[disk]->trouble != Trouble::none) consider(trouble_ends_[disk]);
    consider(slow_until_[disk]);
  }
  for (const auto& process : processes_) {
    if (process->is_alive() && process->is_stopped_) consider(process->wakes_);
    if (process->can_run() || process->can_save()) consider(turn_ + 1);
  }
  for (const Seat& seat : seats_)
    if (seat.process == nullptr && !seat.has_left) consider(turn_ + 1);
  if (next == ~std::uint64_t{0}) return false;
  turn_ = next - 1;
  return true;
}

void Simulator::form_epoch() {
  bool all_left = true;
  for (const Seat& seat : seats_) {
    all_left = all_left && seat.has_left;
    if (seat.has_left) continue;
    const Process* const process = seat.process;
    if (process == nullptr || !process->is_alive() || process->is_stopped_ || !process->wants_epoch_) return;
  }
  if (all_left) {
    result_.ended_well = true;
    return;
  }
  ++epoch_;
  say("epoch {} begins, {} calls are finished", epoch_, finished_calls_);
  for (const Seat& seat : seats_) {
    if (seat.has_left) continue;
    seat.process->wants_epoch_ = false;
    seat.process->epoch_ = epoch_;
    seat.process->finished_calls_ = std::max(seat.process->finished_calls_, finished_calls_);
  }
}

void Simulator::look_at_disks() {
  for (std::size_t disk = 0; disk < disks_.size(); ++disk) {
    if (!std::exchange(disks_[disk]->changed, false)) continue;
    const MemoryStorage& content = disks_[disk]->content;
    for (const std::uint32_t rank : ranks_of(disk)) {
      const std::string journal_path = folder_of(rank) + "/finished.log";
      std::uint64_t records = 0;
      if (const auto journal = checkpoint::read_journal(journal_path, content))
        while (journal->records.contains(records)) ++records;
      // Nobody was told yet of one that is not synced.
      if (!content.is_synced(journal_path)) records = std::min(records, book_.records(rank));
      book_.look(rank, content.list(folder_of(rank)).value_or(std::vector<std::string>{}), records,
                 common_of(rank));
    }
    forget_void_commons();
    lower_floors();  // what may be removed was judged just now
  }
}

// ---- Processes --------------------------------------------------------------------------------------------

void Simulator::start_process(std::uint32_t rank) {
  processes_.push_back(std::make_unique<Process>(*this, processes_.size() + 1, rank));
  seats_[rank].process = processes_.back().get();
  processes_.back()->can_read_ = disks_[disk_of(rank)]->trouble != Trouble::dead;
  say("{} starts", processes_.back()->name());
}

void Simulator::bury_the_dead() {
  for (const auto& process : processes_) {
    if (process->is_alive() || process->is_buried_) continue;
    process->bury();
    Seat& seat = seats_[process->rank_];
    const bool had_seat = seat.process == process.get();
    if (had_seat && process->has_ended_ && !process->error_) {
      say("{} has left", process->name());
      seat.has_left = true;
      seat.process = nullptr;
      continue;
    }
    replace(*process);
    if (had_seat) ++seat.errors;
    say("{} ends: {}", process->name(), process->error_ ? process->error_->message : "it is gone");
    if (!process->error_) continue;
    expect(process->error_->code != Code::internal && process->error_->code != Code::invalid_argument,
           fmt::format("{} ends by an error of ours: {}", process->name(), process->error_->message));
  }
}

// Its seat is free for another one; whoever waits for it hears of it.
void Simulator::replace(Process& process) {
  if (Seat& seat = seats_[process.rank_]; seat.process == &process) seat.process = nullptr;
  process.is_replaced_ = true;
  if (process.epoch_ != 0) epochs_[process.epoch_].is_broken = true;
}

void Simulator::kill(std::uint32_t rank) {
  Process* const process = seats_[rank].process;
  if (process == nullptr) return;
  say("{} is killed", process->name());
  process->bury();
  replace(*process);
}

void Simulator::kill_all() {
  for (const auto& process : processes_) {
    if (process->is_buried_) continue;
    process->bury();
    replace(*process);
  }
}

bool Simulator::has_somebody_left() const {
  return std::any_of(seats_.begin(), seats_.end(), [](const Seat& seat) { return seat.has_left; });
}

bool Simulator::is_stuck() const {
  if (std::all_of(seats_.begin(), seats_.end(), [](const Seat& seat) { return seat.errors < errors_max; }))
    return false;
  for (const auto& process : processes_)
    if (process->is_alive() && process->is_stopped_) return false;
  return std::all_of(disks_.begin(), disks_.end(),
                     [](const auto& disk) { return disk->trouble == Trouble::none; });
}

// The user reads the error. Who comes back when others have left well needs the ends of all calls on its own
// disk.
void Simulator::give_up() {
  result_.was_refused = true;
  const std::uint64_t calls = plan_.script.calls.size();
  if (!has_somebody_left()) {
    const auto newest = newest_usable();
    expect(!newest || newest->moment != PointId::Moment::step,
           fmt::format("nobody gives up where there is a way on: {} is usable",
                       newest ? to_string(*newest) : ""));
    return;
  }
  for (std::uint32_t rank = 0; rank < seats_.size(); ++rank)
    expect(seats_[rank].errors < errors_max || finished_calls_ < calls || !book_.has_all_ends(rank, calls),
           fmt::format("worker {} has all ends, and cannot leave", rank));
}

// ---- Where all go on --------------------------------------------------------------------------------------

std::optional<PointId> Simulator::newest_usable() const {
  std::vector<bool> can_read;
  for (std::uint32_t rank = 0; rank < seats_.size(); ++rank) {
    const Process* const process = seats_[rank].process;
    can_read.push_back(disks_[disk_of(rank)]->trouble != Trouble::dead &&
                       (process == nullptr || process->can_read_));
  }
  return book_.newest_usable(can_read);
}

void Simulator::note_standing(Gather& gather, std::uint32_t rank, const Recovery::Words& row) {
  for (const checkpoint::HeldPoint& point : checkpoint::decode_standing(row).points)
    if (point.id.moment == PointId::Moment::end) book_.has_end(rank, point.id.call, point.is_shared);
  gather.has_lost.resize(plan_.worker_num);
  gather.has_lost[rank] = has_lost_folder_[rank] && disks_[disk_of(rank)]->trouble == Trouble::none;
  if (gather.arrived > 0) return;
  gather.floor = newest_usable();
  gather.is_open = true;
}

// What somebody has lost meanwhile is nobody's fault.
void Simulator::lower_floors() {
  auto& gathers = epochs_[epoch_].gathers;
  const auto is_open = [](const auto& gather) { return gather.second.is_open; };
  if (std::none_of(gathers.begin(), gathers.end(), is_open)) return;
  const auto now = newest_usable();
  for (auto& [number, gather] : gathers)
    if (gather.is_open) gather.floor = std::min(gather.floor, now);
}

void Simulator::note_all_stand(Gather& gather) {
  std::vector<Standing> rows;
  for (const Recovery::Words& words : gather.rows) rows.push_back(checkpoint::decode_standing(words));
  std::uint64_t top = 0;
  bool all_live = true, one_lives = false, one_gives = false;
  for (const Standing& row : rows) {
    if (row.call != rows[0].call) return;
    all_live = all_live && lives(row);
    one_lives = one_lives || lives(row);
    one_gives = one_gives || (lives(row) && row.is_shared);
    if (lives(row)) top = std::max(top, row.steps);
    gather.has_more = gather.has_more ||
                      std::any_of(row.points.begin(), row.points.end(),
                                  [&](const auto& point) { return point.id > PointId{.call = row.call}; });
    say("    call {} state {} steps {} shared {} knows common {} finished {} points {} up to {}", row.call,
        static_cast<int>(row.state), row.steps, row.is_shared, row.knows_common, row.finished,
        row.points.size(), row.points.empty() ? "" : to_string(row.points.back().id));
  }
  if (one_lives && (all_live || one_gives)) gather.live_steps = top;
}

void Simulator::goes_on(Gather& gather, std::uint32_t rank, std::uint64_t call, std::uint64_t steps,
                        const RecoveringCall::Start& start) {
  const bool is_first = std::exchange(gather.is_open, false);
  for (Seat& seat : seats_) seat.errors = 0;
  if (gather.live_steps) {
    expect(steps >= *gather.live_steps,
           fmt::format("no step is lost while somebody lives: call {} goes on behind step {}, one was behind "
                       "step {}",
                       call, steps, *gather.live_steps));
    return;
  }
  const PointId id = start.point ? start.point->id : PointId{.call = call};
  if (is_first) {
    say("all go on from {}{}", to_string(id), start.point ? "" : " as it is in memory");
    book_.goes_to(id, gather.floor);
    gather.void_commons = void_commons_;
    note_void_commons(id);
    if (id.moment == PointId::Moment::start) has_lost_folder_.assign(plan_.worker_num, false);
  }
  // Who has the point itself lacks nothing before it, and what was behind it all have given up.
  if (start.point && !start.is_of_another) has_lost_folder_[rank] = false;
  if (start.point || start.is_live) return;
  expect(
      !gather.has_more || !gather.has_lost[rank],
      fmt::format("nothing begins anew: call {} does, worker {} has lost its folder, and another one has a "
                  "point of the call",
                  call, rank));
  // As the folders say it, which whoever comes back can read.
  for (std::uint32_t other = 0; other < seats_.size(); ++other) {
    const Process* const process = seats_[other].process;
    if (process == nullptr || !process->can_read_) continue;
    const auto common = common_of(other);
    if (common && common->call == call && common->moment != PointId::Moment::start &&
        common != gather.void_commons[other])
      expect(false, fmt::format("nothing begins anew: call {} does, and worker {} knows that all had {}",
                                call, other, to_string(*common)));
  }
}

// As its folder says it.
std::optional<PointId> Simulator::common_of(std::uint32_t rank) const {
  const auto common = checkpoint::read_common(folder_of(rank) + "/common", disks_[disk_of(rank)]->content);
  return common ? common->point : std::nullopt;
}

// Going over the end of an earlier call is not going back.
void Simulator::note_void_commons(const PointId& gone_to) {
  for (std::uint32_t rank = 0; rank < seats_.size(); ++rank)
    if (const auto common = common_of(rank); common > gone_to && common->call == gone_to.call)
      void_commons_[rank] = common;
}

// Where all have come as far once more, or another one was written.
void Simulator::forget_void_commons() {
  for (std::uint32_t rank = 0; rank < seats_.size(); ++rank) {
    auto& of_rank = void_commons_[rank];
    if (of_rank && (common_of(rank) != of_rank || newest_usable() >= of_rank)) of_rank.reset();
  }
}

// ---- Folders ----------------------------------------------------------------------------------------------

std::vector<std::uint32_t> Simulator::ranks_of(std::size_t disk) const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < seats_.size(); ++rank)
    if (disk_of(rank) == disk) ranks.push_back(rank);
  return ranks;
}

std::string Simulator::job_folder() const { return fmt::format("/recovery/job-{}", job_); }

std::string Simulator::folder_of(std::uint32_t rank) const {
  return fmt::format("{}/worker_{}", job_folder(), rank);
}

checkpoint::RunOptions Simulator::options_of(std::uint32_t rank, Storage& storage) const {
  return {.folder = "/recovery",
          .job = job_,
          .world_size = plan_.worker_num,
          .rank = rank,
          .keep_steps = keep_steps,
          .storage = &storage,
          .patience = std::chrono::milliseconds(0)};
}

bool Simulator::is_in_use(std::size_t disk) const {
  return std::any_of(processes_.begin(), processes_.end(), [&](const auto& process) {
    return disk_of(process->rank_) == disk && process->is_alive() && process->has_opened_;
  });
}

// Whoever has lost the folder of its worker to a later process changes nothing in it any more.
void Simulator::note_change(const Process& process, const std::string& path) {
  if (process.number_ >= seats_[process.rank_].opened) return;
  const std::string folder = folder_of(process.rank_) + '/';
  if (!path.starts_with(folder)) return;
  const std::string_view name = std::string_view(path).substr(folder.size());
  if (process.has_void_lock_) {
    if (name == "finished.log") book_.lost_records(process.rank_);
    return;
  }
  if (!name.starts_with("call_") && name != "finished.log" && name != "common" && name != "begun") return;
  result_.broken.push_back(
      fmt::format("a stale incarnation changes nothing: {} has changed '{}', which is that of process {}",
                  process.name(), path, seats_[process.rank_].opened));
}

}  // namespace muster::train::sim
