#include <algorithm>
#include <vector>

#include "muster/tensor/onednn/primitive.h"

namespace muster::onednn {
namespace {

using Forward = dnnl::batch_normalization_forward;
using Backward = dnnl::batch_normalization_backward;
using Flags = dnnl::normalization_flags;
using dnnl::prop_kind;

Flags flags_of(const kernels::BatchNormSize& size, bool relu) {
  Flags flags = Flags::use_scale | Flags::use_shift;
  if (!size.training) flags |= Flags::use_global_stats;
  if (relu) flags |= Flags::fuse_norm_relu;
  return flags;
}

Forward::primitive_desc forward_desc(const Desc& x, const kernels::BatchNormSize& size, bool relu) {
  const auto kind = size.training || relu ? prop_kind::forward_training : prop_kind::forward_inference;
  return {engine(), kind, x, x, static_cast<float>(size.eps), flags_of(size, relu), attributes()};
}

constexpr std::int64_t channels_in_blocks_min = 8;  // of fewer, most of a block would be padding

// The orders that x may have, when the library is free to bring it into another: as it comes, in blocks of
// channels, row-major.
std::vector<Desc> orders(const PrimitiveSetting& setting, const kernels::BatchNormSize& size) {
  const auto type = data_type(setting.dtype);
  const Desc row_major = plain({size.batch, size.channels, size.inner, 1}, type);
  if (!setting.free) return {row_major};
  Dims dims{size.batch, size.channels};
  dims.insert(dims.end(), size.plane.begin(), size.plane.end());
  std::vector<Desc> found{desc_of(setting.formats.empty() ? nullptr : setting.formats[0], row_major)};
  for (const std::int64_t block : {16, 8})
    if (const auto blocks = in_channel_blocks(dims, type, block);
        blocks && size.channels >= channels_in_blocks_min)
      found.push_back(*blocks);
  found.push_back(row_major);
  return found;
}

// The first of them for which oneDNN makes code, or else has a kernel of its own: on row-major images that is
// plain C++, ten times slower than a reorder there and back around the code.
Desc x_order(const PrimitiveSetting& setting, const kernels::BatchNormSize& size, bool relu) {
  const std::vector<Desc> all = orders(setting, size);
  const auto is_made = [&](const Desc& x) { return is_jit(forward_desc(x, size, relu)); };
  const auto suits = [&](const Desc& x) { return !is_reference(forward_desc(x, size, relu)); };
  auto found = std::ranges::find_if(all, is_made);
  if (found == all.end()) found = std::ranges::find_if(all, suits);
  return found == all.end() ? all.front() : *found;
}

// Bits that only oneDNN understands, whatever shape it gives them.
FormatPtr mask_format(const Desc& workspace) { return std::make_shared<const DescFormat>(workspace); }

// What oneDNN leaves to its users: the moving statistics.
class ForwardPrimitive final : public DnnlPrimitive {
 public:
  ForwardPrimitive(const Forward::primitive_desc& pd, const kernels::BatchNormSize& size,
                   const std::vector<Argument>& inputs, const std::vector<Argument>& outputs)
      : DnnlPrimitive(Forward(pd), pd.scratchpad_desc(), inputs, outputs), size_(size) {
    input_formats.resize(5);
    output_formats.resize(std::max<std::size_t>(output_formats.size(), 3));
    if (output_formats.size() > 3) output_formats[3] = mask_format(pd.workspace_desc());
  }

  bool run(std::byte* const* inputs, std::byte* const* outputs, std::byte* scratch,
           int threads) const override {
    if (!DnnlPrimitive::run(inputs, outputs, scratch, threads)) return false;
    for (std::size_t i = 0; i < 2; ++i) {
      auto* const moving = reinterpret_cast<float*>(inputs[3 + i]);
      auto* const batch = reinterpret_cast<float*>(outputs[1 + i]);
      if (!size_.training) {
        std::copy_n(moving, size_.channels, batch);
        continue;
      }
      const auto kept = static_cast<float>(size_.momentum);
      const auto taken = static_cast<float>((1 - size_.momentum) * (i == 0 ? 1.0 : size_.unbiased()));
      for (std::int64_t c = 0; c < size_.channels; ++c) moving[c] = kept * moving[c] + taken * batch[c];
    }
    return true;
  }

 private:
  kernels::BatchNormSize size_;
};

PrimitivePtr make_forward(const Desc& x, const kernels::BatchNormSize& size, bool relu) {
  const Forward::primitive_desc pd = forward_desc(x, size, relu);
  const Desc statistics = pd.mean_desc();
  std::vector<Argument> inputs{
      {DNNL_ARG_SRC, x, 0}, {DNNL_ARG_SCALE, pd.weights_desc(), 1}, {DNNL_ARG_SHIFT, pd.weights_desc(), 2}};
  std::vector<Argument> outputs{{DNNL_ARG_DST, x, 0}};
  std::vector<Argument>& with_statistics = size.training ? outputs : inputs;
  const std::size_t first = size.training ? 1 : 3;
  with_statistics.push_back({DNNL_ARG_MEAN, statistics, first});
  with_statistics.push_back({DNNL_ARG_VARIANCE, statistics, first + 1});
  if (relu) outputs.push_back({DNNL_ARG_WORKSPACE, pd.workspace_desc(), 3});
  return std::make_shared<ForwardPrimitive>(pd, size, inputs, outputs);
}

PrimitivePtr make_backward(const Desc& x, const kernels::BatchNormSize& size, bool relu) {
  const Flags flags = flags_of(size, relu);
  const Forward::primitive_desc hint(engine(), prop_kind::forward_training, x, x,
                                     static_cast<float>(size.eps), flags, attributes());
  const Backward::primitive_desc pd(engine(), prop_kind::backward, x, x, x, static_cast<float>(size.eps),
                                    flags, hint, attributes());
  std::vector<Argument> inputs{{DNNL_ARG_SRC, x, 0},
                               {DNNL_ARG_DIFF_DST, x, 1},
                               {DNNL_ARG_SCALE, pd.weights_desc(), 2},
                               {DNNL_ARG_MEAN, pd.mean_desc(), 3},
                               {DNNL_ARG_VARIANCE, pd.variance_desc(), 4}};
  if (relu) inputs.push_back({DNNL_ARG_WORKSPACE, hint.workspace_desc(), 5});
  const auto made = std::make_shared<DnnlPrimitive>(
      Backward(pd), pd.scratchpad_desc(), inputs,
      std::vector<Argument>{{DNNL_ARG_DIFF_SRC, x, 0},
                            {DNNL_ARG_DIFF_SCALE, pd.diff_weights_desc(), 1},
                            {DNNL_ARG_DIFF_SHIFT, pd.diff_weights_desc(), 2}});
  if (relu) made->input_formats[5] = mask_format(hint.workspace_desc());
  return made;
}

}  // namespace

PrimitivePtr make_batch_norm(const PrimitiveSetting& setting, const kernels::BatchNormSize& size,
                             Direction direction, bool relu) {
  if (relu && !setting.free) return nullptr;  // the mask has a format of its own
  return tried(setting.threads, [&]() -> PrimitivePtr {
    const Desc x = x_order(setting, size, relu);
    return direction == Direction::forward ? make_forward(x, size, relu) : make_backward(x, size, relu);
  });
}

}  // namespace muster::onednn
