// The calls of a job that have ended, as an append-only file (docs/formats/recovery-point.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "muster/checkpoint/run_store.h"

namespace muster::checkpoint {

// Whose journal it is. Stands at its begin.
struct RunIdentity {
  std::string job = {};
  std::uint64_t world_size = 0;
  std::uint64_t rank = 0;

  friend bool operator==(const RunIdentity&, const RunIdentity&) = default;
};

struct JournalContent {
  RunIdentity identity = {};
  std::map<std::uint64_t, CallRecord> records = {};  // by call; of several for one the last
};

// Fails when the head is no journal's. What a kill has left of a record at the end is ignored.
Result<JournalContent> read_journal(const std::string& path, const Storage& storage);

class Journal {
 public:
  // The file is made when it is not there. Whose it is, is for the caller to compare.
  static Result<Journal> open(std::string path, const RunIdentity& identity, Storage& storage);

  const JournalContent& content() const { return content_; }
  // Durable when it returns. After a failure the next one writes the file anew, under another name first.
  Result<> add(CallRecord record);

 private:
  Journal(std::string path, JournalContent content, Storage& storage)
      : path_(std::move(path)), content_(std::move(content)), storage_(&storage) {}
  Result<> append(const std::vector<std::byte>& record);
  Result<> write_all();

  std::string path_;
  JournalContent content_;
  Storage* storage_;
  std::uint64_t size_bytes_ = 0;
  std::unique_ptr<OutputFile> file_;  // null: the next record comes with the whole file
};

}  // namespace muster::checkpoint
