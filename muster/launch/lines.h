// From the bytes that a process writes to the lines that people see.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace muster::launch {

// Of a process.
enum class Stream : std::uint8_t { out, error };
inline constexpr std::array both_streams = {Stream::out, Stream::error};

// One stream of a process. A carriage return takes the line back, as on a terminal: of a progress bar only
// what stands there at last becomes a line.
class LineBuffer {
 public:
  static constexpr std::size_t line_size_max = 64 * 1024;  // a longer line is cut into several

  // Calls `on_line` for every line that `bytes` completes, without its end.
  void feed(std::string_view bytes, const std::function<void(std::string_view)>& on_line);
  // What stands on the line that is not complete.
  const std::string& unfinished() const { return text_; }
  void clear();

 private:
  std::string text_;
  bool returned_ = false;  // a carriage return came: what comes next overwrites the line
};

}  // namespace muster::launch
