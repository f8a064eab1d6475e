// A disk of the simulation, and how a process sees it: the process may die or be stopped in the middle of any
// operation, and the disk may be full, not writable or not readable at the moment.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/checkpoint/checkpoint.h"
#include "tests/unit/checkpoint/memory_storage.h"

namespace muster::train::sim {

using checkpoint::InputFile;
using checkpoint::LockedFile;
using checkpoint::OutputFile;
using checkpoint::Sharing;
using checkpoint::Storage;
using checkpoint::testing::MemoryStorage;

enum class Trouble {
  none,
  full,       // a write writes a half of it
  read_only,  // can be read
  dead,       // neither
};

struct Disk {
  MemoryStorage content = {};
  Trouble trouble = Trouble::none;
  bool changed = false;  // since somebody looked
};

// The disk as one process sees it. After die() nothing that the process does has any effect, and its locks
// are free.
class ProcessDisk final : public Storage {
 public:
  // Called after each change of what lies at a path.
  using Changed = std::function<void(const std::string& path)>;
  ProcessDisk(Disk& disk, Changed changed) : disk_(disk), changed_(std::move(changed)) {}
  ProcessDisk(const ProcessDisk&) = delete;
  ProcessDisk& operator=(const ProcessDisk&) = delete;

  void die();
  bool is_dead() const { return is_dead_; }
  // In the n-th change from now on, counted from 1: the process dies, or `meanwhile` is called, in which it
  // may die.
  void die_in(std::uint64_t n) { dies_in_ = n; }
  void stop_in(std::uint64_t n, std::function<void()> meanwhile);

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
  Result<std::unique_ptr<LockedFile>> lock(const std::string& path, Sharing sharing,
                                           std::chrono::milliseconds patience) override;
  Result<bool> is_locked(const std::string& path) const override;

 private:
  class Output;
  class Locked;
  enum class Needs { nothing, room };

  Result<> may_read(const std::string& path) const;
  Result<> may_change(const std::string& path, Needs needs = Needs::nothing);
  void note_change(const std::string& path);

  Disk& disk_;
  Changed changed_;
  bool is_dead_ = false;
  std::uint64_t dies_in_ = 0;
  std::uint64_t stops_in_ = 0;
  std::function<void()> meanwhile_;
  std::uint64_t temporary_ = 0;
  std::list<std::unique_ptr<LockedFile>> locks_;
};

}  // namespace muster::train::sim
