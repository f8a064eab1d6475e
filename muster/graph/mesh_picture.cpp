#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/graph/amounts.h"
#include "muster/graph/explanation.h"
#include "muster/graph/svg.h"

namespace muster::graph {
namespace {

using svg::line_height;
using svg::margin;
using svg::padding;

// All lengths are pixels.
constexpr int box_width = 210;
constexpr int column_gap = 150;
constexpr int title_height = 24;
constexpr std::size_t title_letters_max = 100;
// A picture of more is none.
constexpr std::uint32_t columns_max = 8;
constexpr std::uint32_t rows_max = 16;
constexpr std::size_t parameters_max = 6;

std::string names_of(const Mesh& mesh, const std::vector<std::size_t>& axes) {
  std::string text;
  for (const std::size_t axis : axes) text += (text.empty() ? "" : " x ") + mesh.axes()[axis].name;
  return text;
}

std::string text_of(const MeshPlan::Calls& calls) {
  return fmt::format("{} {}, {}", calls.calls, calls.op, bytes_text(calls.sent_bytes));
}

// "part 2 of 4 of dim 0 (model)", of each dimension that is cut.
std::string part_text(const TensorLayout& layout, std::uint32_t rank) {
  std::string text;
  for (std::size_t dim = 0; dim < layout.dims.size(); ++dim)
    if (layout.parts(dim) > 1)
      text +=
          fmt::format("{}part {} of {} of dim {} ({})", text.empty() ? "" : ", ", layout.index(dim, rank) + 1,
                      layout.parts(dim), dim, names_of(*layout.mesh, layout.dims[dim]));
  return text;
}

std::size_t held_bytes(const MeshPlan::Held& held) {
  return TensorType{held.type.dtype, held.layout.piece_shape(held.type.shape)}.size_bytes();
}

class MeshPicture {
 public:
  explicit MeshPicture(const MeshPlan& plan) : plan_(plan), mesh_(*plan.mesh) {
    for (const MeshPlan::Held& held : plan.parameters)
      if (!held.layout.is_whole()) cut_.push_back(&held);
    std::ranges::stable_sort(cut_, std::greater{}, [](const auto* held) { return held->type.size_bytes(); });
    for (std::size_t axis = 0; axis < mesh_.axes().size(); ++axis)
      edge_lines_ = std::max(edge_lines_, static_cast<int>(calls_along(axis).size()));
    for (const MeshPlan::Calls& calls : plan.calls)
      if (calls.axes.size() > 1) among_more_.push_back(&calls);
  }

  std::string draw() {
    text_ = svg::begin(width(), height());
    draw_title();
    for (std::uint32_t rank = 0; rank < mesh_.size(); ++rank)
      for (std::size_t axis = 0; axis < mesh_.axes().size(); ++axis) draw_edge(rank, axis);
    for (std::uint32_t rank = 0; rank < mesh_.size(); ++rank)
      if (is_shown(rank)) draw_box(rank);
    if (columns() < all_columns() || rows() < all_rows())
      text_ += svg::line(margin, height() - margin + 8, "small",
                         fmt::format("and {} ranks more", mesh_.size() - columns() * rows()));
    return text_ + svg::end;
  }

 private:
  using CallsList = std::vector<const MeshPlan::Calls*>;

  CallsList calls_along(std::size_t axis) const {
    CallsList found;
    for (const MeshPlan::Calls& calls : plan_.calls)
      if (calls.axes == std::vector{axis}) found.push_back(&calls);
    return found;
  }

  // The last axis goes to the right, the others go down.
  std::uint32_t all_columns() const { return mesh_.axes().back().size; }
  std::uint32_t all_rows() const { return mesh_.size() / all_columns(); }
  std::uint32_t columns() const { return std::min(all_columns(), columns_max); }
  std::uint32_t rows() const { return std::min(all_rows(), rows_max); }
  std::uint32_t column_of(std::uint32_t rank) const { return rank % all_columns(); }
  std::uint32_t row_of(std::uint32_t rank) const { return rank / all_columns(); }
  bool is_shown(std::uint32_t rank) const { return column_of(rank) < columns() && row_of(rank) < rows(); }

  int box_height() const {
    const std::size_t shown = std::min(cut_.size(), parameters_max);
    const std::size_t lines = 3 + 2 * shown + (cut_.size() > shown ? 1 : 0);
    return 2 * padding + static_cast<int>(lines) * line_height;
  }
  int row_gap() const { return 30 + line_height * std::max(1, edge_lines_); }
  int top() const { return margin + title_height + static_cast<int>(among_more_.size()) * line_height; }
  int left_of(std::uint32_t rank) const {
    return margin + static_cast<int>(column_of(rank)) * (box_width + column_gap);
  }
  int top_of(std::uint32_t rank) const {
    return top() + static_cast<int>(row_of(rank)) * (box_height() + row_gap());
  }
  int width() const {
    const int boxes = static_cast<int>(columns()) * (box_width + column_gap) - column_gap;
    return 2 * margin + std::max(boxes, 2 * box_width);
  }
  int height() const {
    return top() + static_cast<int>(rows()) * (box_height() + row_gap()) - row_gap() + 2 * margin;
  }

  void draw_title() {
    int y = margin + 8;
    text_ += svg::line(margin, y, "title",
                       fmt::format("{} over {} ranks: {}", plan_.name, mesh_.size(), to_string(mesh_)),
                       title_letters_max);
    for (const MeshPlan::Calls* calls : among_more_)
      text_ +=
          svg::line(margin, y += line_height, "small",
                    fmt::format("between the ranks of {}: {}", names_of(mesh_, calls->axes), text_of(*calls)),
                    title_letters_max);
  }

  // To the next rank of this axis.
  void draw_edge(std::uint32_t rank, std::size_t axis) {
    std::uint32_t next = rank + 1;
    while (next < mesh_.size() && !is_next(rank, next, axis)) ++next;
    if (next == mesh_.size() || !is_shown(rank) || !is_shown(next)) return;
    const bool is_across = axis + 1 == mesh_.axes().size();
    const int down_x = left_of(rank) + 20 + static_cast<int>(axis) * 90;
    const int across_y = top_of(rank) + box_height() / 2;
    const int x1 = is_across ? left_of(rank) + box_width : down_x;
    const int y1 = is_across ? across_y : top_of(rank) + box_height();
    const int x2 = is_across ? left_of(next) : down_x;
    const int y2 = is_across ? across_y : top_of(next);
    const CallsList calls = calls_along(axis);
    text_ += fmt::format(
        "<g class=\"edge\"><title>rank {} and rank {} along {}</title><line x1=\"{}\" y1=\"{}\" x2=\"{}\" "
        "y2=\"{}\" stroke=\"{}\" stroke-width=\"1.5\"{}/>\n",
        rank, next, svg::escaped(mesh_.axes()[axis].name), x1, y1, x2, y2,
        calls.empty() ? "#bbbbbb" : "#1a4a8a", calls.empty() ? " stroke-dasharray=\"4 4\"" : "");
    draw_labels(calls, axis, is_across ? (x1 + x2) / 2 : x2 + 6, y2, is_across);
    text_ += "</g>\n";
  }

  // Above where the edge ends.
  void draw_labels(const CallsList& calls, std::size_t axis, int x, int y, bool is_across) {
    const std::string_view style = is_across ? "label" : "small";
    int at = y - 6 - line_height * static_cast<int>(calls.size());
    text_ += svg::line(x, at, style, mesh_.axes()[axis].name);
    for (const MeshPlan::Calls* each : calls) text_ += svg::line(x, at += line_height, style, text_of(*each));
  }

  bool is_next(std::uint32_t rank, std::uint32_t other, std::size_t axis) const {
    for (std::size_t each = 0; each < mesh_.axes().size(); ++each)
      if (mesh_.coordinate(other, each) != mesh_.coordinate(rank, each) + (each == axis ? 1 : 0))
        return false;
    return true;
  }

  void draw_box(std::uint32_t rank) {
    const int x = left_of(rank) + padding;
    text_ += svg::box(left_of(rank), top_of(rank), box_width, box_height(), "#e8f0fb");
    int y = top_of(rank) + padding;
    const auto add = [&](std::string_view style, const std::string& text) {
      text_ += svg::line(x, y += line_height, style, text);
    };
    add("head", fmt::format("rank {}", rank));
    add("small", place_of(rank));
    const std::size_t shown = std::min(cut_.size(), parameters_max);
    for (const MeshPlan::Held* held : std::span(cut_).first(shown)) {
      add("placed", fmt::format("{} {}", held->name, to_string(held->layout.piece_shape(held->type.shape))));
      add("small", part_text(held->layout, rank));
    }
    if (cut_.size() > shown) add("small", fmt::format("pieces of {} more", cut_.size() - shown));
    add("small", held_text());
  }

  std::string place_of(std::uint32_t rank) const {
    std::string text;
    for (std::size_t axis = 0; axis < mesh_.axes().size(); ++axis)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", mesh_.axes()[axis].name,
                          mesh_.coordinate(rank, axis));
    return text;
  }

  std::string held_text() const {
    std::size_t held = 0, whole = 0;
    for (const MeshPlan::Held& each : plan_.parameters) {
      held += held_bytes(each);
      whole += each.type.size_bytes();
    }
    return fmt::format("holds {} of {}", bytes_text(held), bytes_text(whole));
  }

  const MeshPlan& plan_;
  const Mesh& mesh_;
  std::vector<const MeshPlan::Held*> cut_;  // the largest first
  CallsList among_more_;
  int edge_lines_ = 0;
  std::string text_;
};

}  // namespace

std::string to_svg(const MeshPlan& plan) { return MeshPicture(plan).draw(); }

std::string to_string(const MeshPlan& plan) {
  std::string text =
      fmt::format("{} over {} ranks: {}\n", plan.name, plan.mesh->size(), to_string(*plan.mesh));
  for (const MeshPlan::Calls& calls : plan.calls)
    text += fmt::format("  along {}: {} by each rank\n", names_of(*plan.mesh, calls.axes), text_of(calls));
  for (const MeshPlan::Held& held : plan.parameters)
    text += fmt::format("  {} {}: {}\n", held.name, to_string(held.type),
                        held.layout.is_whole() ? "whole on each rank" : to_string(held.layout));
  return text;
}

}  // namespace muster::graph
