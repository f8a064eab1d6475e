// The end of what a process wrote, to be repeated when it fails.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace muster::launch {

// The last lines; more of them when a Python traceback ends among them, which is kept from its first line on,
// together with those that it says it comes from.
class LastLines {
 public:
  static constexpr std::size_t lines_max = 30;
  static constexpr std::size_t traceback_lines_max = 1000;  // of a longer one the middle is left out
  static constexpr std::size_t line_size_max = 4096;        // a longer line is cut

  void add(std::string_view line);
  std::vector<std::string> lines() const;
  bool empty() const { return lines_.empty(); }

 private:
  enum class State { none, inside, behind };  // of a traceback

  void note_traceback(std::string_view line);

  std::deque<std::string> lines_;
  State state_ = State::none;
  std::size_t traceback_size_ = 0;  // lines from its first one on
  std::size_t behind_ = 0;          // lines since it ended
  bool continues_ = false;          // the next traceback belongs to it
  std::size_t left_out_ = 0;
};

}  // namespace muster::launch
