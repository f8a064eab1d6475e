// Comparison of two runs of a job: whether they computed the same, and the first step at which they did not.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "muster/checkpoint/storage.h"

namespace muster::checkpoint {

struct Comparison {
  // In sentences: the first step whose hashes differ, the first tensor that differs, what else keeps the runs
  // from being equal. Empty: they are equal in all that both have.
  std::vector<std::string> differences = {};
  std::vector<std::string> notes = {};  // what differs without harm
  std::size_t steps = 0;                // hashes of steps that both have, over all workers
  std::size_t points = 0;               // points, or files of tensors, that both have
};

// A run is a folder of recovery points, or a folder of .ckpt or .safetensors files, or one such file. Of
// recovery points the hashes in the manifests are compared, and the steps' hashes; tensors and the section
// "training" count, other sections are noted. Fails where there is nothing to compare or something cannot be
// read.
Result<Comparison> compare_runs(const std::string& first, const std::string& second,
                                const Storage& storage = real_storage());

}  // namespace muster::checkpoint
