#include "muster/data/chain.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace muster::data {
namespace {

constexpr std::size_t byte_values = 256;
constexpr std::int64_t channels_max = 4;  // the tables of as many channels fit the first-level cache

// A table holds one entry for each byte and channel: table[channel * 256 + byte].
struct LookUp {
  std::size_t channels;
  std::size_t pixels;
  Channels before;
  Channels after;
  Stores stores;
};

template <class Entry>
void look_up_image(const LookUp& image, const Entry* table, const std::uint8_t* in, Entry* out) {
  const std::size_t channels = image.channels, pixels = image.pixels;
  if (image.before == Channels::first || channels == 1) {  // then `after` is first, too
    for (std::size_t c = 0; c < channels; ++c)
      look_up(table + c * byte_values, in + c * pixels, pixels, out + c * pixels, image.stores);
    return;
  }
  const bool last = image.after == Channels::last;
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < pixels; ++i)
      out[last ? i * channels + c : c * pixels + i] = table[c * byte_values + in[i * channels + c]];
}

bool holds_bytes(const ValueType& type) {
  const Shape& image = type.shape;
  return type.dtype == DType::uint8 && image.rank() == 3 && image[2] >= 1 && image[2] <= channels_max;
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
  for (const ValueType& type : chain.types_)
    chain.scratch_bytes_ = std::max(chain.scratch_bytes_, value_bytes(type));
  return chain;
}

// Takes the longest end of the chain that a table can hold.
void Chain::build_table() {
  for (std::size_t begin = 0; begin < transforms_.size(); ++begin) {
    if (!holds_bytes(types_[begin])) continue;
    Channels channels = Channels::last;
    const bool all = std::all_of(transforms_.begin() + static_cast<std::ptrdiff_t>(begin), transforms_.end(),
                                 [&](const TransformPtr& t) { return t->follow(channels); });
    if (!all) continue;
    table_begin_ = begin;
    channels_after_ = channels;
    fill_table();
    return find_formulas();
  }
}

// Runs the operations on an image of 256 pixels, one for each byte.
void Chain::fill_table() {
  const auto channels = static_cast<std::size_t>(types_[table_begin_].shape[2]);
  Chain chain;
  chain.transforms_.assign(transforms_.begin() + static_cast<std::ptrdiff_t>(table_begin_),
                           transforms_.end());
  chain.types_ = {{DType::uint8, {static_cast<std::int64_t>(byte_values), 1, types_[table_begin_].shape[2]}}};
  for (const TransformPtr& transform : chain.transforms_)
    chain.types_.push_back(transform->infer(chain.types_.back()).value());
  std::vector<std::byte> pixels(byte_values * channels);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::byte>(i / channels);
  std::vector<std::byte> values(value_bytes(chain.output()));
  for (const ValueType& type : chain.types_)
    chain.scratch_bytes_ = std::max(chain.scratch_bytes_, value_bytes(type));
  Scratch scratch;
  chain.prepare(scratch);
  chain.run_steps(chain.transforms_.size(), {}, pixels.data(), values.data(), scratch);

  const std::size_t entry = size_bytes(output().dtype);
  table_.resize(values.size());
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t byte = 0; byte < byte_values; ++byte) {
      const std::size_t at = channels_after_ == Channels::last ? byte * channels + c : c * byte_values + byte;
      std::copy_n(values.data() + at * entry, entry, table_.data() + (c * byte_values + byte) * entry);
    }
}

// The order of the steps is not asked for: the table tells whether the formula is right.
void Chain::find_formulas() {
  if (!computes_faster() || output().dtype != DType::float32) return;
  const auto* entries = reinterpret_cast<const float*>(table_.data());
  for (std::int64_t c = 0; c < types_[table_begin_].shape[2]; ++c, entries += byte_values) {
    Formula formula;
    const bool all = std::all_of(transforms_.begin() + static_cast<std::ptrdiff_t>(table_begin_),
                                 transforms_.end(), [&](const auto& t) { return t->join(formula, c); });
    if (!all || !gives(formula, {entries, byte_values})) return formulas_.clear();
    formulas_.push_back(formula);
  }
}

void Chain::prepare(Scratch& scratch) const {
  for (auto& buffer : scratch.buffers)
    if (buffer.size() < scratch_bytes_) buffer.resize(scratch_bytes_);
}

void Chain::run(const Run& run, const std::byte* in, std::byte* out, Scratch& scratch) const {
  if (!table_.empty() && table_begin_ == 0)
    return look_up_rows(run.rows.count, run.stores, Channels::last, in, out);
  // One row after the other, so that what lies between the operations stays in the caches.
  prepare(scratch);
  const std::size_t bytes_in = value_bytes(input()), bytes_out = value_bytes(output());
  Run one = run;
  one.rows.count = 1;
  for (std::size_t row = 0; row < run.rows.count; ++row) {
    if (run.rows.keys) one.rows.keys = run.rows.keys + row;
    run_row(one, in + row * bytes_in, out + row * bytes_out, scratch);
  }
}

void Chain::run_row(const Run& run, const std::byte* in, std::byte* out, Scratch& scratch) const {
  if (table_.empty()) return run_steps(transforms_.size(), run, in, out, scratch);
  // The last operation before the table makes planes if it can: then the table is read along them.
  const std::size_t last = table_begin_ - 1;
  std::byte* bytes = scratch.buffers[last % 2].data();
  const bool planes = channels_after_ == Channels::first && transforms_[last]->has_planes(types_[last]);
  if (planes) {
    if (last > 0) {
      std::byte* before = scratch.buffers[(last + 1) % 2].data();
      run_steps(last, run, in, before, scratch);
      in = before;
    }
    Rows rows = run.rows;
    rows.operation += last;
    transforms_[last]->run_planes(types_[last], rows, in, bytes);
  } else {
    run_steps(table_begin_, run, in, bytes, scratch);
  }
  look_up_rows(1, run.stores, planes ? Channels::first : Channels::last, bytes, out);
}

// The first `end` operations on one row. `out` may be the buffer after step `end` - 1.
void Chain::run_steps(std::size_t end, const Run& run, const std::byte* in, std::byte* out,
                      Scratch& scratch) const {
  Rows rows = run.rows;
  for (std::size_t i = 0; i < end; ++i, ++rows.operation) {
    std::byte* to = i + 1 < end ? scratch.buffers[i % 2].data() : out;
    transforms_[i]->run(types_[i], rows, in, to);
    in = to;
  }
}

void Chain::look_up_rows(std::size_t rows, Stores stores, Channels channels_before, const std::byte* in,
                         std::byte* out) const {
  const Shape& shape = types_[table_begin_].shape;
  LookUp image{.channels = static_cast<std::size_t>(shape[2]),
               .pixels = static_cast<std::size_t>(shape[0] * shape[1]),
               .before = channels_before,
               .after = channels_after_,
               .stores = stores};
  if (image.channels == 1) {  // all rows are one
    image.pixels *= rows;
    rows = 1;
  }
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(in);
  const bool has_planes = channels_before == Channels::first || image.channels == 1;
  if (has_planes && !formulas_.empty()) {
    auto* values = reinterpret_cast<float*>(out);
    for (std::size_t plane = 0; plane < rows * image.channels; ++plane)
      compute(formulas_[plane % image.channels], bytes + plane * image.pixels, image.pixels,
              values + plane * image.pixels);
    return;
  }
  const auto look_up_as = [&](auto* entries) {
    using Entry = std::remove_pointer_t<decltype(entries)>;
    const std::size_t values = image.channels * image.pixels;
    for (std::size_t row = 0; row < rows; ++row)
      look_up_image(image, reinterpret_cast<const Entry*>(table_.data()), bytes + row * values,
                    entries + row * values);
  };
  switch (size_bytes(output().dtype)) {
    case 1:
      return look_up_as(reinterpret_cast<std::uint8_t*>(out));
    case 2:
      return look_up_as(reinterpret_cast<std::uint16_t*>(out));
    case 4:
      return look_up_as(reinterpret_cast<std::uint32_t*>(out));
    default:
      return look_up_as(reinterpret_cast<std::uint64_t*>(out));
  }
}

}  // namespace muster::data
