#include "muster/cluster/activity.h"

#include <fmt/format.h>

namespace muster::cluster {
namespace {

std::string_view to_string(WorkPhase phase) {
  switch (phase) {
    case WorkPhase::starting:
      return "starting";
    case WorkPhase::script:
      return "in the script";
    case WorkPhase::reading_data:
      return "in data loading";
    case WorkPhase::computing:
      return "computing";
    case WorkPhase::saving:
      return "saving";
    case WorkPhase::evaluating:
      return "evaluating";
  }
  return "";
}

}  // namespace

std::string_view phase_name(WorkPhase phase) {
  switch (phase) {
    case WorkPhase::starting:
      return "starting";
    case WorkPhase::script:
      return "script";
    case WorkPhase::reading_data:
      return "reading_data";
    case WorkPhase::computing:
      return "computing";
    case WorkPhase::saving:
      return "saving";
    case WorkPhase::evaluating:
      return "evaluating";
  }
  return "";
}

std::string to_string(const Activity& activity) {
  switch (activity.call) {
    case CallKind::none:
      return std::string(to_string(activity.phase));
    case CallKind::send:
      return fmt::format("sending a message to rank {}", activity.call_number);
    case CallKind::receive:
      return fmt::format("waiting for a message from rank {}", activity.call_number);
    default:
      return fmt::format("in {} {}", muster::to_string(activity.call), activity.call_number);
  }
}

std::string ranks_text(std::span<const std::uint32_t> ranks) {
  constexpr std::size_t pieces_max = 16;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  std::size_t pieces = 0;
  for (std::size_t begin = 0; begin < ranks.size();) {
    std::size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - begin < 3) end = begin + 1;
    if (pieces++ > 0) text += ", ";
    if (pieces > pieces_max) return text + fmt::format("and {} more", ranks.size() - begin);
    text +=
        end - begin > 1 ? fmt::format("{}-{}", ranks[begin], ranks[end - 1]) : std::to_string(ranks[begin]);
    begin = end;
  }
  return text;
}

}  // namespace muster::cluster
