#include "muster/launch/dashboard/earlier_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/json/json.h"
#include "muster/launch/dashboard/job_json.h"
#include "muster/launch/dashboard/regular_file.h"
#include "muster/launch/runs/run_files.h"
#include "muster/launch/runs/run_record.h"

namespace muster::launch {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t runs_listed_max = 100;
constexpr std::size_t folders_max = 5000;  // looked at
constexpr std::uint64_t description_bytes_max = 1 << 20;
constexpr std::uint64_t run_tail_bytes = 256 << 10;
constexpr std::uint64_t run_piece_bytes = 1 << 20;
constexpr std::uint64_t run_history_bytes_max = 256 << 20;
constexpr std::size_t run_line_bytes_max = 16 << 20;
constexpr std::string_view point_begin = "\"point\":";  // in a string, its marks would be escaped

json object_in_text(std::string_view text) {
  auto value = muster::json::parse(text, "", {.bytes = run_line_bytes_max});
  return value && value->is_object() ? *std::move(value) : json(nullptr);
}

// The last that is whole. Only that of a state is read: the rows of a thousand ranks are most of it.
std::optional<JobPoint> point_in_state(std::string_view text) {
  for (auto begin = text.rfind(point_begin); begin != std::string_view::npos;
       begin = begin == 0 ? std::string_view::npos : text.rfind(point_begin, begin - 1)) {
    const std::string_view rest = text.substr(begin + point_begin.size());
    const json point = object_in_text(rest.substr(0, rest.find('}') + 1));
    if (point.is_object()) return point_from({{"point", point}});
  }
  return std::nullopt;
}

JobHistory history_in(const RegularFile& file) {
  JobHistory history;
  std::string text;
  const std::uint64_t end = std::min(file.size_bytes(), run_history_bytes_max);
  for (std::uint64_t at = 0; at < end && text.size() < run_line_bytes_max; at += run_piece_bytes) {
    text += file.read(at, std::min(run_piece_bytes, end - at));
    std::size_t begin = 0;
    for (std::size_t line_end; (line_end = text.find('\n', begin)) != std::string::npos;
         begin = line_end + 1) {
      const std::string_view line = std::string_view(text).substr(begin, line_end - begin);
      if (!line.starts_with("{\"state\"")) continue;
      if (const auto point = point_in_state(line)) history.add(*point);
    }
    text.erase(0, begin);
  }
  return history;
}

// As text for people: whatever the file says.
json text_member(const json& object, const char* name) {
  const json value = object.is_object() ? object.value(name, json()) : json();
  return value.is_string() ? json(printable(value.get<std::string>())) : json(nullptr);
}

json number_member(const json& object, const char* name) {
  const json value = object.is_object() ? object.value(name, json()) : json();
  return value.is_number() ? value : json(nullptr);
}

json how_it_ended(std::string_view tail) {
  const auto begin = tail.rfind("{\"end\"");
  if (begin == std::string_view::npos) return nullptr;
  const json line = object_in_text(tail.substr(begin, tail.find('\n', begin) - begin));
  return number_member(line.is_object() ? line.value("end", json()) : json(), "exit_code");
}

json earlier_row(const std::string& folder, const std::string& name, const json& description) {
  const RegularFile history(folder + '/' + history_name);
  const std::uint64_t begin =
      history.size_bytes() > run_tail_bytes ? history.size_bytes() - run_tail_bytes : 0;
  const std::string tail = history.read(begin, run_tail_bytes);
  const json training =
      object_in_text(RegularFile(folder + '/' + training_name).read(0, description_bytes_max));
  const json numbers = point_json(last_point_of(point_in_state(tail).value_or(JobPoint{}), training));
  return {{"name", name},
          {"script", text_member(description, "script")},
          {"began", number_member(description, "began")},
          {"ranks", number_member(description, "ranks")},
          {"step", numbers.at("step")},
          {"loss", numbers.at("loss")},
          {"exit_code", how_it_ended(tail)}};
}

}  // namespace

EarlierRuns::EarlierRuns(const std::string& folder) {
  std::error_code ignored;
  const fs::path path = fs::absolute(folder, ignored).lexically_normal();
  const fs::path own = path.has_filename() ? path : path.parent_path();
  parent_ = own.parent_path().string();
  own_name_ = own.filename().string();
}

bool EarlierRuns::is_run(const std::string& name) const {
  std::error_code ignored;
  const fs::path folder = fs::path(parent_) / name;
  return name != own_name_ && printable(name) == name &&
         fs::is_directory(fs::symlink_status(folder, ignored)) &&
         fs::is_regular_file(fs::symlink_status(folder / description_name, ignored));
}

json EarlierRuns::list() const {
  std::vector<std::pair<std::string, json>> found;  // with its description
  std::error_code error;
  std::size_t looked_at = 0;
  for (auto entry = fs::directory_iterator(parent_, error);
       !error && entry != fs::directory_iterator() && looked_at < folders_max; entry.increment(error)) {
    ++looked_at;
    const std::string name = entry->path().filename().string();
    if (!is_run(name)) continue;
    const RegularFile file(entry->path().string() + '/' + description_name);
    if (json description = object_in_text(file.read(0, description_bytes_max)); description.is_object())
      found.emplace_back(name, std::move(description));
  }
  const auto began = [](const auto& run) {
    const json time = number_member(run.second, "began");
    return time.is_number() ? time.template get<double>() : 0;
  };
  std::ranges::sort(found, [&](const auto& a, const auto& b) {
    return std::pair(began(a), a.first) > std::pair(began(b), b.first);
  });
  if (found.size() > runs_listed_max) found.resize(runs_listed_max);
  json rows = json::array();
  for (const auto& [name, description] : found)
    rows.push_back(earlier_row((fs::path(parent_) / name).string(), name, description));
  return rows;
}

Result<json> EarlierRuns::points(const std::string& name) const {
  // One part of a path: what a folder can be called, and nothing that leads elsewhere.
  const bool is_name = !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
                       name.find('\0') == std::string::npos;
  if (!is_name || !is_run(name))
    return fail(Code::not_found,
                fmt::format("there is no run '{}' beside this one: /runs names them", printable(name)));
  return points_json(history_in(RegularFile(parent_ + '/' + name + '/' + history_name)).points());
}

}  // namespace muster::launch
