#include "muster/launch/outputs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace muster::launch {
namespace {

// The number at the end of a label: "worker 2" has rank 2.
std::optional<std::int64_t> rank_of(std::string_view label) {
  const auto space = label.rfind(' ');
  if (space == std::string_view::npos) return std::nullopt;
  std::int64_t rank = 0;
  const char* end = label.data() + label.size();
  const auto [stop, failed] = std::from_chars(label.data() + space + 1, end, rank);
  if (failed != std::errc{} || stop != end) return std::nullopt;
  return rank;
}

// Without sequences for terminals ("\033[K"): the live line is cut to the terminal's width, and must not be
// cut within one.
std::string without_escapes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) != "\033[") {
      plain += text[i];
      continue;
    }
    for (i += 2; i < text.size() && (text[i] < '@' || text[i] > '~');) ++i;
  }
  return plain;
}

}  // namespace

bool is_tailed(const ProcessSpec& spec, const std::vector<std::int64_t>& tail) {
  if (tail.empty()) return true;
  if (spec.kind == ProcessSpec::Kind::service || spec.role == "scheduler") return false;
  const auto rank = rank_of(spec.label);
  if (!rank) return true;
  const bool is_helper = spec.role == "server" || spec.role == "ps";
  return !is_helper && std::find(tail.begin(), tail.end(), *rank) != tail.end();
}

Result<> Outputs::add(const ProcessSpec& spec) {
  auto process = std::make_unique<Process>();
  process->label = spec.label;
  process->log_path = log_folder_ + '/' + spec.log_name;
  process->is_shown = is_tailed(spec, tail_);
  process->log = net::Descriptor(
      ::open(process->log_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666));
  if (!process->log) return fail_errno(fmt::format("cannot write '{}'", process->log_path), errno);
  console_.introduce(process->label);
  processes_.push_back(std::move(process));
  return {};
}

void Outputs::take(std::size_t index, Stream stream, std::string_view bytes, TimePoint now) {
  Process& process = *processes_[index];
  if (process.log && ::write(process.log.get(), bytes.data(), bytes.size()) < 0) {
    console_.line(
        Stream::error, {},
        fmt::format("muster: {}", fail_errno("cannot write " + process.log_path, errno).value().message));
    process.log.reset();
  }
  if (live_owner_ == &process && live_stream_ == stream) set_live(nullptr);  // its line goes on or ends now
  LineBuffer& lines = process.streams[static_cast<std::size_t>(stream)].buffer;
  lines.feed(bytes, [&](std::string_view line) { take_line(index, stream, line, now); });
  const bool is_held = stream == Stream::error && process.held.due();
  if (process.is_shown && !is_held && !lines.unfinished().empty()) set_live(&process, stream);
}

// Shows the unfinished line of a process below all others, or that of none.
void Outputs::set_live(const Process* process, Stream stream) {
  live_owner_ = process;
  live_stream_ = stream;
  if (process == nullptr)
    console_.live({}, {});
  else
    console_.live(process->label,
                  without_escapes(process->streams[static_cast<std::size_t>(stream)].buffer.unfinished()));
}

void Outputs::take_line(std::size_t index, Stream stream, std::string_view line, TimePoint now) {
  Process& process = *processes_[index];
  process.streams[static_cast<std::size_t>(stream)].last.add(line);
  if (stream == Stream::error && process.held.take(line, now)) return;
  if (!process.is_shown || (stream == Stream::error && warnings_.has(index, line))) return;
  console_.line(stream, process.label, line);
}

void Outputs::release(std::size_t index) {
  Process& process = *processes_[index];
  const std::vector<std::string> lines = process.held.release();
  if (process.is_shown) show(index, lines);
}

std::optional<TimePoint> Outputs::due() const {
  std::optional<TimePoint> first;
  for (const auto& process : processes_)
    if (const auto due = process->held.due(); due && !process->has_ended)
      first = first ? std::min(*first, *due) : *due;
  return first;
}

void Outputs::release_due(TimePoint now) {
  for (std::size_t i = 0; i < processes_.size(); ++i)
    if (!processes_[i]->has_ended && processes_[i]->held.due().value_or(TimePoint::max()) <= now) release(i);
}

void Outputs::finish(std::size_t index, TimePoint now) {
  Process& process = *processes_[index];
  if (live_owner_ == &process) set_live(nullptr);
  for (const Stream stream : both_streams) {
    LineBuffer& lines = process.streams[static_cast<std::size_t>(stream)].buffer;
    if (!lines.unfinished().empty()) take_line(index, stream, lines.unfinished(), now);
    lines.clear();
  }
  process.has_ended = true;
}

void Outputs::forget(std::size_t index) {
  Process& process = *processes_[index];
  for (Lines& lines : process.streams) lines = {};
  process.held.release();
  process.has_ended = false;
}

std::vector<std::string> Outputs::last_lines(std::size_t index) const {
  const auto& [out, error] = processes_[index]->streams;
  if (held(index).empty()) return (error.last.empty() ? out : error).last.lines();
  LastLines traceback;  // of an endless one the middle is left out
  for (const std::string& line : held(index)) traceback.add(line);
  return traceback.lines();
}

void Outputs::show(std::size_t index, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) console_.line(Stream::error, processes_[index]->label, line);
}

}  // namespace muster::launch
