// Parameters to files and back.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/checkpoint/mesh_layout.h"
#include "muster/nn/nn.h"

namespace muster::train {

// What a checkpoint has, of either format, or of a folder with a file for each rank. In a process with
// set_parameter_servers, what their files have of it stays there: NAME.rows says where (save_rows_beside).
Result<std::vector<checkpoint::Entry>> load_checkpoint(const std::string& path);

// The elements of all, made first where they are not yet. In a divided job they come from the workers that
// have them, and all workers make this call with the same parameters.
Result<std::vector<checkpoint::Entry>> gather_parameters(std::span<const graph::ParameterPtr> parameters);

// The elements of one that this process has, made first where they are not yet: a copy.
Result<Tensor> read_parameter(const graph::ParameterPtr& parameter);
// `to` takes the elements of `from`, in order: a target network, an average, the best so far. Numbers, dtypes
// and shapes have to be equal, or nothing is copied.
Result<> copy_parameters(std::span<const graph::ParameterPtr> from, std::span<const graph::ParameterPtr> to);

// The same as a checkpoint file.
Result<> save_parameters(std::span<const graph::ParameterPtr> parameters, const std::string& path,
                         Files& files = real_files());

// Where a value comes from that is a piece of a parameter: a file that says its layout.
struct FilePiece {
  std::string path;
  checkpoint::LayoutManifest layout;
};
// What the file at `path` is; null where it holds wholes.
Result<std::shared_ptr<const FilePiece>> file_of_pieces(const std::string& path);

// What a file of this worker's pieces has: the parameters that it holds, as it holds them, under these names,
// and what encode_layout gives; that is empty where nothing is divided. What other workers have is left out.
struct NamedParameter {
  std::string name;
  graph::ParameterPtr parameter;
};
struct HeldPieces {
  std::vector<checkpoint::Entry> entries = {};
  std::string layout = {};
};
Result<HeldPieces> held_pieces(std::span<const NamedParameter> parameters);

struct LoadOptions {
  // Whether a name without a counterpart, or another dtype or shape, is an error. State of an optimizer
  // (`moments.fc.weight` beside a parameter `fc.weight`) and single numbers (`global_step`) are none: files
  // of trainings have them.
  bool strict = true;
  // Entries that are pieces, by name: a parameter that is held so takes its own, every other one the whole,
  // which is joined from the files of all workers beside that one.
  std::map<std::string, std::shared_ptr<const FilePiece>, std::less<>> pieces = {};
};

// Names that found no counterpart; one whose dtype or shape differs is in both lists.
struct Unmatched {
  std::vector<std::string> parameters;  // of the network, which keep their values
  std::vector<std::string> entries;     // of the file
};

// Sets each parameter to the entry of its name. Strict errors (invalid_argument) name all that does not fit,
// and nothing is set.
Result<Unmatched> load_parameters(std::span<const graph::ParameterPtr> parameters,
                                  std::span<const checkpoint::Entry> entries, LoadOptions options = {});

// From now on each worker holds its piece of `parameter`; `mesh` and `layout` as op `shard` has them. An
// error names what does not fit. Every worker calls it alike.
Result<> divide_parameter(graph::Parameter& parameter, const std::string& mesh, const std::string& layout);

// How the workers of this job hold `parameters`: the axes of the mesh and what each divided parameter is cut
// by. Without a divided one: one axis of all workers, which cuts nothing.
checkpoint::MeshLayout held_layout(std::span<const graph::ParameterPtr> parameters);

}  // namespace muster::train
