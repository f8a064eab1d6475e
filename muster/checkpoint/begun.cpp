#include "muster/checkpoint/begun.h"

#include <span>
#include <vector>

#include "muster/checkpoint/bytes.h"

namespace muster::checkpoint {
namespace {

constexpr std::size_t record_bytes = 2 * number_bytes;
constexpr std::uint64_t hash_seed = 4;

}  // namespace

std::optional<std::uint64_t> read_begun(const std::string& path, const Storage& storage) {
  const auto bytes = storage.read(path);
  if (!bytes || bytes->size() != record_bytes) return std::nullopt;
  const std::span<const std::byte> record(*bytes);
  if (hash_bytes(record.data(), number_bytes, hash_seed) != get(record, number_bytes)) return std::nullopt;
  return get(record, 0);
}

Result<> write_begun(const std::string& path, std::uint64_t call, Storage& storage) {
  std::vector<std::byte> record;
  put(record, call);
  put(record, hash_bytes(record.data(), record.size(), hash_seed));
  return storage.write(path, record);
}

}  // namespace muster::checkpoint
