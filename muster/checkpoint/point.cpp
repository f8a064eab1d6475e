#include "muster/checkpoint/point.h"

#include <fmt/format.h>

#include <charconv>

namespace muster::checkpoint {
namespace {

// The whole of `text` as a number, written in the one way that folder_name() has.
std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || std::to_string(value) != text) return {};
  return value;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

std::string_view to_string(PointId::Moment moment) {
  switch (moment) {
    case PointId::Moment::start:
      return "start";
    case PointId::Moment::step:
      return "step";
    case PointId::Moment::end:
      break;
  }
  return "end";
}

std::string to_string(const PointId& id) {
  if (id.moment == PointId::Moment::step) return fmt::format("step {} of call {}", id.step, id.call);
  return fmt::format("{} of call {}", to_string(id.moment), id.call);
}

std::string folder_name(const PointId& id) {
  if (id.moment == PointId::Moment::step) return fmt::format("call_{}.step_{}", id.call, id.step);
  return fmt::format("call_{}.{}", id.call, to_string(id.moment));
}

std::optional<PointId> point_of_folder(std::string_view name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos || !take(name, "call_")) return {};
  const std::string_view moment = name.substr(dot + 1 - 5);
  const auto call = number(name.substr(0, dot - 5));
  if (!call) return {};
  if (moment == "start") return PointId{*call, PointId::Moment::start, 0};
  if (moment == "end") return PointId{*call, PointId::Moment::end, 0};
  std::string_view step_text = moment;
  if (!take(step_text, "step_")) return {};
  const auto step = number(step_text);
  if (!step) return {};
  return PointId{*call, PointId::Moment::step, *step};
}

std::size_t size_bytes(const Point& point) {
  std::size_t total = size_bytes(point.tensors);
  for (const auto& [name, section] : point.state) total += section.size();
  return total;
}

}  // namespace muster::checkpoint
