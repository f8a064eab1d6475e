#include "muster/nn/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace muster::nn {
namespace {

PlaceCheck job_check = nullptr;

// How much of what lives is placed on each rank. Threads: any, since a cell may end on any.
class Census {
 public:
  std::shared_ptr<const void> enter(Placed kind, std::uint32_t rank) {
    const std::lock_guard lock(mutex_);
    ++of(kind)[rank];
    return std::shared_ptr<Census>(this, [kind, rank](Census* all) { all->leave(kind, rank); });
  }
  std::uint32_t ranks(Placed kind) {
    const std::lock_guard lock(mutex_);
    return of(kind).empty() ? 0 : of(kind).rbegin()->first + 1;
  }

 private:
  using Counts = std::map<std::uint32_t, std::size_t>;

  Counts& of(Placed kind) { return kind == Placed::cell ? cells_ : primitives_; }
  void leave(Placed kind, std::uint32_t rank) {
    const std::lock_guard lock(mutex_);
    const auto found = of(kind).find(rank);
    if (--found->second == 0) of(kind).erase(found);
  }

  std::mutex mutex_;
  Counts cells_, primitives_;
};

Census& census() {
  static auto* const made = new Census;  // never destroyed: cells may outlive everything
  return *made;
}

// Primitives come and go while code is traced, so that none can be depended on by itself.
class AllPrimitives final : public graph::Versioned {
 public:
  std::uint64_t tree_version() const override { return version_; }
  std::string description() const override { return "the place of a primitive"; }
  void touch() { version_ = graph::next_version(); }

 private:
  std::uint64_t version_ = graph::next_version();
};

AllPrimitives& all_primitives() {
  static auto* const primitives = new AllPrimitives;  // never destroyed: traces may outlive everything
  return *primitives;
}

}  // namespace

std::string code_line(std::string_view file, std::uint64_t line) {
  return fmt::format("{}:{}", file.substr(file.find_last_of('/') + 1), line);
}

std::uint32_t placed_ranks(Placed kind) { return census().ranks(kind); }

std::uint32_t placed_ranks() { return std::max(placed_ranks(Placed::cell), placed_ranks(Placed::primitive)); }

void set_place_check(PlaceCheck check) { job_check = check; }

Result<> check_place(std::string_view what, const Place& place) {
  if (job_check == nullptr) return {};
  return job_check(place.rank).map_error([&](Error error) {
    error.message = fmt::format("{} ({}): {}", what, place.where, error.message);
    return error;
  });
}

Result<Place> make_place(Placed kind, std::string_view what, std::string_view role, std::int64_t rank,
                         std::string where) {
  if (role != "MS_WORKER")
    return fail(Code::invalid_argument, fmt::format("{} ({}): place: the role '{}' computes nothing; choose "
                                                    "'MS_WORKER'",
                                                    what, where, role));
  if (rank < 0 || rank >= std::numeric_limits<std::uint32_t>::max())
    return fail(Code::invalid_argument,
                fmt::format("{} ({}): place: {} is no rank of a worker; choose one from 0 to the number of "
                            "workers - 1",
                            what, where, rank));
  Place made{.rank = static_cast<std::uint32_t>(rank), .where = std::move(where)};
  MUSTER_TRY_VOID(check_place(what, made));
  made.counted = census().enter(kind, made.rank);
  return made;
}

graph::PlacementPtr placement_of(std::string_view what, const Place& place) {
  return std::make_shared<const graph::Placement>(
      graph::Placement{.rank = place.rank, .origin = fmt::format("{}, {}", what, place.where)});
}

void watch_primitives() {
  if (graph::is_tracing()) graph::watch(all_primitives());
}

// What code that is being traced places is a part of that trace.
void note_placed_primitive() {
  if (!graph::is_tracing()) all_primitives().touch();
}

Primitive::Primitive(std::string op, graph::Attributes attributes)
    : op_(std::move(op)), attributes_(std::move(attributes)) {}

Result<> Primitive::place(std::string_view role, std::int64_t rank, const std::source_location& where) {
  MUSTER_TRY(place_, make_place(Placed::primitive, op_, role, rank, code_line(where)));
  note_placed_primitive();
  return {};
}

graph::Value Primitive::operator()(std::initializer_list<graph::Value> inputs) const {
  return call({inputs.begin(), inputs.size()}).front();
}

graph::Values Primitive::call(std::span<const graph::Value> inputs) const {
  watch_primitives();
  if (!place_) return graph::apply_all(op_, inputs, attributes_);
  if (graph::runs_op_by_op()) check_place(op_, *place_).value();
  const graph::PlaceScope scope(placement_of(op_, *place_));
  return graph::apply_all(op_, inputs, attributes_);
}

}  // namespace muster::nn
