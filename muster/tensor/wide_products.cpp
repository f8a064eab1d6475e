#include "muster/tensor/wide_products.h"

#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "muster/tensor/buffer.h"
#include "muster/tensor/kernels/elementwise.h"

namespace muster {
namespace {

// An input or output of the call, and where its copy in float32 lies in the scratch memory.
struct Operand {
  std::int64_t elements = 0;  // with the padding of its format
  DType dtype = DType::bfloat16;
  std::size_t offset_bytes = 0;

  bool is_copied() const { return dtype != DType::float32; }
};

struct Product {
  std::vector<Operand> inputs;
  Operand output;
  double operations = 0;
};

// Below so many operations for each element that is cast, the casts cost what the product saves: as measured.
constexpr double operations_per_element_min = 100;

bool outweighs_casts(const Product& product) {
  double elements = static_cast<double>(product.output.elements);
  for (const Operand& input : product.inputs) elements += static_cast<double>(input.elements);
  return product.operations >= operations_per_element_min * elements;
}

// The same formats for elements of `dtype`; nothing where one of them has no such elements.
std::optional<std::vector<FormatPtr>> with_dtype(std::span<const FormatPtr> formats, DType dtype) {
  std::vector<FormatPtr> made;
  for (const FormatPtr& format : formats) {
    made.push_back(format == nullptr ? nullptr : format->with_dtype(dtype));
    if (format != nullptr && made.back() == nullptr) return std::nullopt;
  }
  return made;
}

class WideProduct : public Primitive {
 public:
  // With the formats in which its inputs come and its output is wanted.
  WideProduct(PrimitivePtr wide, Product product, std::vector<FormatPtr> inputs,
              std::vector<FormatPtr> outputs)
      : wide_(std::move(wide)), product_(std::move(product)) {
    for (std::size_t i = 0; i < product_.inputs.size(); ++i)
      place(product_.inputs[i], wide_->input_formats, i);
    place(product_.output, wide_->output_formats, 0);
    wide_scratch_bytes_ = take(wide_->scratch_bytes);
    input_formats = std::move(inputs);
    output_formats = std::move(outputs);
  }

  bool run(std::byte* const* inputs, std::byte* const* outputs, std::byte* scratch,
           int threads) const override {
    std::vector<std::byte*> widened;
    for (std::size_t i = 0; i < product_.inputs.size(); ++i) {
      const Operand& input = product_.inputs[i];
      widened.push_back(input.is_copied() ? scratch + input.offset_bytes : inputs[i]);
      if (input.is_copied())
        kernels::cast(inputs[i], input.dtype, widened.back(), DType::float32, input.elements, threads);
    }
    const Operand& output = product_.output;
    std::byte* const result = output.is_copied() ? scratch + output.offset_bytes : outputs[0];
    if (!wide_->run(widened.data(), &result, scratch + wide_scratch_bytes_, threads)) return false;
    if (output.is_copied())
      kernels::cast(result, DType::float32, outputs[0], output.dtype, output.elements, threads);
    return true;
  }

 private:
  std::size_t take(std::size_t bytes) {
    constexpr std::size_t alignment = Buffer::alignment_bytes;
    return std::exchange(scratch_bytes, scratch_bytes + (bytes + alignment - 1) / alignment * alignment);
  }

  void place(Operand& operand, const std::vector<FormatPtr>& formats, std::size_t index) {
    if (index < formats.size() && formats[index] != nullptr)
      operand.elements = static_cast<std::int64_t>(formats[index]->size_bytes() / sizeof(float));
    if (operand.is_copied())
      operand.offset_bytes = take(static_cast<std::size_t>(operand.elements) * sizeof(float));
  }

  PrimitivePtr wide_;
  Product product_;
  std::size_t wide_scratch_bytes_ = 0;
};

// By `make_wide` of the setting for float32; null where the library's own for bfloat16 has to serve.
template <class MakeWide>
PrimitivePtr wide_product(const PrimitiveSetting& setting, Product product, const MakeWide& make_wide) {
  if (setting.dtype != DType::bfloat16 || !outweighs_casts(product)) return nullptr;
  const auto formats = with_dtype(setting.formats, DType::float32);
  if (!formats) return nullptr;
  PrimitiveSetting wide = setting;
  wide.dtype = wide.result = DType::float32;
  wide.formats = *formats;
  const PrimitivePtr made = make_wide(wide);
  if (made == nullptr) return nullptr;
  auto inputs = with_dtype(made->input_formats, DType::bfloat16);
  auto outputs = with_dtype(made->output_formats, product.output.dtype);
  if (!inputs || !outputs) return nullptr;
  return std::make_shared<const WideProduct>(made, std::move(product), std::move(*inputs),
                                             std::move(*outputs));
}

// ---- The functions of the table ---------------------------------------------------------------------------

// The library itself, as with_wide_products() was given it first.
const PrimitiveLibrary& narrow_library(const PrimitiveLibrary* given = nullptr) {
  static const PrimitiveLibrary& library = *given;
  return library;
}

std::int64_t volume(const std::array<std::int64_t, 3>& axes) {
  return std::accumulate(axes.begin(), axes.end(), std::int64_t{1}, std::multiplies<>());
}

// Of images with so many pixels and a kernel with so many, in the order in which `direction` has the
// operands.
struct Convolution {
  std::int64_t batch = 0;
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t groups = 1;
  std::int64_t in_pixels = 0;
  std::int64_t out_pixels = 0;
  std::int64_t kernel_pixels = 0;
};

Product product_of(const Convolution& c, Direction direction, bool bias, DType result) {
  const Operand x{.elements = c.batch * c.in_channels * c.in_pixels};
  const Operand weight{.elements = c.out_channels * c.in_channels / c.groups * c.kernel_pixels};
  const Operand y{.elements = c.batch * c.out_channels * c.out_pixels};
  const double operations =
      2.0 * static_cast<double>(y.elements) * static_cast<double>(c.in_channels / c.groups * c.kernel_pixels);
  if (direction == Direction::grad_input) return {{y, weight}, x, operations};
  if (direction == Direction::grad_weight)
    return {{x, y}, {.elements = weight.elements, .dtype = result}, operations};
  Product made{{x, weight}, y, operations};
  if (bias) made.inputs.push_back({.elements = c.out_channels});
  return made;
}

PrimitivePtr make_conv2d(const PrimitiveSetting& setting, const kernels::Conv2dSize& s, Direction direction,
                         bool bias, bool relu) {
  const Convolution size{.batch = s.batch,
                         .in_channels = s.in_channels,
                         .out_channels = s.out_channels,
                         .groups = s.groups,
                         .in_pixels = s.in_height * s.in_width,
                         .out_pixels = s.out_height * s.out_width,
                         .kernel_pixels = s.kernel_height * s.kernel_width};
  const auto make = [&](const PrimitiveSetting& given) {
    return narrow_library().conv2d(given, s, direction, bias, relu);
  };
  if (PrimitivePtr made = wide_product(setting, product_of(size, direction, bias, setting.result), make))
    return made;
  return make(setting);
}

PrimitivePtr make_conv3d(const PrimitiveSetting& setting, const kernels::Conv3dSize& s, Direction direction) {
  const Convolution size{.batch = s.batch,
                         .in_channels = s.in_channels,
                         .out_channels = s.out_channels,
                         .groups = s.groups,
                         .in_pixels = volume(s.in),
                         .out_pixels = volume(s.out),
                         .kernel_pixels = volume(s.kernel)};
  const auto make = [&](const PrimitiveSetting& given) {
    return narrow_library().conv3d(given, s, direction);
  };
  if (PrimitivePtr made = wide_product(setting, product_of(size, direction, false, setting.result), make))
    return made;
  return make(setting);
}

PrimitivePtr make_matmul(const PrimitiveSetting& setting, const MatmulProblem& problem) {
  const std::int64_t m = problem.size.m, n = problem.size.n, k = problem.size.k;
  Product product{.inputs = {{.elements = problem.batch * m * k}, {.elements = problem.batch * k * n}},
                  .output = {.elements = problem.batch * m * n, .dtype = setting.result},
                  .operations = 2.0 * static_cast<double>(problem.batch * m * n) * static_cast<double>(k)};
  if (problem.bias) product.inputs.push_back({.elements = n, .dtype = *problem.bias});
  const auto make_wide = [&](const PrimitiveSetting& given) {
    MatmulProblem wide = problem;
    if (wide.bias) wide.bias = DType::float32;
    return narrow_library().matmul(given, wide);
  };
  if (PrimitivePtr made = wide_product(setting, std::move(product), make_wide)) return made;
  return narrow_library().matmul(setting, problem);
}

}  // namespace

const PrimitiveLibrary& with_wide_products(const PrimitiveLibrary& library) {
  static const PrimitiveLibrary made = [&] {
    PrimitiveLibrary wide = narrow_library(&library);
    wide.conv2d = make_conv2d;
    wide.conv3d = make_conv3d;
    wide.matmul = make_matmul;
    return wide;
  }();
  MUSTER_CHECK(made.name == library.name, "another library has wide products here");
  return made;
}

}  // namespace muster
