// Names of functions in this process, by address. Reads the symbol tables of the files that are mapped, and
// takes no lock of the dynamic linker: the thread that is looked at may hold that.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace muster {

struct CodePlace {
  std::string file = {};      // as it is mapped; empty: in none
  std::uint64_t offset = 0;   // of the address in the file's own numbering, as addr2line takes it
  std::string function = {};  // demangled; empty: the file has no symbol there
};

// One for each address.
std::vector<CodePlace> find_code(std::span<const std::uintptr_t> addresses);

}  // namespace muster
