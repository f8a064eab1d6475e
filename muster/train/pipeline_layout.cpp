#include "muster/train/pipeline_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "muster/train/context.h"
#include "muster/train/explain.h"
#include "muster/train/process.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

std::optional<std::uint32_t> ranks_at_work() {
  const LayoutQuestions& layout = process().layout;
  return layout.thread == std::this_thread::get_id() ? layout.ranks_at_work : std::nullopt;
}

std::uint32_t placed_ranks() { return ranks_at_work().value_or(nn::placed_ranks()); }

bool is_data_parallel() { return context().parallel_mode == ParallelMode::data_parallel; }

Result<> check_rank(std::uint32_t rank) {
  Session* const session = Session::current();
  const std::uint32_t world_size = session == nullptr ? 1 : session->membership().world_size();
  if (world_size == 1) return {};
  if (rank >= world_size)
    return fail(
        Code::invalid_argument,
        fmt::format("place: there is no worker {} in this job of {}: choose a rank from 0 to {}, or start "
                    "more workers",
                    rank, world_size, world_size - 1));
  if (const std::uint32_t stages = context().mesh_stages; stages > 1 && rank >= stages)
    return fail(
        Code::invalid_argument,
        fmt::format("place: there is no stage {} on this job's mesh, which has {}: choose a rank from 0 "
                    "to {}",
                    rank, stages, stages - 1));
  if (graph::is_eager())
    return fail(
        Code::invalid_argument,
        "place: in PYNATIVE_MODE (eager mode) ops run one by one, and nothing can be divided over the "
        "workers: choose GRAPH_MODE, set_context(mode=GRAPH_MODE)");
  // By then the workers have agreed on who does what.
  if (graph::is_tracing() && (placed_ranks() == 0 || (is_data_parallel() && rank >= placed_ranks())))
    return fail(Code::invalid_argument,
                fmt::format("place: the network is being traced as one of {} placed ranks, and rank {} comes "
                            "too late: place it in __init__, or after the network was made",
                            placed_ranks(), rank));
  const std::optional<std::uint32_t> asked_at = process().layout.asked_at;
  if (asked_at && is_data_parallel() && rank >= *asked_at)
    return fail(
        Code::invalid_argument,
        fmt::format("place: the number of replicas was asked for when {} ranks were placed, and rank {} "
                    "changes it: make the network before get_replica_rank() and get_replica_count()",
                    *asked_at, rank));
  return {};
}

void for_each_placed(const nn::Cell& network, const std::function<void(const nn::Cell&)>& visit) {
  if (network.placed()) visit(network);
  for (const auto& [path, cell] : network.descendants())
    if (cell->placed()) visit(*cell);
}

Result<PipelineLayout> asked_division(std::string_view call, const nn::Cell* network) {
  if (Session::current() == nullptr && explain_mode() == ExplainMode::off && !process().trains_alone)
    return fail(Code::invalid_argument,
                fmt::format("{}: this process is in no cluster; call init() first", call));
  std::optional<PipelineLayoutScope> scope;
  if (network != nullptr) scope.emplace(std::span(&network, 1));
  MUSTER_TRY(const PipelineLayout made, pipeline_layout());
  if (network == nullptr) process().layout.asked_at = made.stages;
  process().layout.answered.insert(made.replicas);
  return made;
}

// Of a mesh with stages; `placed` ranks.
Result<PipelineLayout> layout_over_mesh(std::uint32_t stages, std::uint32_t rank, std::uint32_t placed) {
  if (placed > stages)
    return fail(
        Code::invalid_argument,
        fmt::format("the network is placed on {} ranks, and the mesh has {} stages: place it on ranks "
                    "0 to {}, or call muster.parallel.mesh(..., stages={}) with as many times the "
                    "workers",
                    placed, stages, stages - 1, placed));
  if (placed == 0) return PipelineLayout{};
  return PipelineLayout{.stages = stages, .stage = rank % stages, .pipeline = rank / stages};
}

}  // namespace

PipelineLayoutScope::PipelineLayoutScope(std::span<const nn::Cell* const> networks)
    : outer_(ranks_at_work()) {
  std::uint32_t ranks = nn::placed_ranks(nn::Placed::primitive);
  for (const nn::Cell* network : networks)
    if (network != nullptr)
      for_each_placed(*network,
                      [&](const nn::Cell& cell) { ranks = std::max(ranks, cell.placed()->rank + 1); });
  process().layout.ranks_at_work = ranks;
  process().layout.thread = std::this_thread::get_id();
}
PipelineLayoutScope::~PipelineLayoutScope() {
  process().layout.ranks_at_work = outer_;
  if (!outer_) process().layout.thread = std::thread::id();
}

Result<PipelineLayout> pipeline_layout() {
  Session* const session = Session::current();
  if (session == nullptr) return PipelineLayout{.replicas = is_data_parallel() ? explained_workers() : 1};
  const Membership& membership = session->membership();
  if (membership.world_size() == 1 || membership.in_forked_child()) return PipelineLayout{};
  const std::uint32_t world_size = membership.world_size();
  const std::uint32_t rank = membership.rank();
  const std::uint32_t placed = placed_ranks();
  if (context().mesh_stages > 1) return layout_over_mesh(context().mesh_stages, rank, placed);
  if (!is_data_parallel()) {
    if (placed == 0) return PipelineLayout{};
    return PipelineLayout{.stages = world_size, .replicas = 1, .stage = rank, .replica = 0};
  }
  const std::uint32_t stages = placed == 0 ? 1 : placed;
  if (world_size % stages != 0)
    return fail(
        Code::invalid_argument,
        fmt::format("the network is placed on {} ranks, and in parallel mode data_parallel it is copied "
                    "for as many workers each: {} workers are no multiple of {}. Start {} or {} workers, "
                    "or place it on fewer ranks",
                    stages, world_size, stages, world_size / stages * stages,
                    (world_size / stages + 1) * stages));
  return PipelineLayout{.stages = stages,
                        .replicas = world_size / stages,
                        .stage = rank % stages,
                        .replica = rank / stages,
                        .pipeline = rank / stages};
}

Result<std::uint32_t> get_replica_rank(const nn::Cell* network) {
  return asked_division("get_replica_rank", network).map([](const PipelineLayout& made) {
    return made.replica;
  });
}

Result<std::uint32_t> get_replica_count(const nn::Cell* network) {
  return asked_division("get_replica_count", network).map([](const PipelineLayout& made) {
    return made.replicas;
  });
}

void watch_places() { nn::set_place_check(&check_rank); }

Result<> check_shards(const data::Dataset& dataset) {
  MUSTER_TRY(const PipelineLayout now, pipeline_layout());
  if (!now.divides() || !dataset.status()) return {};
  const std::uint32_t world_size = now.stages * now.replicas;
  const auto shards = static_cast<std::uint32_t>(dataset.num_shards());
  if (shards > 1 && shards != now.replicas && shards != world_size &&
      process().layout.answered.contains(shards))
    return fail(Code::invalid_argument,
                fmt::format("the dataset is cut into {} shards, as many as there are copies of another "
                            "network of this script; of the one at work there are {}: give it "
                            "num_shards=get_replica_count(network) and shard_id=get_replica_rank(network)",
                            shards, now.replicas));
  if (shards != world_size) return {};
  return fail(
      Code::invalid_argument,
      fmt::format("the dataset is cut into {} shards, one for each worker, but {} workers share each copy of "
                  "the placed network, and one of them reads for all: give it num_shards="
                  "get_replica_count(), here {}, and shard_id=get_replica_rank()",
                  world_size, now.stages, now.replicas));
}

Result<> check_places(const nn::Cell& network) {
  std::optional<Error> refused;
  for_each_placed(network, [&](const nn::Cell& cell) {
    const Result<> possible = nn::check_place(cell.description(), *cell.placed());
    if (!possible && !refused) refused = possible.error();
  });
  if (refused) return fail(*std::move(refused));
  return {};
}

Result<> check_placed_were_called(const nn::Cell& network) {
  const nn::Cell* idle = nullptr;
  for_each_placed(network, [&](const nn::Cell& cell) {
    if (!cell.called_where_placed() && idle == nullptr) idle = &cell;
  });
  if (idle == nullptr) return {};
  return fail(
      Code::invalid_argument,
      fmt::format("{} ({}) is placed on worker {}, but the network never calls it: place what construct "
                  "calls, or take the place away",
                  idle->description(), idle->placed()->where, idle->placed()->rank));
}

std::vector<PlacedCell> placed_cells(const nn::Cell& network) {
  std::vector<PlacedCell> found;
  for_each_placed(network, [&](const nn::Cell& cell) {
    found.push_back(
        {fmt::format("{} on worker {}", cell.description(), cell.placed()->rank), cell.placed()->where});
  });
  if (const std::uint32_t ranks = nn::placed_ranks(nn::Placed::primitive); ranks > 0)
    found.push_back({fmt::format("primitives up to worker {}", ranks - 1), "wherever they are made"});
  return found;
}

std::uint32_t first_placed_rank(const nn::Cell& network) {
  std::optional<std::uint32_t> first;
  for_each_placed(network, [&](const nn::Cell& cell) {
    if (!first) first = cell.placed()->rank;
  });
  return first.value_or(0);
}

}  // namespace muster::train
