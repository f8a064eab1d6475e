// Fingerprint of a worker's parameters after some step of an optimizer, in a few bytes: workers that train
// together say the same after the same step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cluster {

// Of one report; more parameters share hashes.
inline constexpr std::size_t parameter_hashes_max = 256;

// The name of the hash of the batch that the step was given, where all workers are given the same.
inline constexpr std::string_view batch_name = "the batch";

struct ParameterReport {
  std::uint64_t series = 0;  // which optimizer of the script, and which of its trainings
  std::uint64_t step = 0;    // of it; reports of one series and step are compared
  bool reduces = false;      // whether this process has reduced anything over the workers
  std::vector<std::uint32_t> hashes = {};
  std::vector<std::string> names = {};  // of the parameters behind the hashes; rank 0 alone says them
  friend bool operator==(const ParameterReport&, const ParameterReport&) = default;
};

}  // namespace muster::cluster
