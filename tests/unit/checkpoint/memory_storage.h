// A folder of checkpoints in memory.
#pragma once

#include "muster/checkpoint/checkpoint.h"

namespace muster::checkpoint::testing {

class MemoryStorage final : public Storage {
 public:
  Result<std::vector<std::byte>> read(const std::string& path) const override { return current().read(path); }
  Result<> write(const std::string& path, std::span<const std::byte> bytes) override {
    contents_[path].assign(bytes.begin(), bytes.end());
    return {};
  }
  Result<std::vector<std::string>> list(const std::string& folder) const override {
    return current().list(folder);
  }
  Result<> make_folder(const std::string&) override { return {}; }
  Result<> remove(const std::string& path) override {
    if (contents_.erase(path) == 0) return fail(Code::not_found, "no file " + path);
    return {};
  }

 private:
  MemoryFiles current() const {
    MemoryFiles files;
    for (const auto& [path, bytes] : contents_) (void)files.write(path, bytes);
    return files;
  }
  std::map<std::string, std::vector<std::byte>> contents_;
};

}  // namespace muster::checkpoint::testing
