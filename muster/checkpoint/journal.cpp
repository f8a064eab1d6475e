#include "muster/checkpoint/journal.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "muster/checkpoint/bytes.h"

namespace muster::checkpoint {
namespace {

constexpr std::string_view magic = "MUSTERJ1";
constexpr std::size_t head_bytes = 48;         // magic, job, world size, rank, hash
constexpr std::size_t record_head_bytes = 16;  // length, hash
constexpr std::size_t kind_bytes_max = 64;
constexpr std::size_t result_bytes_max = std::size_t{64} << 20;

using Bytes = std::vector<std::byte>;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Bytes head_of(const RunIdentity& identity) {
  Bytes head;
  put(head, magic);
  put(head, identity.job);
  put(head, identity.world_size);
  put(head, identity.rank);
  put(head, hash_bytes(head.data(), head.size()));
  MUSTER_CHECK(head.size() == head_bytes, "the head of a journal has another size");
  return head;
}

// The hash of a record is seeded with its place: a record that stands elsewhere is none.
Bytes encode(const CallRecord& record, std::uint64_t place) {
  Bytes content;
  put(content, record.call);
  put(content, record.kind.size());
  put(content, record.kind);
  put(content, record.result);
  Bytes whole;
  put(whole, content.size());
  put(whole, hash_bytes(content.data(), content.size(), place));
  whole.insert(whole.end(), content.begin(), content.end());
  return whole;
}

std::optional<CallRecord> decode(std::span<const std::byte> content) {
  if (content.size() < 16) return {};
  const std::uint64_t kind_bytes = get(content, 8);
  if (kind_bytes > kind_bytes_max || kind_bytes > content.size() - 16) return {};
  return CallRecord{.call = get(content, 0),
                    .kind = text_of(content.subspan(16, kind_bytes)),
                    .result = text_of(content.subspan(16 + kind_bytes))};
}

// The records up to the first that is not whole. Returns where they end.
std::uint64_t read_records(std::span<const std::byte> bytes, JournalContent& content) {
  std::size_t at = head_bytes;
  while (bytes.size() - at >= record_head_bytes) {
    const std::uint64_t size = get(bytes, at);
    if (size > bytes.size() - at - record_head_bytes) break;
    const auto body = bytes.subspan(at + record_head_bytes, size);
    if (hash_bytes(body.data(), body.size(), at) != get(bytes, at + 8)) break;
    auto record = decode(body);
    if (!record) break;
    content.records[record->call] = *std::move(record);
    at += record_head_bytes + size;
  }
  return at;
}

Result<std::pair<JournalContent, std::uint64_t>> read_file(const std::string& path, const Storage& storage) {
  MUSTER_TRY(const Bytes bytes, storage.read(path));
  const auto head = std::span(bytes).first(std::min(bytes.size(), head_bytes));
  if (head.size() < head_bytes || std::memcmp(head.data(), magic.data(), magic.size()) != 0 ||
      hash_bytes(head.data(), head_bytes - 8) != get(head, head_bytes - 8))
    return fail(Code::corrupt, fmt::format("'{}' is no journal of calls, or its head is damaged", path));
  JournalContent content;
  content.identity = {
      .job = text_of(head.subspan(8, 16)), .world_size = get(head, 24), .rank = get(head, 32)};
  const std::uint64_t end = read_records(bytes, content);
  return std::pair{std::move(content), end};
}

}  // namespace

Result<JournalContent> read_journal(const std::string& path, const Storage& storage) {
  MUSTER_TRY(auto read, read_file(path, storage));
  return std::move(read.first);
}

Result<Journal> Journal::open(std::string path, const RunIdentity& identity, Storage& storage) {
  auto read = read_file(path, storage);
  if (!read && read.error().code != Code::not_found) return fail(std::move(read).error());
  if (!read) {
    Journal made(std::move(path), {.identity = identity}, storage);
    MUSTER_TRY_VOID(made.write_all());
    return made;
  }
  Journal found(std::move(path), std::move(read->first), storage);
  found.size_bytes_ = read->second;
  MUSTER_TRY(found.file_, storage.append_to(found.path_, found.size_bytes_));
  // What is read here counts for others from now on; who wrote it may have died before its sync.
  MUSTER_TRY_VOID(found.file_->sync());
  return found;
}

Result<> Journal::add(CallRecord record) {
  if (record.kind.size() > kind_bytes_max || record.result.size() > result_bytes_max)
    return fail(Code::invalid_argument,
                fmt::format("the result of call {} has {} bytes: {} are the most that its "
                            "journal takes",
                            record.call, record.result.size(), result_bytes_max));
  const auto known = content_.records.find(record.call);
  if (known != content_.records.end() && known->second == record) return {};
  if (file_ == nullptr) MUSTER_TRY_VOID(write_all());
  MUSTER_TRY_VOID(append(encode(record, size_bytes_)));
  content_.records[record.call] = std::move(record);
  return {};
}

Result<> Journal::append(const std::vector<std::byte>& record) {
  auto written = file_->append(record);
  if (written) written = file_->sync();
  if (!written) {
    file_.reset();
    return written;
  }
  size_bytes_ += record.size();
  return {};
}

Result<> Journal::write_all() {
  Bytes bytes = head_of(content_.identity);
  for (const auto& [call, record] : content_.records) {
    const Bytes encoded = encode(record, bytes.size());
    bytes.insert(bytes.end(), encoded.begin(), encoded.end());
  }
  MUSTER_TRY_VOID(storage_->write(path_, bytes));
  size_bytes_ = bytes.size();
  MUSTER_TRY(file_, storage_->append_to(path_, size_bytes_));
  return {};
}

}  // namespace muster::checkpoint
