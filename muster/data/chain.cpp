#include "muster/data/chain.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "muster/data/look_up.h"

namespace muster::data {
namespace {

constexpr std::size_t byte_values = 256;
constexpr std::int64_t channels_max = 4;  // the tables of as many channels fit the first-level cache

std::size_t value_bytes(const ValueType& type) {
  return static_cast<std::size_t>(type.shape.elements()) * size_bytes(type.dtype);
}

// One entry for each byte and channel: table[channel * 256 + byte].
template <class Entry>
void look_up_image(const Entry* table, const Shape& image, Channels channels_after, std::size_t rows,
                   const std::uint8_t* in, Entry* out) {
  const auto channels = static_cast<std::size_t>(image[2]);
  const auto pixels = static_cast<std::size_t>(image[0] * image[1]);
  if (channels == 1) return look_up(table, in, rows * pixels, out);
  const bool last = channels_after == Channels::last;
  for (std::size_t row = 0; row < rows; ++row, in += pixels * channels, out += pixels * channels)
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t i = 0; i < pixels; ++i)
        out[last ? i * channels + c : c * pixels + i] = table[c * byte_values + in[i * channels + c]];
}

}  // namespace

Result<ValueType> infer(const std::vector<TransformPtr>& transforms, ValueType input) {
  for (const TransformPtr& transform : transforms) {
    MUSTER_TRY(input, transform->infer(input));
  }
  return input;
}

Result<Chain> Chain::compile(std::vector<TransformPtr> transforms, const ValueType& input) {
  Chain chain;
  chain.types_.push_back(input);
  for (const TransformPtr& transform : transforms) {
    MUSTER_TRY(auto output, transform->infer(chain.types_.back()));
    chain.types_.push_back(std::move(output));
  }
  chain.transforms_ = std::move(transforms);
  chain.build_table();
  return chain;
}

void Chain::build_table() {
  const Shape& image = input().shape;
  if (input().dtype != DType::uint8 || image.rank() != 3 || image[2] < 1 || image[2] > channels_max) return;
  for (const TransformPtr& transform : transforms_)
    if (!transform->follow(channels_after_)) return;

  // An image of 256 pixels, one for each byte, through the chain of the same operations.
  const auto channels = static_cast<std::size_t>(image[2]);
  const ValueType all_bytes{DType::uint8, {static_cast<std::int64_t>(byte_values), 1, image[2]}};
  auto steps = std::vector{all_bytes};
  for (const TransformPtr& transform : transforms_) steps.push_back(transform->infer(steps.back()).value());
  Chain chain;
  chain.transforms_ = transforms_;
  chain.types_ = std::move(steps);
  std::vector<std::byte> pixels(byte_values * channels);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::byte>(i / channels);
  std::vector<std::byte> values(value_bytes(chain.output()));
  chain.run_steps(1, pixels.data(), values.data());

  const std::size_t entry = size_bytes(output().dtype);
  table_.resize(values.size());
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t byte = 0; byte < byte_values; ++byte) {
      const std::size_t at = channels_after_ == Channels::last ? byte * channels + c : c * byte_values + byte;
      std::copy_n(values.data() + at * entry, entry, table_.data() + (c * byte_values + byte) * entry);
    }
}

void Chain::run(std::size_t rows, const std::byte* in, std::byte* out) {
  if (table_.empty()) return run_steps(rows, in, out);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(in);
  const auto look_up_as = [&](auto* entries) {
    using Entry = std::remove_pointer_t<decltype(entries)>;
    look_up_image(reinterpret_cast<const Entry*>(table_.data()), input().shape, channels_after_, rows, bytes,
                  entries);
  };
  switch (size_bytes(output().dtype)) {
    case 1:
      return look_up_as(reinterpret_cast<std::uint8_t*>(out));
    case 4:
      return look_up_as(reinterpret_cast<std::uint32_t*>(out));
    default:
      return look_up_as(reinterpret_cast<std::uint64_t*>(out));
  }
}

void Chain::run_steps(std::size_t rows, const std::byte* in, std::byte* out) {
  for (std::size_t i = 0; i < transforms_.size(); ++i) {
    std::byte* to = out;
    if (i + 1 < transforms_.size()) {
      scratch_[i % 2].resize(rows * value_bytes(types_[i + 1]));
      to = scratch_[i % 2].data();
    }
    transforms_[i]->run(types_[i], rows, in, to);
    in = to;
  }
}

}  // namespace muster::data
