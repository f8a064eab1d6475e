#include "muster/checkpoint/conversion.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "muster/checkpoint/inspect.h"
#include "muster/checkpoint/joined.h"
#include "muster/checkpoint/safetensors.h"

namespace muster::checkpoint {
namespace {

constexpr std::int64_t converted_bytes = std::int64_t{8} << 20;
constexpr std::string_view rank_word = "rank_";

// N of the last "rank_N" in a path.
std::optional<std::uint64_t> rank_in(std::string_view path) {
  const std::size_t at = path.rfind(rank_word);
  if (at == std::string_view::npos) return std::nullopt;
  std::uint64_t rank = 0;
  const char* begin = path.data() + at + rank_word.size();
  const auto parsed = std::from_chars(begin, path.data() + path.size(), rank);
  return parsed.ec == std::errc() && parsed.ptr != begin ? std::optional(rank) : std::nullopt;
}

Result<std::vector<std::string>> in_order_of_ranks(const std::map<std::uint64_t, std::string>& files,
                                                   const std::string& path) {
  std::vector<std::string> made;
  for (const auto& [rank, file] : files) {
    if (rank != made.size())
      return fail(Code::not_found,
                  fmt::format("'{}' has a file of rank {} and none of rank {}", path, rank, made.size()));
    made.push_back(file);
  }
  return made;
}

// Of the newest point that all workers of the job hold.
Result<std::vector<std::string>> files_of_points(const std::vector<FoundWorker>& workers,
                                                 const std::string& path) {
  for (const FoundWorker& worker : workers)
    if (worker.job != workers.front().job)
      return fail(Code::invalid_argument,
                  fmt::format("'{}' has points of several jobs: name the folder of one, such as '{}'", path,
                              std::filesystem::path(workers.back().folder).parent_path().string()));
  const auto newest = newest_common_point(workers);
  if (!newest)
    return fail(Code::not_found, fmt::format("'{}' has no recovery point that all workers hold", path));
  std::map<std::uint64_t, std::string> files;
  for (const FoundWorker& worker : workers)
    for (const FoundPoint& point : worker.points)
      if (point.manifest && point.manifest->id == *newest)
        files[worker.rank] = fmt::format("{}/{}", without_slash(point.folder), tensors_file);
  return in_order_of_ranks(files, path);
}

}  // namespace

Result<std::vector<std::string>> files_of_checkpoint(const std::string& path, const Storage& storage) {
  if (is_tensor_file(path)) return std::vector{path};
  if (const auto workers = find_workers(path, storage); workers && !workers->empty())
    return files_of_points(*workers, path);
  const std::vector<std::string> found = find_tensor_files(path, storage);
  std::map<std::uint64_t, std::string> files;
  for (const std::string& name : found)
    if (const auto rank = rank_in(name)) files[*rank] = fmt::format("{}/{}", without_slash(path), name);
  if (!files.empty()) return in_order_of_ranks(files, path);
  if (found.size() == 1) return std::vector{fmt::format("{}/{}", without_slash(path), found[0])};
  return fail(Code::not_found,
              found.empty()
                  ? fmt::format("'{}' has no .ckpt or .safetensors files, and no recovery points", path)
                  : fmt::format("'{}' has {} files of tensors, and none is named after a rank (rank_0): name "
                                "one of them, such as '{}'",
                                path, found.size(), found.back()));
}

namespace {

// The rule for a tensor; state of an optimizer goes with its parameter.
const MeshLayout::Rule* rule_for(const JoinedTensor& tensor, const MeshLayout& layout,
                                 const std::map<std::string_view, const JoinedTensor*>& by_name) {
  if (const auto* rule = layout.rule_of(tensor.name)) return rule;
  for (std::size_t dot = tensor.name.find('.'); dot != std::string::npos;
       dot = tensor.name.find('.', dot + 1)) {
    const auto owner = by_name.find(std::string_view(tensor.name).substr(dot + 1));
    if (owner == by_name.end() || owner->second->shape != tensor.shape) continue;
    return layout.rule_of(owner->first);
  }
  return nullptr;
}

// How each tensor is cut; empty: it is whole.
using CutsOfTensors = std::vector<MeshLayout::Cuts>;

bool is_cut(const MeshLayout& layout, const MeshLayout::Cuts& cuts) {
  for (std::size_t dim = 0; dim < cuts.size(); ++dim)
    if (layout.parts(cuts, dim) > 1) return true;
  return false;
}

Result<CutsOfTensors> cuts_of(const std::vector<JoinedTensor>& tensors,
                              const std::optional<MeshLayout>& layout) {
  CutsOfTensors made(tensors.size());
  if (!layout) return made;
  MUSTER_TRY_VOID(layout->check("the layout of the destination"));
  std::map<std::string_view, const JoinedTensor*> by_name;
  for (const JoinedTensor& tensor : tensors) by_name[tensor.name] = &tensor;
  std::set<std::string_view> used;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const MeshLayout::Rule* rule = rule_for(tensors[i], *layout, by_name);
    if (rule == nullptr) continue;
    used.insert(rule->pattern);
    MUSTER_TRY_VOID(layout->check(tensors[i].name, rule->cuts, tensors[i].shape));
    if (is_cut(*layout, rule->cuts)) made[i] = rule->cuts;
  }
  for (const MeshLayout::Rule& rule : layout->rules)
    if (!used.contains(rule.pattern))
      return fail(Code::invalid_argument,
                  fmt::format("no tensor is named '{}', which the layout of the destination cuts: `muster "
                              "checkpoint show` lists the names",
                              rule.pattern));
  return made;
}

// One file of the destination.
class FileWriter {
 public:
  FileWriter(JoinedFiles& source, const CutsOfTensors& cuts, const std::optional<MeshLayout>& layout,
             std::uint32_t rank, Storage& storage)
      : source_(source), cuts_(cuts), layout_(layout), rank_(rank), storage_(storage) {}

  Result<> write(const std::string& path) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    if (!folder.empty()) MUSTER_TRY_VOID(storage_.make_folder(folder));
    // Workers that convert at once, as scripts of MindSpore do, do not write into each other's.
    const std::string half = fmt::format("{}.{}.half", path, ::getpid());
    if (const auto removed = storage_.remove(half); !removed && removed.error().code != Code::not_found)
      return removed;
    const Result<> written = write_to(half, path.ends_with(safetensors::extension));
    if (!written) {
      static_cast<void>(storage_.remove(half));  // the error counts
      return written;
    }
    MUSTER_TRY_VOID(storage_.rename(half, path));
    return storage_.sync_folder(folder.empty() ? "." : folder);
  }

 private:
  Result<> write_to(const std::string& path, bool as_safetensors) {
    MUSTER_TRY(file_, storage_.create(path));
    const Result<> written = as_safetensors ? write_safetensors() : write_ckpt();
    Result<> synced = written ? file_->sync() : written;
    file_.reset();
    return synced;
  }

  Box box_of(std::size_t tensor) const {
    const Shape& whole = source_.tensors()[tensor].shape;
    return cuts_[tensor].empty() ? Box::whole(whole) : layout_->box_of(cuts_[tensor], whole, rank_);
  }

  Result<> write_safetensors() {
    std::vector<safetensors::Place> places;
    std::map<std::string_view, std::size_t> by_name;
    for (std::size_t i = 0; i < source_.tensors().size(); ++i) {
      const JoinedTensor& tensor = source_.tensors()[i];
      places.push_back({.name = tensor.name, .dtype = tensor.dtype, .shape = Shape(box_of(i).size)});
      by_name[tensor.name] = i;
    }
    safetensors::Metadata metadata;
    MUSTER_TRY(std::string layout, manifest());
    if (!layout.empty()) metadata[std::string(layout_metadata)] = std::move(layout);
    MUSTER_TRY(const safetensors::Header header, safetensors::plan(std::move(places), metadata));
    MUSTER_TRY_VOID(file_->append(std::as_bytes(std::span(header.bytes))));
    for (const safetensors::Place& place : header.places) {
      const std::size_t tensor = by_name.at(place.name);
      MUSTER_TRY_VOID(write_elements(source_.tensors()[tensor], box_of(tensor), nullptr));
    }
    return {};
  }

  Result<std::string> manifest() const {
    if (!layout_) return std::string();
    LayoutManifest made{.layout = {.axes = layout_->axes}, .rank = rank_, .training = source_.training()};
    for (std::size_t i = 0; i < cuts_.size(); ++i) {
      if (cuts_[i].empty()) continue;
      const JoinedTensor& tensor = source_.tensors()[i];
      made.layout.rules.push_back({tensor.name, cuts_[i]});
      made.shapes[tensor.name] = tensor.shape;
      if (tensor.step) made.steps[tensor.name] = *tensor.step;
    }
    return encode_layout(made);
  }

  Result<> write_ckpt() {
    for (std::size_t i = 0; i < source_.tensors().size(); ++i) {
      const JoinedTensor& tensor = source_.tensors()[i];
      const Box box = box_of(i);
      std::vector<FilePart> parts = parts_of(tensor.name, tensor.dtype, Shape(box.size));
      MUSTER_TRY_VOID(write_elements(tensor, box, &parts));
    }
    MUSTER_TRY(const std::string layout, manifest());
    if (!layout.empty()) MUSTER_TRY_VOID(file_->append(layout_entry(layout)));
    return {};
  }

  // With `parts`, each one's head before its elements.
  Result<> write_elements(const JoinedTensor& tensor, const Box& box, std::vector<FilePart>* parts) {
    const auto element = static_cast<std::int64_t>(size_bytes(tensor.dtype));
    std::size_t part = 0;
    std::uint64_t left = 0;  // of the part that is being written
    if (parts != nullptr && box.elements() == 0) MUSTER_TRY_VOID(file_->append(parts->front().head));
    if (box.elements() == 0) return {};
    return for_each_block(box, converted_bytes / element, [&](const Box& block) -> Result<> {
      block_.resize(static_cast<std::size_t>(block.elements() * element));
      MUSTER_TRY_VOID(source_.read(tensor, block, block_));
      std::span<const std::byte> rest = block_;
      while (!rest.empty()) {
        if (parts != nullptr && left == 0) {
          MUSTER_TRY_VOID(file_->append((*parts)[part].head));
          left = (*parts)[part++].content_bytes;
        }
        const std::uint64_t size =
            parts == nullptr ? rest.size() : std::min<std::uint64_t>(left, rest.size());
        MUSTER_TRY_VOID(file_->append(rest.first(size)));
        rest = rest.subspan(size);
        left -= parts == nullptr ? 0 : size;
      }
      return {};
    });
  }

  JoinedFiles& source_;
  const CutsOfTensors& cuts_;
  const std::optional<MeshLayout>& layout_;
  std::uint32_t rank_;
  Storage& storage_;
  std::unique_ptr<OutputFile> file_ = {};
  std::vector<std::byte> block_ = {};
};

}  // namespace

namespace {

Result<> check_rows_are_here(std::span<const JoinedTensor> tensors) {
  for (const JoinedTensor& tensor : tensors)
    if (says_where_rows_are(tensor.name, tensor.dtype, tensor.shape))
      return fail(
          Code::not_provided,
          fmt::format("'{}' has no rows of table '{}', which parameter servers have written into files of "
                      "their own: muster.save_checkpoint(muster.load_checkpoint('{}'), ...) in Python makes "
                      "a checkpoint that has them",
                      tensor.origin, parameter_of_rows(tensor.name), tensor.origin));
  return {};
}

}  // namespace

Result<Converted> convert(const Conversion& conversion, Storage& storage) {
  if (conversion.to && conversion.to->world_size() != conversion.destinations.size())
    return fail(
        Code::invalid_argument,
        fmt::format("the layout {} is for {} ranks, and {} files are to be written",
                    to_string(*conversion.to), conversion.to->world_size(), conversion.destinations.size()));
  MUSTER_TRY(JoinedFiles source, JoinedFiles::open(conversion.sources, conversion.from, storage));
  MUSTER_TRY_VOID(check_rows_are_here(source.tensors()));
  MUSTER_TRY(const CutsOfTensors cuts, cuts_of(source.tensors(), conversion.to));
  MUSTER_TRY_VOID(source.warn_of_unlike_copies());
  for (std::size_t rank = 0; rank < conversion.destinations.size(); ++rank)
    MUSTER_TRY_VOID(
        FileWriter(source, cuts, conversion.to, static_cast<std::uint32_t>(conversion.to ? rank : 0), storage)
            .write(conversion.destinations[rank]));
  Converted made;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const JoinedTensor& tensor = source.tensors()[i];
    made.tensors.push_back(tensor.name);
    made.cut += cuts[i].empty() ? 0 : 1;
    made.bytes += static_cast<std::uint64_t>(tensor.shape.elements()) * size_bytes(tensor.dtype);
  }
  return made;
}

Result<std::vector<Entry>> load_joined(const std::vector<std::string>& files,
                                       const std::optional<MeshLayout>& from, const Storage& storage) {
  MUSTER_TRY(JoinedFiles source, JoinedFiles::open(files, from, storage));
  MUSTER_TRY_VOID(source.warn_of_unlike_copies());
  std::vector<Entry> made;
  for (const JoinedTensor& tensor : source.tensors()) {
    Tensor value(tensor.dtype, tensor.shape);
    MUSTER_TRY_VOID(source.read(tensor, Box::whole(tensor.shape), {value.bytes(), value.size_bytes()}));
    made.push_back({tensor.name, std::move(value)});
  }
  return made;
}

}  // namespace muster::checkpoint
