#include "muster/data/transforms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "muster/data/transform.h"

namespace muster::data {
namespace {

// Calls `use` with a null pointer to the C++ type of `dtype`.
template <class Use>
void with_type(DType dtype, Use use) {
  switch (dtype) {
    case DType::float32:
      return use(static_cast<float*>(nullptr));
    case DType::float64:
      return use(static_cast<double*>(nullptr));
    case DType::int32:
      return use(static_cast<std::int32_t*>(nullptr));
    case DType::int64:
      return use(static_cast<std::int64_t*>(nullptr));
    case DType::uint8:
      return use(static_cast<std::uint8_t*>(nullptr));
    case DType::uint32:
      return use(static_cast<std::uint32_t*>(nullptr));
    case DType::int8:
      return use(static_cast<std::int8_t*>(nullptr));
    case DType::bool_:
      return use(static_cast<bool*>(nullptr));
  }
}

// As C++ converts, but for what C++ leaves undefined: a float beyond an integer type's range becomes the
// nearest bound, and one that is no number becomes 0.
template <class To, class From>
To convert(From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>) {
    if (std::isnan(value)) return 0;
    // 2^digits is the first value too large, and exact in every float type, which the largest To need not be.
    const From beyond = std::ldexp(From{1}, std::numeric_limits<To>::digits);
    if (value >= beyond) return std::numeric_limits<To>::max();
    if (value <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  }
  return static_cast<To>(value);
}

template <class To>
void convert_all(DType from, std::size_t elements, const std::byte* in, To* out) {
  with_type(from, [&](auto* type) {
    const auto* values = reinterpret_cast<const std::remove_pointer_t<decltype(type)>*>(in);
    for (std::size_t i = 0; i < elements; ++i) out[i] = convert<To>(values[i]);
  });
}

std::size_t elements_of(const ValueType& type, std::size_t rows) {
  return rows * static_cast<std::size_t>(type.shape.elements());
}

class Rescale final : public Transform {
 public:
  Rescale(float scale, float shift) : scale_(scale), shift_(shift) {}
  std::string name() const override { return "Rescale"; }
  Result<ValueType> infer(const ValueType& input) const override {
    if (!std::isfinite(scale_) || !std::isfinite(shift_))
      return fail(Code::invalid_argument,
                  fmt::format("Rescale by {} and {}: both must be finite", scale_, shift_));
    return ValueType{DType::float32, input.shape};
  }
  void run(const ValueType& input, std::size_t rows, const std::byte* in, std::byte* out) const override {
    auto* values = reinterpret_cast<float*>(out);
    const std::size_t elements = elements_of(input, rows);
    convert_all(input.dtype, elements, in, values);
    for (std::size_t i = 0; i < elements; ++i) values[i] *= scale_;
    for (std::size_t i = 0; i < elements; ++i) values[i] += shift_;
  }
  bool follow(Channels&) const override { return true; }

 private:
  const float scale_;
  const float shift_;
};

class Normalize final : public Transform {
 public:
  explicit Normalize(NormalizeOptions options) : options_(std::move(options)) {}
  std::string name() const override { return "Normalize"; }

  Result<ValueType> infer(const ValueType& input) const override {
    MUSTER_TRY_VOID(check_options());
    const std::size_t rank = input.shape.rank();
    if (rank != 2 && rank != 3)
      return fail(Code::invalid_argument,
                  fmt::format("Normalize takes an image of 2 or 3 axes, not {}", to_string(input.shape)));
    const std::int64_t channels = rank == 2 ? 1 : input.shape[options_.is_hwc ? 2 : 0];
    if (channels >= 0 && options_.mean.size() != 1 &&
        options_.mean.size() != static_cast<std::size_t>(channels))
      return fail(Code::invalid_argument,
                  fmt::format("Normalize has {} means, but the image {} has {} channels (is_hwc={})",
                              options_.mean.size(), to_string(input.shape), channels, options_.is_hwc));
    return ValueType{DType::float32, input.shape};
  }

  void run(const ValueType& input, std::size_t rows, const std::byte* in, std::byte* out) const override {
    auto* values = reinterpret_cast<float*>(out);
    convert_all(input.dtype, elements_of(input, rows), in, values);
    const Shape& shape = input.shape;
    if (shape.rank() == 3 && options_.is_hwc) {
      const auto pixels = rows * static_cast<std::size_t>(shape[0] * shape[1]);
      for (std::size_t i = 0; i < pixels; ++i)
        for (std::int64_t c = 0; c < shape[2]; ++c, ++values) *values = normal(*values, c);
      return;
    }
    const std::int64_t channels = shape.rank() == 3 ? shape[0] : 1;
    const std::int64_t plane = channels == 0 ? 0 : shape.elements() / channels;
    for (std::size_t row = 0; row < rows; ++row)
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t i = 0; i < plane; ++i, ++values) *values = normal(*values, c);
  }

  bool follow(Channels& channels) const override { return options_.is_hwc == (channels == Channels::last); }

 private:
  Result<> check_options() const {
    if (options_.mean.empty() || options_.mean.size() != options_.std.size())
      return fail(Code::invalid_argument,
                  fmt::format("Normalize has {} means and {} deviations; it needs as many of "
                              "both, one or one a channel",
                              options_.mean.size(), options_.std.size()));
    for (const float mean : options_.mean)
      if (!std::isfinite(mean))
        return fail(Code::invalid_argument,
                    fmt::format("Normalize has a mean of {}, it must be finite", mean));
    for (const float deviation : options_.std)
      if (!std::isfinite(deviation) || deviation <= 0)
        return fail(Code::invalid_argument,
                    fmt::format("Normalize has a deviation of {}, it must be above 0", deviation));
    return {};
  }

  float normal(float value, std::int64_t channel) const {
    const auto index = options_.mean.size() == 1 ? 0 : static_cast<std::size_t>(channel);
    return (value - options_.mean[index]) / options_.std[index];
  }

  const NormalizeOptions options_;
};

class Hwc2Chw final : public Transform {
 public:
  std::string name() const override { return "HWC2CHW"; }
  Result<ValueType> infer(const ValueType& input) const override {
    const Shape& shape = input.shape;
    if (shape.rank() == 2) return input;
    if (shape.rank() != 3)
      return fail(Code::invalid_argument,
                  fmt::format("HWC2CHW takes an image of 2 or 3 axes, not {}", to_string(shape)));
    return ValueType{input.dtype, {shape[2], shape[0], shape[1]}};
  }
  void run(const ValueType& input, std::size_t rows, const std::byte* in, std::byte* out) const override {
    const std::size_t element = size_bytes(input.dtype);
    const std::size_t channels = input.shape.rank() == 3 ? static_cast<std::size_t>(input.shape[2]) : 1;
    const std::size_t pixels = channels == 0 ? 0 : elements_of(input, 1) / channels;
    for (std::size_t row = 0; row < rows; ++row, in += pixels * channels * element)
      for (std::size_t c = 0; c < channels; ++c)
        for (std::size_t i = 0; i < pixels; ++i, out += element)
          std::memcpy(out, in + (i * channels + c) * element, element);
  }
  bool follow(Channels& channels) const override {
    const bool moved = channels == Channels::last;
    channels = Channels::first;
    return moved;  // a second time it would shuffle the axes once more
  }
};

class TypeCast final : public Transform {
 public:
  explicit TypeCast(DType dtype) : dtype_(dtype) {}
  std::string name() const override { return "TypeCast"; }
  Result<ValueType> infer(const ValueType& input) const override { return ValueType{dtype_, input.shape}; }
  void run(const ValueType& input, std::size_t rows, const std::byte* in, std::byte* out) const override {
    with_type(dtype_, [&](auto* type) {
      convert_all(input.dtype, elements_of(input, rows), in, reinterpret_cast<decltype(type)>(out));
    });
  }
  bool follow(Channels&) const override { return true; }

 private:
  const DType dtype_;
};

}  // namespace

Result<std::vector<Tensor>> Transform::apply(std::span<const Tensor> values) const {
  if (values.size() != 1)
    return fail(Code::invalid_argument, fmt::format("{} takes one value, not {}", name(), values.size()));
  const ValueType input{values[0].dtype(), values[0].shape()};
  MUSTER_TRY(const ValueType output, infer(input));
  Tensor made(output.dtype, output.shape);
  run(input, 1, values[0].bytes(), made.bytes());
  return std::vector{std::move(made)};
}

OperationPtr rescale(float scale, float shift) { return std::make_shared<Rescale>(scale, shift); }
OperationPtr normalize(NormalizeOptions options) { return std::make_shared<Normalize>(std::move(options)); }
OperationPtr hwc2chw() { return std::make_shared<Hwc2Chw>(); }
OperationPtr type_cast(DType dtype) { return std::make_shared<TypeCast>(dtype); }

}  // namespace muster::data
