// What goes wrong with processes, disks and people.
#include <utility>

#include "tests/sim/storage/process.h"

namespace muster::train::sim {
namespace {

// Of everything below a folder; empty: nothing is there.
std::string bytes_below(MemoryStorage& storage, const std::string& folder) {
  std::string bytes;
  for (const std::string& path : storage.paths()) {
    if (!path.starts_with(folder + '/')) continue;
    const auto& content = storage.content(path);
    bytes += fmt::format("{} {:x}\n", path, hash_bytes(content.data(), content.size()));
  }
  return bytes;
}

}  // namespace

void Simulator::meet(const Fault& fault) {
  const auto rank = static_cast<std::uint32_t>(fault.what % plan_.worker_num);
  const std::uint64_t what = fault.what >> 8;
  Process* const process = seats_[rank].process;
  for (Seat& seat : seats_) seat.errors = 0;
  switch (fault.kind) {
    case FaultKind::kills:
      for (std::uint32_t other = 0; other < plan_.worker_num; ++other)
        if (other == rank || (what >> other & 1) != 0) kill(other);
      return;
    case FaultKind::kills_in_disk:
      if (process != nullptr) process->disk_.die_in(1 + what % 60);
      return;
    case FaultKind::starts_a_duplicate:
      if (process == nullptr || process->is_stopped_) return;
      say("{} is stopped, and started once more", process->name());
      process->stop_until(turn_ + fault.lasts);
      return replace(*process);
    case FaultKind::starts_a_duplicate_in_disk:
      if (process == nullptr) return;
      return process->disk_.stop_in(1 + what % 60, [this, process, lasts = fault.lasts] {
        say("{} is stopped in the middle of a change, and started once more", process->name());
        replace(*process);
        process->stop_in_disk_until(turn_ + lasts);
      });
    case FaultKind::loses_scheduler:
      return lose_scheduler();
    default:
      return meet_on_disk(fault, rank);
  }
}

void Simulator::meet_on_disk(const Fault& fault, std::uint32_t rank) {
  const std::size_t disk = disk_of(rank);
  switch (fault.kind) {
    case FaultKind::kills_and_loses_folder:
      kill(rank);
      return lose_folder(rank);
    case FaultKind::loses_folder:
      return lose_folder(rank);
    case FaultKind::loses_power:
      return lose_power(disk, (fault.what >> 8 & 1) != 0);
    case FaultKind::fills_disk:
      return begin_trouble(disk, Trouble::full, fault.lasts);
    case FaultKind::write_protects:
      return begin_trouble(disk, Trouble::read_only, fault.lasts);
    case FaultKind::breaks_disk:
      return begin_trouble(disk, Trouble::dead, fault.lasts);
    case FaultKind::slows_disk:
      slow_until_[disk] = turn_ + fault.lasts;
      return;
    case FaultKind::damages:
      return damage(fault.what >> 8, disk);
    default:
      return start_second_job(fault.kind == FaultKind::second_job_anew, disk);
  }
}

// ---- Disks ------------------------------------------------------------------------------------------------

void Simulator::begin_trouble(std::size_t disk, Trouble trouble, std::uint64_t lasts) {
  if (disks_[disk]->trouble != Trouble::none) return;
  say("disk {} is in trouble {} for {} turns", disk, static_cast<int>(trouble), lasts);
  disks_[disk]->trouble = trouble;
  trouble_ends_[disk] = turn_ + lasts;
  if (trouble != Trouble::dead) return;
  for (const auto& process : processes_)
    if (disk_of(process->rank_) == disk) process->can_read_ = false;
  lower_floors();
}

void Simulator::end_trouble(std::size_t disk) {
  say("disk {} is well again", disk);
  disks_[disk]->trouble = Trouble::none;
  for (Seat& seat : seats_) seat.errors = 0;
}

// What comes in the place of a folder is another one.
void Simulator::forget_opened(const std::vector<std::uint32_t>& ranks) {
  for (const std::uint32_t rank : ranks) {
    seats_[rank].opened = 0;
    has_lost_folder_[rank] = true;
    for (const auto& process : processes_)
      if (process->rank_ == rank) {
        process->is_save_hit_ = true;
        process->has_opened_ = false;
        process->has_void_lock_ = process->has_void_lock_ || process->is_in_disk();
      }
  }
}

// Of the worker, where all use one disk; else with all that is on it, as when a host is replaced.
void Simulator::lose_folder(std::uint32_t rank) {
  say("worker {} loses its folder", rank);
  MemoryStorage& content = disks_[disk_of(rank)]->content;
  if (plan_.has_one_disk) {
    (void)content.remove_folder(folder_of(rank));
    (void)content.sync_folder(job_folder());
  } else {
    content = {};
  }
  book_.lost_all(rank);
  forget_opened({rank});
  lower_floors();
}

void Simulator::lose_power(std::size_t disk, bool truncates) {
  say("disk {} loses its power", disk);
  for (const std::uint32_t rank : ranks_of(disk)) kill(rank);
  for (const auto& process : processes_)
    if (disk_of(process->rank_) == disk) process->bury();  // stale incarnations too
  MemoryStorage& content = disks_[disk]->content;
  const MemoryStorage after = content.after_power_loss(truncates);
  // A job that another one had put away may be back: its name was not synced yet.
  for (const std::uint32_t rank : ranks_of(disk)) {
    const std::string begun = folder_of(rank) + "/begun";
    if (after.open(begun) && !content.open(begun)) has_lost_folder_[rank] = false;
  }
  content = after;
  disks_[disk]->changed = true;
}

void Simulator::damage(std::uint64_t what, std::size_t disk) {
  const auto take = [&](std::uint64_t bound) { return std::exchange(what, what / bound) % bound; };
  const std::vector<std::uint32_t> ranks = ranks_of(disk);
  const std::uint32_t rank = ranks[take(ranks.size())];
  const std::string folder = folder_of(rank) + '/';
  std::vector<std::string> paths = disks_[disk]->content.paths();
  std::erase_if(paths, [&](const std::string& path) {
    return !path.starts_with(folder + "call_") && path != folder + "finished.log";
  });
  if (paths.empty()) return;
  const std::string path = paths[take(paths.size())];
  auto& bytes = disks_[disk]->content.content(path);
  if (bytes.empty()) return;
  bytes[take(bytes.size())] ^= std::byte{0x10};
  say("a byte of {} is damaged", path);
  const std::string name = path.substr(folder.size(), path.find('/', folder.size()) - folder.size());
  const auto id = checkpoint::point_of_folder(name);
  if (id)
    book_.lost_point(rank, *id);
  else
    book_.lost_records(rank);
  // What is being saved has its name at last.
  for (const auto& process : processes_)
    if (process->rank_ == rank && (!id || process->is_saving(*id))) process->is_save_hit_ = true;
  disks_[disk]->changed = true;
  lower_floors();
}

// ---- Jobs -------------------------------------------------------------------------------------------------

// The next one is refused, takes the id that it finds in the folders, and as many calls as finished as all of
// them have ends of.
void Simulator::lose_scheduler() {
  say("the scheduler is lost, and what it has written");
  kill_all();
  look_at_disks();
  for (std::size_t disk = 0; disk < disks_.size(); ++disk) start_second_job(false, disk);
  for (std::uint32_t rank = 0; rank < plan_.worker_num; ++rank)
    if (book_.has_anything(rank)) finished_calls_ = std::min(finished_calls_, book_.records(rank));
  book_.set_finished(finished_calls_);
}

// On the path of this one. It ends at once.
void Simulator::start_second_job(bool anew, std::size_t disk) {
  Disk& where = *disks_[disk];
  if (where.trouble != Trouble::none) return;
  bool may_come = !is_in_use(disk);
  for (const std::uint32_t rank : ranks_of(disk))
    may_come =
        may_come && (anew || !book_.has_anything(rank) || where.content.open(folder_of(rank) + "/done"));
  const std::string before = bytes_below(where.content, job_folder());
  ProcessDisk storage(where, [](const std::string&) {});
  checkpoint::RunOptions options = options_of(0, storage);
  options.job = fmt::format("{:016x}", ++jobs_);
  options.fresh = anew;
  bool is_in = false;
  {
    const auto store = checkpoint::RunStore::open(options);
    is_in = store && store->problem().empty();
    say("a second job{} comes to disk {} and is {}", anew ? " (anew)" : "", disk,
        is_in ? "let in" : "refused: " + (store ? store->problem() : store.error().message));
  }
  expect(!is_in || may_come, "two jobs on one path: the second is let in");
  expect(is_in || bytes_below(where.content, job_folder()) == before,
         "two jobs on one path: the second is refused and changes something of the first");
  if (!is_in || !may_come) return;
  // What was not needed, or was to be thrown away.
  for (const std::uint32_t rank : ranks_of(disk)) book_.lost_all(rank);
  forget_opened(ranks_of(disk));
  lower_floors();
  where.changed = true;
}

}  // namespace muster::train::sim
