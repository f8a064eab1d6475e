// Read-only inspection of what jobs have left on the disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/checkpoint/manifest.h"
#include "muster/checkpoint/run_store.h"
#include "muster/checkpoint/storage.h"

namespace muster::checkpoint {

struct FoundPoint {
  std::string folder = {};
  std::optional<Manifest> manifest = {};
  std::string problem = {};  // why there is no manifest, or what is wrong
};

// The recovery points of one worker of one job.
struct FoundWorker {
  std::string folder = {};
  std::string job = {};  // as its journal or its points say
  std::uint64_t world_size = 0;
  std::uint64_t rank = 0;
  std::vector<FoundPoint> points = {};     // oldest first
  std::vector<CallRecord> finished = {};   // calls that have ended
  std::vector<std::string> problems = {};  // of anything but points
};

// Whether the path is that of a file of tensors, by its name: .ckpt or .safetensors.
bool is_tensor_file(const std::string& path);

// The workers whose recovery points lie in `path`: the folder of all jobs (MS_RECOVERY_PATH), of one job, of
// one worker, or of one point. Not found when there is none. Sorted by job and rank.
Result<std::vector<FoundWorker>> find_workers(const std::string& path, const Storage& storage);

// Reads all of a point and checks every hash; its problem tells what is wrong.
void verify(FoundPoint& point, const Storage& storage);

// The newest point that every worker of the job holds, as far as manifests tell. The workers are of one job.
std::optional<PointId> newest_common_point(const std::vector<FoundWorker>& workers);

// The greatest name of a point in the folders of all jobs (MS_RECOVERY_PATH): no more than names is read.
std::optional<PointId> newest_point_below(const std::string& folder, const Storage& storage);

// The files of tensors below a folder, relative to it, four folders deep; as people count: net-9 before
// net-10.
std::vector<std::string> find_tensor_files(const std::string& folder, const Storage& storage);

}  // namespace muster::checkpoint
