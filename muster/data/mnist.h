// Handwritten digits, and pictures of clothes, from IDX files (docs/formats/idx.md).
#pragma once

#include "muster/data/dataset.h"
#include "muster/data/source_options.h"

namespace muster::data {

// usage: "train" reads train-*, "test" reads t10k-*, "all" or nothing every pair of IDX files in the folder,
// in the order of their names.
using MnistOptions = SourceOptions;

// Columns "image" (28, 28, 1) uint8 and "label" () uint32. Reads and checks the files now; a file that is
// missing, truncated or not what its name says is an error that names the file and the byte offset.
Dataset mnist(const MnistOptions& options, const Files& files = real_files());

// Fashion-MNIST: other pictures in files of the same names and format.
inline Dataset fashion_mnist(const MnistOptions& options, const Files& files = real_files()) {
  return mnist(options, files);
}

}  // namespace muster::data
