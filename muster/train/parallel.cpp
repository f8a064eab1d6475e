#include "muster/train/parallel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <span>
#include <string_view>

#include "muster/graph/graph.h"
#include "muster/train/job.h"
#include "muster/train/parameters.h"
#include "muster/train/shared_inputs.h"
#include "muster/train/step_planner.h"

namespace muster::train::parallel {
namespace {

std::string text_of(std::span<const Axis> axes) {
  std::vector<std::string> parts;
  for (const Axis& axis : axes) parts.push_back(fmt::format("{}={}", axis.name, axis.size));
  return fmt::format("{}", fmt::join(parts, ","));
}

Result<> check_axes(std::span<const Axis> axes) {
  std::set<std::string_view> names;
  for (const Axis& axis : axes) {
    if (axis.size < 1 || axis.name == "zero")
      return fail(Code::invalid_argument,
                  fmt::format("mesh: {}={}: an axis has at least one worker, and none is called 'zero'",
                              axis.name, axis.size));
    if (axis.name.empty() || axis.name.find_first_of(",;+= ") != std::string::npos)
      return fail(Code::invalid_argument,
                  fmt::format("mesh: '{}' names no axis: choose a word such as 'data'", axis.name));
    if (!names.insert(axis.name).second)
      return fail(Code::invalid_argument, fmt::format("mesh: two axes are called '{}'", axis.name));
  }
  return {};
}

Result<> check_workers(std::span<const Axis> axes) {
  std::int64_t product = 1;
  for (const Axis& axis : axes) product *= axis.size;
  const std::uint32_t workers = world_size();
  if (axes.empty() || workers == 1) return {};
  if (product != workers)
    return fail(Code::invalid_argument,
                fmt::format("mesh: {} has {} workers, this job has {}: choose sizes whose product is {}, or "
                            "start {} workers",
                            text_of(axes), product, workers, workers, product));
  if (context().parallel_mode == ParallelMode::data_parallel)
    return fail(Code::invalid_argument,
                "mesh: in parallel mode 'data_parallel' each worker has rows of its own; choose "
                "'stand_alone' and cut the batch by shard()");
  return {};
}

// Where a worker stands on each axis.
std::vector<std::int64_t> place_of(std::span<const Axis> axes, std::int64_t worker) {
  std::vector<std::int64_t> place(axes.size());
  for (std::size_t i = axes.size(); i-- > 0; worker /= axes[i].size) place[i] = worker % axes[i].size;
  return place;
}

// This worker's groups: those that differ from it on some of the first `cutting` axes.
Result<> make_groups(std::span<const Axis> axes, std::size_t cutting) {
  const std::uint32_t workers = world_size();
  const std::vector<std::int64_t> mine = place_of(axes, rank());
  for (std::uint64_t chosen = 1; chosen < (std::uint64_t{1} << cutting); ++chosen) {
    std::vector<std::uint32_t> members;
    for (std::uint32_t other = 0; other < workers; ++other) {
      const std::vector<std::int64_t> place = place_of(axes, other);
      bool is_member = true;
      for (std::size_t i = 0; i < axes.size(); ++i)
        is_member &= place[i] == mine[i] || (i < cutting && (chosen >> i & 1) != 0);
      if (is_member) members.push_back(other);
    }
    const std::string name = fmt::format("mesh {}", fmt::join(members, " "));
    if (members.size() == 1 || members.size() == workers || group_ranks(name)) continue;
    MUSTER_TRY_VOID(create_group(name, std::move(members), /*of_steps=*/true));
  }
  return {};
}

Result<std::string> layout_text(const CutBy& cut_by) {
  if (context().mesh.empty())
    return fail(Code::invalid_argument,
                "shard: there is no mesh: call parallel::mesh({{\"data\", 2}, {\"model\", 2}}) before");
  return fmt::format("{}", fmt::join(cut_by, ";"));
}

}  // namespace

Result<> mesh(const std::vector<Axis>& axes, std::int64_t stages) {
  std::vector<Axis> all = axes;
  if (stages != 1) all.push_back({.name = "stages", .size = stages});
  MUSTER_TRY_VOID(check_axes(all));
  MUSTER_TRY_VOID(check_workers(all));
  const bool is_shared = !all.empty() && world_size() > 1;
  if (is_shared) MUSTER_TRY_VOID(make_groups(all, axes.size()));
  MUSTER_TRY_VOID(plan_steps(1, 1));  // none any more
  set_shares_batch(is_shared, text_of(all), static_cast<std::uint32_t>(stages));
  if (is_shared) watch_shared_inputs();
  return {};
}

nn::Value shard(const nn::Value& value, const CutBy& cut_by) {
  const std::string layout = layout_text(cut_by).value();
  if (world_size() == 1) return value;
  const graph::Attributes attributes{
      {"mesh", context().mesh}, {"layout", layout}, {"rank", static_cast<std::int64_t>(rank())}};
  return graph::apply("shard", {value}, attributes);
}

Result<> shard(const nn::ParameterPtr& parameter, const CutBy& cut_by) {
  MUSTER_TRY(const std::string layout, layout_text(cut_by));
  return divide_parameter(*parameter, context().mesh, layout);
}

Result<> plan(const PlanSettings& settings) {
  if (settings.zero.level != 0 && settings.zero.level != 1 && settings.zero.level != 3)
    return fail(Code::invalid_argument,
                fmt::format("plan: zero is {}: it is 0; 1, which shares the state of the optimizer and sums "
                            "gradients up in pieces; or 3, which shares the parameters, too",
                            settings.zero.level));
  if (settings.memory_bytes && settings.data)
    return fail(Code::invalid_argument,
                "plan: memory says what may be chosen, and data, model and zero are given: leave one away");
  if (!settings.data) {
    const std::uint32_t workers = world_size();
    MUSTER_TRY_VOID(check_workers(std::vector<Axis>{{.name = "data", .size = workers}}));
    return plan_steps(0, 1, settings.memory_bytes);
  }
  MUSTER_TRY_VOID(
      mesh({{.name = "data", .size = *settings.data}, {.name = "model", .size = settings.model}}));
  if (world_size() == 1) return {};
  MUSTER_TRY_VOID(set_zero(settings.zero));
  return plan_steps(static_cast<std::uint32_t>(*settings.data), static_cast<std::uint32_t>(settings.model));
}

}  // namespace muster::train::parallel
