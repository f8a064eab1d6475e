#include "muster/nn/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "muster/nn/process.h"

namespace muster::nn {

std::shared_ptr<const void> Census::enter(Placed kind, std::uint32_t rank) {
  const std::lock_guard lock(mutex_);
  ++of(kind)[rank];
  return std::shared_ptr<Census>(this, [kind, rank](Census* all) { all->leave(kind, rank); });
}

std::uint32_t Census::ranks(Placed kind) {
  const std::lock_guard lock(mutex_);
  return of(kind).empty() ? 0 : of(kind).rbegin()->first + 1;
}

void Census::leave(Placed kind, std::uint32_t rank) {
  const std::lock_guard lock(mutex_);
  const auto found = of(kind).find(rank);
  if (--found->second == 0) of(kind).erase(found);
}

Process& process() {
  static auto* const made = new Process;
  return *made;
}

std::string code_line(std::string_view file, std::uint64_t line) {
  return fmt::format("{}:{}", file.substr(file.find_last_of('/') + 1), line);
}

std::uint32_t placed_ranks(Placed kind) { return process().census.ranks(kind); }

std::uint32_t placed_ranks() { return std::max(placed_ranks(Placed::cell), placed_ranks(Placed::primitive)); }

void set_place_check(PlaceCheck check) { process().place_check = check; }

Result<> check_place(std::string_view what, const Place& place) {
  const PlaceCheck check = process().place_check;
  if (check == nullptr) return {};
  return check(place.rank).map_error([&](Error error) {
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
  made.counted = process().census.enter(kind, made.rank);
  return made;
}

graph::PlacementPtr placement_of(std::string_view what, const Place& place) {
  return std::make_shared<const graph::Placement>(
      graph::Placement{.rank = place.rank, .origin = fmt::format("{}, {}", what, place.where)});
}

void watch_primitives() {
  if (graph::is_tracing()) graph::watch(process().primitives);
}

// What code that is being traced places is a part of that trace.
void note_placed_primitive() {
  if (!graph::is_tracing()) process().primitives.touch();
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
