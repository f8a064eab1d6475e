// Made-up digits that a small net can tell apart, and a small net.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "muster/data/data.h"
#include "muster/nn/nn.h"

namespace muster::train::testing {

inline void append_word(std::vector<std::byte>& file, std::uint32_t word) {
  for (int shift = 24; shift >= 0; shift -= 8) file.push_back(static_cast<std::byte>(word >> shift & 0xff));
}

// Digit r mod 10 is a bright bar at its own place, under noise.
inline MemoryFiles bars(std::uint32_t rows) {
  std::vector<std::byte> images, labels;
  for (const std::uint32_t word : {0x803U, rows, 28U, 28U}) append_word(images, word);
  for (const std::uint32_t word : {0x801U, rows}) append_word(labels, word);
  const RandomStream noise(7, 0);
  for (std::uint32_t row = 0; row < rows; ++row) {
    labels.push_back(static_cast<std::byte>(row % 10));
    for (std::uint32_t pixel = 0; pixel < 784; ++pixel) {
      const std::uint32_t bar = (pixel % 28) / 2;
      const std::uint64_t dark = noise.below(row * 784ULL + pixel, 60);
      images.push_back(static_cast<std::byte>(dark + (bar == row % 10 + 2 ? 190 : 0)));
    }
  }
  MemoryFiles files;
  (void)files.write("/bars/train-images-idx3-ubyte", images);
  (void)files.write("/bars/train-labels-idx1-ubyte", labels);
  return files;
}

inline data::Dataset batches(std::uint32_t rows, std::int64_t batch, bool drop_remainder = false) {
  return data::mnist({.folder = "/bars"}, bars(rows))
      .map({data::rescale(1.0F / 255.0F, 0.0F)}, {"image"})
      .map({data::type_cast(DType::int32)}, {"label"})
      .batch(batch, drop_remainder);
}

// Two Dense layers; the same numbers for the same seed.
inline std::shared_ptr<nn::Cell> small_net() {
  return std::make_shared<nn::SequentialCell>(std::initializer_list<nn::CellPtr>{
      std::make_shared<nn::Flatten>(), std::make_shared<nn::Dense>(784, 16), std::make_shared<nn::ReLU>(),
      std::make_shared<nn::Dense>(16, 10)});
}

}  // namespace muster::train::testing
