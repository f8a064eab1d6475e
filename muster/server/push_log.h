// Push log: what a parameter server has taken, frame by frame in files that follow each other, `path`.0 and
// on (docs/formats/parameter-server.md). Private to server.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "muster/net/net.h"

namespace muster::server {

class PushLog {
 public:
  // Of a frame's payload in the files.
  struct Place {
    std::uint64_t segment = 0;
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
  };
  using Found = std::function<Result<>(net::Frame, const Place&)>;

  // The segments of a log, ascending, and their files.
  static Result<std::vector<std::uint64_t>> find_segments(const std::string& path);
  static std::string path_of(const std::string& path, std::uint64_t segment);

  // Opens or makes the segments from this one on, removes earlier ones, tells of each frame in them, and cuts
  // off what follows the last whole one. Of frames that were carried over it tells where they are in the
  // first segment: the others have them in the one before.
  static Result<std::unique_ptr<PushLog>> open(const std::string& path, std::uint64_t first_segment,
                                               const Found& found);

  // The header has the payload's size and checksum. Where a write fails the log must not be used any more.
  Result<Place> append(const net::FrameHeader& header, std::span<const std::byte> payload);
  Result<std::vector<std::byte>> read(const Place& place) const;
  // What was appended is on the disk. Any thread, also while another one appends.
  Result<> sync();

  // What is appended from here on is in a new segment.
  Result<> begin_segment();
  std::uint64_t segment() const { return segments_.back()->number; }
  // Of all segments.
  std::uint64_t size_bytes() const;
  // Segments before this one are needed no more. Returns their files, to be removed.
  std::vector<std::string> drop_before(std::uint64_t segment);

 private:
  struct Segment {
    net::ProcessDescriptor file;
    std::string path;
    std::uint64_t number = 0;
    std::uint64_t end = 0;
    bool is_done = false;  // nothing is appended to it any more, and all of it is on the disk
  };

  explicit PushLog(std::string path) : path_(std::move(path)) {}
  Result<> add_segment(std::uint64_t number);
  Result<bool> read_segment(Segment& segment, bool is_first, const Found& found);

  std::string path_;
  std::mutex syncing_;
  mutable std::mutex mutex_;  // of the list, which one thread changes and another one reads to sync
  std::deque<std::shared_ptr<Segment>> segments_;
};

}  // namespace muster::server
