// Push log: what a parameter server has taken, frame by frame in a file (docs/formats/parameter-server.md).
// Private to server.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "muster/net/net.h"

namespace muster::server {

class PushLog {
 public:
  // Of a frame's payload in the file.
  struct Place {
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
  };
  using Found = std::function<Result<>(net::Frame, const Place&)>;

  // Opens or makes the file, tells of each frame in it, and cuts off what follows the last whole one. What it
  // holds is on the disk then.
  static Result<PushLog> open(const std::string& path, const Found& found);

  // The header has the payload's size and checksum. Where a write fails the log must not be used any more.
  Result<Place> append(const net::FrameHeader& header, std::span<const std::byte> payload);
  Result<std::vector<std::byte>> read(const Place& place) const;
  // What was appended is on the disk. Any thread, also while another one appends.
  Result<> sync() const;

 private:
  PushLog(net::ProcessDescriptor file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  Result<std::vector<std::byte>> read_at(std::uint64_t offset, std::size_t size_bytes) const;
  Result<> read_all(const Found& found);

  net::ProcessDescriptor file_;
  std::string path_;
  std::uint64_t end_ = 0;
};

}  // namespace muster::server
