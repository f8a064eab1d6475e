#include "muster/tensor/onednn/primitive.h"

#include <initializer_list>
#include <optional>
#include <string_view>

namespace muster::onednn {
namespace {

using Forward = dnnl::convolution_forward;
using GradInput = dnnl::convolution_backward_data;
using GradWeight = dnnl::convolution_backward_weights;
using dnnl::algorithm;
using dnnl::prop_kind;

struct Problem {
  Dims x, weight, y, bias, strides, dilations, pads_before, pads_after;
};

Problem problem_of(const kernels::Conv2dSize& s) {
  const std::int64_t in = s.in_channels / s.groups;
  const std::int64_t out = s.out_channels / s.groups;
  return {.x = {s.batch, s.in_channels, s.in_height, s.in_width},
          .weight = s.groups == 1 ? Dims{out, in, s.kernel_height, s.kernel_width}
                                  : Dims{s.groups, out, in, s.kernel_height, s.kernel_width},
          .y = {s.batch, s.out_channels, s.out_height, s.out_width},
          .bias = {s.out_channels},
          .strides = {s.stride_height, s.stride_width},
          .dilations = {s.dilation_height - 1, s.dilation_width - 1},  // 0 is no gap
          .pads_before = {s.pad_top, s.pad_left},
          .pads_after = {s.pad_bottom, s.pad_right}};
}

Problem problem_of(const kernels::Conv3dSize& s) {
  const auto with = [](std::initializer_list<std::int64_t> first, const kernels::Conv3dSize::Axes& axes) {
    Dims dims(first);
    dims.insert(dims.end(), axes.begin(), axes.end());
    return dims;
  };
  const std::int64_t in = s.in_channels / s.groups;
  const std::int64_t out = s.out_channels / s.groups;
  return {.x = with({s.batch, s.in_channels}, s.in),
          .weight = s.groups == 1 ? with({out, in}, s.kernel) : with({s.groups, out, in}, s.kernel),
          .y = with({s.batch, s.out_channels}, s.out),
          .bias = {},
          .strides = with({}, s.stride),
          .dilations = {s.dilation[0] - 1, s.dilation[1] - 1, s.dilation[2] - 1},
          .pads_before = with({}, s.pad_before),
          .pads_after = with({}, s.pad_after)};
}

struct Descs {
  Desc x, weight, y;
};

Desc any_of(const Dims& dims, dnnl::memory::data_type type) {
  return Desc(dims, type, dnnl::memory::format_tag::any);
}

// Of the weight, or of its gradient.
dnnl::memory::data_type weight_type(const PrimitiveSetting& setting, Direction direction) {
  return data_type(direction == Direction::grad_weight ? setting.result : setting.dtype);
}

// What the library is asked for: any order where it is free.
Descs any_order(const PrimitiveSetting& setting, const Problem& p, Direction direction) {
  const auto one = [&](const Dims& dims, dnnl::memory::data_type type) {
    return setting.free ? any_of(dims, type) : plain(dims, type);
  };
  const auto type = data_type(setting.dtype);
  return {one(p.x, type), one(p.weight, weight_type(setting, direction)), one(p.y, type)};
}

// The order in which the images come, for all images: left to itself the library may take another for one
// convolution in a row, and reorders of images cost more than it gains. Nothing where they come plain or
// differ.
std::optional<Descs> incoming_order(const PrimitiveSetting& setting, const Problem& p, Direction direction) {
  if (!setting.free || setting.formats.empty() || setting.formats[0] == nullptr) return std::nullopt;
  const auto type = data_type(setting.dtype);
  const Desc first = desc_of(setting.formats[0], {});
  const Descs descs{in_order_of(first, p.x, type), any_of(p.weight, weight_type(setting, direction)),
                    in_order_of(first, p.y, type)};
  if (direction == Direction::grad_weight && !same_format(setting.formats[1], format_of(descs.y)))
    return std::nullopt;
  return descs;
}

Forward::primitive_desc forward_desc(const Descs& d, const Problem& p, const Desc* bias,
                                     const dnnl::primitive_attr& attr) {
  if (bias != nullptr)
    return {engine(),
            prop_kind::forward_training,
            algorithm::convolution_direct,
            d.x,
            d.weight,
            *bias,
            d.y,
            p.strides,
            p.dilations,
            p.pads_before,
            p.pads_after,
            attr};
  return {engine(),
          prop_kind::forward_training,
          algorithm::convolution_direct,
          d.x,
          d.weight,
          d.y,
          p.strides,
          p.dilations,
          p.pads_before,
          p.pads_after,
          attr};
}

// Not the library's own last resort.
template <class PrimitiveDesc>
bool is_fast(const PrimitiveDesc& pd) {
  const std::string_view name = pd.impl_info_str();
  return name.starts_with("jit") || name.starts_with("brg");
}

struct Settings {
  bool bias = false;
  bool relu = false;
  bool fast = false;  // or nothing
};

PrimitivePtr make_forward(const Descs& d, const Problem& p, const Settings& settings) {
  dnnl::primitive_attr attr = attributes();
  if (settings.relu) {
    dnnl::post_ops after;
    after.append_eltwise(algorithm::eltwise_relu, 0.0F, 0.0F);
    attr.set_post_ops(after);
  }
  const Desc bias = settings.bias ? plain(p.bias, d.x.get_data_type()) : Desc();
  const auto pd = forward_desc(d, p, settings.bias ? &bias : nullptr, attr);
  if (settings.fast && !is_fast(pd)) return nullptr;
  std::vector<Argument> inputs{{DNNL_ARG_SRC, pd.src_desc(), 0}, {DNNL_ARG_WEIGHTS, pd.weights_desc(), 1}};
  if (settings.bias) inputs.push_back({DNNL_ARG_BIAS, bias, 2});
  return std::make_shared<DnnlPrimitive>(Forward(pd), pd.scratchpad_desc(), inputs,
                                         std::vector<Argument>{{DNNL_ARG_DST, pd.dst_desc(), 0}});
}

PrimitivePtr make_grad_input(const Descs& d, const Problem& p, bool fast) {
  const auto hint = forward_desc(d, p, nullptr, attributes());
  const GradInput::primitive_desc pd(engine(), algorithm::convolution_direct, d.x, d.weight, d.y, p.strides,
                                     p.dilations, p.pads_before, p.pads_after, hint, attributes());
  if (fast && !is_fast(pd)) return nullptr;
  return std::make_shared<DnnlPrimitive>(GradInput(pd), pd.scratchpad_desc(),
                                         std::vector<Argument>{{DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), 0},
                                                               {DNNL_ARG_WEIGHTS, pd.weights_desc(), 1}},
                                         std::vector<Argument>{{DNNL_ARG_DIFF_SRC, pd.diff_src_desc(), 0}});
}

PrimitivePtr make_grad_weight(const Descs& d, const Problem& p, bool fast) {
  const Descs forward{d.x, any_of(p.weight, d.x.get_data_type()), d.y};
  const auto hint = forward_desc(forward, p, nullptr, attributes());
  const GradWeight::primitive_desc pd(engine(), algorithm::convolution_direct, d.x, d.weight, d.y, p.strides,
                                      p.dilations, p.pads_before, p.pads_after, hint, attributes());
  if (fast && !is_fast(pd)) return nullptr;
  return std::make_shared<DnnlPrimitive>(
      GradWeight(pd), pd.scratchpad_desc(),
      std::vector<Argument>{{DNNL_ARG_SRC, pd.src_desc(), 0}, {DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), 1}},
      std::vector<Argument>{{DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc(), 0}});
}

PrimitivePtr make_one(const Descs& d, const Problem& p, Direction direction, const Settings& settings) {
  if (direction == Direction::grad_input) return make_grad_input(d, p, settings.fast);
  if (direction == Direction::grad_weight) return make_grad_weight(d, p, settings.fast);
  return make_forward(d, p, settings);
}

// `fast`: by code of the library's own, or not at all.
PrimitivePtr make_convolution(const PrimitiveSetting& setting, const Problem& p, Direction direction,
                              bool bias, bool relu, bool fast) {
  if (const auto order = incoming_order(setting, p, direction))
    if (PrimitivePtr made = tried(setting.threads, [&] {
          return make_one(*order, p, direction, {.bias = bias, .relu = relu, .fast = true});
        }))
      return made;
  // Its last resorts for bfloat16 are many times slower than what it has for float32.
  fast = fast || setting.dtype == DType::bfloat16;
  return tried(setting.threads, [&] {
    return make_one(any_order(setting, p, direction), p, direction,
                    {.bias = bias, .relu = relu, .fast = fast});
  });
}

}  // namespace

PrimitivePtr make_conv2d(const PrimitiveSetting& setting, const kernels::Conv2dSize& size,
                         Direction direction, bool bias, bool relu) {
  if (direction == Direction::grad_weight)
    if (PrimitivePtr made = make_depthwise_grad_weight(setting, size)) return made;
  if (size.groups > 1) {
    if (PrimitivePtr made = make_fast_conv2d(setting, size, direction, bias, relu)) return made;
    if (PrimitivePtr made = make_joined_groups(setting, size, direction, bias, relu)) return made;
  }
  return make_convolution(setting, problem_of(size), direction, bias, relu, false);
}

PrimitivePtr make_fast_conv2d(const PrimitiveSetting& setting, const kernels::Conv2dSize& size,
                              Direction direction, bool bias, bool relu) {
  return make_convolution(setting, problem_of(size), direction, bias, relu, true);
}

PrimitivePtr make_conv3d(const PrimitiveSetting& setting, const kernels::Conv3dSize& size,
                         Direction direction) {
  return make_convolution(setting, problem_of(size), direction, false, false, false);
}

}  // namespace muster::onednn
