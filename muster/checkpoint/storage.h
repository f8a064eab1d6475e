// The disk as an argument: files, and what else folders of checkpoints need.
//
// What is durable and when is the caller's business: a file's bytes are on the disk after sync(), its name
// after sync_folder() of the folder that it lies in. After an error of either nothing is known of what was
// written, and nothing may be tried again on it: the kernel may have marked the lost pages as clean.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"

namespace muster::checkpoint {

// A file that is being written. The destructor closes it and syncs nothing.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  virtual Result<> append(std::span<const std::byte> bytes) = 0;
  virtual Result<> sync() = 0;
};

// A file that is being read, piece by piece: of a hostile one no more than asked for comes into memory.
class InputFile {
 public:
  virtual ~InputFile() = default;
  virtual std::uint64_t size_bytes() const = 0;  // when it was opened
  // Fills `into`; corrupt when the file ends before.
  virtual Result<> read_at(std::uint64_t offset, std::span<std::byte> into) const = 0;
};

// A small file that is locked while this lives, and at the longest as long as its process.
class LockedFile {
 public:
  virtual ~LockedFile() = default;
  virtual Result<std::string> read() const = 0;
  // In place and not synced: a lock means nothing after a loss of power. Needs an exclusive lock.
  virtual Result<> write(std::string_view text) = 0;
};

enum class Sharing : std::uint8_t { shared, exclusive };

class Storage : public Files {
 public:
  // Makes a folder and those above it, durably; one that is there is no error.
  virtual Result<> make_folder(const std::string& path) = 0;
  // A new folder with a unique name: `prefix` and six characters.
  virtual Result<std::string> make_temporary_folder(const std::string& prefix) = 0;
  // A new file; one that is there is an error.
  virtual Result<std::unique_ptr<OutputFile>> create(const std::string& path) = 0;
  // The file behind its first `size_bytes` bytes, made when it is not there; what it has behind them is cut
  // off.
  virtual Result<std::unique_ptr<OutputFile>> append_to(const std::string& path,
                                                        std::uint64_t size_bytes) = 0;
  virtual Result<std::unique_ptr<InputFile>> open(const std::string& path) const = 0;
  // In one step. A folder that is there and not empty is no place to rename to.
  virtual Result<> rename(const std::string& from, const std::string& to) = 0;
  // Both are there, and each gets the other's name, in one step; not_provided where the file system cannot.
  virtual Result<> exchange(const std::string& first, const std::string& second) = 0;
  virtual Result<> sync_folder(const std::string& path) = 0;
  // Removes a file. not_found when it does not exist.
  virtual Result<> remove(const std::string& path) = 0;
  // Removes a folder and all that is in it; links are removed, not followed. One that is not there is no
  // error.
  virtual Result<> remove_folder(const std::string& path) = 0;
  // Locks a file, made when it is not there. `refused` when others still hold it after `patience`;
  // not_provided where the file system has no locks.
  virtual Result<std::unique_ptr<LockedFile>> lock(const std::string& path, Sharing sharing,
                                                   std::chrono::milliseconds patience) = 0;
  // Whether a process holds a lock of it; a file that is not there has none. Takes none itself.
  virtual Result<bool> is_locked(const std::string& path) const = 0;
};

Storage& real_storage();

// Whether a listing of a folder has the file `wanted`.
bool has(const std::vector<std::string>& names, std::string_view wanted);
// "a/" and "a" are one folder.
std::string without_slash(std::string path);

}  // namespace muster::checkpoint
