// Writes a new file from its beginning past the page cache, where the file system can do that.
//
// What is written once and read perhaps never need not go through the cache: the copy into its pages, and
// freeing them when the file is removed, cost a training on the same cores more than the disk does. Large
// pieces whose addresses fit their places in the file are not even copied; for others there is a block.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "muster/base/base.h"

namespace muster::checkpoint {

class DirectWriter {
 public:
  // What every disk is content with, for memory, sizes and places in the file: a page.
  static constexpr std::size_t alignment_bytes = 4096;

  // `fd` is of a new, empty file and outlives this; `path` is for errors.
  DirectWriter(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  // May keep the last bytes until sync().
  Result<> append(std::span<const std::byte> bytes);
  // All bytes are written, and on the disk.
  Result<> sync();

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };

  bool lies_as_in_file(std::span<const std::byte> bytes) const;
  std::size_t take(std::span<const std::byte> bytes);
  Result<> write_block();
  Result<> write(std::span<const std::byte> bytes);
  void set_direct(bool on);

  int fd_;
  std::string path_;
  std::unique_ptr<std::byte[], Free> block_ = {};  // made at the first use
  std::size_t filled_ = 0;
  bool possible_ = true;  // as far as is known
  bool direct_ = false;
};

}  // namespace muster::checkpoint
