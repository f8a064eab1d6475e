#include "muster/checkpoint/ownership.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "muster/checkpoint/run_folders.h"

namespace muster::checkpoint {
namespace {

constexpr std::size_t nonce_digits = 16;

constexpr std::string_view epoch_mark = ", epoch ";

// "0123456789abcdef pid 4711 on node-a, epoch 3\n": without the end of the line.
std::string_view line_of(std::string_view owner) { return owner.substr(0, owner.find('\n')); }

std::string person_in(std::string_view owner) {
  const std::string_view line = line_of(owner);
  if (line.size() <= nonce_digits + 1) return {};
  return std::string(line.substr(nonce_digits + 1, line.rfind(epoch_mark) - nonce_digits - 1));
}

// 0: none is named.
std::uint64_t epoch_in(std::string_view owner) {
  std::string_view line = line_of(owner);
  const std::size_t mark = line.rfind(epoch_mark);
  if (mark == std::string_view::npos) return 0;
  line.remove_prefix(mark + epoch_mark.size());
  std::uint64_t epoch = 0;
  const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), epoch);
  return failure == std::errc() && end == line.data() + line.size() ? epoch : 0;
}

std::string path_below(const std::string& worker_folder) {
  return fmt::format("{}/{}", worker_folder, owner_file);
}

Result<std::string> read_owner(const std::string& path, const Storage& storage) {
  MUSTER_TRY(const auto bytes, storage.read(path));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// Where nothing can be locked.
class NoLock final : public LockedFile {
 public:
  NoLock(std::string path, Storage& storage) : path_(std::move(path)), storage_(storage) {}
  Result<std::string> read() const override {
    MUSTER_TRY(const std::vector<std::byte> bytes, storage_.read(path_));
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  Result<> write(std::string_view text) override {
    return storage_.write(path_, std::as_bytes(std::span(text.data(), text.size())));
  }

 private:
  std::string path_;
  Storage& storage_;
};

}  // namespace

std::string this_process() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {'?'};
  return fmt::format("pid {} on {}", ::getpid(), host.data());
}

std::string owner_of(const std::string& worker_folder, const Storage& storage) {
  return person_in(read_owner(path_below(worker_folder), storage).value_or(""));
}

std::uint64_t epoch_of_owner(const std::string& worker_folder, const Storage& storage) {
  return epoch_in(read_owner(path_below(worker_folder), storage).value_or(""));
}

Ownership::Ownership(const std::string& worker_folder, Storage& storage, std::chrono::milliseconds patience,
                     std::uint64_t epoch)
    : folder_(worker_folder),
      path_(path_below(worker_folder)),
      name_(fmt::format("{:016x} {}{}{}\n", entropy(), this_process(), epoch_mark, epoch)),
      storage_(storage),
      patience_(patience),
      epoch_(epoch) {}

Result<Hold> Ownership::lock() {
  if (!has_locks_) return std::make_unique<NoLock>(path_, storage_);
  auto locked = storage_.lock(path_, Sharing::exclusive, patience_);
  if (locked) return locked;
  if (locked.error().code == Code::not_provided) {
    log::warning(fmt::format("{}: two processes that write there are told apart with less certainty",
                             locked.error().message));
    has_locks_ = false;
    return lock();
  }
  if (locked.error().code != Code::refused) return locked;
  const std::string holder = owner_of(folder_, storage_);
  return fail(
      Code::timeout,
      fmt::format("the recovery points in '{}' are locked by {}, which does not go on: end it (kill -9), "
                  "and start this worker again",
                  folder_, holder.empty() ? "another process" : holder));
}

// A process that was stopped before this, and wakes up when its successor has the folder, comes too late.
Result<Hold> Ownership::take() {
  MUSTER_TRY(Hold held, lock());
  if (const auto owner = held->read(); owner && !owner->empty()) {
    // Of a later epoch it is a successor's, even where this one saw no other when it came: it came too late.
    const std::uint64_t epoch = epoch_in(*owner);
    if (epoch > epoch_ || (before_ && *owner != before_ && epoch == epoch_))
      return fail(Code::refused, taken_by(*owner));
  }
  MUSTER_TRY_VOID(held->write(name_));
  before_ = name_;
  return held;
}

// Of an owner that cannot be read nothing is known.
void Ownership::note_owner() {
  auto owner = read_owner(path_, storage_);
  if (owner)
    before_ = *std::move(owner);
  else if (owner.error().code == Code::not_found)
    before_ = "";
}

// Without the lock, the line of the one that takes the folder may be half written.
std::optional<std::string> Ownership::lost() const {
  const auto owner = read_owner(path_, storage_);
  if (!owner || *owner == name_ || !owner->ends_with('\n') || is_late(*owner)) return std::nullopt;
  return taken_by(*owner);
}

bool Ownership::is_late(std::string_view owner) const { return epoch_in(owner) < epoch_; }

std::string Ownership::taken_by(std::string_view owner) const {
  return fmt::format(
      "the recovery points in '{}' belong to another process by now ({}), which has taken "
      "this worker's place: this one keeps nothing any more",
      folder_, person_in(owner));
}

Result<Hold> Ownership::hold() {
  MUSTER_TRY(Hold held, lock());
  MUSTER_TRY(const std::string owner, held->read());
  if (owner == name_) return held;
  if (owner.empty()) return fail(Code::not_found, fmt::format("'{}' has vanished", folder_));
  if (is_late(owner)) return fail(Code::not_found, fmt::format("'{}' was taken by one too late", folder_));
  return fail(Code::refused, taken_by(owner));
}

}  // namespace muster::checkpoint
