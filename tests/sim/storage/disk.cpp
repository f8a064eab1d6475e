#include "tests/sim/storage/disk.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::train::sim {
namespace {

tl::unexpected<Error> gone() { return fail(Code::aborted, "the process is gone"); }

}  // namespace

class ProcessDisk::Output final : public OutputFile {
 public:
  Output(ProcessDisk& disk, std::string path, std::unique_ptr<OutputFile> file)
      : disk_(disk), path_(std::move(path)), file_(std::move(file)) {}

  // A write that is cut short has written something.
  Result<> append(std::span<const std::byte> bytes) override {
    const bool was_dead = disk_.is_dead();
    auto allowed = disk_.may_change(path_, Needs::room);
    if (was_dead) return allowed;
    MUSTER_TRY_VOID(file_->append(allowed ? bytes : bytes.first(bytes.size() / 2)));
    disk_.note_change(path_);
    return allowed;
  }
  Result<> sync() override {
    MUSTER_TRY_VOID(disk_.may_change(path_));
    return file_->sync();
  }

 private:
  ProcessDisk& disk_;
  std::string path_;
  std::unique_ptr<OutputFile> file_;
};

// What the process has in its hands; the lock itself is the disk's, which lets go of it when the process
// dies.
class ProcessDisk::Locked final : public LockedFile {
 public:
  Locked(ProcessDisk& disk, std::string path, LockedFile* lock)
      : disk_(disk), path_(std::move(path)), lock_(lock) {}
  ~Locked() override {
    disk_.locks_.remove_if([this](const auto& lock) { return lock.get() == lock_; });
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

  Result<std::string> read() const override {
    MUSTER_TRY_VOID(disk_.may_read(path_));
    return lock_->read();
  }
  Result<> write(std::string_view text) override {
    MUSTER_TRY_VOID(disk_.may_change(path_, Needs::room));
    return lock_->write(text);
  }

 private:
  ProcessDisk& disk_;
  std::string path_;
  LockedFile* lock_;
};

// ---- What may happen --------------------------------------------------------------------------------------

void ProcessDisk::die() {
  is_dead_ = true;
  locks_.clear();
}

void ProcessDisk::stop_in(std::uint64_t n, std::function<void()> meanwhile) {
  stops_in_ = n;
  meanwhile_ = std::move(meanwhile);
}

Result<> ProcessDisk::may_read(const std::string& path) const {
  if (is_dead_) return gone();
  if (disk_.trouble == Trouble::dead) return fail_errno(fmt::format("cannot read '{}'", path), EIO);
  return {};
}

Result<> ProcessDisk::may_change(const std::string& path, Needs needs) {
  if (is_dead_) return gone();
  if (stops_in_ != 0 && --stops_in_ == 0) std::exchange(meanwhile_, {})();
  if (dies_in_ != 0 && --dies_in_ == 0) die();
  if (is_dead_) return gone();
  const int failure = disk_.trouble == Trouble::dead                           ? EIO
                      : disk_.trouble == Trouble::read_only                    ? EROFS
                      : disk_.trouble == Trouble::full && needs == Needs::room ? ENOSPC
                                                                               : 0;
  if (failure != 0) return fail_errno(fmt::format("cannot change '{}'", path), failure);
  return {};
}

void ProcessDisk::note_change(const std::string& path) {
  disk_.changed = true;
  changed_(path);
}

// ---- Reading ----------------------------------------------------------------------------------------------

Result<std::vector<std::byte>> ProcessDisk::read(const std::string& path) const {
  MUSTER_TRY_VOID(may_read(path));
  return disk_.content.read(path);
}

Result<std::vector<std::string>> ProcessDisk::list(const std::string& folder) const {
  MUSTER_TRY_VOID(may_read(folder));
  return disk_.content.list(folder);
}

Result<std::unique_ptr<InputFile>> ProcessDisk::open(const std::string& path) const {
  MUSTER_TRY_VOID(may_read(path));
  return disk_.content.open(path);
}

Result<bool> ProcessDisk::is_locked(const std::string& path) const {
  MUSTER_TRY_VOID(may_read(path));
  return disk_.content.is_locked(path);
}

// ---- Changing ---------------------------------------------------------------------------------------------

Result<> ProcessDisk::write_pieces(const std::string& path,
                                   std::span<const std::span<const std::byte>> pieces) {
  return checkpoint::testing::write_beside(*this, fmt::format("{}.{:06}", path, ++temporary_), path, pieces);
}

Result<> ProcessDisk::make_folder(const std::string& path) {
  MUSTER_TRY_VOID(may_read(path));
  if (disk_.content.list(path)) return {};
  MUSTER_TRY_VOID(may_change(path, Needs::room));
  return disk_.content.make_folder(path);
}

Result<std::string> ProcessDisk::make_temporary_folder(const std::string& prefix) {
  MUSTER_TRY_VOID(may_change(prefix, Needs::room));
  return disk_.content.make_temporary_folder(prefix);
}

Result<std::unique_ptr<OutputFile>> ProcessDisk::create(const std::string& path) {
  MUSTER_TRY_VOID(may_change(path, Needs::room));
  MUSTER_TRY(auto file, disk_.content.create(path));
  return std::make_unique<Output>(*this, path, std::move(file));
}

Result<std::unique_ptr<OutputFile>> ProcessDisk::append_to(const std::string& path,
                                                           std::uint64_t size_bytes) {
  MUSTER_TRY_VOID(may_change(path, Needs::room));
  MUSTER_TRY(auto file, disk_.content.append_to(path, size_bytes));
  note_change(path);
  return std::make_unique<Output>(*this, path, std::move(file));
}

Result<> ProcessDisk::rename(const std::string& from, const std::string& to) {
  MUSTER_TRY_VOID(may_change(to));
  MUSTER_TRY_VOID(disk_.content.rename(from, to));
  note_change(from);
  note_change(to);
  return {};
}

Result<> ProcessDisk::exchange(const std::string& first, const std::string& second) {
  MUSTER_TRY_VOID(may_change(second));
  MUSTER_TRY_VOID(disk_.content.exchange(first, second));
  note_change(second);
  return {};
}

Result<> ProcessDisk::sync_folder(const std::string& path) {
  MUSTER_TRY_VOID(may_change(path));
  return disk_.content.sync_folder(path);
}

Result<> ProcessDisk::remove(const std::string& path) {
  MUSTER_TRY_VOID(may_change(path));
  MUSTER_TRY_VOID(disk_.content.remove(path));
  note_change(path);
  return {};
}

// One name after the other, as the real one does: a kill leaves some.
Result<> ProcessDisk::remove_folder(const std::string& path) {
  MUSTER_TRY_VOID(may_read(path));
  const auto names = disk_.content.list(path);
  if (!names) return {};
  for (const std::string& name : *names) {
    const std::string inside = fmt::format("{}/{}", path, name);
    if (disk_.content.list(inside)) {
      MUSTER_TRY_VOID(remove_folder(inside));
    } else {
      MUSTER_TRY_VOID(remove(inside));
    }
  }
  MUSTER_TRY_VOID(may_change(path));
  MUSTER_TRY_VOID(disk_.content.remove_folder(path));
  note_change(path);
  return {};
}

Result<std::unique_ptr<LockedFile>> ProcessDisk::lock(const std::string& path, Sharing sharing,
                                                      std::chrono::milliseconds patience) {
  MUSTER_TRY_VOID(may_change(path, disk_.content.open(path) ? Needs::nothing : Needs::room));
  MUSTER_TRY(auto lock, disk_.content.lock(path, sharing, patience));
  locks_.push_back(std::move(lock));
  return std::make_unique<Locked>(*this, path, locks_.back().get());
}

}  // namespace muster::train::sim
