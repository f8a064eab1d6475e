#include "muster/checkpoint/ledger.h"

#include <fmt/format.h>

#include <span>

#include "muster/checkpoint/bytes.h"

namespace muster::checkpoint {
namespace {

constexpr std::size_t record_bytes = 32;
constexpr std::size_t buffer_bytes_max = 128 * record_bytes;

// Zeros, which a loss of power may leave, are no record: their hash is not zero.
constexpr std::uint64_t hash_seed = 1;

}  // namespace

Result<StepHashes> read_ledger(const std::string& path, const Storage& storage) {
  const auto bytes = storage.read(path);
  if (!bytes && bytes.error().code == Code::not_found) return StepHashes{};
  if (!bytes) return fail(bytes.error());
  StepHashes hashes;
  for (std::size_t at = 0; at + record_bytes <= bytes->size(); at += record_bytes) {
    const auto record = std::span(*bytes).subspan(at, record_bytes);
    if (hash_bytes(record.data(), record_bytes - 8, hash_seed) != get(record, record_bytes - 8)) continue;
    hashes[{get(record, 0), get(record, 8)}] = get(record, 16);
  }
  return hashes;
}

bool Ledger::add(std::uint64_t call, std::uint64_t step, std::uint64_t hash) {
  const std::lock_guard lock(buffer_mutex_);
  const std::size_t begin = buffer_.size();
  for (const std::uint64_t number : {call, step, hash}) put(buffer_, number);
  put(buffer_, hash_bytes(buffer_.data() + begin, record_bytes - 8, hash_seed));
  return buffer_.size() >= buffer_bytes_max;
}

bool Ledger::is_empty() {
  const std::lock_guard lock(buffer_mutex_);
  return buffer_.empty();
}

Result<> Ledger::flush() {
  const std::lock_guard writing(file_mutex_);
  // What cannot be written is forgotten: a full disk must not fill the memory too.
  const std::vector<std::byte> records = take();
  if (records.empty()) return {};
  if (file_ == nullptr) MUSTER_TRY_VOID(open());
  if (auto written = file_->append(records); !written) {
    file_.reset();  // a part of a record may stand there: opening cuts it off
    return written;
  }
  size_bytes_ += records.size();
  return {};
}

std::vector<std::byte> Ledger::take() {
  const std::lock_guard lock(buffer_mutex_);
  return std::exchange(buffer_, {});
}

Result<> Ledger::open() {
  const auto found = storage_.open(path_);
  if (!found && found.error().code != Code::not_found) return fail(found.error());
  size_bytes_ = found ? (*found)->size_bytes() / record_bytes * record_bytes : 0;
  MUSTER_TRY(file_, storage_.append_to(path_, size_bytes_));
  return {};
}

}  // namespace muster::checkpoint
