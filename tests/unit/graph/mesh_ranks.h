// The ranks of a mesh as threads of one process, which make collective calls in its groups.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "muster/graph/graph.h"

namespace muster::graph {

// Where the members of a group exchange what each of them has, call after call.
class Meeting {
 public:
  using Bytes = std::vector<std::byte>;

  explicit Meeting(std::size_t size) : given_(size) {}

  Result<std::vector<Bytes>> exchange(std::size_t rank, const void* data, std::size_t size_bytes) {
    std::unique_lock lock(mutex_);
    const auto wait = [&](auto&& condition) { return changed_.wait_for(lock, deadline, condition); };
    if (!wait([&] { return !is_leaving_; })) return late();
    given_[rank].assign(static_cast<const std::byte*>(data),
                        static_cast<const std::byte*>(data) + size_bytes);
    if (++here_ == given_.size()) is_leaving_ = true;
    changed_.notify_all();
    if (!wait([&] { return is_leaving_; })) return late();
    std::vector<Bytes> all = given_;
    if (--here_ == 0) is_leaving_ = false;
    changed_.notify_all();
    return all;
  }

 private:
  static constexpr std::chrono::seconds deadline{20};
  static tl::unexpected<Error> late() { return fail(Code::timeout, "a rank did not come to a call"); }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Bytes> given_;
  std::size_t here_ = 0;
  bool is_leaving_ = false;
};

class MeshRank final : public Communicator {
 public:
  MeshRank(Meeting& meeting, std::uint32_t rank, std::uint32_t size)
      : meeting_(meeting), rank_(rank), size_(size) {}

  std::uint32_t rank() const override { return rank_; }
  std::uint32_t size() const override { return size_; }
  using Communicator::all_gather;

  Result<> all_gather(const void* in, void* out, std::size_t size_bytes) override {
    MUSTER_TRY(const auto all, meeting_.exchange(rank_, in, size_bytes));
    for (std::size_t i = 0; i < all.size(); ++i)
      std::memcpy(static_cast<std::byte*>(out) + i * size_bytes, all[i].data(), size_bytes);
    return {};
  }
  Result<> all_reduce(const void* in, void* out, std::size_t count, DType dtype,
                      Reduction reduction) override {
    return reduce_part(in, out, count, 0, count, dtype, reduction);
  }
  Result<> reduce_scatter(const void* in, void* out, std::size_t count, DType dtype,
                          Reduction reduction) override {
    return reduce_part(in, out, count * size_, rank_ * count, count, dtype, reduction);
  }
  Result<> all_to_all(SentPieces in, ReceivedPieces out) override {
    Meeting::Bytes mine;
    for (const auto piece : in) mine.insert(mine.end(), piece.begin(), piece.end());
    MUSTER_TRY(const auto all, meeting_.exchange(rank_, mine.data(), mine.size()));
    for (std::size_t i = 0; i < all.size(); ++i)
      std::memcpy(out[i].data(), all[i].data() + rank_ * out[i].size(), out[i].size());
    return {};
  }

 private:
  // Elements [first, first + kept) of the reduction of `count`.
  Result<> reduce_part(const void* in, void* out, std::size_t count, std::size_t first, std::size_t kept,
                       DType dtype, Reduction reduction) {
    MUSTER_TRY(const auto all, meeting_.exchange(rank_, in, count * size_bytes(dtype)));
    if (dtype == DType::float32) combine<float>(all, out, first, kept, reduction);
    if (dtype == DType::float64) combine<double>(all, out, first, kept, reduction);
    if (dtype == DType::int32) combine<std::int32_t>(all, out, first, kept, reduction);
    if (dtype == DType::int64) combine<std::int64_t>(all, out, first, kept, reduction);
    return {};
  }

  template <class T>
  void combine(const std::vector<Meeting::Bytes>& all, void* out, std::size_t first, std::size_t kept,
               Reduction reduction) {
    for (std::size_t i = 0; i < kept; ++i) {
      const auto at = [&](std::size_t rank) {
        return reinterpret_cast<const T*>(all[rank].data())[first + i];
      };
      T made = at(0);
      for (std::size_t rank = 1; rank < all.size(); ++rank)
        made = reduction == Reduction::max   ? std::max(made, at(rank))
               : reduction == Reduction::min ? std::min(made, at(rank))
                                             : static_cast<T>(made + at(rank));
      if (reduction == Reduction::mean) made = static_cast<T>(made / static_cast<T>(all.size()));
      static_cast<T*>(out)[i] = made;
    }
  }

  Meeting& meeting_;
  std::uint32_t rank_, size_;
};

// The groups of a mesh by their names ("mesh 0 2").
class MeshGroups {
 public:
  Meeting& meeting(const std::string& name, std::size_t size) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Meeting>& found = meetings_[name];
    if (found == nullptr) found = std::make_unique<Meeting>(size);
    return *found;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Meeting>> meetings_;
};

// The groups that one rank is in.
class GroupsOfRank {
 public:
  GroupsOfRank(MeshGroups& groups, std::uint32_t rank, std::uint32_t size)
      : groups_(groups), rank_(rank), size_(size) {}

  Communicator* find(const std::string& name) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<MeshRank>& found = communicators_[name];
    if (found == nullptr) {
      const std::vector<std::uint32_t> members = members_of(name);
      const auto place = static_cast<std::uint32_t>(std::ranges::find(members, rank_) - members.begin());
      found = std::make_unique<MeshRank>(groups_.meeting(name, members.size()), place,
                                         static_cast<std::uint32_t>(members.size()));
    }
    return found.get();
  }

 private:
  std::vector<std::uint32_t> members_of(const std::string& name) const {
    std::vector<std::uint32_t> members;
    std::istringstream words(name);
    std::string mesh;
    words >> mesh;
    for (std::uint32_t member = 0; words >> member;) members.push_back(member);
    for (std::uint32_t member = 0; name.empty() && member < size_; ++member) members.push_back(member);
    return members;
  }

  MeshGroups& groups_;
  std::uint32_t rank_, size_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<MeshRank>> communicators_;
};

inline constexpr std::uint32_t mesh_ranks_max = 4;
inline GroupsOfRank* groups_of_ranks[mesh_ranks_max] = {};

// A plan looks up groups on threads of its own, so that each rank needs a function of its own.
template <std::uint32_t rank>
Result<Communicator*> group_of_rank(std::string_view name, std::optional<std::int64_t>) {
  return groups_of_ranks[rank]->find(std::string(name));
}

// Runs `work` once for each of `size` ranks, at the same time. One at a time.
template <class Made>
std::vector<Made> on_mesh(std::uint32_t size,
                          const std::function<Made(std::uint32_t rank, const RunContext&)>& work) {
  constexpr GroupLookup lookups[] = {&group_of_rank<0>, &group_of_rank<1>, &group_of_rank<2>,
                                     &group_of_rank<3>};
  MeshGroups groups;
  std::vector<Made> made(size);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      GroupsOfRank mine(groups, rank, size);
      groups_of_ranks[rank] = &mine;
      made[rank] = work(rank, {.seed = 3, .communicator = mine.find(""), .group = lookups[rank]});
    });
  for (std::thread& thread : threads) thread.join();
  return made;
}

}  // namespace muster::graph
