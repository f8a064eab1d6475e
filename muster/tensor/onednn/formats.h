// Private to the plugin: Formats that are oneDNN's memory descriptors.
#pragma once

#include <dnnl.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "muster/base/base.h"
#include "muster/tensor/format.h"

namespace muster::onednn {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

dnnl::memory::data_type data_type(DType dtype);
Desc plain(const Dims& dims, dnnl::memory::data_type type);

class DescFormat final : public Format {
 public:
  explicit DescFormat(Desc desc) : desc_(std::move(desc)) {}
  std::size_t size_bytes() const override { return desc_.get_size(); }
  std::string name() const override;
  bool equals(const Format& other) const override {
    const auto* const desc = dynamic_cast<const DescFormat*>(&other);
    return desc != nullptr && desc->desc_ == desc_;
  }
  FormatPtr with_dtype(DType dtype) const override;
  const Desc& desc() const { return desc_; }

 private:
  Desc desc_;
};

// Null when `desc` is row-major order without padding.
FormatPtr format_of(const Desc& desc);
// The order of axes and blocks that the library calls `name`; null where it has none for such a tensor.
FormatPtr format_named(const Shape& shape, DType dtype, std::string_view name);
// `otherwise` when `format` is null.
Desc desc_of(const FormatPtr& format, const Desc& otherwise);
// The same order of axes and blocks for other dims and another type; row-major if the order of the
// axes of images (or volumes) is none of those that kernels share.
Desc in_order_of(const Desc& order, const Dims& dims, dnnl::memory::data_type type);

// Channels (axis 1) in blocks of `block` that lie together, of images or volumes; nothing of others.
std::optional<Desc> in_channel_blocks(const Dims& dims, dnnl::memory::data_type type, std::int64_t block);
// Whether what the library has for all formats computes it, many times slower than its own kernels.
template <class PrimitiveDesc>
bool is_reference(const PrimitiveDesc& pd) {
  return std::string_view(pd.impl_info_str()).starts_with("ref");
}
// Whether it is code that the library makes for the processor.
template <class PrimitiveDesc>
bool is_jit(const PrimitiveDesc& pd) {
  return std::string_view(pd.impl_info_str()).find("jit") != std::string_view::npos;
}

}  // namespace muster::onednn
