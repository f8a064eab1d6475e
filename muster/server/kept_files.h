// Kept files: what a server's disk has of a share at one moment, base and log, for the other server that
// holds the share and has lost it. Private to server.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "muster/net/net.h"

namespace muster::server {

// A file by the end of its name.
struct KeptFileName {
  std::string suffix = {};
  std::uint64_t size_bytes = 0;
};
// Which bytes of it.
struct KeptFilePart {
  std::uint32_t file = 0;  // its place in the list
  std::uint64_t offset = 0;
  std::uint32_t size_bytes = 0;
};
inline constexpr std::uint32_t kept_part_bytes = std::uint32_t{1} << 20;
inline constexpr std::size_t kept_files_max = 4096;

// They stay as they are, whatever is written, renamed or removed meanwhile.
class KeptFiles {
 public:
  // On the thread that appends to the log, whose base is `path`.base.
  static Result<KeptFiles> open(const std::string& path);

  std::vector<KeptFileName> names() const;
  Result<std::vector<std::byte>> read(const KeptFilePart& part) const;

 private:
  struct File {
    KeptFileName name;
    net::ProcessDescriptor descriptor;
  };
  explicit KeptFiles(std::string path) : path_(std::move(path)) {}
  Result<> add(const std::string& suffix);

  std::string path_;
  std::vector<File> files_;
};

}  // namespace muster::server
