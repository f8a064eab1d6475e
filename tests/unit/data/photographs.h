// Made-up records of CIFAR for the tests of `data`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/data/data.h"

namespace muster::data::testing {

// Channel c of pixel i of record r.
inline std::uint8_t colour_of(std::uint32_t row, std::size_t channel, std::size_t pixel) {
  return static_cast<std::uint8_t>(row * 31 + channel * 101 + pixel);
}

// `labels` bytes in front of each image: r mod 10 in the last, r mod 20 in the one before.
inline std::vector<std::byte> record_file(std::uint32_t rows, std::uint32_t first_row = 0,
                                          std::size_t labels = 1) {
  std::vector<std::byte> file;
  for (std::uint32_t row = first_row; row < first_row + rows; ++row) {
    if (labels == 2) file.push_back(static_cast<std::byte>(row % 20));
    file.push_back(static_cast<std::byte>(row % 10));
    for (std::size_t channel = 0; channel < 3; ++channel)
      for (std::size_t pixel = 0; pixel < 1024; ++pixel)
        file.push_back(std::byte{colour_of(row, channel, pixel)});
  }
  return file;
}

// A folder "/photographs" with `rows` training pictures.
inline MemoryFiles photographs_folder(std::uint32_t rows) {
  MemoryFiles files;
  (void)files.write("/photographs/data_batch_1.bin", record_file(rows));
  return files;
}

inline Dataset photographs(std::uint32_t rows, bool shuffle = false) {
  return cifar10({.folder = "/photographs", .shuffle = shuffle}, photographs_folder(rows));
}

}  // namespace muster::data::testing
