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
    case WorkPhase::serving:
      return "serving";
  }
  return "";
}

std::string to_string(const Awaited& awaited) {
  return awaited.count < 2 ? std::to_string(awaited.first)
                           : fmt::format("{} and {} more", awaited.first, awaited.count - 1);
}

std::string serving_text(const Activity& activity) {
  const Serving& serving = activity.serving;
  constexpr double bytes_per_mib = 1 << 20;
  std::string text = fmt::format("serving {} row{}, {:.1f} MiB", serving.rows, serving.rows == 1 ? "" : "s",
                                 static_cast<double>(serving.size_bytes) / bytes_per_mib);
  if (serving.waiting > 0 && activity.awaited.count > 0)
    text +=
        fmt::format("; {} for rank {}",
                    serving.waiting == 1 ? "1 worker waits" : fmt::format("{} workers wait", serving.waiting),
                    to_string(activity.awaited));
  return text;
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
    case WorkPhase::serving:
      return "serving";
  }
  return "";
}

bool waits(const Activity& activity) {
  return activity.call != CallKind::none ||
         (activity.phase != WorkPhase::serving && activity.awaited.count > 0);
}

std::string to_string(const Activity& activity) {
  switch (activity.call) {
    case CallKind::none:
      if (activity.phase == WorkPhase::serving) return serving_text(activity);
      if (activity.awaited.count > 0)
        return fmt::format("waiting for parameter server {}", to_string(activity.awaited));
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
