// The file system as an argument.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "muster/base/result.h"

namespace muster {

class Files {
 public:
  virtual ~Files() = default;
  // The whole file. not_found when it does not exist.
  virtual Result<std::vector<std::byte>> read(const std::string& path) const = 0;
  // Writes a new or existing file durably: unique temporary name, write, fsync, rename, fsync of the folder.
  Result<> write(const std::string& path, std::span<const std::byte> bytes) {
    return write_pieces(path, std::span(&bytes, 1));
  }
  // The same of a file that is these pieces, one after the other: the caller need not copy them together.
  virtual Result<> write_pieces(const std::string& path,
                                std::span<const std::span<const std::byte>> pieces) = 0;
  // Names inside a folder, sorted, without "." and "..".
  virtual Result<std::vector<std::string>> list(const std::string& folder) const = 0;
};

Files& real_files();

// Files in memory: the simulated counterpart. Folders exist when a path below them does.
class MemoryFiles final : public Files {
 public:
  Result<std::vector<std::byte>> read(const std::string& path) const override;
  Result<> write_pieces(const std::string& path, std::span<const std::span<const std::byte>> pieces) override;
  Result<std::vector<std::string>> list(const std::string& folder) const override;

 private:
  std::map<std::string, std::vector<std::byte>> contents_;
};

}  // namespace muster
