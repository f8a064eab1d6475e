#include "muster/checkpoint/joined.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace muster::checkpoint {
namespace {

constexpr std::size_t direct_bytes = 4096;  // a run of so many is read by itself
constexpr std::size_t scratch_bytes_max = std::size_t{8} << 20;

// Of the element at `begin` of a tensor's box, within that box.
std::int64_t offset_in(const Box& box, const std::vector<std::int64_t>& begin) {
  std::int64_t offset = 0;
  for (std::size_t dim = 0; dim < begin.size(); ++dim)
    offset = offset * box.size[dim] + begin[dim] - box.begin[dim];
  return offset;
}

// The first dimension from which on a part lies in one run of both boxes, but for its own extent there.
std::size_t run_dimension(const Box& part, const Box& a, const Box& b) {
  std::size_t dim = part.size.size();
  while (dim > 0) {
    --dim;
    if (part.size[dim] != a.size[dim] || part.size[dim] != b.size[dim]) return dim;
  }
  return 0;
}

// Calls visit(offset in a, offset in b, elements) for each run.
template <class Visit>
Result<> for_each_run(const Box& part, const Box& a, const Box& b, const Visit& visit) {
  const std::size_t inner = run_dimension(part, a, b);
  std::int64_t run = 1;
  for (std::size_t dim = inner; dim < part.size.size(); ++dim) run *= part.size[dim];
  std::vector<std::int64_t> at = part.begin;
  for (;;) {
    MUSTER_TRY_VOID(visit(offset_in(a, at), offset_in(b, at), run));
    std::size_t dim = inner;
    for (; dim > 0; --dim) {
      if (++at[dim - 1] < part.begin[dim - 1] + part.size[dim - 1]) break;
      at[dim - 1] = part.begin[dim - 1];
    }
    if (dim == 0) return {};
  }
}

std::vector<std::int64_t> last_of(const Box& box) {
  std::vector<std::int64_t> last = box.begin;
  for (std::size_t dim = 0; dim < last.size(); ++dim) last[dim] += box.size[dim] - 1;
  return last;
}

}  // namespace

// ---- Opening ----------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t files_shown_max = 4;

struct FileManifest {
  std::string path = {};
  std::optional<LayoutManifest> manifest = {};  // nothing: the file does not say its layout
};

Result<std::vector<FileManifest>> manifests_of(std::span<const StoredFile> files) {
  std::vector<FileManifest> made;
  for (const StoredFile& file : files) {
    FileManifest& each = made.emplace_back(FileManifest{.path = file.path});
    const auto said = file.metadata.find(std::string(layout_metadata));
    if (said == file.metadata.end()) continue;
    MUSTER_TRY(each.manifest, decode_layout(said->second, file.path));
  }
  return made;
}

// "step 3 in 'a', 'b'"
std::string saved_in(const std::string& save, const std::vector<std::string>& files) {
  std::string text = fmt::format("{} in ", save.empty() ? "an unknown step" : save);
  for (std::size_t i = 0; i < std::min(files.size(), files_shown_max); ++i)
    text += fmt::format("{}'{}'", i > 0 ? ", " : "", files[i]);
  if (files.size() > files_shown_max) text += fmt::format(" and {} more", files.size() - files_shown_max);
  return text;
}

// Pieces of one tensor are of one save, or they are the whole of nothing.
Result<> check_one_save(std::span<const FileManifest> files) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> files_of_saves;  // by tensor
  for (const FileManifest& file : files)
    if (file.manifest)
      for (const MeshLayout::Rule& rule : file.manifest->layout.rules)
        files_of_saves[rule.pattern][save_text(*file.manifest, rule.pattern)].push_back(file.path);
  for (const auto& [tensor, saves] : files_of_saves) {
    if (saves.size() == 1) continue;
    std::vector<std::string> found;
    for (const auto& [save, paths] : saves) found.push_back(saved_in(save, paths));
    return fail(
        Code::invalid_argument,
        fmt::format("the pieces of '{}' are of several saves: {}. A save that was cut short leaves files "
                    "of the one before in its place: give the files of one save, such as the last whole "
                    "one, and let each save have a folder of its own",
                    tensor, fmt::join(found, "; ")));
  }
  return {};
}

}  // namespace

Result<JoinedFiles> JoinedFiles::open(std::span<const std::string> paths,
                                      const std::optional<MeshLayout>& from, const Storage& storage) {
  if (from && from->world_size() != paths.size())
    return fail(Code::invalid_argument,
                fmt::format("the layout of the source ({}) is for {} ranks, and there are {} files: name the "
                            "layout that the job had",
                            to_string(*from), from->world_size(), paths.size()));
  JoinedFiles made;
  for (const std::string& path : paths) {
    MUSTER_TRY(StoredFile file, open_stored(path, storage));
    made.files_.push_back(std::move(file));
  }
  MUSTER_TRY(const std::vector<FileManifest> manifests, manifests_of(made.files_));
  MUSTER_TRY_VOID(check_one_save(manifests));
  for (std::size_t i = 0; i < manifests.size(); ++i) {
    if (const auto& manifest = manifests[i].manifest) {
      MUSTER_TRY_VOID(made.add(i, manifest->rank, &manifest->layout, &manifest->shapes));
      made.note_save(*manifest);
    } else {
      MUSTER_TRY_VOID(made.add(i, static_cast<std::uint32_t>(i), from ? &*from : nullptr, nullptr));
    }
  }
  MUSTER_TRY_VOID(made.check_complete());
  return made;
}

namespace {

// The whole of which `piece` is what `cuts` leave: of a layout that does not say shapes.
Result<Shape> whole_of(const MeshLayout& layout, const MeshLayout::Cuts& cuts, const StoredTensor& piece) {
  Shape whole = piece.shape;
  if (cuts.size() != whole.rank()) MUSTER_TRY_VOID(layout.check(piece.name, cuts, whole));
  for (std::size_t dim = 0; dim < cuts.size(); ++dim)
    if (__builtin_mul_overflow(whole[dim], layout.parts(cuts, dim), &whole[dim]))
      return fail(Code::corrupt, fmt::format("'{}' has more elements than can be", piece.name));
  return whole;
}

const MeshLayout::Rule* rule_in(const MeshLayout* layout, std::string_view name) {
  return layout == nullptr ? nullptr : layout->rule_of(name);
}

}  // namespace

Result<> JoinedFiles::add(std::size_t file, std::uint32_t rank, const MeshLayout* layout,
                          const std::map<std::string, Shape>* shapes) {
  for (const StoredTensor& stored : files_[file].tensors) {
    const MeshLayout::Rule* rule = rule_in(layout, stored.name);
    if (rule == nullptr) {
      MUSTER_TRY_VOID(add(stored, stored.shape, Box::whole(stored.shape), file));
      continue;
    }
    Shape whole;
    if (shapes != nullptr) {
      whole = shapes->at(rule->pattern);
    } else {
      MUSTER_TRY(whole, whole_of(*layout, rule->cuts, stored));
    }
    Box box = layout->box_of(rule->cuts, whole, rank);
    if (Shape(box.size) != stored.shape)
      return fail(Code::corrupt,
                  fmt::format("'{}': '{}' is {}, and a piece of {} cut {} over {} is {}", files_[file].path,
                              stored.name, muster::to_string(stored.shape), muster::to_string(whole),
                              to_string(rule->cuts), to_string(*layout), muster::to_string(Shape(box.size))));
    MUSTER_TRY_VOID(add(stored, std::move(whole), std::move(box), file));
  }
  return {};
}

Result<> JoinedFiles::add(StoredTensor stored, Shape whole, Box box, std::size_t file) {
  const auto [found, is_new] = index_.try_emplace(stored.name, tensors_.size());
  if (is_new)
    tensors_.push_back(
        {.name = stored.name, .dtype = stored.dtype, .shape = whole, .origin = files_[file].path});
  JoinedTensor& joined = tensors_[found->second];
  if (joined.dtype != stored.dtype || joined.shape != whole)
    return fail(
        Code::invalid_argument,
        fmt::format("'{}' is {} {} in '{}' and {} {} in '{}'. Files of pieces that do not say their "
                    "layout need --from mesh.toml; whole parameters have one shape",
                    stored.name, to_string(joined.dtype), muster::to_string(joined.shape), joined.origin,
                    to_string(stored.dtype), muster::to_string(whole), files_[file].path));
  const auto alike = std::ranges::find(joined.pieces, box, &JoinedTensor::Piece::box);
  if (alike == joined.pieces.end())
    joined.pieces.push_back({file, std::move(box), std::move(stored.ranges)});
  else if (!files_[file].metadata.contains(std::string(layout_metadata)))
    alike->copies.push_back({file, std::move(stored.ranges)});
  return {};
}

void JoinedFiles::note_save(const LayoutManifest& manifest) {
  training_ = manifest.training;
  for (const auto& [name, step] : manifest.steps)
    if (const auto found = index_.find(name); found != index_.end()) tensors_[found->second].step = step;
}

Result<> JoinedFiles::check_complete() const {
  for (const JoinedTensor& tensor : tensors_) {
    std::int64_t elements = 0;
    for (const JoinedTensor::Piece& piece : tensor.pieces) elements += piece.box.elements();
    for (std::size_t i = 0; i < tensor.pieces.size() && tensor.shape.elements() > 0; ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (intersection(tensor.pieces[i].box, tensor.pieces[j].box))
          return fail(Code::invalid_argument,
                      fmt::format("'{}' is cut in one way in '{}' and in another in '{}': give files of one "
                                  "layout",
                                  tensor.name, files_[tensor.pieces[j].file].path,
                                  files_[tensor.pieces[i].file].path));
    if (elements != tensor.shape.elements())
      return fail(
          Code::invalid_argument,
          fmt::format("'{}' is {}, and of its {} elements the files have {}: give the files of all "
                      "ranks",
                      tensor.name, muster::to_string(tensor.shape), tensor.shape.elements(), elements));
  }
  return {};
}

// ---- Reading ----------------------------------------------------------------------------------------------

Result<> JoinedFiles::read(const JoinedTensor& tensor, const Box& part, std::span<std::byte> into) {
  if (part.elements() == 0) return {};
  for (const JoinedTensor::Piece& piece : tensor.pieces)
    if (const auto common = intersection(piece.box, part))
      MUSTER_TRY_VOID(copy(tensor, piece, *common, part, into));
  return {};
}

// What a piece has of `wanted`: run by run where those are long, else with what lies between them.
Result<> JoinedFiles::copy(const JoinedTensor& tensor, const JoinedTensor::Piece& piece, const Box& part,
                           const Box& wanted, std::span<std::byte> into) {
  const auto element = static_cast<std::int64_t>(size_bytes(tensor.dtype));
  const std::int64_t begin = offset_in(piece.box, part.begin);
  const std::int64_t extent = (offset_in(piece.box, last_of(part)) - begin + 1) * element;
  std::int64_t run_bytes = element;
  for (std::size_t dim = run_dimension(part, piece.box, wanted); dim < part.size.size(); ++dim)
    run_bytes *= part.size[dim];
  const auto bytes_of = [&](std::int64_t to, std::int64_t count) {
    return into.subspan(static_cast<std::size_t>(to * element), static_cast<std::size_t>(count * element));
  };
  if (run_bytes >= static_cast<std::int64_t>(direct_bytes) || run_bytes == extent)
    return for_each_run(part, piece.box, wanted,
                        [&](std::int64_t from, std::int64_t to, std::int64_t count) -> Result<> {
                          return read_bytes(piece.file, piece.ranges,
                                            static_cast<std::uint64_t>(from * element), bytes_of(to, count));
                        });
  if (extent > static_cast<std::int64_t>(scratch_bytes_max)) {
    const std::int64_t share = std::max<std::int64_t>(
        1, part.elements() * static_cast<std::int64_t>(scratch_bytes_max) / (2 * extent));
    return for_each_block(part, share,
                          [&](const Box& block) { return copy(tensor, piece, block, wanted, into); });
  }
  scratch_.resize(static_cast<std::size_t>(extent));
  MUSTER_TRY_VOID(
      read_bytes(piece.file, piece.ranges, static_cast<std::uint64_t>(begin * element), scratch_));
  return for_each_run(part, piece.box, wanted,
                      [&](std::int64_t from, std::int64_t to, std::int64_t count) -> Result<> {
                        const auto out = bytes_of(to, count);
                        std::memcpy(out.data(), scratch_.data() + (from - begin) * element, out.size());
                        return {};
                      });
}

Result<> JoinedFiles::read_bytes(std::size_t file, std::span<const ByteRange> ranges, std::uint64_t begin,
                                 std::span<std::byte> into) const {
  for (const ByteRange& range : ranges) {
    if (into.empty()) break;
    if (begin >= range.size) {
      begin -= range.size;
      continue;
    }
    const std::uint64_t size = std::min<std::uint64_t>(into.size(), range.size - begin);
    MUSTER_TRY_VOID(files_[file].file->read_at(range.begin + begin, into.first(size)));
    into = into.subspan(size);
    begin = 0;
  }
  return {};
}

// ---- Copies -----------------------------------------------------------------------------------------------

Result<bool> JoinedFiles::is_copy(const JoinedTensor::Piece& piece, const JoinedTensor::Piece::Copy& copy) {
  std::uint64_t total = 0;
  for (const ByteRange& range : piece.ranges) total += range.size;
  scratch_.resize(std::min<std::uint64_t>(2 * scratch_bytes_max, 2 * total));
  const std::span<std::byte> one = std::span(scratch_).first(scratch_.size() / 2);
  const std::span<std::byte> other = std::span(scratch_).subspan(scratch_.size() / 2);
  for (std::uint64_t at = 0; at < total; at += one.size()) {
    const std::uint64_t size = std::min<std::uint64_t>(one.size(), total - at);
    MUSTER_TRY_VOID(read_bytes(piece.file, piece.ranges, at, one.first(size)));
    MUSTER_TRY_VOID(read_bytes(copy.file, copy.ranges, at, other.first(size)));
    if (std::memcmp(one.data(), other.data(), size) != 0) return false;
  }
  return true;
}

Result<> JoinedFiles::warn_of_unlike_copies() {
  std::string first;
  std::size_t count = 0;
  for (const JoinedTensor& tensor : tensors_)
    for (const JoinedTensor::Piece& piece : tensor.pieces)
      for (const JoinedTensor::Piece::Copy& copy : piece.copies) {
        MUSTER_TRY(const bool is_alike, is_copy(piece, copy));
        if (is_alike) continue;
        if (count++ == 0)
          first = fmt::format("'{}' of '{}' and '{}'", tensor.name, files_[piece.file].path,
                              files_[copy.file].path);
      }
  if (count > 0)
    log::warning(
        fmt::format("{}{} differ, and the first counts: right for what workers have of their own, such as "
                    "moving statistics. If the files have pieces, name their layout: --from mesh.toml",
                    first, count > 1 ? fmt::format(" and {} others", count - 1) : ""));
  return {};
}

}  // namespace muster::checkpoint
