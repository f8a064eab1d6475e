// A disk in memory that behaves as a disk does at its worst: it tells what was written from what is synced,
// it fails the n-th operation, and it loses power.
#pragma once

#include <cerrno>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/checkpoint/checkpoint.h"

namespace muster::checkpoint::testing {

// What happens to the operations that change something; they are counted from 1.
struct Fault {
  enum class Kind {
    once,     // operation `at` fails, as a write to a full disk does
    forever,  // it and all after it
    kill,     // the process is gone from there on: nothing after it has any effect
  };
  std::size_t at = 0;  // 0: none
  Kind kind = Kind::once;
  int error_number = ENOSPC;
};

class MemoryStorage final : public Storage {
 public:
  MemoryStorage();

  void set_fault(Fault fault);
  std::size_t operations() const;
  // Whether the fault has come to pass.
  bool has_failed() const;

  // The disk as the next process finds it after a kill: everything that was written is there.
  MemoryStorage after_kill() const;
  // After a loss of power: names come back as they were when their folder was last synced, and bytes that
  // were never synced are zeros, or missing with `truncate`.
  MemoryStorage after_power_loss(bool truncate) const;

  // For tests that damage files.
  std::vector<std::byte>& content(const std::string& path);
  // Whether a loss of power leaves the file as it is.
  bool is_synced(const std::string& path) const;
  // All files, sorted.
  std::vector<std::string> paths() const;

  Result<std::vector<std::byte>> read(const std::string& path) const override;
  Result<> write_pieces(const std::string& path, std::span<const std::span<const std::byte>> pieces) override;
  Result<std::vector<std::string>> list(const std::string& folder) const override;
  Result<> make_folder(const std::string& path) override;
  Result<std::string> make_temporary_folder(const std::string& prefix) override;
  Result<std::unique_ptr<OutputFile>> create(const std::string& path) override;
  Result<std::unique_ptr<OutputFile>> append_to(const std::string& path, std::uint64_t size_bytes) override;
  Result<std::unique_ptr<InputFile>> open(const std::string& path) const override;
  Result<> rename(const std::string& from, const std::string& to) override;
  Result<> exchange(const std::string& first, const std::string& second) override;
  Result<> sync_folder(const std::string& path) override;
  Result<> remove(const std::string& path) override;
  Result<> remove_folder(const std::string& path) override;
  // Nobody else runs meanwhile, so it waits for nobody.
  Result<std::unique_ptr<LockedFile>> lock(const std::string& path, Sharing sharing,
                                           std::chrono::milliseconds patience) override;
  Result<bool> is_locked(const std::string& path) const override;

  struct Disk;
  // Of file systems that cannot exchange two names.
  bool can_exchange = true;

 private:
  std::shared_ptr<Disk> disk_;
};

// A whole file by way of `temporary`, as the real storage goes about it.
Result<> write_beside(Storage& storage, const std::string& temporary, const std::string& path,
                      std::span<const std::span<const std::byte>> pieces);

}  // namespace muster::checkpoint::testing
