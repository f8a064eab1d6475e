#include "muster/train/program.h"

#include <fmt/format.h>

#include <fstream>
#include <vector>

#include "muster/train/process.h"

namespace muster::train {
namespace {

std::string as_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

// In pieces: it may be large. Zero where it cannot be read.
std::uint64_t hash_of_executable() {
  constexpr std::size_t piece_size_bytes = 1 << 20;
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::vector<char> piece(piece_size_bytes);
  std::uint64_t hash = 0;
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    hash = hash_bytes(piece.data(), static_cast<std::size_t>(file.gcount()), hash);
  }
  return hash;
}

}  // namespace

void note_script(std::string_view text, cluster::Trait language) {
  process().choices.program = {std::move(language)};
  if (!text.empty()) process().choices.program.push_back({"script", as_text(hash_text(text))});
}

cluster::Traits program_traits() {
  if (!process().choices.program.empty()) return process().choices.program;
  return {{"program", as_text(hash_of_executable())}};
}

}  // namespace muster::train
