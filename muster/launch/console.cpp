#include "muster/launch/console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace muster::launch {
namespace {

// Poll promises room for this much in a pipe, so that a write of it does not block. Of a terminal it promises
// a single character, so terminals are opened once more, for writes that do not wait: the descriptor that was
// given is shared with every other program of the terminal.
constexpr std::size_t chunk_size = 4096;
constexpr std::string_view erase_line = "\r\033[K";

bool is_same_file(int a, int b) {
  struct stat first, second;
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

// Empty where the terminal belongs to another user (su): then the one that was given has to do.
net::Descriptor reopened(int terminal) {
  return net::Descriptor(::open(fmt::format("/proc/self/fd/{}", terminal).c_str(),
                                O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

// The first `width` characters of UTF-8 text.
std::string_view cut(std::string_view text, std::size_t width) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts_character = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (starts_character && characters++ == width) return text.substr(0, i);
  }
  return text;
}

// Of labels on a terminal, in turn: the bright and the plain ones that can be read on black and on white.
constexpr std::array<std::string_view, 10> colors = {"36", "33", "35", "32", "34",
                                                     "96", "93", "95", "92", "94"};

}  // namespace

Console::Console(int out_fd, int error_fd, bool is_colored)
    : fds_{out_fd, error_fd},
      one_place_(is_same_file(out_fd, error_fd)),
      is_terminal_{::isatty(out_fd) == 1, ::isatty(error_fd) == 1},
      is_colored_(is_colored) {
  for (const Stream stream : {out, error}) {
    if (!is_terminal_[place(stream)]) continue;
    if ((reopened_[place(stream)] = reopened(fd(stream))))
      fds_[place(stream)] = reopened_[place(stream)].get();
  }
  winsize size{};
  if (is_terminal() && ::ioctl(out_fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) width_ = size.ws_col;
}

void Console::introduce(std::string_view label) {
  colors_.try_emplace(std::string(label), colors_.size() % colors.size());
}

std::string Console::prefixed(Stream stream, std::string_view label, std::string_view text) const {
  if (label.empty()) return std::string(text);
  const auto color = colors_.find(label);
  if (!is_colored_ || !is_terminal_[place(stream)] || color == colors_.end())
    return fmt::format("[{}] {}", label, text);
  return fmt::format("\033[{}m[{}]\033[0m {}", colors[color->second], label, text);
}

void Console::hide_live(Stream stream) {
  const bool same_terminal = stream == out || one_place_ || is_terminal_[1];
  if (!live_.empty() && same_terminal) queue(stream) += erase_line;
}

void Console::line(Stream stream, std::string_view label, std::string_view text) {
  hide_live(stream);
  queue(stream) += prefixed(stream, label, text);
  queue(stream) += '\n';
  queue(out) += live_;
}

void Console::show_live() {
  hide_live(out);
  const std::string_view between = state_.empty() || progress_.empty() ? "" : "  ";
  const std::string whole = fmt::format("{}{}{}", state_, between, progress_);
  live_ = cut(whole, width_ - 1);
  queue(out) += live_;
}

void Console::live(std::string_view label, std::string_view text) {
  if (!is_terminal()) return;
  progress_ = text.empty() ? std::string{} : fmt::format("[{}] {}", label, text);
  show_live();
}

void Console::state(std::string_view text) {
  if (!is_terminal() || text == state_) return;
  state_ = text;
  show_live();
}

void Console::write_some(Stream stream) {
  std::string& waiting = queues_[place(stream)];
  const ssize_t written = ::write(fd(stream), waiting.data(), std::min(waiting.size(), chunk_size));
  if (written >= 0)
    waiting.erase(0, static_cast<std::size_t>(written));
  else if (errno != EINTR && errno != EAGAIN)
    waiting.clear();  // there is no reader any more; the logs have it all
}

void Console::flush(int timeout_ms) {
  for (const Stream stream : {out, error})
    while (is_waiting(stream)) {
      pollfd ready{.fd = fd(stream), .events = POLLOUT, .revents = 0};
      if (::poll(&ready, 1, timeout_ms) <= 0) return;
      write_some(stream);
    }
}

}  // namespace muster::launch
