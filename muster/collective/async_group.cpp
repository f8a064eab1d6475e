#include "muster/collective/async_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "muster/collective/group_communicator.h"

namespace muster::collective {
namespace {

// Goes before a message with a tag, as a message of its own. Only processes of one build read it.
struct TagHeader {
  std::uint64_t channel;
  std::int64_t tag;
  std::uint64_t size_bytes;
};

}  // namespace

// ---- Lanes ------------------------------------------------------------------------------------------------

AsyncGroup::Lane::~Lane() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void AsyncGroup::Lane::add(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  changed_.notify_one();
}

bool AsyncGroup::Lane::take_turn() {
  const std::lock_guard lock(mutex_);
  if (busy_ || !tasks_.empty()) return false;
  return busy_ = true;
}

void AsyncGroup::Lane::give_turn_back() {
  const std::lock_guard lock(mutex_);
  busy_ = false;
  if (!tasks_.empty()) changed_.notify_one();
}

bool AsyncGroup::Lane::is_idle() {
  const std::lock_guard lock(mutex_);
  return !busy_ && tasks_.empty();
}

// What was added is done also when the lane ends: somebody may wait for it.
void AsyncGroup::Lane::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !busy_ && (ends_ || !tasks_.empty()); });
    if (tasks_.empty()) return;
    const auto task = std::move(tasks_.front());
    tasks_.pop_front();
    busy_ = true;
    lock.unlock();
    task();
    lock.lock();
    busy_ = false;
  }
}

// ---- Collective calls -------------------------------------------------------------------------------------

AsyncGroup::AsyncGroup(std::shared_ptr<Communicator> group) : group_(std::move(group)) {}

AsyncGroup::~AsyncGroup() {
  if (net::fork_count() != fork_count_) {
    static_cast<void>(lanes_.release());  // their threads are the parent's, and may have held the locks
    return;
  }
  bool is_idle = lanes_->calls.is_idle();
  {
    const std::lock_guard lock(lanes_->peers_mutex);
    for (auto& [rank, lane] : lanes_->outboxes) is_idle = is_idle && lane.is_idle();
    for (auto& [rank, inbox] : lanes_->inboxes) is_idle = is_idle && inbox.lane.is_idle();
  }
  if (!is_idle)
    group_->abort({Code::aborted, fmt::format("rank {} left with calls under way", group_->rank())});
}

Result<> AsyncGroup::make(const Call& call, std::optional<Duration> timeout) {
  if (!timeout) return call(*group_);
  const Duration usual = group_->call_timeout();
  group_->set_call_timeout(*timeout);
  Result<> done = call(*group_);
  group_->set_call_timeout(usual);
  return done;
}

std::shared_ptr<Work> AsyncGroup::start(Call call, std::optional<Duration> timeout) {
  const auto work = std::make_shared<Work>();
  lanes_->calls.add([this, work, call = std::move(call), timeout] { work->finish(make(call, timeout)); });
  return work;
}

Result<> AsyncGroup::run(const Call& call, std::optional<Duration> timeout) {
  if (!lanes_->calls.take_turn()) return *start(call, timeout)->wait();
  Result<> done = make(call, timeout);
  lanes_->calls.give_turn_back();
  return done;
}

void AsyncGroup::lose(std::uint32_t rank, const Error& reason) {
  auto* const group = dynamic_cast<GroupCommunicator*>(group_.get());
  if (group != nullptr) return group->lose(rank, reason);
  group_->abort(reason);
}

GroupState AsyncGroup::state() const {
  const auto* const group = dynamic_cast<const GroupCommunicator*>(group_.get());
  if (group != nullptr) return group->state();
  return {.call = group_->in_flight_call(), .awaited = {}};
}

// ---- Messages ---------------------------------------------------------------------------------------------

Result<> AsyncGroup::check_peer(std::uint32_t peer, std::string_view what) const {
  if (peer < group_->size() && peer != group_->rank()) return {};
  return fail(Code::invalid_argument,
              fmt::format("rank {} of {} cannot {} rank {}", group_->rank(), group_->size(), what, peer));
}

std::shared_ptr<Work> AsyncGroup::send(std::uint32_t to, std::span<const std::byte> bytes, std::int64_t tag,
                                       std::uint64_t channel) {
  const auto work = std::make_shared<Work>();
  if (const auto sound = check_peer(to, "send to"); !sound) {
    work->finish(sound);
    return work;
  }
  const std::lock_guard lock(lanes_->peers_mutex);
  lanes_->outboxes[to].add(
      [this, work, to, bytes, label = Label{channel, tag}] { work->finish(send_now(to, bytes, label)); });
  return work;
}

Result<> AsyncGroup::send_now(std::uint32_t to, std::span<const std::byte> bytes, Label label) {
  const TagHeader header{.channel = label.channel, .tag = label.tag, .size_bytes = bytes.size()};
  const std::span<const std::byte> head = std::as_bytes(std::span(&header, 1));
  MUSTER_TRY_VOID(group_->send(to, {&head, 1}));
  if (bytes.empty()) return {};
  return group_->send(to, {&bytes, 1});
}

AsyncGroup::Inbox& AsyncGroup::inbox_of(std::uint32_t from) {
  const std::lock_guard lock(lanes_->peers_mutex);
  return lanes_->inboxes[from];
}

std::shared_ptr<Work> AsyncGroup::receive(std::uint32_t from, std::span<std::byte> bytes, std::int64_t tag,
                                          std::uint64_t channel) {
  const auto work = std::make_shared<Work>();
  if (const auto sound = check_peer(from, "receive from"); !sound) {
    work->finish(sound);
    return work;
  }
  Inbox& inbox = inbox_of(from);
  std::unique_lock lock(inbox.mutex);
  const Posted posted{.bytes = bytes, .label = {channel, tag}, .work = work};
  if (const auto kept = take_kept(inbox, posted, from)) {
    lock.unlock();
    work->finish(*kept);
    return work;
  }
  inbox.posted.push_back(posted);
  inbox.lane.add([this, from, &inbox] { take_next(from, inbox); });
  return work;
}

// How it ends, if what it waits for has come before. With the inbox's lock.
std::optional<Result<>> AsyncGroup::take_kept(Inbox& inbox, const Posted& posted, std::uint32_t from) {
  const auto kept = std::ranges::find(inbox.kept, posted.label, &Kept::label);
  if (kept == inbox.kept.end()) return {};
  const std::vector<std::byte> bytes = std::move(kept->bytes);
  inbox.kept.erase(kept);
  if (bytes.size() != posted.bytes.size())
    return fail(wrong_size(from, posted.label.tag, bytes.size(), posted.bytes.size()));
  std::ranges::copy(bytes, posted.bytes.begin());
  return Result<>{};
}

// One more message than receives that were done before it; none where a kept one has made it needless.
void AsyncGroup::take_next(std::uint32_t from, Inbox& inbox) {
  for (;;) {
    std::size_t waiting = 0;
    {
      const std::lock_guard lock(inbox.mutex);
      waiting = inbox.posted.size();
    }
    if (waiting == 0) return;
    const Result<> taken = take_message(from, inbox);
    std::unique_lock lock(inbox.mutex);
    if (taken && inbox.posted.size() < waiting) return;
    if (taken) continue;
    const auto failed = std::exchange(inbox.posted, {});  // the group has ended
    lock.unlock();
    for (const Posted& posted : failed) posted.work->finish(taken);
    return;
  }
}

// Into the first receive that waits for its tag, or into memory.
Result<> AsyncGroup::take_message(std::uint32_t from, Inbox& inbox) {
  TagHeader header{};
  const std::span<std::byte> head = std::as_writable_bytes(std::span(&header, 1));
  MUSTER_TRY_VOID(group_->receive(from, {&head, 1}));
  const Label label{header.channel, header.tag};
  std::optional<Posted> posted;
  {
    const std::lock_guard lock(inbox.mutex);
    const auto first = std::ranges::find(inbox.posted, label, &Posted::label);
    if (first != inbox.posted.end()) {
      posted = std::move(*first);
      inbox.posted.erase(first);
    }
  }
  Kept kept{.label = label, .bytes = {}};
  const bool fits = posted && posted->bytes.size() == header.size_bytes;
  if (!fits) kept.bytes.resize(header.size_bytes);
  const std::span<std::byte> into = fits ? posted->bytes : std::span<std::byte>(kept.bytes);
  const Result<> received = into.empty() ? Result<>{} : group_->receive(from, {&into, 1});
  if (posted)
    posted->work->finish(!received || fits
                             ? received
                             : fail(wrong_size(from, header.tag, header.size_bytes, posted->bytes.size())));
  if (!posted && received) keep(from, inbox, std::move(kept));
  return received;
}

// A receive for it may have been started meanwhile.
void AsyncGroup::keep(std::uint32_t from, Inbox& inbox, Kept kept) {
  std::unique_lock lock(inbox.mutex);
  const auto late = std::ranges::find(inbox.posted, kept.label, &Posted::label);
  inbox.kept.push_back(std::move(kept));
  if (late == inbox.posted.end()) return;
  const Posted posted = std::move(*late);
  inbox.posted.erase(late);
  const auto end = take_kept(inbox, posted, from);
  lock.unlock();
  posted.work->finish(*end);
}

Error AsyncGroup::wrong_size(std::uint32_t from, std::int64_t tag, std::size_t sent,
                             std::size_t expected) const {
  return {Code::invalid_argument,
          fmt::format("rank {} sent {} bytes with tag {} to rank {}, which expected {}", from, sent, tag,
                      group_->rank(), expected)};
}

}  // namespace muster::collective
