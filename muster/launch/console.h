// Standard output and standard error of the launcher: prefixed lines of many processes, and on a terminal one
// live line below them.
//
// It never blocks: what cannot be written yet waits in a queue, and the caller polls the streams and lets
// nobody write more while the queue is long. A stream whose reader has gone swallows what is written.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace muster::launch {

class Console {
 public:
  enum Stream : std::size_t { out, error };
  static constexpr std::size_t queue_size_max = 1 << 20;

  Console(int out_fd, int error_fd);

  // "[worker 2] text"; without a label the text alone.
  void line(Stream stream, std::string_view label, std::string_view text);
  // The live line of a terminal; elsewhere nothing. An empty text takes it away.
  void live(std::string_view label, std::string_view text);

  bool is_full() const { return queues_[out].size() + queues_[error].size() > queue_size_max; }
  bool is_waiting(Stream stream) const { return !queues_[stream].empty(); }
  int fd(Stream stream) const { return fds_[stream]; }
  // Writes some of what waits; to be called when poll says that the stream can be written.
  void write_some(Stream stream);
  // Writes all that waits; gives up when nothing could be written for `timeout_ms`.
  void flush(int timeout_ms);

 private:
  std::string& queue(Stream stream) { return queues_[one_place_ ? out : stream]; }
  void hide_live(Stream stream);

  std::array<int, 2> fds_;
  std::array<std::string, 2> queues_;
  bool one_place_;    // both are the same file: one queue keeps the order
  bool is_terminal_;  // of standard output
  std::size_t width_ = 80;
  std::string live_;
};

}  // namespace muster::launch
