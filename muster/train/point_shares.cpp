#include "muster/train/point_shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "muster/graph/sharding/mesh.h"
#include "muster/train/divided_parameters.h"
#include "muster/train/process.h"
#include "muster/train/state.h"
#include "muster/train/step_planner.h"

namespace muster::train {
namespace {

using checkpoint::Entry;
using checkpoint::Point;
using graph::Parameter;

constexpr const char* shares_section = "shares";
constexpr const char* plan_section = "plan";

StateValues values_of(const graph::StepLayout& layout) {
  return StateValues()
      .set("data", std::int64_t{layout.data})
      .set("model", std::int64_t{layout.model})
      .set("zero", layout.zero_level)
      .set("threshold", layout.zero_threshold_bytes);
}

Result<graph::StepLayout> step_layout_in(const std::string& text) {
  MUSTER_TRY(const StateValues values, StateValues::from_json(text));
  MUSTER_TRY(const std::int64_t data, values.integer("data"));
  MUSTER_TRY(const std::int64_t model, values.integer("model"));
  graph::StepLayout made{.data = static_cast<std::uint32_t>(data),
                         .model = static_cast<std::uint32_t>(model)};
  MUSTER_TRY(made.zero_level, values.integer("zero"));
  MUSTER_TRY(made.zero_threshold_bytes, values.integer("threshold"));
  return made;
}

// One entry of each for each divided parameter.
struct SharesInPoint {
  std::vector<std::string> names, meshes, layouts;
  std::vector<double> ranks, scatters;
};

Result<std::optional<SharesInPoint>> shares_in(const Point& point) {
  const auto section = point.state.find(shares_section);
  if (section == point.state.end()) return std::nullopt;
  MUSTER_TRY(const StateValues values, StateValues::from_json(section->second));
  SharesInPoint made;
  MUSTER_TRY(made.names, values.texts("names"));
  MUSTER_TRY(made.meshes, values.texts("meshes"));
  MUSTER_TRY(made.layouts, values.texts("layouts"));
  MUSTER_TRY(made.ranks, values.numbers("ranks"));
  MUSTER_TRY(made.scatters, values.numbers("scatters"));
  for (const std::size_t size :
       {made.meshes.size(), made.layouts.size(), made.ranks.size(), made.scatters.size()})
    if (size != made.names.size())
      return fail(Code::corrupt,
                  fmt::format("{} does not say how parameters are divided", to_string(point.id)));
  return made;
}

// Nothing: it is whole there.
Result<std::optional<Parameter::Share>> share_of(const SharesInPoint& shares, const std::string& name,
                                                 const Shape& whole) {
  const auto found = std::ranges::find(shares.names, name);
  if (found == shares.names.end()) return std::nullopt;
  const auto at = static_cast<std::size_t>(found - shares.names.begin());
  MUSTER_TRY(graph::TensorLayout layout,
             graph::layout_in(
                 {{"mesh", shares.meshes[at]}, {"layout", shares.layouts[at]}, {"any_order", true}}, whole));
  return Parameter::Share{.layout = std::move(layout),
                          .rank = static_cast<std::uint32_t>(shares.ranks[at]),
                          .scatters_gradients = shares.scatters[at] != 0};
}

// Checkpoints of whole parameters have sections of a worker's point, too.
bool is_piece(const Tensor& value, const std::optional<Parameter::Share>& share, const Shape& whole) {
  return share && value.shape() != whole && value.shape() == share->layout.piece_shape(whole);
}

}  // namespace

void put_shares(std::span<const graph::ParameterPtr> parameters, const std::vector<std::string>& names,
                Point& point) {
  SharesInPoint made;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& share = parameters[i]->share();
    if (!share) continue;
    made.names.push_back(names[i]);
    made.meshes.push_back(graph::mesh_text(*share->layout.mesh));
    made.layouts.push_back(graph::layout_text(share->layout));
    made.ranks.push_back(share->rank);
    made.scatters.push_back(share->scatters_gradients ? 1 : 0);
  }
  if (const StepPlanner* const planner = process().planner; planner != nullptr && planner->layout())
    point.state[plan_section] = values_of(*planner->layout()).to_json();
  if (made.names.empty()) return;
  point.state[shares_section] = StateValues()
                                    .set("names", std::move(made.names))
                                    .set("meshes", std::move(made.meshes))
                                    .set("layouts", std::move(made.layouts))
                                    .set("ranks", std::move(made.ranks))
                                    .set("scatters", std::move(made.scatters))
                                    .to_json();
}

void forget_shares(Point& point) {
  point.state.erase(shares_section);
  point.state.erase(plan_section);
}

Result<> take_shares(const Point& point, std::span<const graph::ParameterPtr> parameters,
                     const std::vector<std::string>& names) {
  StepPlanner* const planner = process().planner;
  if (planner != nullptr) {
    const auto section = point.state.find(plan_section);
    std::optional<graph::StepLayout> layout;
    if (section != point.state.end()) {
      MUSTER_TRY(layout, step_layout_in(section->second));
    }
    MUSTER_TRY_VOID(planner->go_back_to(layout));
  }
  MUSTER_TRY(const auto shares, shares_in(point));
  std::map<std::string_view, const Tensor*> values;
  for (const Entry& entry : point.tensors) values[entry.name] = &entry.value;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Parameter& parameter = *parameters[i];
    const auto value = values.find(names[i]);
    if (value == values.end()) continue;
    std::optional<Parameter::Share> share;
    if (shares) {
      MUSTER_TRY(share, share_of(*shares, names[i], parameter.shape()));
    }
    const bool had_piece = is_piece(*value->second, share, parameter.shape());
    if (!had_piece && planner == nullptr) continue;
    if (!had_piece) share.reset();
    if (!same_pieces(parameter.share(), share)) parameter.divide(std::move(share));
  }
  return {};
}

}  // namespace muster::train
