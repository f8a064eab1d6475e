// A process of the simulation: a script that runs until it waits for others, a saver beside it, a disk.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tests/sim/storage/fiber.h"
#include "tests/sim/storage/simulator.h"

namespace muster::train::sim {

class Simulator::Process final : public Recovery {
 public:
  Process(Simulator& simulator, std::uint64_t number, std::uint32_t rank);

  // ---- What its calls see of the job
  Result<checkpoint::RunStore*> store() override;
  std::unique_ptr<checkpoint::Saver> make_saver(checkpoint::RunStore& store) override;
  const Clock& clock() const override { return real_clock(); }
  std::uint32_t local_size() const override { return 1; }
  std::uint32_t rank() const override { return rank_; }
  std::uint32_t size() const override { return simulator_.plan_.worker_num; }
  Result<std::vector<Words>> gather(const Words& mine) override;
  Result<> send(std::uint32_t to, Pieces pieces) override;
  Result<> receive(std::uint32_t from, WritablePieces pieces) override;
  bool lost_epoch(const Error& error) override;
  Result<> next_epoch() override;
  std::uint64_t finished_calls() const override { return finished_calls_; }
  void report_finished_calls(std::uint64_t calls) override;
  void mark_step(const checkpoint::StepPlace&) override {}

  // ---- What the simulator does with it
  std::string name() const { return fmt::format("worker {} (process {})", rank_, number_); }
  bool is_alive() const { return !disk_.is_dead() && !has_ended_; }
  bool can_run() const { return is_alive() && !is_stopped_ && (!waits_for_ || waits_for_()); }
  bool can_save() const { return is_alive() && !is_stopped_ && to_save_; }
  // The script, and then the save, up to the next place where it waits.
  void run() { script_->resume(); }
  void run_save();
  void stop_until(std::uint64_t turn);
  void stop_in_disk_until(std::uint64_t turn);
  void wake();
  // It will do nothing any more.
  void bury();

  Simulator& simulator_;
  const std::uint64_t number_;
  const std::uint32_t rank_;
  ProcessDisk disk_;
  bool is_buried_ = false;
  bool has_ended_ = false;
  std::optional<Error> error_;  // of one that has ended

  bool is_stopped_ = false;
  std::uint64_t wakes_ = 0;   // the turn
  bool is_replaced_ = false;  // by another one at its seat
  bool wants_epoch_ = false;
  std::uint64_t epoch_ = 0;
  std::uint64_t finished_calls_ = 0;  // as it was told when its epoch began
  bool has_opened_ = false;           // its folder, which has not vanished since
  bool can_read_ = true;              // its disk, all the time
  // In the middle of a change, with a lock that means nothing once the folder has vanished.
  bool has_void_lock_ = false;
  bool is_save_hit_ = false;  // what it is saving may be damaged, or in a folder that is lost
  bool is_in_disk() const { return in_disk_ != nullptr; }
  bool is_saving(const PointId& id) const { return to_save_ && to_save_->id == id; }

 private:
  class Saver;

  Result<> live();
  tl::unexpected<Error> lost() const;
  Epoch& epoch() const { return simulator_.epochs_[epoch_]; }
  // False: it has died meanwhile.
  bool wait_until(std::function<bool()> condition);
  void save_now();

  std::size_t gathers_ = 0;     // in this epoch
  Gather* standing_ = nullptr;  // where it has said last where it stands
  std::optional<checkpoint::RunStore> store_;
  std::function<bool()> waits_for_;
  std::optional<checkpoint::Point> to_save_;
  std::optional<Error> save_failure_;
  Fiber* in_disk_ = nullptr;  // stopped in the middle of a change
  std::unique_ptr<Fiber> script_;
  std::unique_ptr<Fiber> saver_;
};

}  // namespace muster::train::sim
