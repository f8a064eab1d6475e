#include "muster/server/rows_fetch.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "muster/server/file_io.h"
#include "muster/server/server_disk.h"
#include "muster/server/wire.h"

namespace muster::server {
namespace {

// Parts that travel at once: enough that neither side waits for the other.
constexpr std::uint32_t parts_awaited_max = 8;

}  // namespace

RowsFetch::RowsFetch(net::Loop& loop, Options options, Done done)
    : loop_(loop), options_(std::move(options)), done_(std::move(done)) {}
RowsFetch::~RowsFetch() = default;

void RowsFetch::connect(const net::Address& address, const net::ConnectionSecurity& security) {
  files_.clear();
  asked_file_ = awaited_ = 0;
  asked_offset_ = 0;
  is_connected_ = true;
  connection_ = net::Connection::connect(
      loop_, address,
      {.payload_size_bytes = batch_limit_bytes, .unsent_size_bytes = unsent_batches_limit_bytes},
      {.opened = [this] { opened(); },
       .received =
           [this](const net::Frame& frame) {
             if (const auto heard = received(frame); !heard) end(fail(heard.error()));
           },
       .closed = [this](const Error&) { is_connected_ = false; }},
      security);
}

void RowsFetch::opened() {
  connection_->send(make_frame(options_.job_id, FrameType::want_files,
                               {.flags = options_.share, .epoch = options_.generation}));
}

Result<> RowsFetch::received(const net::Frame& frame) {
  if (!done_) return {};
  switch (static_cast<FrameType>(frame.header.type)) {
    case FrameType::kept_files:
      return begin(frame);
    case FrameType::file_part:
      return write(frame);
    default:
      return fail(
          Code::corrupt,
          fmt::format("a parameter server has sent another one a frame of type {:#06x}", frame.header.type));
  }
}

Result<> RowsFetch::begin(const net::Frame& frame) {
  MUSTER_TRY(const auto names, decode_kept_files(frame));
  if (names.empty()) {
    end(false);
    return {};
  }
  MUSTER_TRY_VOID(ServerDisk::begin_fetch(options_.path));
  for (const KeptFileName& name : names) {
    File file{.name = name, .descriptor = {}, .path = fmt::format("{}.{}", options_.path, name.suffix)};
    file.descriptor =
        net::ProcessDescriptor(::open(file.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file.descriptor) return fail_errno(fmt::format("cannot make '{}'", file.path), errno);
    files_.push_back(std::move(file));
  }
  ask();
  return {};
}

void RowsFetch::ask() {
  while (awaited_ < parts_awaited_max && asked_file_ < files_.size()) {
    const std::uint64_t rest = files_[asked_file_].name.size_bytes - asked_offset_;
    if (rest == 0) {
      ++asked_file_;
      asked_offset_ = 0;
      continue;
    }
    const KeptFilePart part{
        .file = asked_file_,
        .offset = asked_offset_,
        .size_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(rest, kept_part_bytes))};
    connection_->send(make_frame(options_.job_id, FrameType::want_part, {}, encode(part)));
    asked_offset_ += part.size_bytes;
    ++awaited_;
  }
  if (awaited_ == 0) end(true);
}

Result<> RowsFetch::write(const net::Frame& frame) {
  const std::uint32_t index = frame.header.flags;
  const std::uint64_t offset = frame.header.sequence;
  if (awaited_ == 0 || index >= files_.size() ||
      offset + frame.payload.size() > files_[index].name.size_bytes)
    return fail(Code::corrupt, "a parameter server has sent another part of a file than it was asked for");
  MUSTER_TRY_VOID(write_at(files_[index].descriptor.get(), offset, frame.payload, files_[index].path));
  --awaited_;
  ask();
  return {};
}

void RowsFetch::end(Result<bool> result) {
  if (!done_) return;
  files_.clear();
  std::exchange(done_, nullptr)(std::move(result));
}

}  // namespace muster::server
