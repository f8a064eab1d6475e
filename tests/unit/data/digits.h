// Made-up digits for the tests of `data`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/data/data.h"

namespace muster::data::testing {

// Image r holds the byte (r * 31 + pixel) mod 256 in each pixel; its label is r mod 10.
inline std::uint8_t pixel_of(std::uint32_t row, std::size_t pixel) {
  return static_cast<std::uint8_t>(row * 31 + pixel);
}

inline void append_word(std::vector<std::byte>& file, std::uint32_t word) {
  for (int shift = 24; shift >= 0; shift -= 8) file.push_back(static_cast<std::byte>(word >> shift & 0xff));
}

inline std::vector<std::byte> image_file(std::uint32_t rows, std::uint32_t first_row = 0) {
  std::vector<std::byte> file;
  for (const std::uint32_t word : {0x803U, rows, 28U, 28U}) append_word(file, word);
  for (std::uint32_t row = 0; row < rows; ++row)
    for (std::size_t pixel = 0; pixel < 784; ++pixel)
      file.push_back(std::byte{pixel_of(first_row + row, pixel)});
  return file;
}

inline std::vector<std::byte> label_file(std::uint32_t rows, std::uint32_t first_row = 0) {
  std::vector<std::byte> file;
  for (const std::uint32_t word : {0x801U, rows}) append_word(file, word);
  for (std::uint32_t row = 0; row < rows; ++row)
    file.push_back(static_cast<std::byte>((first_row + row) % 10));
  return file;
}

// A folder "/digits" with `rows` training digits.
inline MemoryFiles digits_folder(std::uint32_t rows) {
  MemoryFiles files;
  (void)files.write("/digits/train-images-idx3-ubyte", image_file(rows));
  (void)files.write("/digits/train-labels-idx1-ubyte", label_file(rows));
  return files;
}

// All items of one pass. Fails the calling test by the Result's check when the pipeline does.
inline std::vector<Item> items_of(const Dataset& dataset, std::uint64_t seed = 1, std::uint64_t epoch = 0) {
  auto iterator = dataset.iterate({.seed = seed, .epoch = epoch}).value();
  std::vector<Item> items;
  while (auto item = iterator.next().value()) items.push_back(*std::move(item));
  return items;
}

// The row that an image of `digits_folder` (of at most 256 rows) came from: 31 * 223 = 1 mod 256.
inline std::uint32_t row_of(const Tensor& image) { return image.data<std::uint8_t>()[0] * 223U % 256U; }

inline std::vector<std::uint32_t> rows_of(const std::vector<Item>& items) {
  std::vector<std::uint32_t> rows;
  for (const Item& item : items) rows.push_back(row_of(item[0]));
  return rows;
}

}  // namespace muster::data::testing
