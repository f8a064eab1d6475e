// The main function of a fuzz target without libFuzzer: every file of the named folders, and of each some
// thousand damaged copies, always the same.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "fuzz.h"

namespace {

constexpr int copies = 2000;

std::vector<std::uint8_t> read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A few bytes changed, a piece cut out or doubled, or the end cut off.
std::vector<std::uint8_t> damaged(std::vector<std::uint8_t> bytes, std::mt19937& random) {
  const auto below = [&](std::size_t bound) {
    return static_cast<std::ptrdiff_t>(bound == 0 ? 0 : random() % bound);
  };
  for (std::size_t count = 1 + random() % 4; count > 0 && !bytes.empty(); --count) {
    const auto at = bytes.begin() + below(bytes.size());
    const auto piece = std::min<std::ptrdiff_t>(below(16), bytes.end() - at);
    switch (random() % 5) {
      case 0:
        *at = static_cast<std::uint8_t>(random());
        break;
      case 1:
        *at = static_cast<std::uint8_t>(*at ^ (1u << (random() % 8)));
        break;
      case 2:
        bytes.erase(at, at + piece);
        break;
      case 3: {
        const std::vector<std::uint8_t> again(at, at + piece);
        bytes.insert(at, again.begin(), again.end());
        break;
      }
      default:
        bytes.erase(at, bytes.end());
    }
  }
  return bytes;
}

}  // namespace

int main(int count, char** arguments) {
  std::size_t files = 0;
  for (int i = 1; i < count; ++i)
    for (const auto& entry : std::filesystem::directory_iterator(arguments[i])) {
      const auto bytes = read(entry.path());
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
      std::mt19937 random(static_cast<unsigned>(++files));
      for (int copy = 0; copy < copies; ++copy) {
        const auto other = damaged(bytes, random);
        LLVMFuzzerTestOneInput(other.data(), other.size());
      }
    }
  std::printf("%zu files, %d damaged copies of each\n", files, copies);
  return files == 0 ? 1 : 0;
}
