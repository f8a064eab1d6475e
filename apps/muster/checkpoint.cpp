// muster checkpoint ls|show|verify|convert|rm, muster verify: what jobs have left on the disk.
#include "muster/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "checkpoint_convert.h"
#include "checkpoint_rm.h"
#include "commands.h"
#include "muster/checkpoint/sample_log.h"

namespace muster::app {
namespace {

using checkpoint::FoundPoint;
using checkpoint::FoundWorker;
using checkpoint::Manifest;

constexpr int exit_code_different = 1;

// A file of tensors, or those in a folder without recovery points. None: the path is for the others.
std::vector<std::string> tensor_files(const std::string& path) {
  if (checkpoint::is_tensor_file(path)) return {path};
  if (checkpoint::find_workers(path, checkpoint::real_storage())) return {};
  std::vector<std::string> files;
  for (const std::string& name : checkpoint::find_tensor_files(path, checkpoint::real_storage()))
    files.push_back(fmt::format("{}{}{}", path, path.ends_with('/') ? "" : "/", name));
  return files;
}

// The worst of the exit codes of `work` for each of the files; nothing when there are none.
std::optional<int> for_each_file(const std::string& path, int (*work)(const std::string&)) {
  std::optional<int> code;
  for (const std::string& file : tensor_files(path)) code = std::max(code.value_or(0), work(file));
  return code;
}

std::string worker_text(const FoundWorker& worker) {
  return fmt::format("job {}, worker {} of {}: {}", worker.job.empty() ? "?" : worker.job, worker.rank,
                     worker.world_size, worker.folder);
}

void print_problem(const std::string& problem) { fmt::print("  DAMAGED: {}\n", problem); }

// ---- ls ---------------------------------------------------------------------------------------------------

int list_file(const std::string& path) {
  const auto entries = checkpoint::load(path);
  if (!entries) return refuse("checkpoint ls", entries.error().message);
  std::uint64_t bytes = 0;
  for (const auto& entry : *entries) bytes += entry.value.size_bytes();
  fmt::print("{}: {} tensors, {}\n", path, entries->size(), size_text(bytes));
  return 0;
}

void list_worker(const FoundWorker& worker) {
  fmt::print("{}\n", worker_text(worker));
  for (const FoundPoint& point : worker.points) {
    if (!point.manifest) {
      print_problem(point.problem);
      continue;
    }
    const Manifest& manifest = *point.manifest;
    fmt::print("  {:<24} {:>5} tensors  {:>10}\n", to_string(manifest.id), manifest.tensors.size(),
               size_text(manifest.tensors_bytes() + manifest.sections_bytes()));
  }
  for (const auto& record : worker.finished)
    if (record.kind == "train") fmt::print("  call {} has ended\n", record.call);
  for (const std::string& problem : worker.problems) print_problem(problem);
}

int list(const std::string& path) {
  if (const auto code = for_each_file(path, list_file)) return *code;
  const auto workers = checkpoint::find_workers(path, checkpoint::real_storage());
  if (!workers) return refuse("checkpoint ls", workers.error().message);
  for (const FoundWorker& worker : *workers) list_worker(worker);
  return 0;
}

// ---- show -------------------------------------------------------------------------------------------------

void show_tensor(const std::string& name, DType dtype, const Shape& shape, std::uint64_t hash) {
  fmt::print("  {:<40} {:<8} {:<20} {}\n", name, to_string(dtype), to_string(shape), checkpoint::hex(hash));
}

int show_file(const std::string& path) {
  const auto entries = checkpoint::load(path);
  if (!entries) return refuse("checkpoint show", entries.error().message);
  fmt::print("{}: {} tensors\n", path, entries->size());
  bool has_rows_elsewhere = false;
  for (const auto& [name, value] : *entries) {
    show_tensor(name, value.dtype(), value.shape(), hash_bytes(value.bytes(), value.size_bytes()));
    has_rows_elsewhere =
        has_rows_elsewhere || checkpoint::says_where_rows_are(name, value.dtype(), value.shape());
  }
  if (has_rows_elsewhere) fmt::print("  NAME.rows: parameter servers have written them into {}.rows\n", path);
  return 0;
}

void show_point(const Manifest& manifest) {
  fmt::print(" {}\n", to_string(manifest.id));
  for (const auto& tensor : manifest.tensors)
    show_tensor(tensor.name, tensor.dtype, tensor.shape, tensor.hash);
  for (const auto& section : manifest.sections)
    fmt::print("  {:<40} {:<8} {:<20} {}\n", section.name, "section", size_text(section.size_bytes),
               checkpoint::hex(section.hash));
}

int show(const std::string& path) {
  if (const auto code = for_each_file(path, show_file)) return *code;
  const auto workers = checkpoint::find_workers(path, checkpoint::real_storage());
  if (!workers) return refuse("checkpoint show", workers.error().message);
  for (const FoundWorker& worker : *workers) {
    fmt::print("{}\n", worker_text(worker));
    if (worker.points.empty()) {
      fmt::print("  no point yet\n");
    } else if (const FoundPoint& newest = worker.points.back(); newest.manifest) {
      show_point(*newest.manifest);
    } else {
      print_problem(newest.problem);
    }
  }
  return 0;
}

// ---- verify one -------------------------------------------------------------------------------------------

int verify_file(const std::string& path) {
  const auto entries = checkpoint::load(path);
  if (!entries && entries.error().code == Code::not_found)
    return refuse("checkpoint verify", entries.error().message);
  if (!entries) {
    fmt::print("DAMAGED {}: {}\n", path, entries.error().message);
    return exit_code_different;
  }
  fmt::print("ok      {}: {} tensors; such files have no hashes: their lengths and names are right\n", path,
             entries->size());
  return 0;
}

// Returns whether all is well.
bool verify_worker(FoundWorker& worker) {
  fmt::print("{}\n", worker_text(worker));
  bool is_well = worker.problems.empty();
  for (FoundPoint& point : worker.points) {
    checkpoint::verify(point, checkpoint::real_storage());
    if (point.problem.empty())
      fmt::print("  ok       {}\n", to_string(point.manifest->id));
    else
      print_problem(point.problem);
    is_well = is_well && point.problem.empty();
  }
  for (const std::string& problem : worker.problems) print_problem(problem);
  return is_well;
}

void print_newest(const std::vector<FoundWorker>& workers) {
  for (const FoundWorker& worker : workers)
    if (worker.job != workers.front().job) return;
  if (workers.front().world_size == 0 || workers.size() != workers.front().world_size) return;
  const auto newest = checkpoint::newest_common_point(workers);
  fmt::print("The newest point that all workers hold: {}\n", newest ? to_string(*newest) : "none");
}

int verify_one(const std::string& path) {
  if (const auto code = for_each_file(path, verify_file)) return *code;
  auto workers = checkpoint::find_workers(path, checkpoint::real_storage());
  if (!workers) return refuse("checkpoint verify", workers.error().message);
  bool is_well = true;
  for (FoundWorker& worker : *workers) is_well = verify_worker(worker) && is_well;
  print_newest(*workers);
  return is_well ? 0 : exit_code_different;
}

// ---- verify two -------------------------------------------------------------------------------------------

int verify_two(const std::string& first, const std::string& second) {
  const auto compared = checkpoint::compare_runs(first, second);
  if (!compared) return refuse("verify", compared.error().message);
  for (const std::string& note : compared->notes) fmt::print("note: {}\n", note);
  for (const std::string& difference : compared->differences) fmt::print("DIFFERENT: {}\n", difference);
  if (!compared->differences.empty()) return exit_code_different;
  fmt::print("equal: {} steps and {} points that both runs have\n", compared->steps, compared->points);
  return 0;
}

// ---- verify samples ---------------------------------------------------------------------------------------

int verify_samples(const std::string& folder) {
  const auto passes = checkpoint::audit_samples(folder);
  if (!passes) return refuse("verify --samples", passes.error().message);
  bool is_well = true;
  for (const auto& [pass, samples] : *passes) {
    std::vector<std::string> shares;
    for (const auto& [workers, rows] : samples.by_workers)
      shares.push_back(fmt::format("{} by {} worker{}", rows, workers, workers == 1 ? "" : "s"));
    const std::string filling =
        samples.filling == 0 ? "" : fmt::format(", {} of them once more to fill up shards", samples.filling);
    fmt::print("pass {}: {} rows ({}){}: {}\n", pass, samples.rows, fmt::join(shares, ", "), filling,
               samples.problems.empty() ? "each once" : "NOT each once");
    for (const std::string& problem : samples.problems) fmt::print("  {}\n", problem);
    is_well = is_well && samples.problems.empty();
  }
  return is_well ? 0 : exit_code_different;
}

void add_one(CLI::App& parent, Invocation& invocation, const char* name, const char* description,
             int (*work)(const std::string&)) {
  auto path = std::make_shared<std::string>();
  CLI::App* command = parent.add_subcommand(name, description);
  command
      ->add_option("path", *path,
                   "MS_RECOVERY_PATH, the folder of a job, a worker or a point in it, a .ckpt or "
                   ".safetensors file, or a folder of such files")
      ->required();
  command->callback([path, work, &invocation] { invocation.exit_code = work(*path); });
}

void add_remove(CLI::App& parent, Invocation& invocation) {
  auto path = std::make_shared<std::string>();
  auto is_confirmed = std::make_shared<bool>(false);
  CLI::App* command = parent.add_subcommand("rm",
                                            "Remove recovery points for good, of jobs that are not in use; "
                                            "exit code 0: removed, 1: kept, 2: the path "
                                            "cannot be used");
  command->add_option("path", *path, "MS_RECOVERY_PATH, or the folder of a job or of a worker in it")
      ->required();
  command->add_flag("--yes", *is_confirmed, "Do not ask");
  command->callback(
      [path, is_confirmed, &invocation] { invocation.exit_code = remove_points(*path, *is_confirmed); });
}

}  // namespace

void add_checkpoint(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand(
      "checkpoint", "Recovery points and files of tensors: list, show, check, convert, remove them");
  command->require_subcommand(1);
  add_one(*command, invocation, "ls", "List the recovery points below a path, or sum up a file", list);
  add_one(*command, invocation, "show",
          "Show the tensors and sections of each worker's newest point, or of a file", show);
  add_one(
      *command, invocation, "verify",
      "Read everything and check every hash; exit code 0: all is whole, 1: something is damaged, 2: the path "
      "cannot be used",
      verify_one);
  add_convert(*command, invocation);
  add_remove(*command, invocation);
}

void add_verify(CLI::App& app, Invocation& invocation) {
  struct Paths {
    std::string first, second, samples;
  };
  auto paths = std::make_shared<Paths>();
  CLI::App* command = app.add_subcommand(
      "verify",
      "Compare two runs, and name the first step and tensor that differ; or check which samples came");
  command->footer(
      "\nA run is the recovery folder of a job (MS_RECOVERY_PATH), a folder of .ckpt or .safetensors files, "
      "or\n"
      "one such file:\n"
      "  muster verify one/recovery other/recovery\n"
      "It compares what both runs have, bit by bit: hashes of steps, tensors of points, and the state of "
      "the\n"
      "training. Exit code 0: equal, 1: different, 2: nothing can be compared.\n"
      "  muster verify --samples FOLDER\n"
      "says whether each row of each pass over the data came once, of trainings that had "
      "MUSTER_SAMPLE_LOG=FOLDER:\n"
      "through kills, new starts and other numbers of workers.");
  CLI::Option* const first = command->add_option("run_a", paths->first, "The first run");
  CLI::Option* const second = command->add_option("run_b", paths->second, "The second run");
  command->add_option("--samples", paths->samples, "The folder that MUSTER_SAMPLE_LOG named")
      ->excludes(first)
      ->excludes(second);
  command->callback([paths, &invocation] {
    if (paths->samples.empty() && paths->second.empty())
      throw CLI::RequiredError(paths->first.empty() ? "run_a and run_b, or --samples," : "run_b");
    invocation.exit_code =
        paths->samples.empty() ? verify_two(paths->first, paths->second) : verify_samples(paths->samples);
  });
}

}  // namespace muster::app
