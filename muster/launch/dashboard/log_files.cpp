#include "muster/launch/dashboard/log_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include "muster/base/base.h"
#include "muster/net/net.h"

namespace muster::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t page_lines_max = 500;
constexpr std::size_t line_bytes_max = 4096;
constexpr std::uint64_t read_bytes_max = 256 << 10;
constexpr std::uint64_t search_bytes_max = 64 << 20;

std::string folded(std::string_view text) {
  std::string made(text);
  for (char& c : made)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return made;
}

// What a terminal shows of a line: a progress bar writes its states behind each other, with "\r" between
// them.
std::string_view shown(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  return line.substr(line.rfind('\r') + 1);  // npos + 1 is 0
}

// Of `text`, which lies at `offset` of its file; what is cut at its beginning is left out, unless it is all.
std::vector<LogLine> lines_of(std::string_view text, std::uint64_t offset, const std::string& wanted) {
  std::vector<LogLine> lines;
  std::size_t begin = 0;
  if (const auto cut_end = text.find('\n'); offset > 0 && cut_end != std::string::npos) begin = cut_end + 1;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = shown(text.substr(begin, end - begin));
    if (wanted.empty() || folded(line).find(wanted) != std::string::npos)
      lines.push_back({offset + begin, printable(cut(line, line_bytes_max))});
    begin = end + 1;
  }
  if (lines.size() > page_lines_max) lines.erase(lines.begin(), lines.end() - page_lines_max);
  return lines;
}

// "muster[worker 1] warning: text": of such a line its process and the rest.
std::optional<JobEvent> warning_in(std::string_view line, double time) {
  constexpr std::string_view begin = "muster[";
  if (!line.starts_with(begin)) return std::nullopt;
  const auto name_end = line.find("] ");
  if (name_end == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(name_end + 2);
  for (const std::string_view kind : {"warning", "error"})
    if (rest.starts_with(kind) && rest.substr(kind.size()).starts_with(": "))
      return JobEvent{std::string(kind), time, printable(line.substr(begin.size(), name_end - begin.size())),
                      printable(cut(rest.substr(kind.size() + 2), line_bytes_max))};
  return std::nullopt;
}

}  // namespace

std::vector<LogFile> LogFolder::files() const {
  std::vector<LogFile> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    std::error_code ignored;
    if (entry.path().extension() != ".log" || !fs::is_regular_file(entry.symlink_status(ignored))) continue;
    found.push_back({entry.path().filename().string(), entry.file_size(ignored)});
  }
  std::ranges::sort(found, [](const LogFile& a, const LogFile& b) {
    return std::pair(a.name.size(), a.name) < std::pair(b.name.size(), b.name);  // worker_2 before worker_10
  });
  return found;
}

Result<LogFile> LogFolder::known(const std::string& name) const {
  for (LogFile& file : files())
    if (file.name == name) return std::move(file);
  return fail(Code::not_found, "there is no such log");
}

Result<std::string> LogFolder::read(const std::string& name, std::uint64_t begin, std::uint64_t end) const {
  const std::string path = folder_ + '/' + name;
  const net::Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!file) return fail_errno("cannot read " + name, errno);
  std::string text(end - begin, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got =
        ::pread(file.get(), text.data() + size, text.size() - size, static_cast<off_t>(begin + size));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

Result<std::vector<LogLine>> LogFolder::lines_before(const std::string& name, std::uint64_t end) const {
  MUSTER_TRY(const LogFile file, known(name));
  end = std::min(end, file.size_bytes);
  const std::uint64_t begin = end > read_bytes_max ? end - read_bytes_max : 0;
  MUSTER_TRY(const std::string text, read(name, begin, end));
  return lines_of(text, begin, "");
}

Result<std::vector<LogLine>> LogFolder::find(const std::string& name, const std::string& text) const {
  MUSTER_TRY(const LogFile file, known(name));
  const std::uint64_t begin = file.size_bytes > search_bytes_max ? file.size_bytes - search_bytes_max : 0;
  MUSTER_TRY(const std::string whole, read(name, begin, file.size_bytes));
  return lines_of(whole, begin, folded(text));
}

std::vector<JobEvent> LogFolder::warnings(double time) {
  std::vector<JobEvent> found;
  for (const LogFile& file : files()) {
    std::uint64_t& begin = looked_at_[file.name];
    if (file.size_bytes < begin) begin = 0;  // it was begun anew
    if (file.size_bytes == begin) continue;
    const auto text = read(file.name, begin, std::min(file.size_bytes, begin + read_bytes_max));
    if (!text) continue;
    const auto last = text->rfind('\n');
    const std::size_t whole = last == std::string::npos ? 0 : last + 1;
    for (std::string_view rest = std::string_view(*text).substr(0, whole); !rest.empty();) {
      const auto end = rest.find('\n');
      if (const auto event = warning_in(rest.substr(0, end), time)) found.push_back(*event);
      rest.remove_prefix(end + 1);
    }
    // A line without end is skipped where it is too long to wait for.
    begin += whole == 0 && text->size() == read_bytes_max ? text->size() : whole;
  }
  return found;
}

}  // namespace muster::launch
