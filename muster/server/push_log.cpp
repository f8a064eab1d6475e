#include "muster/server/push_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "muster/server/wire.h"

namespace muster::server {

Result<PushLog> PushLog::open(const std::string& path, const Found& found) {
  net::ProcessDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return fail_errno(fmt::format("cannot open the log of pushes '{}'", path), errno);
  PushLog log(std::move(file), path);
  MUSTER_TRY_VOID(log.read_all(found));
  if (::ftruncate(log.file_.get(), static_cast<off_t>(log.end_)) != 0)
    return fail_errno(fmt::format("cannot cut the log of pushes '{}' off after byte {}", path, log.end_),
                      errno);
  MUSTER_TRY_VOID(log.sync());
  return log;
}

Result<> PushLog::read_all(const Found& found) {
  while (true) {
    MUSTER_TRY(const auto header_bytes, read_at(end_, net::frame_header_size_bytes));
    if (header_bytes.size() < net::frame_header_size_bytes) return {};
    auto header =
        net::decode_header(std::span(header_bytes).first<net::frame_header_size_bytes>(), batch_limit_bytes);
    if (!header) return {};
    const Place place{end_ + net::frame_header_size_bytes, header->payload_size_bytes};
    MUSTER_TRY(auto payload, read_at(place.offset, place.size_bytes));
    if (payload.size() < place.size_bytes || !net::check_payload(*header, payload)) return {};
    MUSTER_TRY_VOID(found({.header = *header, .payload = std::move(payload)}, place));
    end_ = place.offset + place.size_bytes;
  }
}

// Fewer bytes where the file ends.
Result<std::vector<std::byte>> PushLog::read_at(std::uint64_t offset, std::size_t size_bytes) const {
  std::vector<std::byte> bytes(size_bytes);
  std::size_t done = 0;
  while (done < size_bytes) {
    const ssize_t got =
        ::pread(file_.get(), bytes.data() + done, size_bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(fmt::format("cannot read the log of pushes '{}'", path_), errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

Result<std::vector<std::byte>> PushLog::read(const Place& place) const {
  MUSTER_TRY(auto bytes, read_at(place.offset, place.size_bytes));
  if (bytes.size() == place.size_bytes) return bytes;
  return fail(Code::corrupt, fmt::format("the log of pushes '{}' is shorter than it was", path_));
}

Result<PushLog::Place> PushLog::append(const net::FrameHeader& header, std::span<const std::byte> payload) {
  net::FrameHeaderBytes header_bytes = net::encode_header(header);
  const std::uint64_t total = header_bytes.size() + payload.size();
  std::uint64_t done = 0;
  while (done < total) {
    const std::size_t of_header = done < header_bytes.size() ? header_bytes.size() - done : 0;
    const std::size_t of_payload = of_header > 0 ? 0 : done - header_bytes.size();
    const std::array<iovec, 2> pieces{
        iovec{header_bytes.data() + (header_bytes.size() - of_header), of_header},
        iovec{const_cast<std::byte*>(payload.data()) + of_payload, payload.size() - of_payload}};
    const ssize_t wrote =
        ::pwritev(file_.get(), pieces.data(), pieces.size(), static_cast<off_t>(end_ + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return fail_errno(fmt::format("cannot write the log of pushes '{}'", path_), errno);
    done += static_cast<std::uint64_t>(wrote);
  }
  const Place place{end_ + header_bytes.size(), payload.size()};
  end_ += total;
  return place;
}

Result<> PushLog::sync() const {
  if (::fdatasync(file_.get()) == 0) return {};
  return fail_errno(fmt::format("cannot bring the log of pushes '{}' to the disk", path_), errno);
}

}  // namespace muster::server
