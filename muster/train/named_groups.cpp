#include "muster/train/named_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "muster/net/net.h"
#include "muster/train/aborted_step.h"
#include "muster/train/job.h"
#include "muster/train/process.h"
#include "muster/train/run_context.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

using collective::AsyncGroup;
using collective::Members;

Members all_workers() {
  Members made{.name = "", .ranks = std::vector<std::uint32_t>(world_size())};
  std::iota(made.ranks.begin(), made.ranks.end(), 0u);
  return made;
}

std::string to_text(const Members& members) {
  return fmt::format("group '{}' (workers {})", members.name, fmt::join(members.ranks, ", "));
}

// What an error of a call means: who has died, and in which group it is missed.
Error explained(const Members& members, Error error) {
  if (Session* const session = Session::current()) error = session->membership().verdict(std::move(error));
  if (members.name.empty()) return error;
  return {error.code, fmt::format("{}: {}", to_text(members), error.message)};
}

}  // namespace

// Found by kernels of a plan, which may run beside the main thread.
class NamedGroups {
 public:
  Result<> create(Members members);
  Result<> destroy(const std::string& name);
  Result<Members> members(std::string_view name) const;
  Result<Communicator*> find(std::string_view name, std::optional<std::int64_t> tag);
  // Connected, if it was not.
  static Result<AsyncGroup*> calls_of(const Members& members);

 private:
  class SomeWorkers;
  class Messages;
  using Key = std::pair<std::string, std::optional<std::int64_t>>;

  mutable std::mutex mutex_;
  std::map<std::string, Members, std::less<>> members_;
  std::map<Key, std::unique_ptr<Communicator>> found_;
};

namespace {

NamedGroups& named_groups() {
  NamedGroups*& made = process().named_groups;
  if (made == nullptr) made = new NamedGroups;
  return *made;
}

}  // namespace

// ---- Calls ------------------------------------------------------------------------------------------------

Result<AsyncGroup*> NamedGroups::calls_of(const Members& members) {
  Session* const session = Session::current();
  if (session == nullptr)
    return fail(Code::invalid_argument, "there are no other workers in this process's job");
  WorkerGroups& groups = session->worker_groups();
  return members.name.empty() ? groups.calls() : groups.some_workers(members);
}

// The calls of a group as plans make them. None is made again in another epoch: who has passed it is not
// known.
class NamedGroups::SomeWorkers final : public Communicator {
 public:
  explicit SomeWorkers(Members members) : members_(std::move(members)) {}
  std::uint32_t rank() const override {
    const auto own = std::ranges::find(members_.ranks, train::rank());
    return static_cast<std::uint32_t>(own - members_.ranks.begin());
  }
  std::uint32_t size() const override { return static_cast<std::uint32_t>(members_.ranks.size()); }
  Result<> all_reduce(const void* in, void* out, std::size_t count, DType dtype,
                      Reduction reduction) override {
    return call([&](Communicator& group) { return group.all_reduce(in, out, count, dtype, reduction); },
                bytes_at(out, count * size_bytes(dtype)));
  }
  using Communicator::all_gather;
  Result<> all_gather(const void* in, void* out, std::size_t size_bytes) override {
    return call([&](Communicator& group) { return group.all_gather(in, out, size_bytes); },
                bytes_at(out, size() * size_bytes));
  }
  Result<> reduce_scatter(const void* in, void* out, std::size_t count, DType dtype,
                          Reduction reduction) override {
    return call([&](Communicator& group) { return group.reduce_scatter(in, out, count, dtype, reduction); },
                bytes_at(out, count * size_bytes(dtype)));
  }
  Result<> reduce(const void* in, void* out, std::size_t count, DType dtype, Reduction reduction,
                  std::uint32_t root) override {
    return call([&](Communicator& group) { return group.reduce(in, out, count, dtype, reduction, root); },
                bytes_at(out, count * size_bytes(dtype)));
  }
  Result<> broadcast(void* data, std::size_t size_bytes, std::uint32_t root) override {
    return call([&](Communicator& group) { return group.broadcast(data, size_bytes, root); });
  }
  Result<> all_to_all(SentPieces in, ReceivedPieces out) override {
    MUSTER_TRY_VOID(call([&](Communicator& group) { return group.all_to_all(in, out); }));
    for (const auto piece : out) zero_if_aborted(piece);
    return {};
  }
  bool shares_memory() const override { return false; }

 private:
  // Of `out` the rest of a step that is void computes with zeros.
  Result<> call(const AsyncGroup::Call& make, std::span<std::byte> out = {}) {
    if (!step_is_aborted()) {
      const auto done = calls_of(members_)
                            .and_then([&](AsyncGroup* calls) { return calls->run(make); })
                            .map_error([&](Error error) { return explained(members_, std::move(error)); });
      MUSTER_TRY_VOID(or_abort(done));
    }
    zero_if_aborted(out);
    return {};
  }

  const Members members_;
};

// ---- Messages ---------------------------------------------------------------------------------------------

namespace {

// They go through the group of all workers: two that talk need not wait for the others.
std::uint64_t channel_of(const Members& members) {
  return net::payload_checksum(std::as_bytes(std::span(members.name))) >> 1;
}

Result<std::uint32_t> worker_at(const Members& members, std::uint32_t peer) {
  if (peer < members.ranks.size() && members.ranks[peer] != rank()) return members.ranks[peer];
  return fail(
      Code::invalid_argument,
      fmt::format("worker {} cannot exchange messages with rank {} of {}", rank(), peer,
                  members.name.empty() ? fmt::format("{} workers", members.ranks.size()) : to_text(members)));
}

// Those of a placed network have no tags, and would be taken for others.
Result<AsyncGroup*> messages() {
  if (stages() != nullptr)
    return fail(Code::not_provided,
                "messages of the script's own are not provided in a job whose network is placed over the "
                "workers (place)");
  return NamedGroups::calls_of(all_workers());
}

template <class Bytes, class Start>
Result<StartedCall> start_message(const std::string& group, std::uint32_t peer, Bytes bytes, Start start) {
  MUSTER_TRY(const Members members, named_groups().members(group));
  MUSTER_TRY(const std::uint32_t worker, worker_at(members, peer));
  MUSTER_TRY(AsyncGroup * all, messages());
  return StartedCall{start(*all, worker, bytes, channel_of(members)), group};
}

// Looks now and then whether the wait was interrupted.
Result<> wait_for(const Result<StartedCall>& started) {
  if (!started) return fail(started.error());
  for (;;) {
    if (const auto end = started->wait(wait_slice)) return *end;
    look_while_waiting();
  }
}

template <class Byte>
Result<std::span<Byte>> only_piece(std::span<const std::span<Byte>> pieces) {
  if (pieces.size() == 1) return pieces[0];
  return fail(Code::invalid_argument, fmt::format("a message of {} tensors", pieces.size()));
}

}  // namespace

// Messages with one tag, as plans send them.
class NamedGroups::Messages final : public Communicator {
 public:
  Messages(Members members, std::int64_t tag) : members_(std::move(members)), tag_(tag) {}
  std::uint32_t rank() const override { return train::rank(); }
  std::uint32_t size() const override { return static_cast<std::uint32_t>(members_.ranks.size()); }
  Result<> send(std::uint32_t to, SentPieces pieces) override {
    MUSTER_TRY(const auto bytes, only_piece(pieces));
    return wait_for(start_send(members_.name, to, bytes, tag_));
  }
  Result<> receive(std::uint32_t from, ReceivedPieces pieces) override {
    MUSTER_TRY(const auto bytes, only_piece(pieces));
    return wait_for(start_receive(members_.name, from, bytes, tag_));
  }

 private:
  const Members members_;
  const std::int64_t tag_;
};

// ---- Which there are --------------------------------------------------------------------------------------

Result<> NamedGroups::create(Members members) {
  const std::lock_guard lock(mutex_);
  const auto known = members_.find(members.name);
  if (known == members_.end()) {
    members_.emplace(members.name, std::move(members));
    return {};
  }
  if (known->second.ranks == members.ranks) return {};
  return fail(Code::invalid_argument, fmt::format("{} exists: it cannot be made of the workers {}",
                                                  to_text(known->second), fmt::join(members.ranks, ", ")));
}

Result<> NamedGroups::destroy(const std::string& name) {
  MUSTER_TRY_VOID(members(name));
  if (name.empty()) return fail(Code::invalid_argument, "the group of all workers stays");
  {
    const std::lock_guard lock(mutex_);
    members_.erase(name);
    std::erase_if(found_, [&](const auto& entry) { return entry.first.first == name; });
  }
  if (Session* const session = Session::current()) session->worker_groups().forget(name);
  return {};
}

Result<Members> NamedGroups::members(std::string_view name) const {
  if (name.empty()) return all_workers();
  const std::lock_guard lock(mutex_);
  if (const auto known = members_.find(name); known != members_.end()) return known->second;
  return fail(Code::invalid_argument, fmt::format("worker {} has made no group '{}'", rank(), name));
}

Result<Communicator*> NamedGroups::find(std::string_view name, std::optional<std::int64_t> tag) {
  MUSTER_TRY(Members known, members(name));
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Communicator>& found = found_[Key{name, tag}];
  if (found == nullptr && tag) found = std::make_unique<Messages>(std::move(known), *tag);
  if (found == nullptr) found = std::make_unique<SomeWorkers>(std::move(known));
  return found.get();
}

Result<Communicator*> find_named_group(std::string_view name, std::optional<std::int64_t> tag) {
  return named_groups().find(name, tag);
}

// ---- For others -------------------------------------------------------------------------------------------

Result<> create_group(const std::string& name, std::vector<std::uint32_t> ranks, bool of_steps) {
  MUSTER_TRY(const std::uint32_t own, get_rank());
  const Members members{.name = name, .ranks = std::move(ranks)};
  std::vector<std::uint32_t> sorted = members.ranks;
  std::ranges::sort(sorted);
  if (name.empty()) return fail(Code::invalid_argument, "a group needs a name");
  if (sorted.empty() || sorted.back() >= world_size() || std::ranges::adjacent_find(sorted) != sorted.end())
    return fail(Code::invalid_argument, fmt::format("{}: different ranks from 0 to {} are needed",
                                                    to_text(members), world_size() - 1));
  if (!std::ranges::binary_search(sorted, own))
    return fail(Code::refused, fmt::format("worker {} is none of {}", own, to_text(members)));
  if (job_recovers() && sorted.size() < world_size() && !of_steps)
    return fail(Code::not_provided,
                fmt::format("{}: groups of some workers are not provided in a job whose processes may come "
                            "back (MS_ENABLE_RECOVERY)",
                            to_text(members)));
  return named_groups().create(members);
}

Result<> destroy_group(const std::string& name) { return named_groups().destroy(name); }

Result<std::vector<std::uint32_t>> group_ranks(const std::string& name) {
  MUSTER_TRY(Members members, named_groups().members(name));
  return std::move(members.ranks);
}

Result<std::vector<std::uint32_t>> workers_here() {
  MUSTER_TRY(const std::uint32_t own, get_rank());
  Session* const session = Session::current();
  if (session == nullptr) return std::vector<std::uint32_t>{own};
  std::vector<std::uint32_t> here;
  const std::vector<cluster::Member>& workers = session->membership().roster().workers;
  for (const cluster::Member& worker : workers)
    if (cluster::host_of(worker) == cluster::host_of(workers[own])) here.push_back(worker.rank);
  return here;
}

std::optional<Result<>> StartedCall::wait(Duration limit) const {
  const std::optional<Result<>> end = work->wait(limit);
  if (!end || *end) return end;
  const auto members = named_groups().members(group);
  return fail(explained(members ? *members : Members{.name = group, .ranks = {}}, end->error()));
}

Result<StartedCall> start_call(const std::string& group, AsyncGroup::Call call) {
  MUSTER_TRY(const Members members, named_groups().members(group));
  MUSTER_TRY(AsyncGroup * calls, NamedGroups::calls_of(members));
  return StartedCall{calls->start(std::move(call)), group};
}

Result<StartedCall> start_send(const std::string& group, std::uint32_t peer, std::span<const std::byte> bytes,
                               std::int64_t tag) {
  return start_message(group, peer, bytes,
                       [tag](AsyncGroup& all, std::uint32_t worker, auto sent, auto channel) {
                         return all.send(worker, sent, tag, channel);
                       });
}

Result<StartedCall> start_receive(const std::string& group, std::uint32_t peer, std::span<std::byte> bytes,
                                  std::int64_t tag) {
  return start_message(group, peer, bytes,
                       [tag](AsyncGroup& all, std::uint32_t worker, auto place, auto channel) {
                         return all.receive(worker, place, tag, channel);
                       });
}

}  // namespace muster::train
