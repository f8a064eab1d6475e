#include "muster/base/call_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <memory>
#include <span>

namespace muster {
namespace {

constexpr std::string_view first_line = "muster call times 1";
constexpr std::array measured_kinds = {CallKind::all_reduce, CallKind::all_gather, CallKind::reduce_scatter,
                                       CallKind::all_to_all};
constexpr std::size_t trials = 3;
constexpr std::size_t joined_bytes_max = 16 << 20;  // of what an all_gather gives

// How often a call of this size is made in one trial: small ones until a clock can tell.
struct Size {
  std::size_t bytes;
  std::size_t calls;
};
constexpr std::array measured_sizes = {Size{1 << 10, 10}, Size{32 << 10, 6}, Size{512 << 10, 3},
                                       Size{4 << 20, 1}};

// ---- Text -------------------------------------------------------------------------------------------------

// The numbers of a line "name 1 2 3" behind its name.
bool read_numbers(std::string_view text, std::span<std::int64_t> numbers) {
  for (std::int64_t& number : numbers) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || number < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return text.empty();
}

Result<> read_line(std::string_view line, CallTimes& times) {
  const std::string_view name = line.substr(0, line.find(' '));
  const std::string_view rest = line.substr(name.size());
  std::array<std::int64_t, 3> numbers{};
  if (name == "workers" && read_numbers(rest, std::span(numbers).first(2))) {
    times.workers = static_cast<std::uint32_t>(numbers[0]);
    times.measured_at_s = numbers[1];
    return {};
  }
  const auto kind = call_kind_from(name);
  if (!kind || !read_numbers(rest, numbers))
    return fail(Code::corrupt, fmt::format("a table of call times has the line '{}'", line));
  times.entries.push_back({.kind = *kind,
                           .ranks = static_cast<std::uint32_t>(numbers[0]),
                           .bytes = static_cast<std::size_t>(numbers[1]),
                           .time = Duration(numbers[2])});
  return {};
}

// ---- Measuring --------------------------------------------------------------------------------------------

// What the calls give and get; each rank's part of the latter is as large as the former.
struct Memory {
  std::vector<std::byte> in, out;
};

Result<> call(CallKind kind, Communicator& group, std::size_t bytes, Memory& memory) {
  const std::size_t ranks = group.size();
  const std::size_t count = bytes / sizeof(float);
  const std::byte* in = memory.in.data();
  std::byte* out = memory.out.data();
  switch (kind) {
    case CallKind::all_reduce:
      return group.all_reduce(in, out, count, DType::float32, Reduction::sum);
    case CallKind::all_gather:
      return group.all_gather(in, out, bytes);
    case CallKind::reduce_scatter:
      return group.reduce_scatter(in, out, count / ranks, DType::float32, Reduction::sum);
    default:
      break;
  }
  std::vector<std::span<const std::byte>> sent;
  std::vector<std::span<std::byte>> received;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    sent.emplace_back(in + rank * (bytes / ranks), bytes / ranks);
    received.emplace_back(out + rank * (bytes / ranks), bytes / ranks);
  }
  return group.all_to_all(sent, received);
}

Result<Duration> time_call(CallKind kind, Communicator& group, Size size, Memory& memory) {
  std::array<Duration, trials> times{};
  MUSTER_TRY_VOID(call(kind, group, size.bytes, memory));  // memory is touched for the first time
  for (Duration& time : times) {
    MUSTER_TRY_VOID(group.barrier());
    const TimePoint begin = real_clock().now();
    for (std::size_t i = 0; i < size.calls; ++i) MUSTER_TRY_VOID(call(kind, group, size.bytes, memory));
    time = (real_clock().now() - begin) / static_cast<std::int64_t>(size.calls);
  }
  std::ranges::sort(times);
  return times[trials / 2];
}

Result<> measure_group(Communicator& group, CallTimes& times) {
  Memory memory{.in = std::vector<std::byte>(measured_sizes.back().bytes),
                .out = std::vector<std::byte>(std::max(joined_bytes_max, measured_sizes.back().bytes))};
  for (const CallKind kind : measured_kinds)
    for (const Size size : measured_sizes) {
      if (kind == CallKind::all_gather && size.bytes * group.size() > joined_bytes_max) continue;
      const Size whole{size.bytes / (group.size() * sizeof(float)) * (group.size() * sizeof(float)),
                       size.calls};
      if (whole.bytes == 0) continue;
      MUSTER_TRY(const Duration time, time_call(kind, group, whole, memory));
      times.entries.push_back({.kind = kind, .ranks = group.size(), .bytes = whole.bytes, .time = time});
    }
  return {};
}

}  // namespace

std::optional<Duration> CallTimes::time_of(CallKind kind, std::uint32_t ranks, std::size_t bytes) const {
  const Entry* below = nullptr;
  const Entry* above = nullptr;
  for (const Entry& entry : entries) {
    if (entry.kind != kind || entry.ranks != ranks) continue;
    if (above != nullptr && above->bytes >= bytes) break;
    below = above;
    above = &entry;
  }
  if (above == nullptr) return std::nullopt;
  if (below == nullptr) return above->time;
  const double slope = static_cast<double>((above->time - below->time).count()) /
                       static_cast<double>(above->bytes - below->bytes);
  const double beyond = static_cast<double>(bytes) - static_cast<double>(above->bytes);
  return above->time + Duration(static_cast<std::int64_t>(std::max(0.0, slope) * beyond));
}

std::string to_text(const CallTimes& times) {
  std::string text = fmt::format("{}\nworkers {} {}\n", first_line, times.workers, times.measured_at_s);
  for (const CallTimes::Entry& entry : times.entries)
    text += fmt::format("{} {} {} {}\n", to_string(entry.kind), entry.ranks, entry.bytes, entry.time.count());
  return text;
}

Result<CallTimes> call_times_from(std::string_view text) {
  CallTimes times;
  bool is_first = true;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (std::exchange(is_first, false)) {
      if (line != first_line) return fail(Code::corrupt, "this is no table of call times");
      continue;
    }
    MUSTER_TRY_VOID(read_line(line, times));
  }
  if (times.workers == 0) return fail(Code::corrupt, "this is no table of call times");
  return times;
}

std::optional<CallKind> call_kind_from(std::string_view name) {
  for (const CallKind kind : measured_kinds)
    if (to_string(kind) == name) return kind;
  return std::nullopt;
}

Result<std::string> call_times_file(const Environment& environment, std::string_view host,
                                    std::uint32_t workers) {
  std::string folder = environment.get("XDG_CACHE_HOME").value_or("");
  if (const auto own = environment.get("HOME"); folder.empty() && own && !own->empty())
    folder = *own + "/.cache";
  if (folder.empty())
    return fail(Code::not_found, "there is no folder for what was measured: set XDG_CACHE_HOME");
  return fmt::format("{}/muster/calls-{}-{}.txt", folder, host, workers);
}

Result<CallTimes> measure_calls(Communicator& all) {
  CallTimes times{.workers = all.size(),
                  .measured_at_s = std::chrono::duration_cast<std::chrono::seconds>(
                                       std::chrono::system_clock::now().time_since_epoch())
                                       .count()};
  for (std::uint32_t ranks = 2; ranks < all.size(); ++ranks) {
    if (all.size() % ranks != 0) continue;
    MUSTER_TRY(const std::unique_ptr<Communicator> group, all.split(all.rank() / ranks));
    MUSTER_TRY_VOID(measure_group(*group, times));
  }
  if (all.size() > 1) MUSTER_TRY_VOID(measure_group(all, times));
  return times;
}

}  // namespace muster
