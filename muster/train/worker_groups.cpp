#include "muster/train/worker_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "muster/base/state_clock.h"

namespace muster::train {
namespace {

// A job that may form must be able to compute.
static_assert(cluster::worker_num_max <= collective::ranks_max);

collective::Group group_of(const cluster::Roster& roster, std::uint32_t rank,
                           collective::Transport transport) {
  collective::Group group{
      .epoch = roster.epoch, .job_id = roster.job_id, .rank = rank, .endpoints = {}, .transport = transport};
  for (const cluster::Member& worker : roster.workers)
    group.endpoints.push_back({.host_key = worker.host_key,
                               .address = worker.address,
                               .port = worker.data_port,
                               .local_name = worker.local_name,
                               .identity = cluster::identity_of(worker)});
  return group;
}

Error without(std::uint32_t rank, std::uint64_t epoch) {
  return {
      Code::aborted,
      fmt::format("worker {} has finished its script and left the job, so the workers of epoch {} can make "
                  "no call together. Start all processes again: the job goes on from what their folders "
                  "have",
                  rank, epoch)};
}

// A worker that has left the job cannot be connected to.
Result<> check_all_are_here(const cluster::Roster& roster) {
  for (const cluster::Member& worker : roster.workers)
    if (worker.has_left) return fail(without(worker.rank, roster.epoch));
  return {};
}

}  // namespace

WorkerGroups::WorkerGroups(std::shared_ptr<const cluster::Roster> first, collective::Listener listener,
                           Options options)
    : options_(std::move(options)), listener_(std::move(listener)) {
  use(std::move(first));
}

// Every step asks who shares memory: it is found out once.
void WorkerGroups::use(std::shared_ptr<const cluster::Roster> roster) {
  roster_ = std::move(roster);
  const std::vector<cluster::Member>& workers = roster_->workers;
  const auto here = std::count_if(workers.begin(), workers.end(), [&](const cluster::Member& worker) {
    return worker.host_key == workers[options_.rank].host_key;
  });
  has_neighbours_ = here > 1;
}

// ---- What happens to the job ------------------------------------------------------------------------------

Result<cluster::DataEndpoint> WorkerGroups::lost(const Error& reason) {
  // A peer of the last epoch may still knock at the old one.
  MUSTER_TRY(auto listener, collective::Listener::open(options_.address));
  cluster::DataEndpoint endpoint{.port = listener.port(), .local_name = listener.local_name()};
  const std::lock_guard lock(mutex_);
  listener_.emplace(std::move(listener));
  next_.reset();
  if (!over_) over_ = reason;
  abort(reason);
  changed_.notify_all();
  return endpoint;
}

void WorkerGroups::formed(std::shared_ptr<const cluster::Roster> roster) {
  const std::lock_guard lock(mutex_);
  next_ = std::move(roster);
  changed_.notify_all();
}

void WorkerGroups::left(std::uint64_t epoch, std::uint32_t rank) {
  const std::lock_guard lock(mutex_);
  if (!left_ || left_->epoch != epoch) left_ = PeerLeft{epoch, rank, options_.clock.now()};
  if (stop_ != nullptr && is_left_for_good()) stop_->raise();
}

// Who made a call with all and left may still be answered by what it sent before.
bool WorkerGroups::is_left_for_good() const {
  return left_ && left_->epoch == roster_->epoch &&
         options_.clock.now() - left_->since >= options_.patience_with_left;
}

void WorkerGroups::end(const Error& reason) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  ended_ = reason;
  abort(reason);
  changed_.notify_all();
}

void WorkerGroups::abort(const Error& reason) {
  if (stop_ != nullptr) stop_->raise();
  for (Communicator* const group : groups()) group->abort(reason);
}

std::vector<Communicator*> WorkerGroups::groups() const {
  std::vector<Communicator*> made;
  for (const auto& [stages, group] : stage_groups_) made.push_back(group.get());
  for (const auto& [name, calls] : some_workers_) made.push_back(&calls->group());
  if (communicator_ != nullptr) made.push_back(communicator_.get());
  return made;
}

// ---- The epoch in use -------------------------------------------------------------------------------------

Result<> WorkerGroups::usable() const {
  if (ended_) return fail(*ended_);
  if (over_) return fail(*over_);
  return {};
}

collective::Options WorkerGroups::options_of_connections(const net::StopSignal& stop) const {
  return {.connect_timeout = options_.connect_timeout,
          .call_timeout = options_.call_timeout,
          .stop = &stop,
          .security = options_.security,
          // A call that was cut is made again by all: none may have passed it long ago.
          .roots_wait = roster_->recovers,
          .reads_neighbours = options_.reads_neighbours,
          .clock = options_.clock,
          .recorder = recorder_};
}

Result<WorkerGroups::CommunicatorPtr> WorkerGroups::connect() {
  const WaitingScope waiting;
  MUSTER_TRY_VOID(check_all_are_here(*roster_));
  MUSTER_TRY(net::StopSignal stop, net::StopSignal::create());
  std::optional<collective::Listener> listener;
  {
    const std::lock_guard lock(mutex_);
    MUSTER_TRY_VOID(usable());
    if (!listener_) return fail(Code::peer_lost, "this epoch's workers could not be connected");
    listener.swap(listener_);
    stop_ = &stop;
  }
  auto made = collective::connect(group_of(*roster_, options_.rank, options_.transport), *std::move(listener),
                                  options_of_connections(stop));
  const std::lock_guard lock(mutex_);
  stop_ = nullptr;
  MUSTER_TRY_VOID(usable());
  if (!made && is_left_for_good()) return fail(without(left_->rank, left_->epoch));
  return made;
}

Result<Communicator*> WorkerGroups::communicator() {
  const std::lock_guard alone(connecting_);
  return connected();
}

Result<Communicator*> WorkerGroups::connected() {
  if (communicator_ == nullptr) {
    MUSTER_TRY(CommunicatorPtr made, connect());
    const std::lock_guard lock(mutex_);
    communicator_ = std::move(made);
    if (const auto still = usable(); !still) abort(still.error());
  }
  return communicator_.get();
}

Result<Communicator*> WorkerGroups::stage_group(std::uint32_t stages) {
  const std::lock_guard alone(connecting_);
  if (const auto known = stage_groups_.find(stages); known != stage_groups_.end()) return known->second.get();
  MUSTER_TRY(Communicator * all, connected());
  MUSTER_TRY(CommunicatorPtr made, all->split(options_.rank % stages));
  const std::lock_guard lock(mutex_);
  Communicator* const group = (stage_groups_[stages] = std::move(made)).get();
  if (const auto still = usable(); !still) abort(still.error());
  return group;
}

// ---- Groups of some workers -------------------------------------------------------------------------------

Result<collective::AsyncGroup*> WorkerGroups::calls() {
  const std::lock_guard alone(connecting_);
  return connected_calls();
}

Result<collective::AsyncGroup*> WorkerGroups::connected_calls() {
  MUSTER_TRY_VOID(connected());
  const std::lock_guard lock(mutex_);
  if (calls_ == nullptr) calls_ = std::make_unique<collective::AsyncGroup>(communicator_, options_.clock);
  return calls_.get();
}

Result<collective::AsyncGroup*> WorkerGroups::some_workers(const collective::Members& members) {
  const std::lock_guard alone(connecting_);
  if (const auto known = some_workers_.find(members.name); known != some_workers_.end())
    return known->second.get();
  MUSTER_TRY(collective::AsyncGroup * all, connected_calls());
  MUSTER_TRY(CommunicatorPtr made, connect_some(*all, members));
  const std::lock_guard lock(mutex_);
  CallsPtr& group = some_workers_[members.name];
  group = std::make_unique<collective::AsyncGroup>(std::move(made), options_.clock);
  if (const auto still = usable(); !still) abort(still.error());
  return group.get();
}

Result<WorkerGroups::CommunicatorPtr> WorkerGroups::connect_some(collective::AsyncGroup& all,
                                                                 const collective::Members& members) {
  const WaitingScope waiting;
  MUSTER_TRY(net::StopSignal stop, net::StopSignal::create());
  MUSTER_TRY(auto listener, collective::Listener::open(options_.address));
  {
    const std::lock_guard lock(mutex_);
    MUSTER_TRY_VOID(usable());
    stop_ = &stop;
  }
  auto made = collective::connect_some(all, group_of(*roster_, options_.rank, options_.transport), members,
                                       std::move(listener), options_of_connections(stop));
  const std::lock_guard lock(mutex_);
  stop_ = nullptr;
  MUSTER_TRY_VOID(usable());
  return made;
}

void WorkerGroups::forget(const std::string& group) {
  const std::lock_guard alone(connecting_);
  decltype(some_workers_)::node_type old;  // ended without the lock
  const std::lock_guard lock(mutex_);
  old = some_workers_.extract(group);
}

namespace {

void tell_of(const Communicator& group, cluster::Activity& activity) {
  const InFlightCall now = group.in_flight_call();
  activity.finished += now.finished;
  if (now.kind == CallKind::none || activity.call != CallKind::none) return;
  activity.call = now.kind;
  activity.call_number = now.number;
}

}  // namespace

void WorkerGroups::tell(cluster::Activity& activity) const {
  const std::lock_guard lock(mutex_);
  for (const Communicator* const group : groups()) tell_of(*group, activity);
}

void WorkerGroups::leave(const Error& reason) {
  const std::lock_guard lock(mutex_);
  for (Communicator* const group : groups()) group->leave(reason);
}

// ---- The next epoch ---------------------------------------------------------------------------------------

std::optional<Error> WorkerGroups::wait_until_over(Duration limit) {
  const WaitingScope waiting;
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [&] { return ended_ || over_; });
  return ended_ ? ended_ : over_;
}

Result<> WorkerGroups::next(const std::function<Result<>()>& interruption) {
  // No other thread calls them, and memory that is still in use outlives them.
  const auto drop_old = [this] {
    std::map<std::uint32_t, CommunicatorPtr> groups;
    decltype(some_workers_) some;
    std::shared_ptr<Communicator> old;
    CallsPtr calls;
    const std::lock_guard lock(mutex_);
    groups.swap(stage_groups_);
    some.swap(some_workers_);
    old.swap(communicator_);
    calls.swap(calls_);
  };
  drop_old();
  const WaitingScope waiting;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, wait_slice, [&] { return ended_ || next_; })) {
    lock.unlock();
    MUSTER_TRY_VOID(interruption());
    lock.lock();
  }
  if (ended_) return fail(*ended_);
  use(std::exchange(next_, nullptr));
  over_.reset();
  return {};
}

}  // namespace muster::train
