#include "muster/checkpoint/step_mark.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <vector>

#include "muster/checkpoint/bytes.h"
#include "muster/checkpoint/run_folders.h"

namespace muster::checkpoint {
namespace {

constexpr std::size_t record_bytes = 4 * number_bytes;
constexpr std::uint64_t hash_seed = 2;  // zeros, which a loss of power may leave, are no mark

std::optional<StepPlace> read_mark(const std::string& path, std::int32_t pid, const Storage& storage) {
  const auto bytes = storage.read(path);
  if (!bytes || bytes->size() != record_bytes) return std::nullopt;
  const std::span<const std::byte> record(*bytes);
  const std::size_t hash_at = record_bytes - number_bytes;
  if (hash_bytes(record.data(), hash_at, hash_seed) != get(record, hash_at)) return std::nullopt;
  if (get(record, 0) != static_cast<std::uint64_t>(pid)) return std::nullopt;  // of an earlier life
  return StepPlace{.call = get(record, number_bytes), .step = get(record, 2 * number_bytes)};
}

}  // namespace

StepMark::StepMark(const std::string& worker_folder, std::int32_t pid) : pid_(pid) {
  const std::string path = fmt::format("{}/{}", worker_folder, step_file);
  (void)::unlink(path.c_str());  // a stale incarnation that was stopped has the old file open
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
}

StepMark::~StepMark() {
  if (fd_ >= 0) ::close(fd_);
}

void StepMark::set(const StepPlace& place) {
  if (fd_ < 0) return;
  std::vector<std::byte> record;
  record.reserve(record_bytes);
  put(record, static_cast<std::uint64_t>(pid_));
  put(record, place.call);
  put(record, place.step);
  put(record, hash_bytes(record.data(), record.size(), hash_seed));
  [[maybe_unused]] const auto written = ::pwrite(fd_, record.data(), record.size(), 0);
}

std::optional<StepPlace> step_of_process(const std::string& folder, std::int32_t pid,
                                         const Storage& storage) {
  for (const std::string& worker : worker_folders_below(folder, storage))
    if (const auto place = read_mark(fmt::format("{}/{}", worker, step_file), pid, storage)) return place;
  return std::nullopt;
}

}  // namespace muster::checkpoint
