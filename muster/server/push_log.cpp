#include "muster/server/push_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>

#include "muster/server/file_io.h"
#include "muster/server/wire.h"

namespace muster::server {
namespace {

// Fewer bytes where the file ends.
Result<std::vector<std::byte>> read_bytes(int file, std::uint64_t offset, std::size_t size_bytes,
                                          const std::string& path) {
  std::vector<std::byte> bytes(size_bytes);
  MUSTER_TRY(const std::size_t got, read_at(file, offset, bytes, path));
  bytes.resize(got);
  return bytes;
}

}  // namespace

std::string PushLog::path_of(const std::string& path, std::uint64_t segment) {
  return fmt::format("{}.{}", path, segment);
}

Result<std::vector<std::uint64_t>> PushLog::find_segments(const std::string& path) {
  const std::filesystem::path whole(path);
  const std::string folder = whole.parent_path().empty() ? "." : whole.parent_path().string();
  MUSTER_TRY(const auto names, real_files().list(folder));
  const std::string begin = whole.filename().string() + ".";
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : names) {
    std::uint64_t number = 0;
    const char* const end = name.data() + name.size();
    if (name.starts_with(begin) && std::from_chars(name.data() + begin.size(), end, number).ptr == end)
      numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Result<std::unique_ptr<PushLog>> PushLog::open(const std::string& path, std::uint64_t first_segment,
                                               const Found& found) {
  std::unique_ptr<PushLog> log(new PushLog(path));
  MUSTER_TRY(std::vector<std::uint64_t> numbers, find_segments(path));
  std::erase_if(numbers, [&](std::uint64_t number) {
    return number < first_segment && ::unlink(path_of(path, number).c_str()) == 0;
  });
  if (numbers.empty() && first_segment == 0) numbers = {0};
  for (std::size_t i = 0; i == 0 || i < numbers.size(); ++i) {
    if (i == numbers.size() || numbers[i] != first_segment + i)
      return fail(Code::corrupt,
                  fmt::format("the log of pushes lacks '{}': put a copy of that folder there, or remove the "
                              "folder and begin anew with MUSTER_FRESH=1",
                              path_of(path, first_segment + i)));
    MUSTER_TRY_VOID(log->add_segment(numbers[i]));
    MUSTER_TRY(const bool is_whole, log->read_segment(*log->segments_.back(), i == 0, found));
    if (is_whole) continue;
    // What follows an end that was not on the disk was never said to be kept.
    for (++i; i < numbers.size(); ++i)
      if (const std::string later = path_of(path, numbers[i]); ::unlink(later.c_str()) != 0)
        return fail_errno(fmt::format("cannot remove '{}'", later), errno);
  }
  return log;
}

Result<> PushLog::add_segment(std::uint64_t number) {
  const std::string path = path_of(path_, number);
  net::ProcessDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return fail_errno(fmt::format("cannot open the log of pushes '{}'", path), errno);
  const std::lock_guard lock(mutex_);
  segments_.push_back(std::make_shared<Segment>(Segment{std::move(file), path, number}));
  return {};
}

// Whether it ends with a whole frame.
Result<bool> PushLog::read_segment(Segment& segment, bool is_first, const Found& found) {
  const int file = segment.file.get();
  const auto next = [&]() -> Result<bool> {
    MUSTER_TRY(const auto head, read_bytes(file, segment.end, net::frame_header_size_bytes, segment.path));
    if (head.size() < net::frame_header_size_bytes) return false;
    const auto header =
        net::decode_header(std::span(head).first<net::frame_header_size_bytes>(), batch_limit_bytes);
    if (!header) return false;
    const Place place{segment.number, segment.end + head.size(), header->payload_size_bytes};
    MUSTER_TRY(auto payload, read_bytes(file, place.offset, place.size_bytes, segment.path));
    if (payload.size() < place.size_bytes || !net::check_payload(*header, payload)) return false;
    MUSTER_TRY_VOID(check_kept_version(*header, segment.path));
    if (is_first || (header->flags & carried_flag) == 0)
      MUSTER_TRY_VOID(found({.header = *header, .payload = std::move(payload)}, place));
    segment.end = place.offset + place.size_bytes;
    return true;
  };
  while (true) {
    MUSTER_TRY(const bool is_there, next());
    if (!is_there) break;
  }
  const off_t size = ::lseek(file, 0, SEEK_END);
  if (size < 0 || ::ftruncate(file, static_cast<off_t>(segment.end)) != 0)
    return fail_errno(fmt::format("cannot cut '{}' off after byte {}", segment.path, segment.end), errno);
  return static_cast<std::uint64_t>(size) == segment.end;
}

Result<std::vector<std::byte>> PushLog::read(const Place& place) const {
  const auto segment = std::find_if(segments_.begin(), segments_.end(),
                                    [&](const auto& each) { return each->number == place.segment; });
  MUSTER_CHECK(segment != segments_.end(), "a push is read of a log that was dropped");
  const std::string& path = (*segment)->path;
  MUSTER_TRY(auto bytes, read_bytes((*segment)->file.get(), place.offset, place.size_bytes, path));
  if (bytes.size() == place.size_bytes) return bytes;
  return fail(Code::corrupt, fmt::format("the log of pushes '{}' is shorter than it was", path));
}

Result<PushLog::Place> PushLog::append(const net::FrameHeader& header, std::span<const std::byte> payload) {
  Segment& segment = *segments_.back();
  net::FrameHeader versioned = header;
  versioned.flags = with_kept_version(header.flags);
  net::FrameHeaderBytes header_bytes = net::encode_header(versioned);
  const std::uint64_t total = header_bytes.size() + payload.size();
  std::uint64_t done = 0;
  while (done < total) {
    const std::size_t of_header = done < header_bytes.size() ? header_bytes.size() - done : 0;
    const std::size_t of_payload = of_header > 0 ? 0 : done - header_bytes.size();
    const std::array<iovec, 2> pieces{
        iovec{header_bytes.data() + (header_bytes.size() - of_header), of_header},
        iovec{const_cast<std::byte*>(payload.data()) + of_payload, payload.size() - of_payload}};
    const ssize_t wrote =
        ::pwritev(segment.file.get(), pieces.data(), pieces.size(), static_cast<off_t>(segment.end + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return fail_errno(fmt::format("cannot write the log of pushes '{}'", segment.path), errno);
    done += static_cast<std::uint64_t>(wrote);
  }
  const Place place{segment.number, segment.end + header_bytes.size(), payload.size()};
  segment.end += total;
  return place;
}

// Segments in their order: a later one is never on the disk where an earlier one is not.
Result<> PushLog::sync() {
  const std::lock_guard one(syncing_);
  std::deque<std::shared_ptr<Segment>> segments;
  {
    const std::lock_guard lock(mutex_);
    segments = segments_;
  }
  for (const auto& segment : segments) {
    if (segment->is_done) continue;
    if (::fdatasync(segment->file.get()) != 0)
      return fail_errno(fmt::format("cannot bring the log of pushes '{}' to the disk", segment->path), errno);
    // The last one's name is new, perhaps.
    if (segment == segments.back()) return sync_folder_of(path_);
    segment->is_done = true;
  }
  return {};
}

Result<> PushLog::begin_segment() { return add_segment(segment() + 1); }

std::uint64_t PushLog::size_bytes() const {
  std::uint64_t size = 0;
  for (const auto& segment : segments_) size += segment->end;
  return size;
}

std::vector<std::string> PushLog::drop_before(std::uint64_t number) {
  std::vector<std::string> dropped;
  const std::lock_guard lock(mutex_);
  for (; segments_.front()->number < number; segments_.pop_front())
    dropped.push_back(segments_.front()->path);
  return dropped;
}

}  // namespace muster::server
