#include "muster/checkpoint/state_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "muster/checkpoint/manifest.h"
#include "muster/checkpoint/safetensors.h"
#include "muster/checkpoint/store.h"

namespace muster::checkpoint {
namespace {

// Names in the metadata of the safetensors file; those of sections follow their prefix.
constexpr const char* manifest_name = "muster training state";
constexpr std::string_view section_prefix = "section ";
constexpr const char* beside_name = "muster checkpoint";  // the extension of the one beside it; .ckpt
constexpr std::string_view rank_mark = ".rank_";
// A state belongs to no job that the scheduler knows.
constexpr const char* job_of_no_point = "0000000000000000";

std::string_view without(std::string_view path, std::string_view end) {
  if (path.ends_with(end)) path.remove_suffix(end.size());
  return path;
}

// Without extension and rank.
std::string_view stem_of(std::string_view path) {
  std::string_view stem = without(path, state_extension);
  stem = without(stem, extension_in(stem));
  const std::size_t mark = stem.rfind(rank_mark);
  const bool is_ranked =
      mark != std::string_view::npos && mark + rank_mark.size() < stem.size() &&
      stem.find_first_not_of("0123456789", mark + rank_mark.size()) == std::string_view::npos;
  return is_ranked ? stem.substr(0, mark) : stem;
}

Manifest manifest_of(const Point& point, const StateOwnership& owner) {
  Manifest manifest{
      .job = job_of_no_point, .world_size = owner.world_size, .rank = owner.rank, .id = point.id};
  manifest.is_shared = point.is_shared;
  manifest.own = point.own;
  for (const Entry& entry : point.tensors)
    manifest.tensors.push_back({.name = entry.name,
                                .dtype = entry.value.dtype(),
                                .shape = entry.value.shape(),
                                .hash = hash_bytes(entry.value.bytes(), entry.value.size_bytes())});
  for (const auto& [name, section] : point.state)
    manifest.sections.push_back({.name = name, .size_bytes = section.size(), .hash = hash_text(section)});
  return manifest;
}

Result<> check(const Tensor& tensor, const TensorRecord& record, const std::string& path,
               const std::string& from) {
  if (tensor.dtype() == record.dtype && tensor.shape() == record.shape &&
      hash_bytes(tensor.bytes(), tensor.size_bytes()) == record.hash)
    return {};
  return fail(Code::corrupt,
              fmt::format("'{}' does not fit '{}': tensor '{}' has other values there: one of the two files "
                          "was changed, damaged, or belongs to another training",
                          from, path, record.name));
}

Result<> read_sections(const Manifest& manifest, const safetensors::Header& header, const std::string& path,
                       Point& point) {
  for (const SectionRecord& record : manifest.sections) {
    const auto found = header.metadata.find(std::string(section_prefix) + record.name);
    if (found == header.metadata.end() || hash_text(found->second) != record.hash)
      return fail(Code::corrupt,
                  fmt::format("'{}' is damaged: section '{}' does not fit its hash", path, record.name));
    point.state.emplace(record.name, found->second);
  }
  return {};
}

using Tensors = std::map<std::string, Tensor>;

Result<Tensors> tensors_in(const InputFile& file, const safetensors::Header& header) {
  Tensors tensors;
  for (const safetensors::Place& place : header.places) {
    MUSTER_TRY(Tensor tensor, safetensors::read_tensor(file, place));
    tensors.emplace(place.name, std::move(tensor));
  }
  return tensors;
}

// What the checkpoint holds is read once it is known that something is there.
Result<> read_tensors(const Manifest& manifest, Tensors here, const std::string& path,
                      const std::string& beside, const Storage& storage, Point& point) {
  Tensors there;
  const auto is_here = [&here](const TensorRecord& record) { return here.contains(record.name); };
  if (!std::all_of(manifest.tensors.begin(), manifest.tensors.end(), is_here)) {
    auto entries = load(beside, storage);
    if (!entries)
      return fail(entries.error().code, fmt::format("'{}' needs the parameters of '{}': {}", path, beside,
                                                    entries.error().message));
    for (Entry& entry : *entries) there.emplace(std::move(entry.name), std::move(entry.value));
  }
  for (const TensorRecord& record : manifest.tensors) {
    Tensors& from = is_here(record) ? here : there;
    const auto found = from.find(record.name);
    if (found == from.end())
      return fail(Code::corrupt,
                  fmt::format("'{}' has no tensor '{}', which '{}' counts on", beside, record.name, path));
    MUSTER_TRY_VOID(check(found->second, record, path, &from == &here ? path : beside));
    point.tensors.push_back({record.name, found->second});
  }
  return {};
}

}  // namespace

std::string state_path(const std::string& path, const StateOwnership& owner) {
  const std::string_view stem = stem_of(path);
  if (owner.world_size == 1) return fmt::format("{}{}", stem, state_extension);
  return fmt::format("{}{}{}{}", stem, rank_mark, owner.rank, state_extension);
}

std::vector<std::string> states_beside(std::string_view name, std::span<const std::string> names) {
  std::vector<std::string> found;
  for (const std::string& other : names)
    if (other.ends_with(state_extension) && stem_of(other) == stem_of(name)) found.push_back(other);
  // A worker alone has no rank, and ranks are numbers.
  std::ranges::sort(found, [](const std::string& a, const std::string& b) {
    return std::pair(a.size(), std::string_view(a)) < std::pair(b.size(), std::string_view(b));
  });
  return found;
}

std::string previous_state_path(const std::string& path, const StateOwnership& owner) {
  return state_path(fmt::format("{}.previous", stem_of(path)), owner);
}

std::string checkpoint_of_state(const std::string& path, std::string_view ending) {
  return fmt::format("{}{}", stem_of(path), ending);
}

Result<> save_state(const std::string& path, const Point& point, const StateOwnership& owner,
                    const TensorsBeside& beside, Files& files) {
  MUSTER_TRY(std::string manifest, encode_manifest(manifest_of(point, owner)));
  std::map<std::string, std::string> metadata{{manifest_name, std::move(manifest)}};
  if (beside.ending != extension) metadata[beside_name] = beside.ending;
  for (const auto& [name, section] : point.state) metadata[std::string(section_prefix) + name] = section;
  std::vector<Entry> here;
  for (const Entry& entry : point.tensors)
    if (std::ranges::find(beside.names, entry.name) == beside.names.end()) here.push_back(entry);
  return safetensors::save(path, here, files, metadata);
}

namespace {

Result<Manifest> manifest_in(const safetensors::Header& header, const std::string& path) {
  const auto text = header.metadata.find(manifest_name);
  if (text == header.metadata.end())
    return fail(Code::corrupt, fmt::format("'{}' holds tensors but no state of a training", path));
  return decode_manifest(text->second, path);
}

}  // namespace

Result<StateHead> state_head(const std::string& path, const Storage& storage) {
  MUSTER_TRY(const std::unique_ptr<InputFile> file, storage.open(path));
  MUSTER_TRY(const safetensors::Header header, safetensors::read_header(*file, path));
  MUSTER_TRY(const Manifest manifest, manifest_in(header, path));
  StateHead head{.id = manifest.id, .owner = {.world_size = manifest.world_size, .rank = manifest.rank}};
  const auto training = header.metadata.find(std::string(section_prefix) + "training");
  if (training != header.metadata.end()) head.training = training->second;
  return head;
}

Result<SavedState> load_state(const std::string& path, const Storage& storage) {
  MUSTER_TRY(const std::unique_ptr<InputFile> file, storage.open(path));
  MUSTER_TRY(const safetensors::Header header, safetensors::read_header(*file, path));
  MUSTER_TRY(const Manifest manifest, manifest_in(header, path));
  SavedState saved{.owner = {.world_size = manifest.world_size, .rank = manifest.rank}};
  saved.point.id = manifest.id;
  saved.point.is_shared = manifest.is_shared;
  saved.point.own = manifest.own;
  MUSTER_TRY_VOID(read_sections(manifest, header, path, saved.point));
  MUSTER_TRY(Tensors here, tensors_in(*file, header));
  const auto ending = header.metadata.find(beside_name);
  const std::string beside =
      ending == header.metadata.end() ? checkpoint_of_state(path) : checkpoint_of_state(path, ending->second);
  MUSTER_TRY_VOID(read_tensors(manifest, std::move(here), path, beside, storage, saved.point));
  return saved;
}

}  // namespace muster::checkpoint
