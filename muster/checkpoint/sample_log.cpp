#include "muster/checkpoint/sample_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

namespace muster::checkpoint {
namespace {

constexpr std::string_view name_begin = "samples.";
constexpr std::string_view name_end = ".log";

std::uint64_t wall_time() {
  return static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
}

std::uint64_t hash_of_row(std::span<const Tensor> values, std::size_t row, std::size_t rows) {
  std::vector<std::uint64_t> parts;
  for (const Tensor& value : values) {
    const std::size_t bytes = value.size_bytes() / rows;
    parts.push_back(hash_bytes(value.bytes() + row * bytes, bytes));
  }
  return hash_bytes(parts.data(), parts.size() * sizeof parts.front());
}

}  // namespace

// ---- Writing ----------------------------------------------------------------------------------------------

Result<std::shared_ptr<SampleLog>> SampleLog::open(const std::string& folder, const StateOwnership& owner,
                                                   Storage& storage) {
  MUSTER_TRY_VOID(storage.make_folder(folder));
  const std::string path =
      fmt::format("{}/{}{}.{}{}", folder, name_begin, owner.world_size, owner.rank, name_end);
  const auto before = storage.open(path);
  MUSTER_TRY(auto file, storage.append_to(path, before ? (*before)->size_bytes() : 0));
  std::shared_ptr<SampleLog> log(new SampleLog(std::move(file)));
  if (before) MUSTER_TRY_VOID(log->write(""));  // a process that was killed may have begun a line
  return log;
}

Result<> SampleLog::write(const std::string& line) {
  const std::string text = line + "\n";
  return file_->append(std::as_bytes(std::span(text)));
}

Result<> SampleLog::begin(std::uint64_t pass, std::uint64_t item) {
  return write(fmt::format("begin {} {} {}", wall_time(), pass, item));
}

Result<> SampleLog::go_on_behind(std::uint64_t workers, std::uint64_t pass, std::uint64_t item) {
  return write(fmt::format("behind {} {} {} {}", wall_time(), workers, pass, item));
}

Result<> SampleLog::add(std::uint64_t pass, std::uint64_t item, std::span<const Tensor> values,
                        bool is_batched) {
  const auto rows = is_batched && !values.empty() ? static_cast<std::size_t>(values.front().shape()[0]) : 1;
  std::string line = fmt::format("item {} {}", pass, item);
  for (std::size_t row = 0; row < rows; ++row)
    line += fmt::format(" {:016x}", hash_of_row(values, row, rows));
  return write(line);
}

// ---- Reading ----------------------------------------------------------------------------------------------

namespace {

using Place = std::pair<std::uint64_t, std::uint64_t>;  // pass and item

struct LoggedItem {
  std::uint64_t begun = 0;  // when the process was that had it
  std::vector<std::uint64_t> rows = {};
};

struct LoggedWorker {
  StateOwnership owner = {};
  std::map<Place, LoggedItem> items = {};
};

// From there on the items of a job of so many workers that began before are void.
struct GoneOn {
  std::uint64_t time = 0;
  std::uint64_t workers = 0;
  Place place = {};
};

std::optional<StateOwnership> owner_of(std::string_view name) {
  if (!name.starts_with(name_begin) || !name.ends_with(name_end)) return std::nullopt;
  std::istringstream text{
      std::string(name.substr(name_begin.size(), name.size() - name_begin.size() - name_end.size()))};
  StateOwnership owner;
  char dot = 0;
  return text >> owner.world_size >> dot >> owner.rank && dot == '.' && text.eof() ? std::optional(owner)
                                                                                   : std::nullopt;
}

// A line that a kill has cut off says nothing.
void read_line(const std::string& line, std::uint64_t& begun, LoggedWorker& worker,
               std::vector<GoneOn>& gone_on) {
  std::istringstream text(line);
  std::string what;
  text >> what;
  Place place;
  if (what == "begin" && text >> begun >> place.first >> place.second)
    worker.items.erase(worker.items.lower_bound(place), worker.items.end());
  GoneOn behind;
  if (what == "behind" && text >> behind.time >> behind.workers >> behind.place.first >> behind.place.second)
    gone_on.push_back(behind);
  if (what != "item" || !(text >> place.first >> place.second >> std::hex)) return;
  LoggedItem item{.begun = begun};
  for (std::uint64_t hash = 0; text >> hash;) item.rows.push_back(hash);
  worker.items[place] = std::move(item);
}

Result<std::vector<LoggedWorker>> read_logs(const std::string& folder, const Storage& storage) {
  MUSTER_TRY(const std::vector<std::string> names, storage.list(folder));
  std::vector<LoggedWorker> workers;
  std::vector<GoneOn> gone_on;
  for (const std::string& name : names) {
    const auto owner = owner_of(name);
    if (!owner) continue;
    MUSTER_TRY(const std::vector<std::byte> bytes, storage.read(fmt::format("{}/{}", folder, name)));
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    LoggedWorker worker{.owner = *owner};
    std::uint64_t begun = 0;
    for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      read_line(std::string(text.substr(0, end)), begun, worker, gone_on);
      text.remove_prefix(end + 1);
    }
    workers.push_back(std::move(worker));
  }
  if (workers.empty())
    return fail(Code::not_found,
                fmt::format("'{}' has no logs of samples ({}WORKERS.RANK{}): a training writes them where "
                            "MUSTER_SAMPLE_LOG names a folder",
                            folder, name_begin, name_end));
  for (LoggedWorker& worker : workers)
    std::erase_if(worker.items, [&](const auto& item) {
      return std::ranges::any_of(gone_on, [&](const GoneOn& behind) {
        return behind.workers == worker.owner.world_size && item.second.begun < behind.time &&
               item.first >= behind.place;
      });
    });
  return workers;
}

// Where a row came: the item, and whether it is its worker's last of the pass.
struct Coming {
  StateOwnership owner = {};
  std::uint64_t item = 0;
  bool is_last = false;
};

using Comings = std::map<std::uint64_t, std::vector<Coming>>;  // by the row's hash

std::map<std::uint64_t, Comings> by_pass(const std::vector<LoggedWorker>& workers) {
  std::map<std::uint64_t, Comings> passes;
  for (const LoggedWorker& worker : workers)
    for (auto item = worker.items.begin(); item != worker.items.end(); ++item) {
      const auto next = std::next(item);
      const bool is_last = next == worker.items.end() || next->first.first != item->first.first;
      for (const std::uint64_t row : item->second.rows)
        passes[item->first.first][row].push_back({worker.owner, item->first.second, is_last});
    }
  return passes;
}

// How often a row may come: as often as in the other passes that have it.
std::size_t times_elsewhere(const std::map<std::uint64_t, Comings>& passes, std::uint64_t pass,
                            std::uint64_t row) {
  std::size_t times = 0;
  for (const auto& [other, comings] : passes)
    if (const auto found = comings.find(row); other != pass && found != comings.end())
      times = times == 0 ? found->second.size() : std::min(times, found->second.size());
  return std::max<std::size_t>(times, 1);
}

std::string told(const std::vector<Coming>& comings) {
  std::vector<std::string> places;
  for (const Coming& coming : comings)
    places.push_back(
        fmt::format("item {} of worker {} of {}", coming.item, coming.owner.rank, coming.owner.world_size));
  return fmt::format("{}", fmt::join(places, ", "));
}

void look_for_rows_too_many(const std::map<std::uint64_t, Comings>& passes, std::uint64_t pass,
                            SamplePass& made) {
  std::size_t count = 0;
  std::string first;
  for (const auto& [row, comings] : passes.at(pass)) {
    if (comings.size() == 1) continue;
    const std::size_t allowed = times_elsewhere(passes, pass, row);
    if (comings.size() <= allowed) continue;
    if (std::ranges::any_of(comings, &Coming::is_last)) {
      made.filling += comings.size() - allowed;
      continue;
    }
    if (++count == 1) first = told(comings);
  }
  if (count > 0)
    made.problems.push_back(fmt::format("{} of its rows came more than once, the first in {}", count, first));
}

// Of passes that have rows in common: where values are changed at random, none has.
void look_for_missing_rows(const std::map<std::uint64_t, Comings>& passes, std::uint64_t pass,
                           SamplePass& made) {
  for (const auto& [other, comings] : passes) {
    std::size_t common = 0;
    for (const auto& [row, where] : comings) common += passes.at(pass).count(row);
    if (other == pass || common == 0 || common == comings.size()) continue;
    made.problems.push_back(
        fmt::format("{} rows that pass {} has did not come", comings.size() - common, other));
    return;
  }
}

}  // namespace

Result<std::map<std::uint64_t, SamplePass>> audit_samples(const std::string& folder, const Storage& storage) {
  MUSTER_TRY(const std::vector<LoggedWorker> workers, read_logs(folder, storage));
  const std::map<std::uint64_t, Comings> passes = by_pass(workers);
  std::map<std::uint64_t, SamplePass> made;
  for (const auto& [pass, comings] : passes) {
    SamplePass& samples = made[pass];
    for (const auto& [row, where] : comings)
      for (const Coming& coming : where) {
        ++samples.rows;
        ++samples.by_workers[coming.owner.world_size];
      }
    look_for_rows_too_many(passes, pass, samples);
    look_for_missing_rows(passes, pass, samples);
  }
  return made;
}

}  // namespace muster::checkpoint
