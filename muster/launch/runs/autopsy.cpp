#include "muster/launch/runs/autopsy.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "muster/cluster/cluster.h"
#include "muster/launch/table.h"

namespace muster::launch {
namespace {

using telemetry::Flight;
using telemetry::FlightRecord;
using telemetry::FlightState;

bool is_message(const FlightRecord& record) {
  return record.kind == CallKind::send || record.kind == CallKind::receive;
}

std::string clock_text(std::int64_t ns) {
  const auto seconds = static_cast<std::time_t>(ns / 1'000'000'000);
  return fmt::format("{:%H:%M:%S}.{:03}", fmt::localtime(seconds), ns / 1'000'000 % 1000);
}

// One rank of a group, with the records of that group.
struct Member {
  std::uint32_t world_rank = 0;
  std::optional<FlightRecord> last_call = {};                       // collective
  std::map<std::uint64_t, FlightRecord> calls = {};                 // collective ones by number
  std::map<std::uint32_t, std::uint64_t> sent = {}, received = {};  // newest that was begun, by peer
  std::vector<FlightRecord> open_messages = {};                     // that were not completed
};
struct GroupView {
  std::uint64_t id = 0;
  std::uint32_t size = 0;
  std::map<std::uint32_t, Member> members = {};  // by their rank in it; those of which something is known
};
// A rank that waits for another one.
struct Wait {
  std::uint32_t from = 0, to = 0;  // in the job
  FlightRecord record = {};
};
struct EpochView {
  std::uint64_t epoch = 0;
  std::uint32_t world_size = 0;
  std::map<std::uint32_t, const Flight*> flights = {};  // by rank in the job
  std::vector<GroupView> groups = {};
};

// In a job that runs some rank is always in a call.
constexpr std::int64_t short_wait_ns = 1'000'000'000;

FlightRecord as_seen(FlightRecord record, const Evidence& evidence) {
  const bool is_short = evidence.runs && evidence.now_ns - record.begin_ns < short_wait_ns;
  if (record.state == FlightState::started && is_short) record.state = FlightState::completed;
  return record;
}

void add_record(Member& member, const FlightRecord& record) {
  const bool is_open = record.state != FlightState::completed;
  if (is_message(record)) {
    auto& newest = record.kind == CallKind::send ? member.sent : member.received;
    newest[record.peer] = std::max(newest[record.peer], record.number);
    if (is_open) member.open_messages.push_back(record);
    return;
  }
  member.calls.insert_or_assign(record.number, record);
  if (!member.last_call || member.last_call->number <= record.number) member.last_call = record;
}

// Whether the process has made so many calls since that none of those of the group is kept, if there were
// any.
bool is_forgotten(const Flight& flight, const telemetry::FlightGroup& group) {
  const auto& records = flight.records;
  return !records.empty() && records.front().serial > 1 && records.front().begin_ns > group.formed_ns &&
         std::ranges::none_of(records, [&](const FlightRecord& each) { return each.group == group.id; });
}

EpochView view_of(std::uint64_t epoch, const Evidence& evidence) {
  EpochView view{.epoch = epoch};
  std::map<std::uint64_t, GroupView> groups;
  for (const Flight& flight : evidence.flights)
    for (const telemetry::FlightGroup& formed : flight.groups) {
      if (formed.epoch != epoch) continue;
      view.flights[flight.process.rank] = &flight;
      view.world_size = std::max(view.world_size, flight.process.world_size);
      GroupView& group = groups[formed.id];
      group.id = formed.id;
      group.size = formed.size;
      if (is_forgotten(flight, formed)) continue;
      Member& member = group.members[formed.rank];
      member.world_rank = flight.process.rank;
      for (const FlightRecord& record : flight.records)
        if (record.group == formed.id) add_record(member, as_seen(record, evidence));
    }
  for (auto& [id, group] : groups) view.groups.push_back(std::move(group));
  return view;
}

bool is_known(const EpochView& view, std::uint32_t rank) {
  return std::ranges::any_of(view.groups, [&](const GroupView& group) {
    return std::ranges::any_of(group.members,
                               [&](const auto& member) { return member.second.world_rank == rank; });
  });
}

bool has_begun(const Member& member, std::uint64_t number) {
  return member.last_call && member.last_call->number >= number;
}

// As the other side of a message with `rank`.
bool has_begun(const Member& member, std::uint32_t rank, const FlightRecord& message) {
  const auto& newest = message.kind == CallKind::send ? member.received : member.sent;
  const auto begun = newest.find(rank);
  return begun != newest.end() && begun->second >= message.number;
}

// Of ranks that are no members here nothing is known.
void add_waits(const GroupView& group, std::vector<Wait>& waits) {
  for (const auto& [rank, member] : group.members) {
    if (member.last_call && member.last_call->state != FlightState::completed)
      for (const auto& [other_rank, other] : group.members)
        if (other_rank != rank && !has_begun(other, member.last_call->number))
          waits.push_back({member.world_rank, other.world_rank, *member.last_call});
    for (const FlightRecord& message : member.open_messages) {
      const auto other = group.members.find(message.peer);
      if (other != group.members.end() && !has_begun(other->second, rank, message))
        waits.push_back({member.world_rank, other->second.world_rank, message});
    }
  }
}

// What all ranks have to call alike.
auto key_of(const FlightRecord& record) {
  return std::tuple(record.kind, record.count, record.peer, record.dtype, record.reduction);
}

std::string ranks_of(const std::set<std::uint32_t>& ranks) {
  const std::vector<std::uint32_t> sorted(ranks.begin(), ranks.end());
  return cluster::ranks_text(sorted);
}

// The first call in which ranks differ: the fewest are named first.
std::optional<std::string> mismatch_in(const GroupView& group) {
  std::set<std::uint64_t> numbers;
  for (const auto& [rank, member] : group.members)
    for (const auto& [number, call] : member.calls) numbers.insert(number);
  for (const std::uint64_t number : numbers) {
    std::map<decltype(key_of({})), std::pair<std::set<std::uint32_t>, FlightRecord>> callers;
    for (const auto& [rank, member] : group.members)
      if (const auto call = member.calls.find(number); call != member.calls.end()) {
        auto& [ranks, example] = callers[key_of(call->second)];
        ranks.insert(member.world_rank);
        example = call->second;
      }
    if (callers.size() < 2) continue;
    std::vector<std::pair<std::set<std::uint32_t>, FlightRecord>> sorted;
    for (auto& [key, caller] : callers) sorted.push_back(std::move(caller));
    std::ranges::stable_sort(sorted, {}, [](const auto& caller) { return caller.first.size(); });
    return fmt::format("The ranks made different calls: {} called {} at {}, where {} called {}.",
                       ranks_of(sorted.front().first), describe(sorted.front().second),
                       clock_text(sorted.front().second.begin_ns), ranks_of(sorted.back().first),
                       describe(sorted.back().second));
  }
  return std::nullopt;
}

// The newest record of a rank, in any group of the epoch.
std::optional<FlightRecord> last_record(const EpochView& view, std::uint32_t rank) {
  const auto found = view.flights.find(rank);
  if (found == view.flights.end()) return std::nullopt;
  std::optional<FlightRecord> last;
  for (const FlightRecord& record : found->second->records)
    for (const GroupView& group : view.groups)
      if (group.id == record.group) last = record;
  return last;
}

std::string state_of(const FlightRecord& record, std::int64_t now_ns) {
  const auto seconds = [&](std::int64_t end) {
    return cluster::time_text(static_cast<double>(end - record.begin_ns) / 1e9);
  };
  switch (record.state) {
    case FlightState::completed:
      return fmt::format("completed at {}", clock_text(record.end_ns));
    case FlightState::failed:
      return fmt::format("failed at {} after {} ({})", clock_text(record.end_ns), seconds(record.end_ns),
                         to_string(record.code));
    case FlightState::started:
      break;
  }
  return fmt::format("not ended, since {} ({})", clock_text(record.begin_ns), seconds(now_ns));
}

// What the launcher and the scheduler have said of it; deaths, not each sign of life.
std::vector<std::string> words_about(std::uint32_t rank, const std::vector<JobEvent>& events) {
  const std::string name = fmt::format("worker {}", rank);
  std::vector<std::string> words;
  for (const JobEvent& event : events)
    if (event.process == name && (event.kind == "failed" || event.kind == "restarted" ||
                                  event.kind == "error" || event.kind == "slow" || event.kind == "lost"))
      words.push_back(event.text);
  return words;
}

std::string indented(std::string_view text) {
  std::string made;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    made += fmt::format("  {}\n", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return made;
}

// Whether the call shows that a rank went on behind a time: where it was then says nothing of the end.
bool came_behind(const FlightRecord& last, std::int64_t time_ns) {
  return (last.state == FlightState::completed ? last.end_ns : last.begin_ns) > time_ns;
}

std::string about_rank(const EpochView& view, std::uint32_t rank, const Evidence& evidence) {
  std::string text;
  for (const std::string& word : words_about(rank, evidence.events)) text += fmt::format("  {}\n", word);
  const Flight& flight = *view.flights.at(rank);
  if (flight.left) text += fmt::format("  it left the job with exit status {}\n", *flight.left);
  const auto last = last_record(view, rank);
  text += last ? fmt::format("  its last call: {}, {}\n", describe(*last), state_of(*last, evidence.now_ns))
               : std::string("  it made no call\n");
  if (flight.stacks && !(last && came_behind(*last, flight.stacks->taken_ns)))
    text += fmt::format("  where it was at {}:\n{}", clock_text(flight.stacks->taken_ns),
                        indented(flight.stacks->text));
  return text;
}

// That waits for no other and is waited for; of several who stopped first.
std::optional<std::uint32_t> root_of(const EpochView& view, const std::vector<Wait>& waits) {
  std::set<std::uint32_t> waiting;
  for (const Wait& wait : waits) waiting.insert(wait.from);
  std::optional<std::uint32_t> root;
  std::int64_t stopped = 0;
  for (const Wait& wait : waits) {
    if (waiting.contains(wait.to)) continue;
    const auto last = last_record(view, wait.to);
    const std::int64_t time = last ? last->end_ns : 0;
    if (root && time >= stopped) continue;
    root = wait.to;
    stopped = time;
  }
  return root;
}

std::string waiting_text(const EpochView& view, std::uint32_t root, const std::vector<Wait>& waits,
                         const Evidence& evidence) {
  // By the call in which they wait for it.
  std::map<std::string, std::pair<std::set<std::uint32_t>, std::int64_t>> waiting;
  for (const Wait& wait : waits)
    if (wait.to == root) {
      auto& [ranks, since] = waiting[describe(wait.record)];
      since = ranks.empty() ? wait.record.begin_ns : std::min(since, wait.record.begin_ns);
      ranks.insert(wait.from);
    }
  std::string text;
  for (const auto& [call, who] : waiting)
    text += fmt::format(
        "Rank {} is the first that the others missed: it did not come to {}, in which {} waited for "
        "it since {}.\n",
        root, call, ranks_of(who.first), clock_text(who.second));
  return text + about_rank(view, root, evidence);
}

// Ranks that wait for each other in a circle.
std::string circle_text(const std::vector<Wait>& waits) {
  std::map<std::uint32_t, const Wait*> next;
  for (const Wait& wait : waits) next.try_emplace(wait.from, &wait);
  std::set<std::uint32_t> seen;
  std::uint32_t rank = waits.front().from;
  while (seen.insert(rank).second) rank = next.at(rank)->to;
  std::string text =
      "Ranks wait for each other in a circle, which only another order of their calls avoids:\n";
  const std::uint32_t first = rank;
  do {
    const Wait& wait = *next.at(rank);
    text += fmt::format("  rank {} waits for rank {} in {} since {}\n", rank, wait.to, describe(wait.record),
                        clock_text(wait.record.begin_ns));
    rank = wait.to;
  } while (rank != first);
  return text;
}

// A rank that stopped in the middle of a call which failed for the others: it was killed there, say.
std::optional<std::string> stopped_text(const EpochView& view, const Evidence& evidence) {
  for (const GroupView& group : view.groups)
    for (const auto& [rank, member] : group.members) {
      const bool is_started = member.last_call && member.last_call->state == FlightState::started;
      const bool failed_elsewhere =
          is_started && std::ranges::any_of(group.members, [&](const auto& other) {
            const auto& call = other.second.last_call;
            return call && call->number == member.last_call->number && call->state == FlightState::failed;
          });
      if (failed_elsewhere)
        return fmt::format("Rank {} stopped in {}, which then failed for the others.\n{}", member.world_rank,
                           describe(*member.last_call), about_rank(view, member.world_rank, evidence));
    }
  return std::nullopt;
}

// All came to the call, and it did not end well.
std::optional<std::string> failed_text(const EpochView& view, const Evidence& evidence) {
  if (auto stopped = stopped_text(view, evidence)) return stopped;
  std::optional<std::pair<std::uint32_t, FlightRecord>> first;
  for (const auto& [rank, flight] : view.flights)
    for (const FlightRecord& record : flight->records) {
      const bool is_here =
          std::ranges::any_of(view.groups, [&](const GroupView& group) { return group.id == record.group; });
      if (!is_here || as_seen(record, evidence).state == FlightState::completed) continue;
      const auto time = [](const FlightRecord& each) { return each.end_ns == 0 ? INT64_MAX : each.end_ns; };
      if (!first || time(record) < time(first->second)) first.emplace(rank, record);
    }
  if (!first) return std::nullopt;
  std::uint32_t known = 0;
  for (std::uint32_t rank = 0; rank < view.world_size; ++rank) known += is_known(view, rank) ? 1 : 0;
  return fmt::format(
      "All ranks{} came to the same calls. The first that did not end well is {} of rank {}: {}.\n",
      known < view.world_size ? " of which something is known" : "", describe(first->second), first->first,
      state_of(first->second, evidence.now_ns));
}

std::optional<std::string> findings_in(const EpochView& view, const Evidence& evidence) {
  for (const GroupView& group : view.groups)
    if (const auto differing = mismatch_in(group)) return *differing + '\n';
  std::vector<Wait> waits;
  for (const GroupView& group : view.groups) add_waits(group, waits);
  if (waits.empty()) return failed_text(view, evidence);
  if (const auto root = root_of(view, waits)) return waiting_text(view, *root, waits, evidence);
  return circle_text(waits);
}

// Each host keeps the files of its own workers, and of each rank those of its last processes.
std::string missing_text(const EpochView& view, const Evidence& evidence) {
  std::set<std::uint32_t> elsewhere, gone, forgotten;
  for (std::uint32_t rank = 0; rank < view.world_size; ++rank) {
    const auto is_of_rank = [&](const Flight& flight) { return flight.process.rank == rank; };
    if (view.flights.contains(rank)) {
      if (!is_known(view, rank)) forgotten.insert(rank);
    } else {
      (std::ranges::any_of(evidence.flights, is_of_rank) ? gone : elsewhere).insert(rank);
    }
  }
  std::string text;
  if (!elsewhere.empty())
    text += fmt::format(
        "Of {} there is no file here, and nothing is known: copy the folders `flight` of their hosts "
        "into this one.\n",
        ranks_of(elsewhere));
  if (!gone.empty())
    text += fmt::format("Of {} nothing is known: only the files of its last processes are kept.\n",
                        ranks_of(gone));
  if (!forgotten.empty())
    text += fmt::format("Of {} nothing is known: more calls than are kept have been made since.\n",
                        ranks_of(forgotten));
  return text;
}

// Deaths of servers, errors behind the last call: what no call shows. The scheduler ends because of others.
std::string ends_text(const std::vector<JobEvent>& events) {
  constexpr std::size_t shown_max = 8;
  std::vector<std::string> words;
  for (const JobEvent& event : events)
    if (event.kind == "error" || (event.kind == "failed" && event.process != "scheduler"))
      words.push_back(event.text);
  if (words.empty()) return "";
  std::string text = "What ended badly, the first of it first:\n";
  for (std::size_t i = 0; i < std::min(words.size(), shown_max); ++i) text += fmt::format("  {}\n", words[i]);
  return text;
}

std::string table_of(const EpochView& view, std::int64_t now_ns) {
  std::vector<std::vector<std::string>> rows = {{"rank", "host", "process", "calls", "last call", "state"}};
  for (const auto& [rank, flight] : view.flights) {
    const auto last = last_record(view, rank);
    const auto calls = flight->records.empty() ? 0 : flight->records.back().serial;
    rows.push_back({std::to_string(rank), flight->process.host.empty() ? "-" : flight->process.host,
                    std::to_string(flight->process.pid), std::to_string(calls), last ? describe(*last) : "-",
                    last ? state_of(*last, now_ns) : "-"});
  }
  return table(rows);
}

}  // namespace

std::string describe(const FlightRecord& record) {
  const std::string reduced =
      fmt::format("{} x {}, {}", record.count, to_string(record.dtype), to_string(record.reduction));
  const auto call = [&](const std::string& what) {
    return fmt::format("{} #{}{}", to_string(record.kind), record.number,
                       what.empty() ? "" : fmt::format(" ({})", what));
  };
  switch (record.kind) {
    case CallKind::send:
      return fmt::format("message #{} to rank {} ({} bytes)", record.number, record.peer, record.count);
    case CallKind::receive:
      return fmt::format("message #{} from rank {} ({} bytes)", record.number, record.peer, record.count);
    case CallKind::all_reduce:
    case CallKind::reduce_scatter:
      return call(reduced);
    case CallKind::reduce:
      return call(fmt::format("{}, to rank {}", reduced, record.peer));
    case CallKind::broadcast:
    case CallKind::scatter:
      return call(fmt::format("{} bytes from rank {}", record.count, record.peer));
    case CallKind::gather:
      return call(fmt::format("{} bytes to rank {}", record.count, record.peer));
    case CallKind::all_gather:
    case CallKind::all_to_all:
      return call(fmt::format("{} bytes", record.count));
    case CallKind::none:
    case CallKind::barrier:
      break;
  }
  return call("");
}

std::string findings_of(const Evidence& evidence) {
  std::set<std::uint64_t> epochs;
  for (const Flight& flight : evidence.flights)
    for (const telemetry::FlightGroup& group : flight.groups) epochs.insert(group.epoch);
  if (epochs.empty())
    return "No worker has connected to another one: there were no calls.\n" + ends_text(evidence.events);
  std::string text;
  for (const std::uint64_t epoch : epochs) {
    const EpochView view = view_of(epoch, evidence);
    const bool is_last = epoch == *epochs.rbegin();
    const auto found = findings_in(view, evidence);
    if (!found && !is_last) continue;
    if (epochs.size() > 1)
      text += fmt::format("In cluster epoch {}{}:\n", epoch, is_last ? "" : ", from which the job went on");
    text +=
        found ? *found
              : "No rank diverged: all calls that were begun were completed.\n" + ends_text(evidence.events);
    text += missing_text(view, evidence);
    text += table_of(view, evidence.now_ns) + (is_last ? "" : "\n");
  }
  return text;
}

}  // namespace muster::launch
