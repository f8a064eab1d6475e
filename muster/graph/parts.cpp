#include "muster/graph/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "muster/graph/amounts.h"
#include "muster/graph/picture.h"

namespace muster::graph {
namespace {

std::string part_text(const Part& part) {
  std::string placed;
  for (const std::string& origin : part.placed) placed += (placed.empty() ? "" : "; ") + origin;
  if (part.nodes == 0 && part.parameters.empty()) return fmt::format("  worker {}: nothing\n", part.rank);
  return fmt::format(
      "  worker {}: {}, {}, {} of {}, {} of activations{}\n", part.rank, counted(part.nodes, "node"),
      flops_text(part.flops), counted(part.parameters.size(), "parameter"), bytes_text(part.parameters_bytes),
      bytes_text(part.activations_bytes), placed.empty() ? "" : fmt::format("\n    {}", placed));
}

std::string crossings_text(const std::vector<Crossing>& crossings) {
  std::size_t value = 5, type = 4;
  for (const Crossing& crossing : crossings) {
    value = std::max(value, crossing.what.size());
    type = std::max(type, to_string(crossing.type).size());
  }
  std::string text = fmt::format("{:>9}  {:>4}  {:>4}  {:<{}}  {:<{}}  {:>10}\n", "message", "from", "to",
                                 "value", value, "type", type, "size");
  for (const Crossing& crossing : crossings)
    text += fmt::format("{:>9}  {:>4}  {:>4}  {:<{}}  {:<{}}  {:>10}\n", crossing.message + 1, crossing.from,
                        crossing.to, crossing.what, value, to_string(crossing.type), type,
                        bytes_text(crossing.type.size_bytes()));
  return text;
}

}  // namespace

std::size_t Parts::crossing_bytes() const {
  return std::accumulate(
      crossings.begin(), crossings.end(), std::size_t{0},
      [](std::size_t sum, const Crossing& crossing) { return sum + crossing.type.size_bytes(); });
}

std::string to_string(const Parts& parts) {
  const std::size_t messages = parts.crossings.empty() ? 0 : parts.crossings.back().message + 1;
  std::string text = fmt::format(
      "workers: {}, worker {} has the inputs; {} values cross in {} messages, {}\n", parts.parts.size(),
      parts.reader, parts.crossings.size(), messages, bytes_text(parts.crossing_bytes()));
  for (const Part& part : parts.parts) text += part_text(part);
  return parts.crossings.empty() ? text : text + crossings_text(parts.crossings);
}

}  // namespace muster::graph
