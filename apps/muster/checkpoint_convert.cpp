#include "checkpoint_convert.h"

#include <fmt/format.h>

#include <memory>

#include "muster/checkpoint/checkpoint.h"
#include "muster/checkpoint/conversion.h"
#include "muster/launch/settings/mesh_file.h"

namespace muster::app {
namespace {

using checkpoint::MeshLayout;

struct ConvertFlags {
  std::string source;
  std::string destination;
  std::string from;
  std::string to;
};

Result<std::optional<MeshLayout>> layout_in(const std::string& path) {
  if (path.empty()) return std::nullopt;
  MUSTER_TRY(MeshLayout layout, launch::read_mesh_file(path));
  return layout;
}

Result<std::vector<std::string>> destinations_of(const ConvertFlags& flags,
                                                 const std::optional<MeshLayout>& to) {
  if (!to) {
    if (checkpoint::is_tensor_file(flags.destination)) return std::vector{flags.destination};
    return fail(Code::invalid_argument,
                fmt::format("'{}' is no .ckpt or .safetensors file: name one for the whole, or give --to "
                            "mesh.toml for a folder with a file for each rank",
                            flags.destination));
  }
  if (checkpoint::is_tensor_file(flags.destination))
    return fail(Code::invalid_argument, fmt::format("--to {} makes {} files: name a folder, not '{}'",
                                                    flags.to, to->world_size(), flags.destination));
  const auto there = checkpoint::find_tensor_files(flags.destination, checkpoint::real_storage());
  if (!there.empty())
    return fail(Code::invalid_argument,
                fmt::format("'{}' has files of tensors already ({}): name another folder, or remove them, "
                            "so that files of two layouts do not mix",
                            flags.destination, there.front()));
  std::vector<std::string> files;
  for (std::uint32_t rank = 0; rank < to->world_size(); ++rank)
    files.push_back(
        fmt::format("{}/rank_{}.safetensors", checkpoint::without_slash(flags.destination), rank));
  return files;
}

Result<> convert(const ConvertFlags& flags) {
  checkpoint::Conversion wanted;
  MUSTER_TRY(wanted.from, layout_in(flags.from));
  MUSTER_TRY(wanted.to, layout_in(flags.to));
  MUSTER_TRY(wanted.sources, checkpoint::files_of_checkpoint(flags.source));
  MUSTER_TRY(wanted.destinations, destinations_of(flags, wanted.to));
  MUSTER_TRY(const checkpoint::Converted done, checkpoint::convert(wanted));
  fmt::print("{}: {} tensors, {} bytes, from {} file{} ", flags.destination, done.tensors.size(), done.bytes,
             wanted.sources.size(), wanted.sources.size() == 1 ? "" : "s");
  if (wanted.to)
    fmt::print("to {} over {}; {} are cut\n", wanted.destinations.size(), to_string(*wanted.to), done.cut);
  else
    fmt::print("to one that has the whole\n");
  return {};
}

}  // namespace

void add_convert(CLI::App& checkpoint, Invocation& invocation) {
  auto flags = std::make_shared<ConvertFlags>();
  CLI::App* command = checkpoint.add_subcommand(
      "convert", "Make a checkpoint of one layout over workers into one of another, or of the whole");
  command->footer(
      "\nWithout --to, DST is a file with the whole parameters:\n"
      "  muster checkpoint convert recovery/job-0123456789abcdef net.safetensors --from mesh.toml\n"
      "With it, DST is a new folder with a file of pieces for each rank, which say their layout themselves:\n"
      "  muster checkpoint convert net.ckpt pieces --to mesh.toml\n"
      "Both have the same bits. A mesh file has the axes and which of them cut what:\n"
      "  [mesh]\n"
      "  data = 2\n"
      "  model = 2\n"
      "  [parameters]\n"
      "  \"*.fc1.weight\" = [\"model\", \"-\"]\n"
      "muster.parallel.save_layout writes that of a job. Exit code 0: done, 2: it cannot be done.");
  command
      ->add_option("src", flags->source,
                   "A .ckpt or .safetensors file, a folder with one for each rank (rank_0 ...), or recovery "
                   "points of one job")
      ->required();
  command->add_option("dst", flags->destination, "A file, or with --to a new folder")->required();
  command->add_option("--to", flags->to, "The mesh file of the layout that is wanted");
  command->add_option("--from", flags->from,
                      "The mesh file of SRC, where its files are pieces and do not say so");
  command->callback([flags, &invocation] {
    const auto done = convert(*flags);
    invocation.exit_code = done ? 0 : refuse("checkpoint convert", done.error().message);
  });
}

}  // namespace muster::app
