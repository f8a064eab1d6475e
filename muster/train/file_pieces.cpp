#include "muster/train/file_pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "muster/graph/sharding/mesh.h"
#include "muster/train/job.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

using checkpoint::LayoutManifest;
using checkpoint::MeshLayout;
using graph::Parameter;

// The mesh of a parameter and this worker in it, over all workers of the job: where several work on one copy
// of a placed network, its copies are the mesh of Zero, and one more axis counts the workers of a copy.
LayoutManifest manifest_of(const Parameter::Share& share) {
  LayoutManifest made{.rank = share.rank};
  std::uint32_t ranks = 1;
  for (const graph::MeshAxis& axis : share.layout.mesh->axes()) {
    made.layout.axes.push_back({axis.name, axis.size});
    ranks *= axis.size;
  }
  if (ranks == world_size()) return made;
  made.layout.axes.push_back({"stages", world_size() / ranks});
  made.rank = rank();
  return made;
}

// The job, which stays the same where its processes are started again.
std::string training_of_process() {
  Session* const session = Session::current();
  return session == nullptr ? std::string() : fmt::format("{:016x}", session->membership().roster().job_id);
}

// How many updates it has had; nothing: no optimizer has it, or its worker does not count.
std::optional<std::int64_t> step_of(const Parameter& parameter) {
  const graph::ParameterPtr& counter = parameter.update_counter();
  if (counter == nullptr || counter->absence() != nullptr || !counter->materialized()) return std::nullopt;
  return *counter->storage().data<std::int32_t>();
}

MeshLayout::Cuts cuts_of(const Parameter::Share& share) {
  MeshLayout::Cuts cuts;
  for (const graph::TensorLayout::Axes& axes : share.layout.dims) {
    std::vector<std::string>& names = cuts.emplace_back();
    for (const std::size_t axis : axes) names.push_back(share.layout.mesh->axes()[axis].name);
  }
  return cuts;
}

bool same_axes(const MeshLayout& a, const MeshLayout& b) {
  return std::ranges::equal(a.axes, b.axes, [](const MeshLayout::Axis& left, const MeshLayout::Axis& right) {
    return left.name == right.name && left.size == right.size;
  });
}

const MeshLayout::Rule* rule_named(const LayoutManifest& layout, const std::string& name) {
  const auto found = std::ranges::find(layout.layout.rules, name, &MeshLayout::Rule::pattern);
  return found == layout.layout.rules.end() ? nullptr : &*found;
}

}  // namespace

Result<HeldPieces> held_pieces(std::span<const NamedParameter> parameters) {
  HeldPieces made;
  LayoutManifest manifest;
  for (const auto& [name, parameter] : parameters) {
    if (parameter->absence() != nullptr) continue;
    made.entries.push_back({name, parameter->materialize(seed())});
    if (!parameter->share()) continue;
    LayoutManifest mine = manifest_of(*parameter->share());
    if (manifest.layout.axes.empty()) {
      manifest = std::move(mine);
    } else if (!same_axes(manifest.layout, mine.layout)) {
      return fail(Code::not_provided,
                  fmt::format("'{}' is divided over the mesh {}, and others of this file over {}: save each "
                              "of them in a file of its own, or whole (integrated_save=True)",
                              name, to_string(mine.layout), to_string(manifest.layout)));
    }
    manifest.layout.rules.push_back({name, cuts_of(*parameter->share())});
    manifest.shapes[name] = parameter->shape();
    if (const auto step = step_of(*parameter)) manifest.steps[name] = *step;
  }
  if (manifest.layout.axes.empty()) return made;
  manifest.training = training_of_process();
  MUSTER_TRY(made.layout, checkpoint::encode_layout(manifest));
  return made;
}

bool is_held_so(const Parameter& parameter, const LayoutManifest& layout, const std::string& name) {
  const MeshLayout::Rule* rule = rule_named(layout, name);
  if (rule == nullptr || !parameter.share() || parameter.absence() != nullptr) return false;
  const LayoutManifest mine = manifest_of(*parameter.share());
  return same_axes(mine.layout, layout.layout) && mine.rank == layout.rank &&
         cuts_of(*parameter.share()) == rule->cuts && parameter.shape() == layout.shapes.at(name);
}

// ---- Files ------------------------------------------------------------------------------------------------

Result<std::shared_ptr<const FilePiece>> file_of_pieces(const std::string& path) {
  MUSTER_TRY(const checkpoint::StoredFile file, checkpoint::open_stored(path));
  const auto said = file.metadata.find(std::string(checkpoint::layout_metadata));
  if (said == file.metadata.end()) return std::shared_ptr<const FilePiece>();
  FilePiece made{.path = std::filesystem::absolute(path).string(), .layout = {}};
  MUSTER_TRY(made.layout, checkpoint::decode_layout(said->second, path));
  return std::make_shared<const FilePiece>(std::move(made));
}

namespace {

struct Digits {
  std::size_t begin = 0;
  std::size_t size = 0;
};

// Where the number of the worker may stand in a path: in the name of the file or of its folder.
std::vector<Digits> places_of(const std::string& path, std::uint32_t number) {
  const std::string wanted = fmt::format("{}", number);
  const std::size_t name = path.rfind('/');
  const std::size_t folder = name == 0 || name == std::string::npos ? 0 : path.rfind('/', name - 1);
  std::vector<Digits> found;
  for (std::size_t at = folder == std::string::npos ? 0 : folder; at < path.size();) {
    const std::size_t begin = path.find_first_of("0123456789", at);
    if (begin == std::string::npos) break;
    const std::size_t end = std::min(path.find_first_not_of("0123456789", begin), path.size());
    if (path.substr(begin, end - begin) == wanted) found.push_back({begin, end - begin});
    at = end;
  }
  return found;
}

std::string with_number(std::string path, const std::vector<Digits>& places, std::uint32_t number) {
  for (auto place = places.rbegin(); place != places.rend(); ++place)
    path.replace(place->begin, place->size, fmt::format("{}", number));
  return path;
}

// The file of another worker: of the same mesh, and its own; or of a stage of which nothing is cut, whose
// file says no layout.
bool is_of(const std::string& path, const LayoutManifest& layout, std::uint32_t rank) {
  const auto found = file_of_pieces(path);
  if (!found) return false;
  return *found == nullptr ||
         (same_axes((*found)->layout.layout, layout.layout) && (*found)->layout.rank == rank);
}

}  // namespace

Result<std::vector<std::string>> files_beside(const FilePiece& piece) {
  const std::uint32_t ranks = piece.layout.layout.world_size();
  const std::vector<Digits> all = places_of(piece.path, piece.layout.rank);
  std::vector<std::vector<Digits>> tries{all};
  for (const Digits& one : all)
    if (all.size() > 1) tries.push_back({one});
  std::string missing;
  for (const std::vector<Digits>& places : tries) {
    if (places.empty()) break;
    std::vector<std::string> files;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      std::string file = rank == piece.layout.rank ? piece.path : with_number(piece.path, places, rank);
      if (rank != piece.layout.rank && !is_of(file, piece.layout, rank)) {
        if (missing.empty())
          missing = fmt::format("'{}' is missing, or has not the pieces of worker {}", file, rank);
        break;
      }
      files.push_back(std::move(file));
    }
    if (files.size() == ranks) return files;
  }
  if (missing.empty())
    missing =
        fmt::format("no number in its name or its folder's is that of the worker, {}", piece.layout.rank);
  return fail(
      Code::invalid_argument,
      fmt::format("'{}' has the pieces of worker {} of {} ({}), and this network is divided in another "
                  "way, which takes those of all workers: {}. Let the files of all workers lie beside "
                  "each other, named alike but for that number, or load them together: "
                  "load_checkpoint of their folder, load_distributed_checkpoint of their names",
                  piece.path, piece.layout.rank, ranks, to_string(piece.layout.layout), missing));
}

}  // namespace muster::train
