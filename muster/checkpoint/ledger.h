// A hash for each step of a job, for comparing runs: an append-only file of small records
// (docs/formats/recovery-point.md).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "muster/checkpoint/storage.h"

namespace muster::checkpoint {

// (call, step) to hash; of several for one step the last, which is that of the run that went on.
using StepHashes = std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t>;

// Records that are damaged are left out; a file that is not there has none.
Result<StepHashes> read_ledger(const std::string& path, const Storage& storage);

// Buffers what it is given and syncs nothing: a ledger convinces, it restores nothing. Any thread; while one
// writes to the file, others may add.
class Ledger {
 public:
  Ledger(std::string path, Storage& storage) : path_(std::move(path)), storage_(storage) {}
  // Whether it is time to flush.
  bool add(std::uint64_t call, std::uint64_t step, std::uint64_t hash);
  Result<> flush();
  bool is_empty();
  // What has not been written is not going to be.
  void forget() { (void)take(); }

 private:
  std::vector<std::byte> take();
  Result<> open();

  std::string path_;
  Storage& storage_;
  std::mutex file_mutex_;  // before buffer_mutex_
  std::unique_ptr<OutputFile> file_;
  std::uint64_t size_bytes_ = 0;
  std::mutex buffer_mutex_;
  std::vector<std::byte> buffer_;
};

}  // namespace muster::checkpoint
