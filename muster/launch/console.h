// Standard output and standard error of the launcher: prefixed lines of many processes, and on a terminal one
// live line below them: how the job is, and what a process has written of a line that is not complete.
//
// It never blocks: what cannot be written yet waits in a queue, and the caller polls the streams and lets
// no one write more while the queue is long. A stream whose reader has gone swallows what is written.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "muster/launch/lines.h"
#include "muster/net/net.h"

namespace muster::launch {

class Console {
 public:
  using Stream = launch::Stream;
  static constexpr Stream out = Stream::out, error = Stream::error;
  static constexpr std::size_t queue_size_max = 1 << 20;

  // Colours appear on terminals only.
  Console(int out_fd, int error_fd, bool is_colored = false);

  // Labels that are introduced have a colour each, as far as there are colours.
  void introduce(std::string_view label);
  // "[worker 2] text"; without a label the text alone.
  void line(Stream stream, std::string_view label, std::string_view text);
  // The live line of a terminal; elsewhere nothing. An empty text takes it away.
  void live(std::string_view label, std::string_view text);
  // Stands before it on the live line.
  void state(std::string_view text);
  bool is_terminal() const { return is_terminal_[0]; }  // standard output is, and a live line is shown

  bool is_full() const { return queues_[0].size() + queues_[1].size() > queue_size_max; }
  bool is_waiting(Stream stream) const { return !queues_[place(stream)].empty(); }
  int fd(Stream stream) const { return fds_[place(stream)]; }
  // Writes some of what waits; to be called when poll says that the stream can be written.
  void write_some(Stream stream);
  // Writes all that waits; gives up when nothing could be written for `timeout_ms`.
  void flush(int timeout_ms);

 private:
  static std::size_t place(Stream stream) { return static_cast<std::size_t>(stream); }
  std::string& queue(Stream stream) { return queues_[one_place_ ? 0 : place(stream)]; }
  std::string prefixed(Stream stream, std::string_view label, std::string_view text) const;
  void hide_live(Stream stream);
  void show_live();

  std::array<int, 2> fds_;
  std::array<net::Descriptor, 2> reopened_;  // those of terminals
  std::array<std::string, 2> queues_;
  bool one_place_;  // both are the same file: one queue keeps the order
  std::array<bool, 2> is_terminal_;
  bool is_colored_;
  std::map<std::string, std::size_t, std::less<>> colors_;
  std::size_t width_ = 80;
  std::string state_;
  std::string progress_;  // of a process
  std::string live_;      // as it stands on the terminal
};

}  // namespace muster::launch
