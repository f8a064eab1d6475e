// A file that grows at its end alone, and that a killed process leaves readable up to its last whole record.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"

namespace muster::telemetry {

class AppendFile {
 public:
  // Nothing is open: append() fails.
  AppendFile() = default;
  ~AppendFile();
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // A new or an existing file; folders on the way are made. Errors name the file.
  static Result<AppendFile> open(const std::string& path);
  // The same, behind what is whole: `whole` says how many bytes of the contents that is, and what a process
  // has left behind them, in the middle of a write, is cut off. Pipes and devices have none.
  static Result<AppendFile> open_behind(const std::string& path,
                                        const std::function<std::size_t(std::span<const std::byte>)>& whole);

  // By one write: another reader or writer sees all of it or nothing.
  Result<> append(std::span<const std::byte> bytes);
  Result<> append(std::string_view text) {
    return append(std::as_bytes(std::span(text.data(), text.size())));
  }
  bool is_open() const { return descriptor_ >= 0; }
  const std::string& path() const { return path_; }

 private:
  AppendFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace muster::telemetry
