// RandomErasing: a rectangle of the image loses its values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "muster/data/image.h"
#include "muster/data/with_type.h"

namespace muster::data {
namespace {

struct Options {
  double probability = 0.5;
  std::array<double, 2> scale = {0.02, 0.33};
  std::array<double, 2> ratio = {0.3, 3.3};
  WholeNumbers values = {0};  // one for all channels, or one for each
  std::int64_t attempts_max = 10;
};

class RandomErasing final : public Transform {
 public:
  explicit RandomErasing(Options options) : options_(std::move(options)) {}
  std::string name() const override { return "RandomErasing"; }

  Result<ValueType> infer(const ValueType& input) const override {
    for (const auto& [what, range] : {std::pair("scale", options_.scale), std::pair("ratio", options_.ratio)})
      if (!(range[0] > 0 && range[0] <= range[1] && std::isfinite(range[1])))
        return fail(Code::invalid_argument,
                    fmt::format("RandomErasing: {} is {} to {}, it must rise and lie above 0", what, range[0],
                                range[1]));
    const Shape& shape = input.shape;
    if (shape.rank() != 3)
      return fail(Code::invalid_argument,
                  fmt::format("RandomErasing takes an image (C, H, W), not {}", to_string(shape)));
    const auto values = static_cast<std::int64_t>(options_.values.size());
    if (values != 1 && shape[0] >= 0 && shape[0] != values)
      return fail(Code::invalid_argument,
                  fmt::format("RandomErasing has {} values, but the image {} has {} channels", values,
                              to_string(shape), shape[0]));
    return input;
  }

  void run(const ValueType& input, const Rows& rows, const std::byte* in, std::byte* out) const override {
    const std::size_t bytes = value_bytes(input);
    std::memcpy(out, in, rows.count * bytes);
    for (std::size_t row = 0; row < rows.count; ++row, out += bytes)
      if (const auto window = choose({input.shape[1], input.shape[2]}, rows.random(row)))
        erase(input, *window, out);
  }

  bool follow(Channels&) const override { return false; }

 private:
  static double between(const std::array<double, 2>& range, double share) {
    return range[0] + share * (range[1] - range[0]);
  }

  // Nothing: the image stays whole.
  std::optional<Window> choose(Size image, const RandomStream& random) const {
    if (random.uniform(0) >= options_.probability) return std::nullopt;
    for (std::int64_t attempt = 0; attempt < options_.attempts_max; ++attempt) {
      const auto first = static_cast<std::uint64_t>(1 + 4 * attempt);
      const auto pixels = static_cast<double>(image.height * image.width);
      const double area = between(options_.scale, random.uniform(first)) * pixels;
      const double ratio = between(options_.ratio, random.uniform(first + 1));
      const std::int64_t width = std::llround(std::sqrt(area * ratio));
      const std::int64_t height = std::llround(static_cast<double>(width) / ratio);
      if (height >= image.height || width >= image.width) continue;
      const auto places_down = static_cast<std::uint64_t>(image.height - height + 1);
      const auto places_right = static_cast<std::uint64_t>(image.width - width + 1);
      return Window{.top = static_cast<std::int64_t>(random.below(first + 2, places_down)),
                    .left = static_cast<std::int64_t>(random.below(first + 3, places_right)),
                    .size = {height, width}};
    }
    return std::nullopt;
  }

  void erase(const ValueType& input, const Window& window, std::byte* out) const {
    const std::int64_t height = input.shape[1], width = input.shape[2];
    with_type(input.dtype, [&](auto* type) {
      using Value = std::remove_pointer_t<decltype(type)>;
      auto* values = reinterpret_cast<Value*>(out);
      for (std::int64_t c = 0; c < input.shape[0]; ++c) {
        const auto erased =
            convert<Value>(options_.values[options_.values.size() == 1 ? 0 : static_cast<std::size_t>(c)]);
        for (std::int64_t y = window.top; y < window.top + window.size.height; ++y)
          std::fill_n(values + (c * height + y) * width + window.left, window.size.width, erased);
      }
    });
  }

  const Options options_;
};

}  // namespace

std::vector<const OperationRow*> rows_of_random_erasing() {
  static const OperationRow row{
      .name = "RandomErasing",
      .documentation =
          "An image (C, H, W) in which a rectangle is set to `value`, or, as `prob` has it, not. Zhong et "
          "al., AAAI 2020.",
      .usage =
          "`scale` is the least and most of the image's area, `ratio` of width over height; `value` one "
          "number, or one for each of three channels; after `max_attempts` rectangles that do not fit the "
          "image stays whole. `inplace` has no effect: the image that comes in is never written.",
      .arguments = {{.name = "prob", .otherwise = 0.5, .range = {.min = 0, .max = 1}},
                    range_argument("scale", {0.02, 0.33}),
                    range_argument("ratio", {0.3, 3.3}),
                    {.name = "value",
                     .otherwise = WholeNumbers{0},
                     .range = {.min = 0, .max = 255},
                     .counts = {1, 3},
                     .meaning = "0 to 255, or one for each of three channels"},
                    {.name = "inplace", .otherwise = false},
                    {.name = "max_attempts", .otherwise = std::int64_t{10}, .range = {.min = 1}}},
      .make = [](const Settings& all) -> OperationPtr {
        return std::make_shared<RandomErasing>(
            Options{.probability = all.get<double>("prob"),
                    .scale = range_from(all, "scale"),
                    .ratio = range_from(all, "ratio"),
                    .values = all.get<WholeNumbers>("value"),
                    .attempts_max = all.get<std::int64_t>("max_attempts")});
      }};
  return {&row};
}

}  // namespace muster::data
