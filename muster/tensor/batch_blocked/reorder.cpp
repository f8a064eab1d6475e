// Between this format and the plain one.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "muster/tensor/batch_blocked/primitives.h"
#include "muster/tensor/buffer.h"

namespace muster::batch_blocked {
namespace {

class Reorder final : public Primitive {
 public:
  Reorder(const Simd& simd, const FormatPtr& from, const FormatPtr& to)
      : simd_(simd), from_(as_batch_blocked(from)), to_(as_batch_blocked(to)) {
    input_formats = {from};
    output_formats = {to};
  }
  bool run(std::byte* const* inputs, std::byte* const* outputs, std::byte*, int threads) const override {
    if (to_ != nullptr)
      to_->gather(simd_, inputs[0], outputs[0], threads);
    else
      from_->scatter(simd_, inputs[0], outputs[0], threads);
    return true;
  }

 private:
  const Simd& simd_;
  BatchBlockedFormatPtr from_;
  BatchBlockedFormatPtr to_;
};

// One input or output of the inner primitive that is not plain, in scratch memory.
struct Reordered {
  std::size_t index = 0;
  BatchBlockedFormatPtr format;
  std::size_t offset_bytes = 0;
};

class InPlainOrder final : public Primitive {
 public:
  InPlainOrder(const Simd& simd, PrimitivePtr inner) : simd_(simd), inner_(std::move(inner)) {
    scratch_bytes = aligned(inner_->scratch_bytes);
    inputs_ = place(inner_->input_formats);
    outputs_ = place(inner_->output_formats);
    input_formats.resize(inner_->input_formats.size());
    output_formats.resize(inner_->output_formats.size());
  }
  bool run(std::byte* const* inputs, std::byte* const* outputs, std::byte* scratch,
           int threads) const override {
    std::array<std::byte*, most> in{}, out{};
    std::copy_n(inputs, input_formats.size(), in.begin());
    std::copy_n(outputs, output_formats.size(), out.begin());
    for (const Reordered& input : inputs_) {
      in[input.index] = scratch + input.offset_bytes;
      input.format->gather(simd_, inputs[input.index], in[input.index], threads);
    }
    for (const Reordered& output : outputs_) out[output.index] = scratch + output.offset_bytes;
    if (!inner_->run(in.data(), out.data(), scratch, threads)) return false;
    for (const Reordered& output : outputs_)
      output.format->scatter(simd_, out[output.index], outputs[output.index], threads);
    return true;
  }

 private:
  static constexpr std::size_t most = 6;  // inputs or outputs of any primitive here

  static std::size_t aligned(std::size_t bytes) {
    return (bytes + Buffer::alignment_bytes - 1) / Buffer::alignment_bytes * Buffer::alignment_bytes;
  }
  std::vector<Reordered> place(const std::vector<FormatPtr>& formats) {
    MUSTER_CHECK(formats.size() <= most, "a primitive has more inputs or outputs than there is room for");
    std::vector<Reordered> placed;
    for (std::size_t i = 0; i < formats.size(); ++i) {
      if (formats[i] == nullptr) continue;
      placed.push_back({i, as_batch_blocked(formats[i]), scratch_bytes});
      scratch_bytes += aligned(formats[i]->size_bytes());
    }
    return placed;
  }

  const Simd& simd_;
  PrimitivePtr inner_;
  std::vector<Reordered> inputs_;
  std::vector<Reordered> outputs_;
};

}  // namespace

PrimitivePtr make_reorder(const Simd& simd, const FormatPtr& from, const FormatPtr& to) {
  const bool gathers = from == nullptr && as_batch_blocked(to) != nullptr;
  const bool scatters = to == nullptr && as_batch_blocked(from) != nullptr;
  if (!gathers && !scatters) return nullptr;
  return std::make_shared<Reorder>(simd, from, to);
}

PrimitivePtr in_plain_order(const Simd& simd, PrimitivePtr inner) {
  return std::make_shared<InPlainOrder>(simd, std::move(inner));
}

}  // namespace muster::batch_blocked
