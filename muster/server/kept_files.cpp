#include "muster/server/kept_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "muster/server/file_io.h"
#include "muster/server/push_log.h"

namespace muster::server {

// The base first: files of the log that a newer one needs no more are removed by this thread's orders alone.
Result<KeptFiles> KeptFiles::open(const std::string& path) {
  KeptFiles kept(path);
  MUSTER_TRY_VOID(kept.add("base"));
  MUSTER_TRY(const auto segments, PushLog::find_segments(path));
  for (const std::uint64_t segment : segments) MUSTER_TRY_VOID(kept.add(std::to_string(segment)));
  if (kept.files_.size() > kept_files_max)
    return fail(Code::internal, fmt::format("the log of pushes '{}' has {} files, and {} can be sent", path,
                                            kept.files_.size(), kept_files_max));
  return kept;
}

// Where it is not there any more, it is not needed.
Result<> KeptFiles::add(const std::string& suffix) {
  const std::string path = fmt::format("{}.{}", path_, suffix);
  net::ProcessDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return {};
  struct stat told {};
  if (!file || ::fstat(file.get(), &told) != 0)
    return fail_errno(fmt::format("cannot open '{}'", path), errno);
  files_.push_back({.name = {.suffix = suffix, .size_bytes = static_cast<std::uint64_t>(told.st_size)},
                    .descriptor = std::move(file)});
  return {};
}

std::vector<KeptFileName> KeptFiles::names() const {
  std::vector<KeptFileName> names;
  for (const File& file : files_) names.push_back(file.name);
  return names;
}

Result<std::vector<std::byte>> KeptFiles::read(const KeptFilePart& part) const {
  if (part.file >= files_.size() || part.size_bytes > kept_part_bytes ||
      part.offset + part.size_bytes > files_[part.file].name.size_bytes)
    return fail(Code::corrupt, fmt::format("a server asks for bytes {} to {} of file {} of '{}'", part.offset,
                                           part.offset + part.size_bytes, part.file, path_));
  std::vector<std::byte> bytes(part.size_bytes);
  MUSTER_TRY(const std::size_t got, read_at(files_[part.file].descriptor.get(), part.offset, bytes, path_));
  if (got < bytes.size())
    return fail(Code::corrupt,
                fmt::format("'{}.{}' is shorter than it was", path_, files_[part.file].name.suffix));
  return bytes;
}

}  // namespace muster::server
