#include "muster/checkpoint/serialized_point.h"

#include <utility>

#include "muster/checkpoint/manifest.h"

namespace muster::checkpoint {
namespace {

// Errors of decode_manifest() begin with a file's name.
constexpr const char* name_for_people = "the label of a point from another worker";
// A label belongs to no folder: job, world size and rank say nothing.
constexpr const char* no_job = "0000000000000000";

Manifest manifest_of(const Point& point) {
  Manifest manifest{.job = no_job, .world_size = 1, .rank = 0, .id = point.id};
  manifest.is_shared = point.is_shared;
  manifest.own = point.own;
  for (const Entry& entry : point.tensors)
    manifest.tensors.push_back(
        {.name = entry.name, .dtype = entry.value.dtype(), .shape = entry.value.shape()});
  for (const auto& [name, section] : point.state)
    manifest.sections.push_back({.name = name, .size_bytes = section.size()});
  return manifest;
}

}  // namespace

std::uint64_t signature_of(const Point& point) { return manifest_of(point).signature(); }

Result<std::string> label_of(const Point& point) { return encode_manifest(manifest_of(point)); }

std::vector<std::span<const std::byte>> content_of(const Point& point) {
  std::vector<std::span<const std::byte>> content;
  for (const auto& [name, section] : point.state) content.push_back(std::as_bytes(std::span(section)));
  for (const Entry& entry : point.tensors)
    content.emplace_back(entry.value.bytes(), entry.value.size_bytes());
  return content;
}

Result<SerializedPoint> SerializedPoint::from_label(std::string_view label, const MakeTensors& make) {
  MUSTER_TRY(const Manifest manifest, decode_manifest(label, name_for_people));
  SerializedPoint serialized;
  serialized.point_.id = manifest.id;
  serialized.point_.is_shared = manifest.is_shared;
  serialized.point_.own = manifest.own;
  for (const SectionRecord& record : manifest.sections)
    serialized.point_.state.emplace(record.name, std::string(record.size_bytes, '\0'));
  std::vector<Tensor> tensors = make(manifest.tensors);
  for (std::size_t i = 0; i < manifest.tensors.size(); ++i)
    serialized.point_.tensors.push_back({manifest.tensors[i].name, std::move(tensors[i])});
  return serialized;
}

std::vector<std::span<std::byte>> SerializedPoint::content() {
  std::vector<std::span<std::byte>> content;
  for (auto& [name, section] : point_.state)
    content.push_back(std::as_writable_bytes(std::span(section.data(), section.size())));
  for (const Entry& entry : point_.tensors)
    content.emplace_back(entry.value.bytes(), entry.value.size_bytes());
  return content;
}

}  // namespace muster::checkpoint
