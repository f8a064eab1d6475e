#include "muster/net/frame.h"

#include <fmt/format.h>

#include "muster/base/base.h"

namespace muster::net {

void ByteWriter::text(std::string_view value) {
  MUSTER_CHECK(value.size() <= UINT32_MAX, "a text is too long for its length field");
  number(static_cast<std::uint32_t>(value.size()));
  const auto* data = reinterpret_cast<const std::byte*>(value.data());
  bytes_.insert(bytes_.end(), data, data + value.size());
}

std::string ByteReader::text(std::size_t limit) {
  const std::size_t size = number<std::uint32_t>();
  if (size > limit) ok_ = false;
  if (!has(size)) return {};
  std::string value(reinterpret_cast<const char*>(rest_.data()), size);
  rest_ = rest_.subspan(size);
  return value;
}

std::uint32_t ByteReader::count(std::size_t limit, std::size_t item_size_bytes) {
  const auto items = number<std::uint32_t>();
  if (items > limit) ok_ = false;
  return has(items * item_size_bytes) ? items : 0;
}

Result<> ByteReader::finish(std::string_view what) const {
  if (!ok_) return fail(Code::corrupt, fmt::format("{}: a field is cut off or over its limit", what));
  if (!rest_.empty())
    return fail(Code::corrupt, fmt::format("{}: {} bytes too many at the end", what, rest_.size()));
  return {};
}

}  // namespace muster::net
