// Communicator over the shared memory of this host and the links to the others: its calls
// (group_communicator.cpp), their algorithms (operations.cpp), and how a group ends (group_end.cpp).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/base.h"
#include "muster/base/state_clock.h"
#include "muster/collective/async_group.h"
#include "muster/collective/broadcast_rings.h"
#include "muster/collective/call.h"
#include "muster/collective/collective.h"
#include "muster/collective/exchange.h"
#include "muster/collective/kernels.h"
#include "muster/collective/layout.h"
#include "muster/collective/local_group.h"
#include "muster/collective/local_pairs.h"
#include "muster/collective/message.h"
#include "muster/collective/neighbour_memory.h"
#include "muster/collective/plan.h"
#include "muster/collective/reading_choice.h"
#include "muster/collective/reconnect_acceptor.h"
#include "muster/collective/reconnect_watch.h"
#include "muster/collective/recorded_calls.h"
#include "muster/collective/remote_pairs.h"
#include "muster/collective/rendezvous.h"
#include "muster/collective/store_choice.h"

namespace muster::collective {

class GroupCommunicator final : public Communicator, public PatientReceiver {
 public:
  struct Origin {  // what connect() was given, for the groups that are split off
    std::string listen_address;
    Duration connect_timeout{};
    Duration call_timeout{};
    std::shared_ptr<const net::Security> security = {};
    const Clock& clock;
    bool roots_wait = false;
    bool reads_neighbours = true;
    std::shared_ptr<telemetry::FlightRecorder> recorder = {};
  };
  GroupCommunicator(std::shared_ptr<const Group> group, Layout layout, Connections connections,
                    std::unique_ptr<ReconnectAcceptor> acceptor, net::StopSignal stop, Origin origin);
  ~GroupCommunicator() override;

  Result<> all_reduce(const void* in, void* out, std::size_t count, DType dtype,
                      Reduction reduction) override;
  Result<> broadcast(void* data, std::size_t size_bytes, std::uint32_t root) override;
  Result<> all_gather(const void* in, void* out, std::size_t size_bytes) override;
  Result<> reduce(const void* in, void* out, std::size_t count, DType dtype, Reduction reduction,
                  std::uint32_t root) override;
  Result<> reduce_scatter(const void* in, void* out, std::size_t count, DType dtype,
                          Reduction reduction) override;
  Result<> all_gather(std::span<const std::byte> in, ReceivedPieces out) override;
  Result<> all_to_all(SentPieces in, ReceivedPieces out) override;
  Result<> all_to_all_uneven(SentPieces in, ReceivedPieces out) override;
  Result<> gather(std::span<const std::byte> in, ReceivedPieces out, std::uint32_t root) override;
  Result<> scatter(SentPieces in, std::span<std::byte> out, std::uint32_t root) override;
  Result<> barrier() override;
  Result<std::unique_ptr<Communicator>> split(std::uint32_t color) override;
  Result<> send(std::uint32_t to, SentPieces pieces) override;
  Result<> receive(std::uint32_t from, ReceivedPieces pieces) override;
  Result<> receive_patiently(std::uint32_t from, ReceivedPieces pieces,
                             const std::function<Result<>()>& look) override;
  Result<std::shared_ptr<std::byte>> shared_buffer(std::size_t size_bytes) override;

  void set_call_timeout(Duration timeout) override {
    call_timeout_.store(timeout, std::memory_order_relaxed);
  }
  Duration call_timeout() const override { return call_timeout_.load(std::memory_order_relaxed); }
  void abort(Error reason) override;
  void leave(Error reason) override;
  // In the place of a rank of this host that can no longer do so itself; of another host, ends the group.
  void lose(std::uint32_t rank, const Error& reason);
  InFlightCall in_flight_call() const override;
  GroupState state() const;

  std::uint32_t rank() const override { return layout_.own_rank(); }
  std::uint32_t size() const override { return layout_.size(); }
  std::uint32_t local_rank() const override { return local_ ? local_->local_rank() : 0; }
  std::uint32_t local_size() const override { return local_ ? local_->size() : 1; }

 private:
  struct Piece;  // of a tensor: one chunk of it
  // Of a call of pieces: who sends how much to whom. The same on every rank, but for the own pieces.
  struct Routes {
    SentPieces in;       // by destination, or one for all of them
    ReceivedPieces out;  // by source
    // Of the piece from one rank to another. Known for any two ranks.
    std::function<std::size_t(std::uint32_t from, std::uint32_t to)> size;
    std::size_t longest = 0;   // of all sizes
    bool one_for_all = false;  // a rank has the same piece for all who get one of it
    bool combines = false;     // what comes is combined, not taken

    // Of the own pieces: what goes to `to`.
    const std::byte* sent(std::uint32_t to) const { return in[one_for_all ? 0 : to].data(); }
  };

  Result<> all_reduce(const std::byte* in, std::byte* out, const Call& call);
  Result<> broadcast(std::byte* data, const Call& call);
  // Whether its root does not wait for the others: the same on every rank.
  bool runs_ahead(const Call& call) const;
  Result<> broadcast_ahead(std::byte* data, const Call& call);
  // Whether all that this rank needs for it is there, even if the group has ended since.
  bool has_come(const Call& call);
  Result<> all_gather(const std::byte* in, std::byte* out, std::size_t each_bytes, const Call& call);
  Result<> barrier(const Call& call);
  Result<> reduce_scatter(const std::byte* in, std::byte* out, const Call& call);
  Result<> all_to_all_uneven(SentPieces in, ReceivedPieces out, std::span<const std::byte> told,
                             const Call& call);

  // Where the data of an all_reduce lies in this rank's shared memory.
  Offsets offsets_of(const void* in, const void* out, std::size_t size_bytes) const;

  // Gives the call its number and tells it to the others, does `work(call)`, and ends the group when it
  // fails.
  template <class Work>
  Result<> run(Call call, const Offsets& offsets, Work&& work) {
    const WaitingScope waiting;
    MUSTER_TRY_VOID(begin(call, offsets));
    const std::uint64_t record = recorded_.begin(call);
    const Result<> done = work(call).and_then([this] { return settle(); });
    recorded_.end(record, done);
    in_call_.store(call.number << kind_bits, std::memory_order_relaxed);
    if (!done) return fail_group(done.error());
    return {};
  }
  template <class Work>
  Result<> run(Call call, Work&& work) {
    return run(call, {}, std::forward<Work>(work));
  }

  Result<> check_root(std::uint32_t root, std::string_view what) const;
  Result<> usable();
  Result<> usable_for_messages();
  Result<Group> split_group(std::uint32_t color, const Listener& listener);
  MessageWait message_wait(const std::function<Result<>()>& look) const;
  const std::function<Result<>()>& look_at_the_others(std::uint32_t peer) const;
  Result<> receive_now(ReceivedPieces pieces, const Message& message, const MessageWait& wait);
  void watch(WaitList& waits);
  Result<bool> attend();
  bool hear_of_leaving();
  Result<bool> hear_of_end(const LinkError& lost);
  // Ends the group when a peer was revoked meanwhile.
  void check_peers();
  // Whether this is the first reason.
  bool end(const Error& reason);
  Result<> begin(Call& call, const Offsets& offsets);
  tl::unexpected<Error> fail_group(const Error& error);
  std::optional<Error> failure() const;
  TimePoint deadline();
  Result<> exchange();
  Result<> settle();
  // With no other rank on this host, the completion runs at once.
  template <class Complete>
  Result<> sync(const Call& call, Complete&& complete) {
    if (local_)
      return local_->sync(call, checks_, std::forward<Complete>(complete), [this] { return deadline(); });
    complete();
    return {};
  }
  Result<> sync(const Call& call) {
    return sync(call, [] {});
  }
  // Before anything goes to other hosts. Where all hosts have as many ranks, each rank sends its own values
  // without waiting; elsewhere it also sends those of its neighbours, and their call.
  Result<> share(const Call& call) {
    if (!layout_.is_even()) MUSTER_TRY_VOID(sync(call));
    if (std::exchange(announced_, call.number) != call.number && !links_.empty()) links_.announce(call);
    return {};
  }
  std::uint64_t next_turn();

  Result<> reduce_small(const std::byte* in, std::byte* out, const Call& call);
  Result<> reduce_chunks(const std::byte* in, std::byte* out, const Call& call);
  Result<> reach_all(std::size_t size_bytes);
  Result<> reduce_in_place(const Piece& whole, const Call& call);
  Piece piece_of(const std::byte* in, std::byte* out, Range range);
  void share_raw(const Piece& piece, Stores stores);
  void queue_raw(const Piece& piece);
  void queue_results(const Piece& piece);
  Range slices_of_host(const Piece& piece, std::uint32_t host) const;
  Range own_slice(const Piece& piece) const;
  void reduce_own(const Piece& piece, const Call& call, Stores shared, Stores own);
  const std::byte* local_raw(const Piece& piece, std::uint32_t local_rank) const;
  std::byte* remote_raw(std::uint32_t rank, std::uint64_t turn);
  std::byte* remote_small_raw(std::uint32_t rank);
  void choose_destinations(const Piece& piece, std::size_t begin, Stores shared, Stores own);
  void collect_results(const Piece& piece, Stores stores);
  void queue_gathering(Range range, const std::byte* in, std::byte* out, std::size_t each_bytes,
                       std::uint64_t turn);
  void collect_gathering(Range range, std::byte* out, std::size_t each_bytes, std::uint64_t turn,
                         Stores stores);

  // Calls of pieces and reduce_scatter (pieces.cpp).
  Result<std::size_t> step_of(const Routes& routes) const;
  std::size_t place_in_slot(const Routes& routes, std::uint32_t to, Range part) const;
  bool has_lane_of(std::uint32_t rank) const;
  Result<> check_pieces(SentPieces in, ReceivedPieces out, std::string_view what) const;
  Result<> pass_pieces(const Routes& routes, const Call& call);
  Result<> pass_through_slots(const Routes& routes, const Call& call);
  Result<> gather_through_slots(const std::byte* in, std::byte* out, std::size_t each_bytes,
                                const Call& call);
  Result<> broadcast_through_slots(std::byte* data, const Call& call);
  // Reading where pieces lie (reading.cpp).
  Result<> move_pieces(const Routes& routes, const Call& call,
                       const std::function<Result<>()>& through_slots);
  bool may_read_pieces(std::size_t longest) const;
  Result<bool> read_pieces(const Routes& routes, const Call& call, ReadingTrial& trial);
  bool lets_others_read(const Routes& routes) const;
  struct Told;  // by a rank, in its slot
  Told* told_by(std::uint32_t from, std::uint64_t turn) const;
  void decide(ReadingTrial& trial, std::uint64_t turn) const;
  bool read_all(const Routes& routes, std::uint64_t turn);
  Result<> move_part(const Routes& routes, Range part, const Call& call, std::uint64_t turn);
  void give_part(const Routes& routes, Range part, std::uint64_t turn);
  void queue_part(const Routes& routes, Range part, std::uint64_t turn);
  void send_part(std::size_t lane, std::uint32_t place, const Routes& routes, Range part, std::uint64_t turn);
  void receive_part(std::size_t lane, std::uint32_t from, const Routes& routes, Range part,
                    std::uint64_t turn);
  void take_part(const Routes& routes, Range part, std::uint64_t turn, Stores stores);
  Result<bool> reach_inputs(std::size_t size_bytes);
  void reduce_part(const std::byte* in, std::byte* out, Range part, const Call& call, std::uint64_t turn);

  const Offsets& own_offsets() const { return local_->offsets(local_->local_rank()); }

  const std::shared_ptr<const Group> group_;
  RecordedCalls recorded_;
  const Layout layout_;
  const Sizes sizes_;
  std::optional<LocalGroup> local_;
  const std::optional<Alarms> alarms_;
  std::unique_ptr<ReconnectAcceptor> acceptor_;  // null where no rank is remote
  Exchange links_;
  std::optional<LocalPairs> local_pairs_;
  std::optional<BroadcastRings> rings_;
  std::optional<NeighbourMemory> neighbour_memory_;
  LocalGroup::Checks checks_;
  BroadcastRings::Deadline deadline_of_rings_;
  RemotePairs remote_pairs_;
  std::function<Result<>()> look_at_local_;  // whether messages have ended, for waits that this does not end
  std::function<Result<>()> look_at_remote_;
  std::atomic<std::uint64_t> looks_{0};  // that messages have taken while they wait
  net::StopSignal stop_;
  Origin origin_;
  std::atomic<Duration> call_timeout_;
  StoreChoice store_choice_;
  StoreChoice store_choice_in_place_;
  StoreChoice store_choice_gathering_;
  StoreChoice store_choice_pieces_;
  ReadingChoice reading_choice_;
  std::uint64_t calls_ = 0;
  std::uint64_t announced_ = 0;        // number of the last call that other hosts were told of
  std::optional<TimePoint> deadline_;  // of the current call, once it had to wait
  std::uint64_t turns_ = 0;            // of shared memory, where syncs are not counted
  std::vector<std::byte> received_;    // raw values of other hosts, of a rank that is alone on its own
  std::size_t received_stride_;
  std::vector<const std::byte*> sources_;  // by rank, of the combination at hand
  std::vector<Destination> destinations_;  // of the same

  // What the ranks of this host reach of each other in the call at hand, without slots.
  struct Reached {
    const std::byte* in = nullptr;
    std::byte* out = nullptr;
  };
  std::vector<Reached> reached_;   // by local rank; null: through slots and the shared result
  bool all_reached_ = false;       // no rank needs slots and the shared result
  bool result_is_wanted_ = false;  // another rank needs the shared result
  std::uint32_t fork_count_ = net::fork_count();

  // For in_flight_call(): the number of the newest collective call, and its kind while it lasts; the rank,
  // and 1 as long as a message goes there or comes from there.
  static constexpr unsigned kind_bits = 8;
  static CallKind kind_in(std::uint64_t call) {
    return static_cast<CallKind>(call & ((1U << kind_bits) - 1));
  }
  std::atomic<std::uint64_t> in_call_{0};
  std::atomic<std::uint64_t> in_send_{0};
  std::atomic<std::uint64_t> in_receive_{0};
  std::atomic<std::uint64_t> messages_{0};  // that have ended

  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  std::optional<Error> failure_;  // guarded by mutex_; the first one stays

  // What the watch knows of the group's end.
  std::optional<TimePoint> lost_since_;
  std::uint64_t looks_when_lost_ = 0;
  bool calls_are_over_ = false;
  std::optional<ReconnectWatch> reconnect_watch_;  // the last: it uses the others
};

}  // namespace muster::collective
