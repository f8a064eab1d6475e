#include "tests/sim/storage/process.h"

#include <algorithm>
#include <utility>

namespace muster::train::sim {
namespace {

// A row by which a worker says where it stands (checkpoint::encode).
const std::size_t standing_words = checkpoint::encode(checkpoint::Standing{}).size();

}  // namespace

// Hands points to the process; when they are written, the simulator says.
class Simulator::Process::Saver final : public checkpoint::Saver {
 public:
  explicit Saver(Process& process) : process_(process) {}
  ~Saver() override { (void)wait(); }
  void save(checkpoint::Point point) override {
    if (process_.wait_until([this] { return !process_.to_save_; })) process_.to_save_ = std::move(point);
  }
  Result<> wait() override {
    if (!process_.wait_until([this] { return !process_.to_save_; })) return process_.lost();
    if (auto failure = std::exchange(process_.save_failure_, std::nullopt)) return fail(*std::move(failure));
    return {};
  }

 private:
  Process& process_;
};

Simulator::Process::Process(Simulator& simulator, std::uint64_t number, std::uint32_t rank)
    : simulator_(simulator),
      number_(number),
      rank_(rank),
      disk_(*simulator.disks_[simulator.disk_of(rank)],
            [this](const std::string& path) { simulator_.note_change(*this, path); }) {
  calls().resumed = true;  // it prints no line
  script_ = std::make_unique<Fiber>([this] {
    Result<> lived = live();
    if (disk_.is_dead()) return;
    has_ended_ = true;
    if (!lived) error_ = std::move(lived).error();
  });
}

Result<> Simulator::Process::live() {
  MUSTER_TRY_VOID(next_epoch());
  const Watch watch{.goes_on =
                        [this](std::uint64_t call, std::uint64_t steps, const RecoveringCall::Start& start) {
                          if (is_alive() && !is_replaced_)
                            simulator_.goes_on(*standing_, rank_, call, steps, start);
                        },
                    .counts =
                        [this](std::uint64_t call, std::uint64_t steps, State& state, bool own_is_promised) {
                          const State& right = simulator_.right_[rank_][call][steps];
                          if (!own_is_promised) simulator_.has_lost_own_[rank_] = true;
                          if (simulator_.has_lost_own_[rank_]) state.own = right.own;
                          simulator_.expect(
                              state == right || !is_alive(),
                              fmt::format("what training goes on with is right: {} has another state at "
                                          "step {} of call {}",
                                          name(), steps, call));
                        }};
  MUSTER_TRY_VOID(run_script(*this, simulator_.plan_.script, rank_, watch));
  (void)store_->set_done();
  return {};
}

Result<checkpoint::RunStore*> Simulator::Process::store() {
  if (store_) return &*store_;
  checkpoint::RunOptions options = simulator_.options_of(rank_, disk_);
  options.epoch = epoch_;
  MUSTER_TRY(auto opened, checkpoint::RunStore::open(options));
  store_.emplace(std::move(opened));
  if (!store_->problem().empty()) {
    simulator_.say("{} has opened no folder: {}", name(), store_->problem());
  } else if (is_alive()) {
    has_opened_ = true;
    simulator_.seats_[rank_].opened = number_;
  }
  return &*store_;
}

// ---- The group --------------------------------------------------------------------------------------------

tl::unexpected<Error> Simulator::Process::lost() const {
  return disk_.is_dead() ? fail(Code::aborted, "the process is gone")
                         : fail(Code::peer_lost, "a worker was lost");
}

bool Simulator::Process::wait_until(std::function<bool()> condition) {
  while (!disk_.is_dead() && !condition()) {
    waits_for_ = condition;
    Fiber::yield();
  }
  waits_for_ = {};
  return !disk_.is_dead();
}

Result<std::vector<Recovery::Words>> Simulator::Process::gather(const Words& mine) {
  if (disk_.is_dead()) return lost();
  Epoch& now = epoch();
  Gather& gather = now.gathers[gathers_++];
  gather.rows.resize(size());
  gather.rows[rank_] = mine;
  if (mine.size() == standing_words) simulator_.note_standing(*(standing_ = &gather), rank_, mine);
  if (++gather.arrived == size() && mine.size() == standing_words) simulator_.note_all_stand(gather);
  const auto is_over = [&] { return gather.arrived == size() || now.is_broken; };
  if (!wait_until([&] { return is_over() || simulator_.has_somebody_left(); })) return lost();
  if (!is_over()) return fail(Code::refused, "another worker has left");
  // Of those who are told at last some may be told no more.
  if (gather.arrived < size() || (now.is_broken && simulator_.draw(2) == 0)) return lost();
  for (const Words& row : gather.rows)
    if (row.size() != mine.size())
      return fail(Code::internal, fmt::format("rows of {} and {} words meet", mine.size(), row.size()));
  return gather.rows;
}

Result<> Simulator::Process::send(std::uint32_t to, Pieces pieces) {
  if (disk_.is_dead() || epoch().is_broken) return lost();
  std::vector<std::byte>& mail = epoch().mail[{rank_, to}];
  for (const auto piece : pieces) mail.insert(mail.end(), piece.begin(), piece.end());
  return {};
}

Result<> Simulator::Process::receive(std::uint32_t from, WritablePieces pieces) {
  Epoch& now = epoch();
  std::vector<std::byte>& mail = now.mail[{from, rank_}];
  for (const auto piece : pieces) {
    if (!wait_until([&] { return mail.size() >= piece.size() || now.is_broken; })) return lost();
    if (mail.size() < piece.size()) return lost();
    const auto end = mail.begin() + static_cast<std::ptrdiff_t>(piece.size());
    std::copy(mail.begin(), end, piece.begin());
    mail.erase(mail.begin(), end);
  }
  return {};
}

bool Simulator::Process::lost_epoch(const Error& error) {
  return error.code == Code::peer_lost && !disk_.is_dead() && epoch().is_broken;
}

Result<> Simulator::Process::next_epoch() {
  wants_epoch_ = true;
  if (!wait_until([&] { return !wants_epoch_ || is_replaced_; })) return lost();
  if (is_replaced_) return fail(Code::aborted, "another process has taken this one's place");
  gathers_ = 0;
  return {};
}

void Simulator::Process::report_finished_calls(std::uint64_t calls) {
  if (disk_.is_dead()) return;
  finished_calls_ = std::max(finished_calls_, calls);
  if (is_replaced_ || calls <= simulator_.finished_calls_) return;
  simulator_.say("{} reports that {} calls are finished", name(), calls);
  simulator_.finished_calls_ = calls;
  simulator_.book_.set_finished(calls);
  simulator_.book_.expect_finished(calls);
}

// ---- The saver --------------------------------------------------------------------------------------------

std::unique_ptr<checkpoint::Saver> Simulator::Process::make_saver(checkpoint::RunStore&) {
  return std::make_unique<Saver>(*this);
}

void Simulator::Process::save_now() {
  is_save_hit_ = false;
  const auto saved = store_->save(*to_save_);
  if (!disk_.is_dead() && saved) {
    ++simulator_.result_.saved;
    if (!is_save_hit_) simulator_.book_.kept(rank_, to_save_->id, to_save_->is_shared);
    // It comes before all steps: what was lost before it was nothing of the call.
    if (to_save_->id.moment == PointId::Moment::start) simulator_.has_lost_folder_[rank_] = false;
    simulator_.say("{} has saved {}", name(), to_string(to_save_->id));
  } else if (!disk_.is_dead()) {
    simulator_.say("{} has NOT saved {}: {}", name(), to_string(to_save_->id), saved.error().message);
    if (!save_failure_) save_failure_ = saved.error();
  }
  to_save_.reset();
}

// ---- What the simulator does with it ----------------------------------------------------------------------

void Simulator::Process::run_save() {
  saver_ = std::make_unique<Fiber>([this] { save_now(); });
  saver_->resume();
  if (saver_->is_done()) saver_.reset();
}

void Simulator::Process::stop_until(std::uint64_t turn) {
  is_stopped_ = true;
  wakes_ = turn;
}

void Simulator::Process::stop_in_disk_until(std::uint64_t turn) {
  in_disk_ = Fiber::current();
  if (in_disk_ == nullptr) return;  // it ends just now
  stop_until(turn);
  Fiber::yield();
  in_disk_ = nullptr;
}

// Whoever was stopped in the middle of a change ends it first.
void Simulator::Process::wake() {
  is_stopped_ = false;
  if (in_disk_ != nullptr) in_disk_->resume();
  if (saver_ && saver_->is_done()) saver_.reset();
}

// A program that ends closes what it has open; one that is killed does nothing any more.
void Simulator::Process::bury() {
  if (std::exchange(is_buried_, true)) return;
  if (has_ended_) store_.reset();
  disk_.die();
  while (saver_ && !saver_->is_done()) saver_->resume();
  while (!script_->is_done()) script_->resume();
  saver_.reset();
  store_.reset();
}

}  // namespace muster::train::sim
