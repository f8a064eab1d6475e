#include "muster/data/transforms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "muster/data/operation_row.h"
#include "muster/data/transform.h"
#include "muster/data/with_type.h"

namespace muster::data {
namespace {

std::size_t elements_of(const ValueType& type, const Rows& rows) {
  return rows.count * static_cast<std::size_t>(type.shape.elements());
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
  void run(const ValueType& input, const Rows& rows, const std::byte* in, std::byte* out) const override {
    auto* values = reinterpret_cast<float*>(out);
    const std::size_t elements = elements_of(input, rows);
    convert_all(input.dtype, elements, in, values);
    for (std::size_t i = 0; i < elements; ++i) values[i] *= scale_;
    for (std::size_t i = 0; i < elements; ++i) values[i] += shift_;
  }
  bool follow(Channels&) const override { return true; }
  bool join(Formula& formula, std::int64_t) const override {
    formula.scale = scale_;
    formula.shift = shift_;
    return true;
  }

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

  void run(const ValueType& input, const Rows& rows, const std::byte* in, std::byte* out) const override {
    auto* values = reinterpret_cast<float*>(out);
    convert_all(input.dtype, elements_of(input, rows), in, values);
    const Shape& shape = input.shape;
    if (shape.rank() == 3 && options_.is_hwc) {
      const auto pixels = rows.count * static_cast<std::size_t>(shape[0] * shape[1]);
      for (std::size_t i = 0; i < pixels; ++i)
        for (std::int64_t c = 0; c < shape[2]; ++c, ++values) *values = normal(*values, c);
      return;
    }
    const std::int64_t channels = shape.rank() == 3 ? shape[0] : 1;
    const std::int64_t plane = channels == 0 ? 0 : shape.elements() / channels;
    for (std::size_t row = 0; row < rows.count; ++row)
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t i = 0; i < plane; ++i, ++values) *values = normal(*values, c);
  }

  bool follow(Channels& channels) const override { return options_.is_hwc == (channels == Channels::last); }
  bool join(Formula& formula, std::int64_t channel) const override {
    formula.mean = options_.mean[index(channel)];
    formula.deviation = options_.std[index(channel)];
    return true;
  }

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
    return (value - options_.mean[index(channel)]) / options_.std[index(channel)];
  }
  std::size_t index(std::int64_t channel) const {
    return options_.mean.size() == 1 ? 0 : static_cast<std::size_t>(channel);
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
  void run(const ValueType& input, const Rows& rows, const std::byte* in, std::byte* out) const override {
    const std::size_t element = size_bytes(input.dtype);
    const std::size_t channels = input.shape.rank() == 3 ? static_cast<std::size_t>(input.shape[2]) : 1;
    const std::size_t pixels = channels == 0 ? 0 : elements_of(input, {}) / channels;
    for (std::size_t row = 0; row < rows.count; ++row, in += pixels * channels * element)
      for (std::size_t c = 0; c < channels; ++c)
        for (std::size_t i = 0; i < pixels; ++i, out += element)
          std::memcpy(out, in + (i * channels + c) * element, element);
  }
  bool follow(Channels& channels) const override {
    const bool moved = channels == Channels::last;
    channels = Channels::first;
    return moved;  // a second time it would shuffle the axes once more
  }
  bool join(Formula&, std::int64_t) const override { return true; }
};

class TypeCast final : public Transform {
 public:
  explicit TypeCast(DType dtype) : dtype_(dtype) {}
  std::string name() const override { return "TypeCast"; }
  Result<ValueType> infer(const ValueType& input) const override { return ValueType{dtype_, input.shape}; }
  void run(const ValueType& input, const Rows& rows, const std::byte* in, std::byte* out) const override {
    cast_elements(in, input.dtype, out, dtype_, elements_of(input, rows));
  }
  bool follow(Channels&) const override { return true; }
  bool join(Formula&, std::int64_t) const override { return true; }

 private:
  const DType dtype_;
};

class ToTensor final : public Transform {
 public:
  explicit ToTensor(DType dtype) : dtype_(dtype) {}
  std::string name() const override { return "ToTensor"; }
  Result<ValueType> infer(const ValueType& input) const override {
    const Shape& shape = input.shape;
    if (shape.rank() == 2) return ValueType{dtype_, {1, shape[0], shape[1]}};
    if (shape.rank() != 3)
      return fail(Code::invalid_argument,
                  fmt::format("ToTensor takes an image of 2 or 3 axes, not {}", to_string(shape)));
    return ValueType{dtype_, {shape[2], shape[0], shape[1]}};
  }
  void run(const ValueType& input, const Rows& rows, const std::byte* in, std::byte* out) const override {
    const std::size_t elements = elements_of(input, {});
    const std::size_t channels = input.shape.rank() == 3 ? static_cast<std::size_t>(input.shape[2]) : 1;
    const std::size_t pixels = channels == 0 ? 0 : elements / channels;
    std::vector<float> last(elements), first(elements);
    for (std::size_t row = 0; row < rows.count; ++row) {
      convert_all(input.dtype, elements, in + row * elements * size_bytes(input.dtype), last.data());
      for (std::size_t i = 0; i < elements; ++i)
        first[i % channels * pixels + i / channels] = last[i] * (1.0f / 255.0f);
      cast_elements(reinterpret_cast<const std::byte*>(first.data()), DType::float32,
                    out + row * elements * size_bytes(dtype_), dtype_, elements);
    }
  }
  bool follow(Channels& channels) const override {
    const bool moved = channels == Channels::last;
    channels = Channels::first;
    return moved;
  }
  bool join(Formula& formula, std::int64_t) const override {
    formula.scale = 1.0f / 255.0f;
    return true;
  }

 private:
  const DType dtype_;
};

class OneHot final : public Transform {
 public:
  OneHot(std::int64_t classes, double smoothing) : classes_(classes), smoothing_(smoothing) {}
  std::string name() const override { return "OneHot"; }
  Result<ValueType> infer(const ValueType& input) const override {
    if (classes_ < 1)
      return fail(Code::invalid_argument,
                  fmt::format("OneHot: num_classes is {}, it must be at least 1", classes_));
    if (!(smoothing_ >= 0 && smoothing_ <= 1))
      return fail(Code::invalid_argument,
                  fmt::format("OneHot: smoothing_rate is {}, it must be 0 to 1", smoothing_));
    if (is_floating(input.dtype) || input.dtype == DType::bool_)
      return fail(Code::invalid_argument,
                  fmt::format("OneHot takes labels that are integers, not {}", to_string(input.dtype)));
    std::vector<std::int64_t> sizes(input.shape.begin(), input.shape.end());
    if (sizes == std::vector<std::int64_t>{1}) sizes.clear();  // a label in an axis of its own
    sizes.push_back(classes_);
    return ValueType{smoothing_ > 0 ? DType::float64 : input.dtype, Shape(std::move(sizes))};
  }
  bool by_value() const override { return true; }  // a label out of range is an error
  void run(const ValueType&, const Rows&, const std::byte*, std::byte*) const override {}
  Result<Tensor> apply_value(const Tensor& value) const override {
    MUSTER_TRY(const ValueType type, infer({value.dtype(), value.shape()}));
    std::vector<std::int64_t> labels(static_cast<std::size_t>(value.elements()));
    convert_all(value.dtype(), labels.size(), value.bytes(), labels.data());
    for (const std::int64_t label : labels)
      if (label < 0 || label >= classes_)
        return fail(Code::invalid_argument, fmt::format("OneHot: label {} is not one of {} classes (0 to {})",
                                                        label, classes_, classes_ - 1));
    Tensor made = Tensor::zeros(type.dtype, type.shape);
    const auto classes = static_cast<std::size_t>(classes_);
    const double off = smoothing_ / static_cast<double>(classes_);
    with_type(type.dtype, [&](auto* element) {
      auto* out = reinterpret_cast<decltype(element)>(made.bytes());
      using Element = std::remove_pointer_t<decltype(element)>;
      for (std::size_t i = 0; i < labels.size(); ++i)
        for (std::size_t c = 0; c < classes; ++c)
          out[i * classes + c] = static_cast<Element>(
              off + (static_cast<std::int64_t>(c) == labels[i] ? 1.0 - smoothing_ : 0.0));
    });
    return made;
  }
  bool follow(Channels&) const override { return false; }

 private:
  const std::int64_t classes_;
  const double smoothing_;
};

std::vector<float> floats(const Numbers& numbers) { return {numbers.begin(), numbers.end()}; }

}  // namespace

Result<std::vector<Tensor>> Transform::apply(std::span<const Tensor> values, Draw draw) const {
  if (values.size() != 1)
    return fail(Code::invalid_argument, fmt::format("{} takes one value, not {}", name(), values.size()));
  const ValueType input{values[0].dtype(), values[0].shape()};
  MUSTER_TRY(const ValueType output, infer(input));
  if (by_value()) {
    MUSTER_TRY(auto value, apply_value(values[0]));
    return std::vector{std::move(value)};
  }
  Tensor made(output.dtype, output.shape);
  run(input, {.count = 1, .keys = &draw.row, .operation = draw.operation}, values[0].bytes(), made.bytes());
  return std::vector{std::move(made)};
}

Result<Tensor> Transform::apply_value(const Tensor&) const {
  return fail(Code::internal, fmt::format("{} does not go by its value", name()));
}

OperationPtr rescale(float scale, float shift) { return std::make_shared<Rescale>(scale, shift); }
OperationPtr normalize(NormalizeOptions options) { return std::make_shared<Normalize>(std::move(options)); }
OperationPtr hwc2chw() { return std::make_shared<Hwc2Chw>(); }
OperationPtr type_cast(DType dtype) { return std::make_shared<TypeCast>(dtype); }
OperationPtr to_tensor(DType dtype) { return std::make_shared<ToTensor>(dtype); }
OperationPtr one_hot(std::int64_t num_classes, double smoothing_rate) {
  return std::make_shared<OneHot>(num_classes, smoothing_rate);
}

std::vector<const OperationRow*> rows_of_transforms() {
  static const OperationRow rows[] = {
      {.name = "Rescale",
       .documentation = "float32(value) * rescale + shift, for any dtype and shape.",
       .arguments = {{.name = "rescale", .otherwise = 1.0, .required = true},
                     {.name = "shift", .otherwise = 0.0, .required = true}},
       .make =
           [](const Settings& all) {
             return rescale(static_cast<float>(all.get<double>("rescale")),
                            static_cast<float>(all.get<double>("shift")));
           }},
      {.name = "Normalize",
       .documentation = "(float32(value) - mean) / std for each channel of an image (H, W, C), or (C, H, W) "
                        "with is_hwc=False. `mean` and `std` hold one number for each channel, or one for "
                        "all.",
       .arguments = {{.name = "mean", .otherwise = Numbers{}, .required = true},
                     {.name = "std", .otherwise = Numbers{}, .required = true},
                     {.name = "is_hwc", .otherwise = true}},
       .make =
           [](const Settings& all) {
             return normalize({.mean = floats(all.get<Numbers>("mean")),
                               .std = floats(all.get<Numbers>("std")),
                               .is_hwc = all.get<bool>("is_hwc")});
           }},
      {.name = "HWC2CHW",
       .documentation = "An image (H, W, C) as (C, H, W).",
       .make = [](const Settings&) { return hwc2chw(); }},
      {.name = "TypeCast",
       .family = Family::transforms,
       .documentation =
           "Elements as another dtype; floats outside of an integer's range become its nearest bound.",
       .arguments = {{.name = "output_type", .otherwise = DType::float32, .required = true}},
       .make = [](const Settings& all) { return type_cast(all.get<DType>("output_type")); }},
      {.name = "OneHot",
       .family = Family::transforms,
       .documentation =
           "A label as `num_classes` numbers: 1 at its place, else 0. With a `smoothing_rate` above 0 the 1 "
           "loses it to all classes alike, and the numbers are float64. ValueError for a label out of range.",
       .arguments = {{.name = "num_classes", .otherwise = std::int64_t{1}, .required = true},
                     {.name = "smoothing_rate", .otherwise = 0.0}},
       .make =
           [](const Settings& all) {
             return one_hot(all.get<std::int64_t>("num_classes"), all.get<double>("smoothing_rate"));
           }},
      {.name = "ToTensor",
       .documentation = "float32(value) * (1 / 255), then an image (H, W, C) as (C, H, W).",
       .arguments = {{.name = "output_type", .otherwise = DType::float32, .optional = true}},
       .make = [](const Settings& all) { return to_tensor(all.get<DType>("output_type")); }}};
  return addresses(rows);
}

}  // namespace muster::data
