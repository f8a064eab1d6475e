// The gradient of the weight where each channel has a kernel of its own: the library is fast for kernels of 3
// x 3 alone, and takes a hundred times as long for others.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "muster/tensor/onednn/primitive.h"
#include "muster/tensor/parallel.h"

namespace muster::onednn {
namespace {

using Tag = dnnl::memory::format_tag;

constexpr std::int64_t kernel_width_max = 32;

using kernels::Conv2dSize;

// Of an image with its borders.
std::int64_t padded_width(const Conv2dSize& s) { return s.in_width + s.pad_left + s.pad_right; }
std::int64_t padded_height(const Conv2dSize& s) { return s.in_height + s.pad_top + s.pad_bottom; }

#if defined(__x86_64__)
namespace avx512 {
#define MUSTER_TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")))
#define MUSTER_LANES 16
#include "muster/tensor/onednn/depthwise_simd.inc"
}  // namespace avx512

namespace avx2 {
#define MUSTER_TARGET __attribute__((target("avx2,fma")))
#define MUSTER_LANES 8
#include "muster/tensor/onednn/depthwise_simd.inc"
}  // namespace avx2
#endif

// One sample's block of channels to that block's part of the gradient.
using BlockKernel = void (*)(const Conv2dSize&, const void* x, const void* dy, float* padded, float* dweight);

struct Blocks {
  std::int64_t lanes = 0;  // channels of a block; 0: this processor has no kernel
  Tag images = Tag::undef, weight = Tag::undef;
  BlockKernel kernel = nullptr;
};

// The blocks that the library's own convolutions use here.
Blocks blocks_for(DType dtype) {
#if defined(__x86_64__)
  const bool low = dtype == DType::bfloat16;
  if (dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core)
    return {16, Tag::nChw16c, Tag::Goihw16g,
            low ? avx512::depthwise_block<bfloat16> : avx512::depthwise_block<float>};
  if (dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx2)
    return {8, Tag::nChw8c, Tag::Goihw8g,
            low ? avx2::depthwise_block<bfloat16> : avx2::depthwise_block<float>};
#else
  (void)dtype;
#endif
  return {};
}

// Each sample's part is computed alone, and parts are added in the order of the samples: the number of
// threads changes no bit.
class DepthwiseGradWeight final : public Primitive {
 public:
  DepthwiseGradWeight(const PrimitiveSetting& setting, const Conv2dSize& s, const Blocks& blocks)
      : size_(s),
        blocks_(blocks),
        element_bytes_(static_cast<std::int64_t>(muster::size_bytes(setting.dtype))),
        low_result_(setting.result == DType::bfloat16),
        channel_blocks_((s.in_channels + blocks.lanes - 1) / blocks.lanes),
        threads_(std::max(setting.threads, 1)) {
    const auto type = data_type(setting.dtype);
    input_formats = {
        format_of(Desc({s.batch, s.in_channels, s.in_height, s.in_width}, type, blocks.images)),
        format_of(Desc({s.batch, s.in_channels, s.out_height, s.out_width}, type, blocks.images))};
    output_formats = {format_of(
        Desc({s.groups, 1, 1, s.kernel_height, s.kernel_width}, data_type(setting.result), blocks.weight))};
    scratch_bytes =
        static_cast<std::size_t>((threads_ * padded() + size_.batch * channel_blocks_ * weights()) * 4);
  }

  bool run(std::byte* const* inputs, std::byte* const* outputs, std::byte* scratch,
           int threads) const override {
    threads = std::min(threads, threads_);
    float* const images = reinterpret_cast<float*>(scratch);
    float* const parts = images + threads_ * padded();
    const std::int64_t in = size_.in_height * size_.in_width * blocks_.lanes * element_bytes_;
    const std::int64_t out = size_.out_height * size_.out_width * blocks_.lanes * element_bytes_;
    parallel_parts(size_.batch * channel_blocks_, 1, threads,
                   [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
                     float* const image = images + part * padded();
                     std::fill_n(image, padded(), 0.0F);
                     for (std::int64_t at = begin; at < end; ++at)
                       blocks_.kernel(size_, inputs[0] + at * in, inputs[1] + at * out, image,
                                      parts + at * weights());
                   });
    if (low_result_)
      add_parts(parts, reinterpret_cast<bfloat16*>(outputs[0]), threads);
    else
      add_parts(parts, reinterpret_cast<float*>(outputs[0]), threads);
    return true;
  }

 private:
  // Floats of one block: of an image with its borders, of the weight.
  std::int64_t padded() const { return padded_height(size_) * padded_width(size_) * blocks_.lanes; }
  std::int64_t weights() const { return size_.kernel_height * size_.kernel_width * blocks_.lanes; }

  template <class T>
  void add_parts(const float* parts, T* dweight, int threads) const {
    const std::int64_t count = channel_blocks_ * weights();
    parallel_for(count, 1 << 12, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin; at < end; ++at) {
        float sum = 0;
        for (std::int64_t n = 0; n < size_.batch; ++n) sum += parts[n * count + at];
        dweight[at] = static_cast<T>(sum);
      }
    });
  }

  Conv2dSize size_;
  Blocks blocks_;
  std::int64_t element_bytes_;
  bool low_result_;
  std::int64_t channel_blocks_;
  int threads_;
};

}  // namespace

PrimitivePtr make_depthwise_grad_weight(const PrimitiveSetting& setting, const kernels::Conv2dSize& s) {
  const bool depthwise = s.groups > 1 && s.groups == s.in_channels && s.groups == s.out_channels;
  const bool known = setting.dtype == DType::float32 || setting.dtype == DType::bfloat16;
  const Blocks blocks = blocks_for(setting.dtype);
  if (!setting.free || !depthwise || !known || blocks.lanes == 0 || s.kernel_width > kernel_width_max)
    return nullptr;
  return std::make_shared<const DepthwiseGradWeight>(setting, s, blocks);
}

}  // namespace muster::onednn
