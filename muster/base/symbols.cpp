#include "muster/base/symbols.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>

namespace muster {
namespace {

constexpr std::size_t symbols_max = 8'000'000;  // of a file that is not damaged
constexpr std::size_t sections_max = 4096;
constexpr std::size_t segments_max = 256;
constexpr std::size_t name_size_bytes_max = 4096;
constexpr std::size_t symbols_read_at_once = 8192;

struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::uint64_t offset = 0;  // of its first byte in the file
  std::string path = {};
};

std::vector<Mapping> mappings() {
  std::vector<Mapping> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Mapping mapping;
    unsigned long begin = 0, end = 0, offset = 0;
    int path_at = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %*s %lx %*s %*s %n", &begin, &end, &offset, &path_at) < 3)
      continue;
    if (path_at == 0 || static_cast<std::size_t>(path_at) >= line.size()) continue;
    found.push_back({begin, end, offset, line.substr(static_cast<std::size_t>(path_at))});
  }
  return found;
}

// A file of machine code, of this processor's kind. Nothing in it is trusted.
class CodeFile {
 public:
  explicit CodeFile(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    is_usable_ = file_ >= 0 && read(0, &header_) && std::memcmp(header_.e_ident, ELFMAG, SELFMAG) == 0 &&
                 header_.e_ident[EI_CLASS] == ELFCLASS64 && header_.e_phentsize == sizeof(Elf64_Phdr) &&
                 header_.e_shentsize == sizeof(Elf64_Shdr);
  }
  CodeFile(const CodeFile&) = delete;
  CodeFile& operator=(const CodeFile&) = delete;
  ~CodeFile() {
    if (file_ >= 0) ::close(file_);
  }

  // Where the file's own numbering has the byte at that place of the file.
  std::optional<std::uint64_t> address_of(std::uint64_t place) const {
    if (!is_usable_) return std::nullopt;
    for (std::size_t i = 0; i < std::min<std::size_t>(header_.e_phnum, segments_max); ++i) {
      Elf64_Phdr segment;
      if (!read(header_.e_phoff + i * sizeof segment, &segment)) break;
      if (segment.p_type == PT_LOAD && place >= segment.p_offset &&
          place - segment.p_offset < segment.p_filesz)
        return place - segment.p_offset + segment.p_vaddr;
    }
    return std::nullopt;
  }

  // Of each address the function that has it, from the whole table where the file has that, and else from
  // what it shows to others.
  std::map<std::uint64_t, std::string> names_of(const std::vector<std::uint64_t>& addresses) const {
    std::map<std::uint64_t, std::string> names;
    for (const Elf64_Word kind : {SHT_SYMTAB, SHT_DYNSYM}) {
      if (names.size() == addresses.size() || !is_usable_) break;
      for (std::size_t i = 0; i < std::min<std::size_t>(header_.e_shnum, sections_max); ++i) {
        Elf64_Shdr table, texts;
        if (!read(section_at(i), &table) || table.sh_type != kind || table.sh_link >= header_.e_shnum)
          continue;
        if (read(section_at(table.sh_link), &texts)) look_in(table, texts, addresses, names);
      }
    }
    return names;
  }

 private:
  std::uint64_t section_at(std::size_t index) const { return header_.e_shoff + index * sizeof(Elf64_Shdr); }

  template <class T>
  bool read(std::uint64_t place, T* value) const {
    return ::pread(file_, value, sizeof *value, static_cast<off_t>(place)) ==
           static_cast<ssize_t>(sizeof *value);
  }

  void look_in(const Elf64_Shdr& table, const Elf64_Shdr& texts, const std::vector<std::uint64_t>& addresses,
               std::map<std::uint64_t, std::string>& names) const {
    const std::size_t count = std::min<std::size_t>(table.sh_size / sizeof(Elf64_Sym), symbols_max);
    std::vector<Elf64_Sym> symbols(symbols_read_at_once);
    for (std::size_t begin = 0; begin < count; begin += symbols.size()) {
      const std::size_t wanted = std::min(symbols.size(), count - begin);
      const ssize_t size = ::pread(file_, symbols.data(), wanted * sizeof(Elf64_Sym),
                                   static_cast<off_t>(table.sh_offset + begin * sizeof(Elf64_Sym)));
      if (size <= 0) return;
      const auto here = static_cast<std::size_t>(size) / sizeof(Elf64_Sym);
      for (std::size_t i = 0; i < here; ++i) note(symbols[i], texts, addresses, names);
    }
  }

  void note(const Elf64_Sym& symbol, const Elf64_Shdr& texts, const std::vector<std::uint64_t>& addresses,
            std::map<std::uint64_t, std::string>& names) const {
    const auto type = ELF64_ST_TYPE(symbol.st_info);
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_size == 0) return;
    auto at = std::ranges::lower_bound(addresses, symbol.st_value);
    for (; at != addresses.end() && *at - symbol.st_value < symbol.st_size; ++at)
      if (!names.contains(*at) && symbol.st_name < texts.sh_size)
        names[*at] = demangled(text_at(texts.sh_offset + symbol.st_name));
  }

  std::string text_at(std::uint64_t place) const {
    std::string text(name_size_bytes_max, '\0');
    const ssize_t size = ::pread(file_, text.data(), text.size(), static_cast<off_t>(place));
    text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return text.substr(0, text.find('\0'));
  }

  static std::string demangled(const std::string& name) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
    return status == 0 && text ? std::string(text.get()) : name;
  }

  const int file_;
  bool is_usable_ = false;
  Elf64_Ehdr header_ = {};
};

}  // namespace

std::vector<CodePlace> find_code(std::span<const std::uintptr_t> addresses) {
  const std::vector<Mapping> all = mappings();
  std::vector<CodePlace> places(addresses.size());
  std::map<std::string, std::vector<std::size_t>> by_file;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const auto mapping = std::ranges::find_if(
        all, [&](const Mapping& each) { return each.begin <= addresses[i] && addresses[i] < each.end; });
    if (mapping == all.end()) continue;
    places[i].file = mapping->path;
    places[i].offset = addresses[i] - mapping->begin + mapping->offset;
    if (mapping->path.starts_with('/')) by_file[mapping->path].push_back(i);
  }
  for (const auto& [path, indices] : by_file) {
    const CodeFile file(path);
    std::vector<std::uint64_t> wanted;
    for (const std::size_t i : indices) {
      const auto address = file.address_of(places[i].offset);
      if (!address) continue;
      places[i].offset = *address;
      wanted.push_back(*address);
    }
    std::ranges::sort(wanted);
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    const auto names = file.names_of(wanted);
    for (const std::size_t i : indices)
      if (const auto found = names.find(places[i].offset); found != names.end())
        places[i].function = found->second;
  }
  return places;
}

}  // namespace muster
