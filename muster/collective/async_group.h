// AsyncGroup: the calls of a group without waiting for them, and messages with tags.
//
// Collective calls are made one after another in the order in which they were started, on a thread that
// sleeps when there is none. Messages have a thread for each rank they go to and for each they come from, so
// that one that waits holds up no other. Threads begin with the first call that needs them.
//
// Messages of a rank to another with the same tag arrive in order; those with other tags may overtake them.
// What comes with a tag for which no receive has been started yet is kept in memory, as soon as one with
// another tag, or one from any rank, waits for it. A group's messages with tags and those without
// (Communicator::send) do not mix. Channels keep the tags of several users of a group apart.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "muster/base/base.h"
#include "muster/collective/work.h"
#include "muster/net/net.h"

namespace muster::collective {

// What a group is at, seen from outside.
struct GroupState {
  InFlightCall call;
  std::uint64_t messages = 0;          // that were sent and received
  std::vector<std::uint32_t> awaited;  // ranks of this host for which the call under way waits
};

// What a group has that can receive from any rank: a wait for one of several messages must not end it.
class PatientReceiver {
 public:
  virtual ~PatientReceiver() = default;
  // Communicator::receive without a deadline; `look` is asked about every `wait_slice`, and its error ends
  // the wait. That the other rank is gone ends nothing but this call.
  virtual Result<> receive_patiently(std::uint32_t from, ReceivedPieces pieces,
                                     const std::function<Result<>()>& look) = 0;
};

class AsyncGroup {
 public:
  using Call = std::function<Result<>(Communicator&)>;

  explicit AsyncGroup(std::shared_ptr<Communicator> group, const Clock& clock = real_clock());
  // Calls that are not done fail: the group ends then. In a forked child nothing happens.
  ~AsyncGroup();
  AsyncGroup(const AsyncGroup&) = delete;
  AsyncGroup& operator=(const AsyncGroup&) = delete;

  Communicator& group() const { return *group_; }

  // Any thread. A deadline counts from when the call's turn comes; without one the group's own holds.
  std::shared_ptr<Work> start(Call call, std::optional<Duration> timeout = {});
  // Waits for it; with nothing before it, it is made on this thread.
  Result<> run(const Call& call, std::optional<Duration> timeout = {});

  std::shared_ptr<Work> send(std::uint32_t to, std::span<const std::byte> bytes, std::int64_t tag,
                             std::uint64_t channel = 0);
  std::shared_ptr<Work> receive(std::uint32_t from, std::span<std::byte> bytes, std::int64_t tag,
                                std::uint64_t channel = 0);
  // The first message with that tag that comes from some rank and that no receive from that rank was started
  // for before.
  struct FromAny {
    std::shared_ptr<Work> work;
    std::shared_ptr<const std::uint32_t> from;  // once it has ended well
  };
  FromAny receive_from_any(std::span<std::byte> bytes, std::int64_t tag, std::uint64_t channel = 0);

  // Ends the group; what waits fails with the reason.
  void abort(Error reason) { group_->abort(std::move(reason)); }
  // Rank `rank` of this host will do no more: its process has ended, say. Collective calls fail with the
  // reason, on this host at once; what the rank has sent is still received. Any thread.
  void lose(std::uint32_t rank, const Error& reason);
  // Any thread, without waiting.
  GroupState state() const;

 private:
  // Work that one thread does in order.
  class Lane {
   public:
    ~Lane() { end(); }
    // When what was added is done.
    void end();
    void add(std::function<void()> task);
    // Takes the turn for the caller, if nothing is before it; done() gives it back.
    bool take_turn();
    void give_turn_back();

   private:
    void work();
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> tasks_;
    bool busy_ = false;  // a task or a caller has the turn
    bool ends_ = false;
    std::thread thread_;
  };

  struct Label {
    std::uint64_t channel = 0;
    std::int64_t tag = 0;
    friend bool operator==(const Label&, const Label&) = default;
  };
  // What comes from one rank.
  struct Posted {
    std::span<std::byte> bytes;
    Label label;
    std::shared_ptr<Work> work;
    std::uint64_t number = 0;  // of those of this group
    TimePoint since = {};
    std::shared_ptr<std::uint32_t> from = {};  // of one from any rank: to be told whom it is from
  };
  struct Kept {
    Label label;
    std::vector<std::byte> bytes;
  };
  struct Inbox {
    std::mutex mutex;
    std::deque<Posted> posted;  // guarded by the mutex, like the other
    std::deque<Kept> kept;
    bool listens = false;    // for receives from any rank
    bool is_taking = false;  // a message that the group has to take to its end
    std::optional<Error> gone;
    Lane lane;  // the last: it uses the others
  };

  struct Lanes {
    std::mutex any_mutex;                    // behind that of an inbox
    std::deque<Posted> from_any;             // guarded by it
    std::mutex peers_mutex;                  // guards which there are
    std::map<std::uint32_t, Lane> outboxes;  // by rank
    std::map<std::uint32_t, Inbox> inboxes;  // likewise
    std::atomic<std::size_t> open{0};        // calls and sends that have not ended
    Lane calls;
  };

  bool is_at_rest();
  void end_lanes();
  void end(Work& work, Result<> result);
  Result<> make(const Call& call, std::optional<Duration> timeout);
  Result<> send_now(std::uint32_t to, std::span<const std::byte> bytes, Label label);
  void take_next(std::uint32_t from, Inbox& inbox);
  Result<> take_message(std::uint32_t from, Inbox& inbox, bool is_patient);
  Result<> receive_head(std::uint32_t from, std::span<std::byte> head, Inbox& inbox, bool is_patient);
  void listen(std::uint32_t from, Inbox& inbox);
  void stop_listening(std::uint32_t from, const Error& gone);
  Result<> check_deadlines(std::uint32_t from, Inbox& inbox);
  // With the inbox's lock.
  std::optional<Posted> take_posted(Inbox& inbox, Label label);
  Posted post_of(std::span<std::byte> bytes, Label label, const std::shared_ptr<Work>& work);
  void keep(std::uint32_t from, Inbox& inbox, Kept kept);
  std::optional<Result<>> take_kept(Inbox& inbox, const Posted& posted, std::uint32_t from);
  Result<> check_peer(std::uint32_t peer, std::string_view what) const;
  Error wrong_size(std::uint32_t from, std::int64_t tag, std::size_t sent, std::size_t expected) const;
  Inbox& inbox_of(std::uint32_t from);

  const std::shared_ptr<Communicator> group_;
  const Clock& clock_;              // of the deadlines of messages
  PatientReceiver* const patient_;  // the group, if it is one
  std::atomic<std::uint64_t> posted_{0};
  std::atomic<bool> leaves_{false};
  std::uint32_t fork_count_ = net::fork_count();
  std::unique_ptr<Lanes> lanes_ = std::make_unique<Lanes>();
};

}  // namespace muster::collective
