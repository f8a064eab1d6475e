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

void AsyncGroup::Lane::end() {
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

// What was added is done also when the lane ends: a thread may wait for it.
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

AsyncGroup::AsyncGroup(std::shared_ptr<Communicator> group, const Clock& clock)
    : group_(std::move(group)), clock_(clock), patient_(dynamic_cast<PatientReceiver*>(group_.get())) {}

AsyncGroup::~AsyncGroup() {
  if (net::fork_count() != fork_count_) {
    static_cast<void>(lanes_.release());  // their threads are the parent's, and may have held the locks
    return;
  }
  leaves_ = true;
  if (!is_at_rest())
    group_->abort({Code::aborted, fmt::format("rank {} left with calls under way", group_->rank())});
  end_lanes();
}

// Whether all that was started has ended; the thread that made it need not be back yet, and one that listens
// for any rank's next message finds that none is wanted.
bool AsyncGroup::is_at_rest() {
  if (lanes_->open > 0) return false;
  const std::lock_guard lock(lanes_->peers_mutex);
  const bool inboxes_rest = std::ranges::all_of(lanes_->inboxes, [](auto& each) {
    Inbox& inbox = each.second;
    const std::lock_guard inbox_lock(inbox.mutex);
    return inbox.posted.empty() && !inbox.is_taking;
  });
  const std::lock_guard any_lock(lanes_->any_mutex);
  return inboxes_rest && lanes_->from_any.empty();
}

// Before any of them goes: a thread that hears that one rank is gone looks at what comes from all others.
void AsyncGroup::end_lanes() {
  std::vector<Lane*> lanes{&lanes_->calls};
  {
    const std::lock_guard lock(lanes_->peers_mutex);
    for (auto& [rank, lane] : lanes_->outboxes) lanes.push_back(&lane);
    for (auto& [rank, inbox] : lanes_->inboxes) lanes.push_back(&inbox.lane);
  }
  for (Lane* const lane : lanes) lane->end();
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
  ++lanes_->open;
  lanes_->calls.add([this, work, call = std::move(call), timeout] { end(*work, make(call, timeout)); });
  return work;
}

// Who waits for it may let the group go at once.
void AsyncGroup::end(Work& work, Result<> result) {
  --lanes_->open;
  work.finish(std::move(result));
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
  ++lanes_->open;
  lanes_->outboxes[to].add(
      [this, work, to, bytes, label = Label{channel, tag}] { end(*work, send_now(to, bytes, label)); });
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
  const Posted asked = post_of(bytes, {channel, tag}, work);
  if (const auto kept = take_kept(inbox, asked, from)) {
    lock.unlock();
    work->finish(*kept);
    return work;
  }
  inbox.posted.push_back(asked);
  inbox.lane.add([this, from, &inbox] { take_next(from, inbox); });
  return work;
}

AsyncGroup::Posted AsyncGroup::post_of(std::span<std::byte> bytes, Label label,
                                       const std::shared_ptr<Work>& work) {
  return {.bytes = bytes, .label = label, .work = work, .number = ++posted_, .since = clock_.now()};
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
      inbox.is_taking = waiting > 0;
    }
    if (waiting == 0) return;
    const Result<> taken = take_message(from, inbox, /*is_patient=*/false);
    std::unique_lock lock(inbox.mutex);
    if (taken && inbox.posted.size() < waiting) return;
    if (taken) continue;
    const auto failed = std::exchange(inbox.posted, {});  // the group has ended
    lock.unlock();
    for (const Posted& posted : failed) posted.work->finish(taken);
    return;
  }
}

Result<> AsyncGroup::receive_head(std::uint32_t from, std::span<std::byte> head, Inbox& inbox,
                                  bool is_patient) {
  if (!is_patient) return group_->receive(from, {&head, 1});
  return patient_->receive_patiently(from, {&head, 1}, [&] { return check_deadlines(from, inbox); });
}

// The first receive that waits for it, from this rank or from any.
std::optional<AsyncGroup::Posted> AsyncGroup::take_posted(Inbox& inbox, Label label) {
  std::deque<Posted>& from_any = lanes_->from_any;
  const std::lock_guard lock(lanes_->any_mutex);
  const auto own = std::ranges::find(inbox.posted, label, &Posted::label);
  const auto any = std::ranges::find(from_any, label, &Posted::label);
  const bool is_any = any != from_any.end() && (own == inbox.posted.end() || any->number < own->number);
  if (!is_any && own == inbox.posted.end()) return {};
  std::deque<Posted>& list = is_any ? from_any : inbox.posted;
  const auto place = is_any ? any : own;
  std::optional<Posted> taken = std::move(*place);
  list.erase(place);
  return taken;
}

// Into the first receive that waits for its tag, or into memory.
Result<> AsyncGroup::take_message(std::uint32_t from, Inbox& inbox, bool is_patient) {
  TagHeader header{};
  const auto head = receive_head(from, std::as_writable_bytes(std::span(&header, 1)), inbox, is_patient);
  const Label label{header.channel, header.tag};
  std::optional<Posted> posted;
  {
    const std::lock_guard lock(inbox.mutex);
    inbox.is_taking = head.has_value();
    if (!head) return head;
    posted = take_posted(inbox, label);
  }
  Kept kept{.label = label, .bytes = {}};
  const bool fits = posted && posted->bytes.size() == header.size_bytes;
  if (!fits) kept.bytes.resize(header.size_bytes);
  const std::span<std::byte> into = fits ? posted->bytes : std::span<std::byte>(kept.bytes);
  const Result<> received = into.empty() ? Result<>{} : group_->receive(from, {&into, 1});
  {
    const std::lock_guard lock(inbox.mutex);
    inbox.is_taking = false;
  }
  if (posted && posted->from) *posted->from = from;
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
  const std::optional<Posted> late = take_posted(inbox, kept.label);
  inbox.kept.push_back(std::move(kept));
  if (!late) return;
  const auto end = take_kept(inbox, *late, from);
  lock.unlock();
  if (late->from) *late->from = from;
  late->work->finish(*end);
}

// ---- From any rank ----------------------------------------------------------------------------------------

AsyncGroup::FromAny AsyncGroup::receive_from_any(std::span<std::byte> bytes, std::int64_t tag,
                                                 std::uint64_t channel) {
  const auto work = std::make_shared<Work>();
  const auto from = std::make_shared<std::uint32_t>(group_->rank());
  const FromAny started{work, from};
  if (patient_ == nullptr || group_->size() == 1) {
    work->finish(fail(Code::invalid_argument, fmt::format("rank {} of {} cannot receive from any rank",
                                                          group_->rank(), group_->size())));
    return started;
  }
  Posted asked = post_of(bytes, {channel, tag}, work);
  asked.from = from;
  {
    const std::lock_guard lock(lanes_->any_mutex);
    lanes_->from_any.push_back(asked);
  }
  for (std::uint32_t rank = 0; rank < group_->size(); ++rank) {
    if (rank == group_->rank()) continue;
    Inbox& inbox = inbox_of(rank);
    std::unique_lock lock(inbox.mutex);
    // What has come from here before; the post of another thread, perhaps, which is as good.
    const bool has_come = std::ranges::find(inbox.kept, asked.label, &Kept::label) != inbox.kept.end();
    if (const auto taken = has_come ? take_posted(inbox, asked.label) : std::nullopt) {
      const auto end = take_kept(inbox, *taken, rank);
      lock.unlock();
      if (taken->from) *taken->from = rank;
      taken->work->finish(*end);
      return started;
    }
    if (!std::exchange(inbox.listens, true)) inbox.lane.add([this, rank, &inbox] { listen(rank, inbox); });
  }
  return started;
}

// As long as a thread waits for a message from any rank. The last one that was waited for here may come
// later: it is kept.
void AsyncGroup::listen(std::uint32_t from, Inbox& inbox) {
  for (;;) {
    {
      const std::lock_guard lock(inbox.mutex);
      const std::lock_guard any_lock(lanes_->any_mutex);
      if (lanes_->from_any.empty()) {
        inbox.listens = false;
        return;
      }
    }
    const Result<> taken = take_message(from, inbox, /*is_patient=*/true);
    if (taken) continue;
    {
      const std::lock_guard lock(inbox.mutex);
      inbox.listens = false;
      inbox.gone = taken.error();
    }
    stop_listening(from, taken.error());
    return;
  }
}

// Others may still send; once no rank can, what waits has ended.
void AsyncGroup::stop_listening(std::uint32_t from, const Error& gone) {
  for (std::uint32_t rank = 0; rank < group_->size(); ++rank) {
    if (rank == group_->rank() || rank == from) continue;
    Inbox& inbox = inbox_of(rank);
    const std::lock_guard lock(inbox.mutex);
    if (!inbox.gone) return;
  }
  std::deque<Posted> failed;
  {
    const std::lock_guard lock(lanes_->any_mutex);
    failed.swap(lanes_->from_any);
  }
  for (const Posted& posted : failed) posted.work->finish(fail(gone));
}

// Of what waits for a message of this rank; one from any rank is late where none has come from anywhere.
// Where nothing waits and the group goes, the look ends that wait alone: `peer_lost`.
Result<> AsyncGroup::check_deadlines(std::uint32_t from, Inbox& inbox) {
  const TimePoint latest = clock_.now() - group_->call_timeout();
  const auto check = [&](const std::deque<Posted>& posted, const std::string& whom) -> Result<> {
    if (posted.empty() || posted.front().since > latest) return {};
    const Error late{Code::timeout, fmt::format("rank {} waited too long for a message with tag {} from {}",
                                                group_->rank(), posted.front().label.tag, whom)};
    group_->abort(late);
    return fail(late);
  };
  const std::lock_guard lock(inbox.mutex);
  MUSTER_TRY_VOID(check(inbox.posted, fmt::format("rank {}", from)));
  const std::lock_guard any_lock(lanes_->any_mutex);
  if (leaves_ && inbox.posted.empty() && lanes_->from_any.empty())
    return fail(Code::peer_lost, fmt::format("no receive waits for a message of rank {} any more", from));
  return check(lanes_->from_any, "any rank");
}

Error AsyncGroup::wrong_size(std::uint32_t from, std::int64_t tag, std::size_t sent,
                             std::size_t expected) const {
  return {Code::invalid_argument,
          fmt::format("rank {} sent {} bytes with tag {} to rank {}, which expected {}", from, sent, tag,
                      group_->rank(), expected)};
}

}  // namespace muster::collective
