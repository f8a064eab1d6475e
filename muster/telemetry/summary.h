// Summaries: what an event file of TensorBoard says of one name at one step, as bytes of its message
// Summary.Value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "muster/base/base.h"

namespace muster::telemetry {

using Bytes = std::vector<std::byte>;

Bytes scalar_summary(std::string_view tag, double value);

// Of the finite numbers, in 30 buckets of equal width. They are counted where they lie.
class Histogram {
 public:
  static constexpr std::size_t buckets = 30;
  explicit Histogram(std::span<const double> numbers);

  Bytes summary(std::string_view tag) const;

 private:
  double least_ = 0;
  double greatest_ = 0;
  double count_ = 0;
  double sum_ = 0;
  double sum_of_squares_ = 0;
  std::vector<double> counts_;
};

struct Picture {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t channels = 3;                 // 1 grey, 3 colours, 4 with transparency
  std::span<const std::uint8_t> pixels = {};  // height x width x channels
};
// As PNG. An error where the sizes do not fit.
Result<Bytes> picture_summary(std::string_view tag, const Picture& picture);

// Markdown.
Bytes text_summary(std::string_view tag, std::string_view text);

// Of any shape, for programs: TensorBoard draws none. `elements` are little endian, as they lie in memory.
Bytes tensor_summary(std::string_view tag, DType dtype, const Shape& shape,
                     std::span<const std::byte> elements);

// ---- Settings of a run, for the HParams page --------------------------------------------------------------

using Setting = std::variant<bool, double, std::string>;
using Settings = std::map<std::string, Setting>;

// Three values, in this order: what the settings and metrics are called, those of this run, and that it ended
// well. `metrics` are tags of scalars; `seconds` is the time.
std::vector<Bytes> settings_summaries(const Settings& settings, std::span<const std::string> metrics,
                                      double seconds);

// ---- Graph ------------------------------------------------------------------------------------------------

struct GraphNode {
  std::string name;  // parts between '/' are boxes in boxes
  std::string type;
  std::vector<std::string> inputs = {};  // names
  std::vector<Shape> outputs = {};
};
// A GraphDef.
Bytes graph_bytes(std::span<const GraphNode> nodes);

}  // namespace muster::telemetry
