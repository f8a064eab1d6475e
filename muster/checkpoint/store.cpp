#include "muster/checkpoint/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "muster/checkpoint/bytes.h"
#include "muster/checkpoint/mesh_layout.h"
#include "muster/checkpoint/safetensors.h"

namespace muster::checkpoint {
namespace {

// N of "prefix_N-…", 0 of "prefix-…", nothing of any other name.
std::optional<std::int64_t> number_in(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix) || extension_in(name).empty()) return std::nullopt;
  name.remove_prefix(prefix.size());
  if (name.starts_with('-')) return 0;
  if (!name.starts_with('_')) return std::nullopt;
  std::int64_t number = 0;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + 1, end, number);
  if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != '-') return std::nullopt;
  return number;
}

enum class FileKind { ckpt, safetensors, zip };

// By the first bytes: files get renamed, and older versions wrote .ckpt bytes under any name.
Result<FileKind> kind_of(const std::string& path, const Storage& storage) {
  MUSTER_TRY(const std::unique_ptr<InputFile> file, storage.open(path));
  std::array<std::byte, number_bytes + 1> head{};
  const std::uint64_t size = file->size_bytes();
  MUSTER_TRY_VOID(file->read_at(0, std::span(head).first(std::min<std::size_t>(size, head.size()))));
  const auto begins_with = [&head](std::string_view bytes) {
    return std::memcmp(head.data(), bytes.data(), bytes.size()) == 0;
  };
  if (begins_with("PK\x03\x04")) return FileKind::zip;
  const bool has_header =
      size > head.size() && get(head, 0) <= size - number_bytes && head.back() == std::byte{'{'};
  const bool is_named_so =
      path.ends_with(safetensors::extension) && !begins_with("\n");  // as .ckpt bytes begin
  return has_header || is_named_so ? FileKind::safetensors : FileKind::ckpt;
}

}  // namespace

Result<std::string_view> extension_of(std::string_view format) {
  for (const std::string_view known : {extension, safetensors_extension})
    if (known.substr(1) == format) return known;
  return fail(Code::invalid_argument,
              fmt::format("the format of a checkpoint is 'ckpt' or 'safetensors', not '{}'", format));
}

std::string_view extension_in(std::string_view path) {
  for (const std::string_view known : {extension, safetensors_extension})
    if (path.ends_with(known)) return known;
  return {};
}

Result<> save(const std::string& path, std::span<const Entry> entries, Files& files,
              const std::string& layout) {
  if (path.ends_with(safetensors_extension)) {
    safetensors::Metadata metadata;
    if (!layout.empty()) metadata[std::string(layout_metadata)] = layout;
    return safetensors::save(path, entries, files, metadata);
  }
  Pieces made = encode_pieces(entries);
  if (!layout.empty()) {
    made.heads.push_back(layout_entry(layout));
    made.pieces.emplace_back(made.heads.back());
  }
  return files.write_pieces(path, made.pieces);
}

Result<StoredFile> open_stored(const std::string& path, const Storage& storage) {
  MUSTER_TRY(const FileKind kind, kind_of(path, storage));
  if (kind == FileKind::zip)
    return fail(Code::not_provided,
                fmt::format("'{}' is a zip archive, as torch.save and numpy.savez write them: save it as "
                            ".safetensors there (safetensors.torch.save_file)",
                            path));
  StoredFile made{.path = path};
  MUSTER_TRY(made.file, storage.open(path));
  if (kind == FileKind::ckpt) {
    std::string layout;
    MUSTER_TRY(made.tensors, index(*made.file, path, &layout));
    if (!layout.empty()) made.metadata[std::string(layout_metadata)] = std::move(layout);
    return made;
  }
  MUSTER_TRY(safetensors::Header header, safetensors::read_header(*made.file, path));
  for (safetensors::Place& place : header.places) {
    StoredTensor& tensor = made.tensors.emplace_back(
        StoredTensor{.name = std::move(place.name), .dtype = place.dtype, .shape = std::move(place.shape)});
    if (place.end > place.begin) tensor.ranges.push_back({place.begin, place.end - place.begin});
  }
  made.metadata = std::move(header.metadata);
  return made;
}

Result<std::vector<Entry>> load(const std::string& path, const Storage& storage) {
  MUSTER_TRY(const StoredFile stored, open_stored(path, storage));
  std::vector<Entry> entries;
  for (const StoredTensor& tensor : stored.tensors) {
    MUSTER_TRY(Tensor value, read_tensor(*stored.file, tensor));
    entries.push_back({tensor.name, std::move(value)});
  }
  return entries;
}

std::int64_t free_number(const std::string& prefix, std::span<const std::string> names_in_folder) {
  std::int64_t greatest = -1;
  for (const std::string& name : names_in_folder)
    if (const auto number = number_in(name, prefix)) greatest = std::max(greatest, *number);
  return greatest + 1;
}

std::string numbered_prefix(const std::string& prefix, std::int64_t number) {
  return number == 0 ? prefix : fmt::format("{}_{}", prefix, number);
}

std::optional<CheckpointName> checkpoint_name(std::string_view name, std::string_view prefix) {
  const auto number = number_in(name, prefix);
  if (!number) return std::nullopt;
  name.remove_suffix(extension_in(name).size());
  const std::string_view place = name.substr(name.find('-', prefix.size()) + 1);
  CheckpointName found{.number = *number};
  const char* const end = place.data() + place.size();
  const auto epoch = std::from_chars(place.data(), end, found.epoch);
  if (epoch.ec != std::errc() || epoch.ptr == end || *epoch.ptr != '_') return std::nullopt;
  const auto step = std::from_chars(epoch.ptr + 1, end, found.step);
  if (step.ec != std::errc() || step.ptr != end) return std::nullopt;
  return found;
}

Result<std::vector<std::string>> Retention::add(const std::string& path, Storage& storage) {
  std::erase(paths_, path);
  paths_.push_back(path);
  std::vector<std::string> gone;
  while (keep_max_ != 0 && paths_.size() > keep_max_) {
    const auto removed = storage.remove(paths_.front());
    if (!removed && removed.error().code != Code::not_found) return fail(removed.error());
    gone.push_back(std::move(paths_.front()));
    paths_.pop_front();
  }
  return gone;
}

}  // namespace muster::checkpoint
