#include "muster/checkpoint/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace muster::checkpoint {
namespace {

// N of "prefix_N-…", 0 of "prefix-…", nothing of any other name.
std::optional<std::int64_t> number_in(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix) || !name.ends_with(extension)) return std::nullopt;
  name.remove_prefix(prefix.size());
  if (name.starts_with('-')) return 0;
  if (!name.starts_with('_')) return std::nullopt;
  std::int64_t number = 0;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + 1, end, number);
  if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != '-') return std::nullopt;
  return number;
}

}  // namespace

Result<> save(const std::string& path, std::span<const Entry> entries, Files& files) {
  return files.write_pieces(path, encode_pieces(entries).pieces);
}

Result<std::vector<Entry>> load(const std::string& path, const Files& files) {
  MUSTER_TRY(const std::vector<std::byte> bytes, files.read(path));
  return decode(bytes, path);
}

std::string free_prefix(const std::string& prefix, std::span<const std::string> names_in_folder) {
  std::int64_t greatest = -1;
  for (const std::string& name : names_in_folder)
    if (const auto number = number_in(name, prefix)) greatest = std::max(greatest, *number);
  return greatest < 0 ? prefix : fmt::format("{}_{}", prefix, greatest + 1);
}

Result<> Retention::add(const std::string& path, Storage& storage) {
  std::erase(paths_, path);
  paths_.push_back(path);
  while (keep_max_ != 0 && paths_.size() > keep_max_) {
    const auto removed = storage.remove(paths_.front());
    if (!removed && removed.error().code != Code::not_found) return removed;
    paths_.pop_front();
  }
  return {};
}

}  // namespace muster::checkpoint
