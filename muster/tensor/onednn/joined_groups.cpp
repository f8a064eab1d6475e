// Convolutions in groups of few channels: the library's own code takes whole blocks of channels, and for the
// 4 a group of a ResNeXt there are only loops, ten times as slow. Groups side by side are one group with
// zeros between them: that is so many times the work, and faster all the same.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "muster/tensor/onednn/primitive.h"

namespace muster::onednn {
namespace {

using kernels::Conv2dSize;

constexpr std::int64_t block = 8;       // channels, at least
constexpr std::int64_t joined_max = 8;  // the library's code is about ten times as fast as its loops
constexpr std::size_t alignment = 64;

std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

// How many groups make one of whole blocks; 0: none that is worth it.
std::int64_t joined_groups(const Conv2dSize& s) {
  const std::int64_t in = s.in_channels / s.groups, out = s.out_channels / s.groups;
  for (std::int64_t count = 2; count <= std::min(joined_max, s.groups); ++count)
    if (s.groups % count == 0 && count * in % block == 0 && count * out % block == 0) return count;
  return 0;
}

// Weights are row-major outside: a kernel for each output channel and each input channel of its group.
class JoinedGroups final : public Primitive {
 public:
  JoinedGroups(const Conv2dSize& s, std::int64_t count, Direction direction, PrimitivePtr convolution,
               PrimitivePtr reorder)
      : size_(s),
        count_(count),
        direction_(direction),
        convolution_(std::move(convolution)),
        reorder_(std::move(reorder)) {
    input_formats = convolution_->input_formats;
    output_formats = convolution_->output_formats;
    FormatPtr& weight = direction == Direction::grad_weight ? output_formats[0] : input_formats[1];
    blocked_bytes_ = weight != nullptr ? aligned(weight->size_bytes()) : 0;
    weight = nullptr;
    scratch_bytes = wide_bytes() + blocked_bytes_ +
                    std::max(convolution_->scratch_bytes, reorder_ != nullptr ? reorder_->scratch_bytes : 0);
  }

  bool run(std::byte* const* inputs, std::byte* const* outputs, std::byte* scratch,
           int threads) const override {
    auto* const wide = reinterpret_cast<float*>(scratch);
    std::byte* const blocked = reorder_ != nullptr ? scratch + wide_bytes() : scratch;
    std::byte* const rest = scratch + wide_bytes() + blocked_bytes_;
    if (direction_ == Direction::grad_weight) {
      if (!convolution_->run(inputs, &blocked, rest, threads)) return false;
      if (reorder_ != nullptr && !reorder_->run(&blocked, &scratch, rest, threads)) return false;
      take_diagonal(wide, reinterpret_cast<float*>(outputs[0]));
      return true;
    }
    put_on_diagonal(reinterpret_cast<const float*>(inputs[1]), wide);
    if (reorder_ != nullptr && !reorder_->run(&scratch, &blocked, rest, threads)) return false;
    std::byte* const joined[] = {inputs[0], blocked, input_formats.size() > 2 ? inputs[2] : nullptr};
    return convolution_->run(joined, outputs, rest, threads);
  }

 private:
  std::int64_t in() const { return size_.in_channels / size_.groups; }
  std::int64_t out() const { return size_.out_channels / size_.groups; }
  // Numbers for one output channel: apart, joined.
  std::int64_t row() const { return in() * size_.kernel_height * size_.kernel_width; }
  std::int64_t wide_row() const { return count_ * row(); }
  std::size_t wide_bytes() const {
    return aligned(static_cast<std::size_t>(size_.out_channels * wide_row()) * sizeof(float));
  }
  // Where the numbers of an output channel lie among those of its joined group.
  std::int64_t place(std::int64_t channel) const {
    return channel * wide_row() + channel / out() % count_ * row();
  }

  void put_on_diagonal(const float* weight, float* wide) const {
    std::fill_n(wide, size_.out_channels * wide_row(), 0.0F);
    for (std::int64_t c = 0; c < size_.out_channels; ++c)
      std::copy_n(weight + c * row(), row(), wide + place(c));
  }
  void take_diagonal(const float* wide, float* weight) const {
    for (std::int64_t c = 0; c < size_.out_channels; ++c)
      std::copy_n(wide + place(c), row(), weight + c * row());
  }

  Conv2dSize size_;
  std::int64_t count_;
  Direction direction_;
  PrimitivePtr convolution_;
  PrimitivePtr reorder_;  // of the joined weight, to or from its blocks; null: there are none
  std::size_t blocked_bytes_ = 0;
};

}  // namespace

PrimitivePtr make_joined_groups(const PrimitiveSetting& setting, const Conv2dSize& s, Direction direction,
                                bool bias, bool relu) {
  const bool is_known = setting.dtype == DType::float32 && setting.result == DType::float32;
  const std::int64_t count = setting.free && is_known && s.groups > 1 ? joined_groups(s) : 0;
  if (count == 0) return nullptr;
  Conv2dSize joined = s;
  joined.groups = s.groups / count;
  const PrimitivePtr convolution = make_fast_conv2d(setting, joined, direction, bias, relu);
  if (convolution == nullptr) return nullptr;
  const bool is_gradient = direction == Direction::grad_weight;
  const FormatPtr blocks = is_gradient ? convolution->output_formats[0] : convolution->input_formats[1];
  PrimitivePtr reorder;
  if (blocks != nullptr) {
    reorder = is_gradient ? make_reorder(blocks, nullptr, setting.threads)
                          : make_reorder(nullptr, blocks, setting.threads);
    if (reorder == nullptr) return nullptr;
  }
  return std::make_shared<const JoinedGroups>(s, count, direction, convolution, reorder);
}

}  // namespace muster::onednn
