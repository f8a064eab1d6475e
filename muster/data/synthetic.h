// Pictures, clicks and a text for demos, tests and measurements without a download.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/base/base.h"

namespace muster::data {

struct SyntheticOptions {
  std::string folder;            // exists
  std::int64_t records = 10000;  // in each of the six files, 1 to 10^6
  std::uint64_t seed = 0;        // the same seed, the same bytes
};

// Writes data_batch_1.bin to data_batch_5.bin, test_batch.bin and batches.meta.txt in the binary format of
// CIFAR-10 (docs/formats/cifar.md), and SYNTHETIC.txt, which says that they are synthetic. The ten classes
// are stripes, each class of its own direction, width and colour, under noise: a small net learns them in a
// few hundred steps. A file that is there and was not written by this function is refused, never replaced.
// Returns the names of the files written.
Result<std::vector<std::string>> write_synthetic_cifar10(const SyntheticOptions& options, Files& files);

struct SyntheticClickOptions {
  std::string folder;              // exists
  std::int64_t samples = 10000;    // to learn from, 1 to 10^8; a quarter as many to test with
  std::int64_t fields = 26;        // of one id each, 1 to 1000
  std::int64_t vocabulary = 1000;  // ids of a field, 1 to 10^8
  std::int64_t numbers = 13;       // beside the ids, 1 to 1000
  std::uint64_t seed = 0;          // the same seed, the same bytes
};

struct SyntheticClicks {
  std::vector<std::string> names;  // of the files written
  double auc_limit = 0;            // of the test samples, by the probabilities that they were drawn from
};

// Writes what a click model learns from, and what none can do better than, as arrays of NumPy: train_ids.npy,
// int32 (samples, fields), where field f has the ids from f * vocabulary on, those in front oftener;
// train_numbers.npy, float32 (samples, numbers); train_labels.npy, float32 (samples,), 1 for a click;
// test_*.npy likewise; and auc_limit.txt. A click's log odds are a sum of an effect of each id, of the
// numbers, and of products of two fields' ids, which a linear model cannot learn. A file that is there and
// holds anything else is refused, never replaced.
Result<SyntheticClicks> write_synthetic_clicks(const SyntheticClickOptions& options, Files& files);

// A small English text from what a system has.
struct TinyTextOptions {
  std::string file;                                   // to write
  std::string folder = "/usr/share/common-licenses";  // every file in it is text; Debian and its kin have it
};

// Writes all files of `folder`, each once however often it is there, in the order of their names, and gives
// the bytes written. A file that is there already and holds anything else is refused, never replaced. What is
// no text (UTF-8) is an error that names the file and the byte.
Result<std::uint64_t> write_tiny_text(const TinyTextOptions& options, Files& files);

}  // namespace muster::data
