#include "muster/tensor/onednn/formats.h"

#include <dnnl_debug.h>

#include <array>
#include <map>
#include <optional>

namespace muster::onednn {
namespace {

using Tag = dnnl::memory::format_tag;
constexpr std::array<Tag, 5> image_orders{Tag::nChw16c, Tag::nchw, Tag::nChw8c, Tag::nhwc, Tag::nChw4c};
constexpr std::array<Tag, 5> volume_orders{Tag::nCdhw16c, Tag::ncdhw, Tag::nCdhw8c, Tag::ndhwc, Tag::nCdhw4c};

bool is_plain(const Desc& desc) {
  if (desc.get_format_kind() != dnnl::memory::format_kind::blocked || desc.get_inner_nblks() != 0)
    return false;
  const Dims dims = desc.get_dims();
  if (desc.get_padded_dims() != dims) return false;
  const Dims strides = desc.get_strides();
  dnnl::memory::dim step = 1;
  for (std::size_t axis = dims.size(); axis-- > 0;) {
    if (dims[axis] != 1 && strides[axis] != step) return false;  // an axis of one element may have any stride
    step *= dims[axis];
  }
  return true;
}

}  // namespace

dnnl::memory::data_type data_type(DType dtype) {
  using Type = dnnl::memory::data_type;
  switch (dtype) {
    case DType::float32:
      return Type::f32;
    case DType::bfloat16:
      return Type::bf16;
    case DType::int32:
      return Type::s32;
    case DType::uint8:
      return Type::u8;
    default:
      return Type::undef;
  }
}

Desc plain(const Dims& dims, dnnl::memory::data_type type) {
  Dims strides(dims.size(), 1);
  for (std::size_t axis = dims.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * dims[axis];
  return Desc(dims, type, strides);
}

std::string DescFormat::name() const {
  if (desc_.get_format_kind() != dnnl::memory::format_kind::blocked) return "opaque";
  // Axes from the outermost to the innermost as letters, capital where they are blocked, then the blocks.
  const Dims strides = desc_.get_strides();
  const Dims blocks = desc_.get_inner_blks();
  const Dims blocked_axes = desc_.get_inner_idxs();
  std::string text;
  std::vector<bool> named(strides.size(), false);
  for (std::size_t i = 0; i < strides.size(); ++i) {
    std::size_t best = strides.size();
    for (std::size_t axis = 0; axis < strides.size(); ++axis)
      if (!named[axis] && (best == strides.size() || strides[axis] > strides[best])) best = axis;
    named[best] = true;
    bool blocked = false;
    for (const auto axis : blocked_axes) blocked = blocked || static_cast<std::size_t>(axis) == best;
    text += static_cast<char>((blocked ? 'A' : 'a') + static_cast<char>(best));
  }
  for (std::size_t i = 0; i < blocks.size(); ++i)
    text += std::to_string(blocks[i]) + static_cast<char>('a' + static_cast<char>(blocked_axes[i]));
  return text;
}

FormatPtr format_of(const Desc& desc) {
  if (is_plain(desc)) return nullptr;
  return std::make_shared<const DescFormat>(desc);
}

Desc desc_of(const FormatPtr& format, const Desc& otherwise) {
  return format == nullptr ? otherwise : static_cast<const DescFormat&>(*format).desc();
}

Desc in_order_of(const Desc& order, const Dims& dims, dnnl::memory::data_type type) {
  if (dims.size() != order.get_dims().size() || dims.size() < 4 || dims.size() > 5) return plain(dims, type);
  for (const Tag tag : dims.size() == 4 ? image_orders : volume_orders)
    if (order == Desc(order.get_dims(), order.get_data_type(), tag)) return Desc(dims, type, tag);
  return plain(dims, type);
}

std::optional<Desc> in_channel_blocks(const Dims& dims, dnnl::memory::data_type type, std::int64_t block) {
  if (dims.size() == 4) return Desc(dims, type, block == 16 ? Tag::nChw16c : Tag::nChw8c);
  if (dims.size() == 5) return Desc(dims, type, block == 16 ? Tag::nCdhw16c : Tag::nCdhw8c);
  return std::nullopt;
}

// The order that the library calls so.
std::optional<Tag> tag_named(const std::string& name) {
  static const std::map<std::string, Tag> tags = [] {
    std::map<std::string, Tag> made;
    for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; ++tag)
      made.emplace(dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(tag)), static_cast<Tag>(tag));
    return made;
  }();
  const auto found = tags.find(name);
  if (found == tags.end()) return std::nullopt;
  return found->second;
}

FormatPtr format_named(const Shape& shape, DType dtype, std::string_view name) {
  const std::optional<Tag> tag = tag_named(std::string(name));
  if (!tag) return nullptr;
  const Desc made(Dims(shape.begin(), shape.end()), data_type(dtype), *tag, true);
  return made ? format_of(made) : nullptr;
}

FormatPtr DescFormat::with_dtype(DType dtype) const {
  if (data_type(dtype) == dnnl::memory::data_type::undef) return nullptr;  // it has no such elements
  const std::optional<Tag> tag = tag_named(name());
  if (!tag || desc_ != Desc(desc_.get_dims(), desc_.get_data_type(), *tag)) return nullptr;
  return format_of(Desc(desc_.get_dims(), data_type(dtype), *tag));
}

}  // namespace muster::onednn
