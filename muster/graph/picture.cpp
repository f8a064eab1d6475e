#include "muster/graph/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "muster/graph/amounts.h"
#include "muster/graph/svg.h"

namespace muster::graph {
namespace {

using svg::line_height;
using svg::margin;
using svg::padding;

// All lengths are pixels.
constexpr int column_width = 230;
constexpr int column_gap = 50;
constexpr int title_height = 44;
constexpr int message_height = 34;
constexpr int label_width = 260;
constexpr std::size_t label_letters_max = 42;
// A picture of more is none.
constexpr std::size_t messages_max = 120;
constexpr std::size_t lines_max = 24;

// The crossings that travel together.
struct Message {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::size_t bytes = 0;
  std::string what;  // in short
  std::vector<std::string> values;
};

std::vector<Message> messages_of(const Partition& partition) {
  std::vector<Message> made;
  std::size_t last = 0;
  for (const ValueTransfer& value_transfer : partition.value_transfers) {
    if (made.empty() || value_transfer.message != last)
      made.push_back({.from = value_transfer.from, .to = value_transfer.to, .what = {}, .values = {}});
    last = value_transfer.message;
    made.back().bytes += value_transfer.type.size_bytes();
    made.back().values.push_back(fmt::format("{} {}", value_transfer.what, to_string(value_transfer.type)));
    made.back().what = made.back().values.size() == 1 ? to_string(value_transfer.type)
                                                      : fmt::format("{} values", made.back().values.size());
  }
  return made;
}

class Picture {
 public:
  explicit Picture(const Partition& partition) : partition_(partition), messages_(messages_of(partition)) {
    for (const Stage& part : partition.stages) box_lines_ = std::max(box_lines_, lines_of(part).size());
  }

  std::string draw() {
    text_ = svg::begin(width(), height());
    text_ += svg::line(margin, margin + 8, "title",
                       fmt::format("{} on {} workers", partition_.name, partition_.stages.size()),
                       label_letters_max);
    draw_lifelines();
    for (const Stage& part : partition_.stages) draw_box(part);
    for (std::size_t i = 0; i < shown(); ++i) draw_message(i);
    if (shown() < messages_.size())
      text_ += svg::line(margin, message_y(shown()), "small",
                         fmt::format("and {} messages more", messages_.size() - shown()));
    return text_ + svg::end;
  }

 private:
  struct Line {
    std::string_view style;
    std::string text;
  };

  // "LeNet 'conv1'", and below it where that is written.
  static void add_origin(const std::string& origin, std::vector<Line>& lines) {
    const std::size_t comma = origin.rfind(", ");
    lines.push_back({"placed", origin.substr(0, comma)});
    if (comma != std::string::npos) lines.push_back({"small", origin.substr(comma + 2)});
  }

  std::vector<Line> lines_of(const Stage& part) const {
    std::vector<Line> lines{{"head", fmt::format("worker {}", part.rank)}};
    if (part.rank == partition_.reader) lines.push_back({"small", "has the inputs"});
    for (const std::string& origin : part.placed) {
      if (lines.size() >= lines_max) {
        lines.push_back({"placed", fmt::format("{} in all", part.placed.size())});
        break;
      }
      add_origin(origin, lines);
    }
    if (part.nodes == 0 && part.parameters.empty()) {
      lines.push_back({"small", "nothing is placed here"});
      return lines;
    }
    lines.push_back({"small", fmt::format("{}, {}", counted(part.nodes, "node"), flops_text(part.flops))});
    lines.push_back({"small", fmt::format("{}, {}", counted(part.parameters.size(), "parameter"),
                                          bytes_text(part.parameters_bytes))});
    lines.push_back({"small", fmt::format("{} of activations", bytes_text(part.activations_bytes))});
    return lines;
  }

  std::size_t shown() const { return std::min(messages_.size(), messages_max); }
  int columns() const { return static_cast<int>(partition_.stages.size()); }
  int width() const {
    return std::max(2 * margin + columns() * (column_width + column_gap) - column_gap,
                    2 * margin + label_width);
  }
  int box_height() const { return 2 * padding + static_cast<int>(box_lines_) * line_height; }
  int boxes_end() const { return margin + title_height + box_height(); }
  int message_y(std::size_t index) const {
    return boxes_end() + static_cast<int>(index + 1) * message_height;
  }
  int height() const { return message_y(shown()) + margin; }
  static int left(std::uint32_t rank) {
    return margin + static_cast<int>(rank) * (column_width + column_gap);
  }
  static int middle(std::uint32_t rank) { return left(rank) + column_width / 2; }

  void draw_lifelines() {
    for (const Stage& part : partition_.stages)
      text_ += fmt::format(
          "<line x1=\"{0}\" y1=\"{1}\" x2=\"{0}\" y2=\"{2}\" stroke=\"#bbbbbb\" stroke-dasharray=\"4 4\"/>\n",
          middle(part.rank), boxes_end(), height() - margin);
  }

  void draw_box(const Stage& part) {
    text_ += svg::box(left(part.rank), margin + title_height, column_width, box_height(),
                      part.nodes == 0 ? "#f4f4f4" : "#e8f0fb");
    int y = margin + title_height + padding;
    for (const Line& each : lines_of(part))
      text_ += svg::line(left(part.rank) + padding, y += line_height, each.style, each.text);
  }

  void draw_message(std::size_t index) {
    const Message& message = messages_[index];
    const int y = message_y(index);
    std::string values;
    for (const std::string& value : message.values) values += (values.empty() ? "" : ", ") + value;
    const std::string label = fmt::format("{}, {}", message.what, bytes_text(message.bytes));
    text_ += fmt::format(
        "<g class=\"message\"><title>{}</title><line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" "
        "stroke=\"#1a4a8a\" stroke-width=\"1.5\" marker-end=\"url(#tip)\"/>\n",
        svg::escaped(fmt::format("worker {} to worker {}: {}", message.from, message.to, values)),
        middle(message.from), y, middle(message.to), y);
    text_ +=
        svg::line((middle(message.from) + middle(message.to)) / 2, y - 6, "label", label, label_letters_max) +
        "</g>\n";
  }

  const Partition& partition_;
  std::vector<Message> messages_;
  std::size_t box_lines_ = 0;
  std::string text_;
};

}  // namespace

std::string to_svg(const Partition& partition) { return Picture(partition).draw(); }

}  // namespace muster::graph
