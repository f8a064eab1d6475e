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

std::string value_transfers_text(const std::vector<ValueTransfer>& value_transfers) {
  std::size_t value = 5, type = 4;
  for (const ValueTransfer& value_transfer : value_transfers) {
    value = std::max(value, value_transfer.what.size());
    type = std::max(type, to_string(value_transfer.type).size());
  }
  std::string text = fmt::format("{:>9}  {:>4}  {:>4}  {:<{}}  {:<{}}  {:>10}\n", "message", "from", "to",
                                 "value", value, "type", type, "size");
  for (const ValueTransfer& value_transfer : value_transfers)
    text += fmt::format("{:>9}  {:>4}  {:>4}  {:<{}}  {:<{}}  {:>10}\n", value_transfer.message + 1,
                        value_transfer.from, value_transfer.to, value_transfer.what, value,
                        to_string(value_transfer.type), type, bytes_text(value_transfer.type.size_bytes()));
  return text;
}

}  // namespace

std::size_t Parts::value_transfer_bytes() const {
  return std::accumulate(value_transfers.begin(), value_transfers.end(), std::size_t{0},
                         [](std::size_t sum, const ValueTransfer& value_transfer) {
                           return sum + value_transfer.type.size_bytes();
                         });
}

std::string to_string(const Parts& parts) {
  const std::size_t messages = parts.value_transfers.empty() ? 0 : parts.value_transfers.back().message + 1;
  std::string text = fmt::format(
      "workers: {}, worker {} has the inputs; {} values cross in {} messages, {}\n", parts.parts.size(),
      parts.reader, parts.value_transfers.size(), messages, bytes_text(parts.value_transfer_bytes()));
  for (const Part& part : parts.parts) text += part_text(part);
  return parts.value_transfers.empty() ? text : text + value_transfers_text(parts.value_transfers);
}

}  // namespace muster::graph
