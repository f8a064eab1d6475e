#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "muster/data/synthetic.h"

namespace muster::data {
namespace {

using Bytes = std::vector<std::byte>;

// The first byte that begins no character of UTF-8, or the size.
std::size_t first_wrong_byte(const Bytes& text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = std::to_integer<unsigned>(text[at]);
    const std::size_t more = lead < 0x80         ? 0
                             : lead >> 5 == 0x6  ? 1
                             : lead >> 4 == 0xE  ? 2
                             : lead >> 3 == 0x1E ? 3
                                                 : 4;
    if (lead == 0 || more == 4 || at + more >= text.size()) return at;
    for (std::size_t k = 1; k <= more; ++k)
      if (std::to_integer<unsigned>(text[at + k]) >> 6 != 0x2) return at;
    at += 1 + more;
  }
  return text.size();
}

Result<Bytes> texts_of(const std::string& folder, const Files& files) {
  const auto names = files.list(folder);
  if (!names)
    return fail(names.error().code,
                fmt::format("{}; name a folder of texts that is there (--from)", names.error().message));
  std::set<std::uint64_t> known;
  Bytes all;
  for (const std::string& name : *names) {
    const std::string path = folder + '/' + name;
    if (files.list(path)) continue;  // a folder
    MUSTER_TRY(Bytes text, files.read(path));
    if (const std::size_t wrong = first_wrong_byte(text); wrong < text.size())
      return fail(Code::corrupt,
                  fmt::format("'{}' is no text: byte {} begins no character of UTF-8", path, wrong));
    if (!known.insert(hash_bytes(text.data(), text.size())).second) continue;
    all.insert(all.end(), text.begin(), text.end());
  }
  if (all.empty())
    return fail(Code::not_found, fmt::format("folder '{}' holds no text; name another one (--from)", folder));
  return all;
}

}  // namespace

Result<std::uint64_t> write_tiny_text(const TinyTextOptions& options, Files& files) {
  MUSTER_TRY(const Bytes text, texts_of(options.folder, files));
  const auto there = files.read(options.file);
  if (there && *there == text) return text.size();
  if (there)
    return fail(Code::refused,
                fmt::format("'{}' is there and holds something else: choose another name, or move it away",
                            options.file));
  if (there.error().code != Code::not_found) return fail(there.error());
  MUSTER_TRY_VOID(files.write(options.file, text));
  return text.size();
}

}  // namespace muster::data
