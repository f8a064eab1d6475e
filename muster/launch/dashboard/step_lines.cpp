#include "muster/launch/dashboard/step_lines.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "muster/base/base.h"
#include "muster/json/json.h"
#include "muster/launch/dashboard/regular_file.h"

namespace muster::launch {
namespace {

using nlohmann::json;

constexpr std::size_t timeline_ranks_max = 1024;
constexpr std::uint64_t timeline_bytes_max = 4 << 20;
constexpr std::int64_t span_ns_max = 1'000'000'000'000'000;      // eleven days
constexpr std::int64_t time_ns_max = 4'000'000'000'000'000'000;  // since 1970

struct RankLine {
  std::int64_t rank = 0;
  std::string host;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  json line;
};

std::int64_t integer(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : -1;
}

bool is_time(const json& value, std::int64_t limit_ns) {
  if (!value.is_number_integer()) return false;
  const auto time = value.get<std::int64_t>();
  return time >= -limit_ns && time <= limit_ns;
}

// Whatever the file says: [text or number, ...] each, the last two numbers moved by `shift`.
json shifted(const json& line, const char* name, std::size_t size, std::int64_t shift) {
  json made = json::array();
  const auto spans = line.find(name);
  if (spans == line.end() || !spans->is_array()) return made;
  for (const json& span : *spans) {
    if (!span.is_array() || span.size() != size || !span[0].is_string()) continue;
    if (!is_time(span[size - 2], span_ns_max) || !is_time(span[size - 1], span_ns_max)) continue;
    json moved = span;
    moved[0] = printable(span[0].get<std::string>());
    for (std::size_t i = size - 2; i < size; ++i) moved[i] = span[i].get<std::int64_t>() + shift;
    made.push_back(std::move(moved));
  }
  return made;
}

// By step; of one that was made again, the last time.
using Lines = std::map<std::int64_t, std::map<std::int64_t, RankLine>>;

void read_rank(const std::string& path, Lines& lines) {
  const RegularFile file(path);
  if (!file.is_there() || file.size_bytes() > timeline_bytes_max) return;
  const auto whole =
      muster::json::parse(file.read(0, file.size_bytes()), path, {.bytes = timeline_bytes_max});
  if (!whole || !whole->is_object()) return;
  const auto found = whole->find("lines");
  const auto host = whole->find("host");
  const std::int64_t rank = integer(*whole, "rank");
  if (found == whole->end() || !found->is_array() || host == whole->end() || !host->is_string() || rank < 0)
    return;
  for (const json& line : *found) {
    if (!line.is_object()) continue;
    const std::int64_t step = integer(line, "step");
    const std::int64_t begin = integer(line, "begin_ns"), end = integer(line, "end_ns");
    if (step < 0 || begin < 0 || end < begin || end > time_ns_max) continue;
    lines[step][rank] = {rank, printable(host->get<std::string>()), begin, end, line};
  }
}

// Who made that step before the others went back is not among them.
void keep_those_of_one_time(std::map<std::int64_t, RankLine>& ranks) {
  const RankLine* newest = nullptr;
  for (const auto& [rank, line] : ranks)
    if (newest == nullptr || line.end_ns > newest->end_ns) newest = &line;
  const std::string host = newest->host;
  const std::int64_t begin = newest->begin_ns;
  std::erase_if(ranks,
                [&](const auto& each) { return each.second.host == host && each.second.end_ns < begin; });
}

}  // namespace

json step_across_ranks(const std::string& folder) {
  Lines lines;
  std::error_code error;
  std::size_t files = 0;
  for (auto entry = std::filesystem::directory_iterator(folder + '/' + timeline_folder, error);
       !error && entry != std::filesystem::directory_iterator() && files < timeline_ranks_max;
       entry.increment(error)) {
    if (entry->path().extension() != ".json") continue;
    ++files;
    read_rank(entry->path().string(), lines);
  }
  if (lines.empty()) return nullptr;
  for (auto& [step, ranks] : lines) keep_those_of_one_time(ranks);
  // Of as many ranks the newest.
  const auto best = std::ranges::max_element(lines, {}, [](const auto& each) {
    return std::pair(each.second.size(), each.second.begin()->second.begin_ns);
  });
  std::int64_t begin = best->second.begin()->second.begin_ns, end = begin;
  for (const auto& [rank, line] : best->second) {
    begin = std::min(begin, line.begin_ns);
    end = std::max(end, line.end_ns);
  }
  json rows = json::array();
  std::set<std::string> hosts;
  for (const auto& [rank, line] : best->second) {
    hosts.insert(line.host);
    const std::int64_t shift = line.begin_ns - begin;
    rows.push_back({{"rank", rank},
                    {"host", line.host},
                    {"begin", shift},
                    {"end", line.end_ns - begin},
                    {"phases", shifted(line.line, "phases", 3, shift)},
                    {"parts", shifted(line.line, "parts", 3, shift)},
                    {"calls", shifted(line.line, "calls", 5, shift)}});
  }
  return {{"step", best->first},
          {"begin_ns", std::to_string(begin)},
          {"length_ns", end - begin},
          {"hosts", hosts},
          {"ranks", std::move(rows)}};
}

}  // namespace muster::launch
