#include "muster/nn/windows.h"

#include <fmt/format.h>

#include <algorithm>

#include "muster/nn/arguments.h"

namespace muster::nn {
namespace {

Result<> check_sizes(std::string_view owner, std::string_view name, const Size2d& size) {
  if (size.height >= 1 && size.width >= 1) return {};
  return refuse_argument(owner, name, "at least 1", fmt::format("({}, {})", size.height, size.width));
}

// What `same` adds along one axis.
std::int64_t missing(std::int64_t input, std::int64_t kernel, std::int64_t stride, std::int64_t dilation) {
  const std::int64_t places = (input + stride - 1) / stride;
  return std::max<std::int64_t>((places - 1) * stride + (kernel - 1) * dilation + 1 - input, 0);
}

}  // namespace

Result<PadMode> pad_mode_from(std::string_view name) {
  if (name == "same" || name == "SAME") return PadMode::same;
  if (name == "valid" || name == "VALID") return PadMode::valid;
  if (name == "pad" || name == "PAD") return PadMode::pad;
  return fail(Code::invalid_argument, fmt::format("pad_mode is 'same', 'valid' or 'pad', not '{}'", name));
}

Result<> Window::check(std::string_view owner) const {
  MUSTER_TRY_VOID(check_sizes(owner, "kernel_size", kernel));
  MUSTER_TRY_VOID(check_sizes(owner, "stride", stride));
  MUSTER_TRY_VOID(check_sizes(owner, "dilation", dilation));
  const std::vector<std::int64_t> sides = padding.list();
  const std::int64_t least = *std::min_element(sides.begin(), sides.end());
  if (least < 0) return refuse_argument(owner, "padding", "at least 0", least);
  if (padding.any() && pad_mode != PadMode::pad)
    return fail(Code::invalid_argument, fmt::format("{}: padding {} needs pad_mode 'pad'", owner,
                                                    *std::max_element(sides.begin(), sides.end())));
  return {};
}

std::vector<std::int64_t> Window::pads(std::int64_t height, std::int64_t width) const {
  if (pad_mode != PadMode::same) return padding.list();
  const std::int64_t rows = missing(height, kernel.height, stride.height, dilation.height);
  const std::int64_t columns = missing(width, kernel.width, stride.width, dilation.width);
  return {rows / 2, rows - rows / 2, columns / 2, columns - columns / 2};
}

}  // namespace muster::nn
