#include "muster/tensor/onednn/primitive.h"

namespace muster::onednn {
namespace {

using Forward = dnnl::pooling_forward;
using Backward = dnnl::pooling_backward;
using dnnl::algorithm;
using dnnl::prop_kind;

struct Problem {
  Dims x, y, strides, kernel, dilations{0, 0}, pads_before, pads_after;
};

// oneDNN wants the padding at the end that makes the sizes exact.
std::int64_t pad_after(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                       std::int64_t before) {
  return (out - 1) * stride + kernel - in - before;
}

Problem problem_of(const kernels::Pool2dSize& s) {
  return {.x = {s.batch, s.channels, s.in_height, s.in_width},
          .y = {s.batch, s.channels, s.out_height, s.out_width},
          .strides = {s.stride_height, s.stride_width},
          .kernel = {s.kernel_height, s.kernel_width},
          .pads_before = {s.pad_top, s.pad_left},
          .pads_after = {pad_after(s.in_height, s.out_height, s.kernel_height, s.stride_height, s.pad_top),
                         pad_after(s.in_width, s.out_width, s.kernel_width, s.stride_width, s.pad_left)}};
}

Forward::primitive_desc forward_desc(const Desc& x, const Problem& p, algorithm kind, bool any) {
  const Desc y = any ? Desc(p.y, x.get_data_type(), dnnl::memory::format_tag::any)
                     : in_order_of(x, p.y, x.get_data_type());
  return {engine(),
          prop_kind::forward_training,
          kind,
          x,
          y,
          p.strides,
          p.kernel,
          p.dilations,
          p.pads_before,
          p.pads_after,
          attributes()};
}

Backward::primitive_desc backward_desc(const Forward::primitive_desc& hint, const Problem& p,
                                       algorithm kind) {
  return {engine(),     kind,     hint.src_desc(), hint.dst_desc(),
          p.strides,    p.kernel, p.dilations,     p.pads_before,
          p.pads_after, hint,     attributes()};
}

// The order of the first input, when the library is free to keep it and has a kernel of its own for it; else
// row-major.
Desc first_order(const PrimitiveSetting& setting, std::size_t input, const Problem& p, algorithm kind) {
  const auto type = data_type(setting.dtype);
  const Desc row_major = plain(p.x, type);
  if (!setting.free || setting.formats.size() <= input || setting.formats[input] == nullptr) return row_major;
  const Desc given = in_order_of(desc_of(setting.formats[input], {}), p.x, type);
  return is_reference(forward_desc(given, p, kind, false)) ? row_major : given;
}

}  // namespace

PrimitivePtr make_max_pool2d(const PrimitiveSetting& setting, const kernels::Pool2dSize& size,
                             Direction direction) {
  return tried(setting.threads, [&]() -> PrimitivePtr {
    const Problem p = problem_of(size);
    const bool forward = direction == Direction::forward;
    // Backwards the positions decide: they lie as y did.
    const Desc x = first_order(setting, forward ? 0 : 1, p, algorithm::pooling_max);
    const auto hint = forward_desc(x, p, algorithm::pooling_max, false);
    if (forward)
      return std::make_shared<DnnlPrimitive>(
          Forward(hint), hint.scratchpad_desc(), std::vector<Argument>{{DNNL_ARG_SRC, hint.src_desc(), 0}},
          std::vector<Argument>{{DNNL_ARG_DST, hint.dst_desc(), 0},
                                {DNNL_ARG_WORKSPACE, hint.workspace_desc(), 1}});
    const auto pd = backward_desc(hint, p, algorithm::pooling_max);
    return std::make_shared<DnnlPrimitive>(
        Backward(pd), pd.scratchpad_desc(),
        std::vector<Argument>{{DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), 0},
                              {DNNL_ARG_WORKSPACE, pd.workspace_desc(), 1}},
        std::vector<Argument>{{DNNL_ARG_DIFF_SRC, pd.diff_src_desc(), 0}});
  });
}

PrimitivePtr make_avg_pool2d(const PrimitiveSetting& setting, const kernels::Pool2dSize& size,
                             Direction direction) {
  return tried(setting.threads, [&]() -> PrimitivePtr {
    const Problem p = problem_of(size);
    const auto kind = size.count_include_pad ? algorithm::pooling_avg_include_padding
                                             : algorithm::pooling_avg_exclude_padding;
    // What reaches over the padding would count for oneDNN.
    if (size.count_include_pad && (p.pads_after[0] > size.pad_bottom || p.pads_after[1] > size.pad_right))
      return nullptr;
    const auto hint = forward_desc(first_order(setting, 0, p, kind), p, kind, false);
    if (direction == Direction::forward)
      return std::make_shared<DnnlPrimitive>(Forward(hint), hint.scratchpad_desc(),
                                             std::vector<Argument>{{DNNL_ARG_SRC, hint.src_desc(), 0}},
                                             std::vector<Argument>{{DNNL_ARG_DST, hint.dst_desc(), 0}});
    const auto pd = backward_desc(hint, p, kind);
    return std::make_shared<DnnlPrimitive>(Backward(pd), pd.scratchpad_desc(),
                                           std::vector<Argument>{{DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), 0}},
                                           std::vector<Argument>{{DNNL_ARG_DIFF_SRC, pd.diff_src_desc(), 0}});
  });
}

}  // namespace muster::onednn
