// Checkpoint files in folders.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/base/base.h"
#include "muster/checkpoint/format.h"
#include "muster/checkpoint/storage.h"

namespace muster::checkpoint {

inline constexpr std::string_view extension = ".ckpt";
inline constexpr std::string_view safetensors_extension = ".safetensors";

// That of a format: "ckpt" or "safetensors".
Result<std::string_view> extension_of(std::string_view format);
// Either of them, that `path` has; empty.
std::string_view extension_in(std::string_view path);

// A name that ends in .safetensors gets that format, every other one the bytes of MindSpore's .ckpt. Durable:
// a reader that sees the name sees all of the file, also after a crash. `layout`, of files of pieces: what
// encode_layout gives.
Result<> save(const std::string& path, std::span<const Entry> entries, Files& files = real_files(),
              const std::string& layout = {});
// Either format, whatever the file is called. Errors say that the file is missing, or what is wrong where.
Result<std::vector<Entry>> load(const std::string& path, const Storage& storage = real_storage());

// A file of either format whose elements are read when they are asked for (read_tensor).
struct StoredFile {
  std::string path = {};
  std::unique_ptr<InputFile> file = {};
  std::vector<StoredTensor> tensors = {};
  std::map<std::string, std::string> metadata = {};  // texts of the writer's; of a .ckpt the layout alone
};
Result<StoredFile> open_stored(const std::string& path, const Storage& storage = real_storage());

// The number of a training under which no file of an earlier one lies in a folder: one more than the greatest
// that is there, from 0.
std::int64_t free_number(const std::string& prefix, std::span<const std::string> names_in_folder);
// What its files begin with: `prefix`, "prefix_1", "prefix_2".
std::string numbered_prefix(const std::string& prefix, std::int64_t number);

// A file of a training by its name, "prefix_N-EPOCH_STEP.ckpt" or .safetensors. Ordered as they were written.
struct CheckpointName {
  std::int64_t number = 0;  // of the training: N, or 0
  std::int64_t epoch = 0;
  std::int64_t step = 0;  // of the epoch

  friend auto operator<=>(const CheckpointName&, const CheckpointName&) = default;
};
// Nothing of any other name.
std::optional<CheckpointName> checkpoint_name(std::string_view name, std::string_view prefix);

// Keeps the newest files that it is told of and removes the others.
class Retention {
 public:
  // 0 keeps all.
  explicit Retention(std::size_t keep_max) : keep_max_(keep_max) {}
  // `path` has been written. A file that is gone already is no error. Returns those that were removed.
  Result<std::vector<std::string>> add(const std::string& path, Storage& storage = real_storage());

  // What it has been told of and has not removed, oldest first; what another one was told of.
  const std::deque<std::string>& paths() const { return paths_; }
  void restore(std::deque<std::string> paths) { paths_ = std::move(paths); }

 private:
  std::size_t keep_max_;
  std::deque<std::string> paths_;
};

}  // namespace muster::checkpoint
