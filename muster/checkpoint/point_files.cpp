#include "muster/checkpoint/point_files.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <utility>

#include "muster/checkpoint/safetensors.h"
#include "muster/checkpoint/write_throttle.h"

namespace muster::checkpoint {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::span<const std::byte> bytes_of(const Tensor& tensor) { return {tensor.bytes(), tensor.size_bytes()}; }

Result<std::uint64_t> append_hashed(std::span<const std::byte> content, OutputFile& file) {
  Hasher hasher;
  MUSTER_TRY_VOID(WriteThrottle::in_pieces(content, [&](std::span<const std::byte> piece) {
    hasher.add(piece);
    return file.append(piece);
  }));
  return hasher.hash();
}

// The manifest's records come in the order of the point, the elements in that of the file.
Result<> write_tensors(const Point& point, Manifest& manifest, const std::string& folder, Storage& storage) {
  MUSTER_TRY(const safetensors::Header header, safetensors::plan(point.tensors));
  manifest.header_bytes = header.bytes.size();
  manifest.header_hash = hash_text(header.bytes);
  std::map<std::string_view, std::size_t> indices;
  for (const Entry& entry : point.tensors) {
    indices[entry.name] = manifest.tensors.size();
    manifest.tensors.push_back(
        {.name = entry.name, .dtype = entry.value.dtype(), .shape = entry.value.shape()});
  }
  MUSTER_TRY(const auto file, storage.create(fmt::format("{}/{}", folder, tensors_file)));
  MUSTER_TRY_VOID(file->append(bytes_of(header.bytes)));
  for (const safetensors::Place& place : header.places) {
    const std::size_t index = indices.at(place.name);
    MUSTER_TRY(manifest.tensors[index].hash, append_hashed(bytes_of(point.tensors[index].value), *file));
  }
  return file->sync();
}

Result<> write_sections(const Point& point, Manifest& manifest, const std::string& folder, Storage& storage) {
  MUSTER_TRY(const auto file, storage.create(fmt::format("{}/{}", folder, sections_file)));
  for (const auto& [name, section] : point.state) {
    manifest.sections.push_back({.name = name, .size_bytes = section.size(), .hash = hash_text(section)});
    if (!section.empty()) MUSTER_TRY_VOID(file->append(bytes_of(section)));
  }
  return file->sync();
}

Result<> write_manifest(const Manifest& manifest, const std::string& folder, Storage& storage) {
  MUSTER_TRY(const std::string text, encode_manifest(manifest));
  MUSTER_TRY(const auto file, storage.create(fmt::format("{}/{}", folder, manifest_file)));
  MUSTER_TRY_VOID(file->append(bytes_of(text)));
  return file->sync();
}

Result<> write_files(const Point& point, Manifest& manifest, const std::string& folder, Storage& storage) {
  MUSTER_TRY_VOID(write_tensors(point, manifest, folder, storage));
  MUSTER_TRY_VOID(write_sections(point, manifest, folder, storage));
  MUSTER_TRY_VOID(write_manifest(manifest, folder, storage));
  return storage.sync_folder(folder);
}

// One of this name is there: both change places in one step, or, where the file system cannot do that, in
// two, which remove_leftovers() completes or takes back after a kill in between. Returns where the old one
// is.
Result<std::string> replace(const std::string& temporary, const std::string& root, const std::string& name,
                            Storage& storage) {
  const std::string path = fmt::format("{}/{}", root, name);
  const auto exchanged = storage.exchange(temporary, path);
  if (exchanged) return temporary;
  if (exchanged.error().code != Code::not_provided) return fail(exchanged.error());
  std::string old = fmt::format("{}/{}{}", root, old_prefix, name);
  MUSTER_TRY_VOID(storage.remove_folder(old));
  MUSTER_TRY_VOID(storage.rename(path, old));
  if (auto renamed = storage.rename(temporary, path); !renamed) {
    (void)storage.rename(old, path);
    return fail(std::move(renamed).error());
  }
  return old;
}

Result<> rename_to_place(const std::string& temporary, const std::string& name, const std::string& root,
                         Storage& storage) {
  const std::string path = fmt::format("{}/{}", root, name);
  std::string old;
  if (storage.list(path)) {
    MUSTER_TRY(old, replace(temporary, root, name, storage));
  } else {
    MUSTER_TRY_VOID(storage.rename(temporary, path));
  }
  MUSTER_TRY_VOID(storage.sync_folder(root));
  if (!old.empty()) (void)storage.remove_folder(old);  // what stays goes when the store is opened again
  return {};
}

Result<Tensor> read_checked(const InputFile& file, const safetensors::Place& place,
                            const TensorRecord& record, const std::string& path) {
  if (place.dtype != record.dtype || place.shape != record.shape)
    return fail(Code::corrupt,
                fmt::format("'{}': tensor '{}' is another one than its manifest says", path, record.name));
  MUSTER_TRY(Tensor tensor, safetensors::read_tensor(file, place));
  if (hash_bytes(tensor.bytes(), tensor.size_bytes()) != record.hash)
    return fail(Code::corrupt, fmt::format("'{}' is damaged: the bytes of tensor '{}' do not fit their hash",
                                           path, record.name));
  return tensor;
}

Result<std::vector<Entry>> read_tensors(const std::string& folder, const Manifest& manifest,
                                        const Storage& storage) {
  const std::string path = fmt::format("{}/{}", folder, tensors_file);
  MUSTER_TRY(const auto file, storage.open(path));
  MUSTER_TRY(const safetensors::Header header, safetensors::read_header(*file, path));
  if (hash_text(header.bytes) != manifest.header_hash)
    return fail(Code::corrupt, fmt::format("'{}' is damaged: its header does not fit its hash", path));
  std::map<std::string_view, const safetensors::Place*> places;
  for (const safetensors::Place& place : header.places) places[place.name] = &place;
  std::vector<Entry> entries;
  for (const TensorRecord& record : manifest.tensors) {
    const auto found = places.find(record.name);
    if (found == places.end() || places.size() != manifest.tensors.size())
      return fail(Code::corrupt, fmt::format("'{}' has other tensors than its manifest says", path));
    MUSTER_TRY(Tensor tensor, read_checked(*file, *found->second, record, path));
    entries.push_back({record.name, std::move(tensor)});
  }
  return entries;
}

Result<std::map<std::string, std::string>> read_sections(const std::string& folder, const Manifest& manifest,
                                                         const Storage& storage) {
  const std::string path = fmt::format("{}/{}", folder, sections_file);
  MUSTER_TRY(const auto file, storage.open(path));
  std::map<std::string, std::string> sections;
  std::uint64_t at = 0;
  for (const SectionRecord& record : manifest.sections) {
    if (record.size_bytes > file->size_bytes() - at)
      return fail(Code::corrupt,
                  fmt::format("'{}' is damaged: it ends inside of section '{}'", path, record.name));
    std::string section(record.size_bytes, '\0');
    MUSTER_TRY_VOID(file->read_at(at, std::as_writable_bytes(std::span(section))));
    if (hash_text(section) != record.hash)
      return fail(
          Code::corrupt,
          fmt::format("'{}' is damaged: the bytes of section '{}' do not fit their hash", path, record.name));
    at += record.size_bytes;
    sections.emplace(record.name, std::move(section));
  }
  return sections;
}

}  // namespace

Result<PreparedPoint> prepare_point(const Point& point, Manifest head, const std::string& root,
                                    Storage& storage) {
  MUSTER_TRY(std::string temporary, storage.make_temporary_folder(fmt::format("{}/{}", root, new_prefix)));
  if (auto written = write_files(point, head, temporary, storage); !written) {
    (void)storage.remove_folder(temporary);  // room for the next one
    return fail(std::move(written).error());
  }
  return PreparedPoint{.manifest = std::move(head), .folder = std::move(temporary)};
}

Result<> publish_point(const PreparedPoint& prepared, const std::string& root, Storage& storage) {
  auto published = rename_to_place(prepared.folder, folder_name(prepared.manifest.id), root, storage);
  if (!published) (void)storage.remove_folder(prepared.folder);
  return published;
}

Result<Point> read_point(const std::string& folder, const Manifest& manifest, const Storage& storage) {
  Point point{.id = manifest.id, .is_shared = manifest.is_shared, .own = manifest.own};
  MUSTER_TRY(point.tensors, read_tensors(folder, manifest, storage));
  MUSTER_TRY(point.state, read_sections(folder, manifest, storage));
  return point;
}

Result<> remove_point(const std::string& folder, const std::string& root, Storage& storage) {
  // The first step takes its name away: a folder with a point's name has all of its files.
  const std::string name = folder.substr(folder.rfind('/') + 1);
  const std::string gone = fmt::format("{}/{}{}", root, new_prefix, name);
  MUSTER_TRY_VOID(storage.remove_folder(gone));  // of a removal that was cut short
  MUSTER_TRY_VOID(storage.rename(folder, gone));
  return storage.remove_folder(gone);
}

}  // namespace muster::checkpoint
