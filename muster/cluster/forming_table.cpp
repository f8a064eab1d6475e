#include "muster/cluster/forming_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "muster/cluster/seats.h"

namespace muster::cluster {
namespace {

using std::chrono::seconds;

constexpr Duration announced_first = seconds(2);
constexpr Duration announced_changed = seconds(4);  // so that a fault is named within five
constexpr Duration announced_same = seconds(16);
// Log lines of attempts: so many in so long.
constexpr std::uint32_t lines_max = 16;
constexpr Duration lines_time = seconds(10);
constexpr std::size_t shown_max = 8;  // of one kind
constexpr std::size_t reason_limit_bytes = 512;

// Words of a line, not long.
std::string line_of(std::string_view text) { return std::string(cut(printable(text), reason_limit_bytes)); }

// "3.2 s ago".
std::string age(TimePoint then, TimePoint now) {
  return fmt::format("{:.3g} s ago", std::chrono::duration<double>(now - then).count());
}

std::string place_of(const Member& member) {
  if (member.pid == 0) return fmt::format("at {}", member.address);  // it did not come so far as to say
  return fmt::format("at {}, pid {}", member.address, member.pid);
}

// The table of one role.
class RoleTable {
 public:
  RoleTable(const FormingView& view, Role role, std::optional<TimePoint> now)
      : attempts_(*view.attempts), role_(role), now_(now) {
    wanted_ = role == Role::worker ? view.worker_num : view.server_num;
    for (const Member* member : view.present) {
      if (member->role != role) continue;
      ++present_;
      if (const auto rank = rank_asked(member->node_id, wanted_))
        ranks_.insert(*rank);
      else
        others_.push_back(member);
    }
  }

  std::uint32_t present() const { return present_; }
  std::uint32_t missing() const { return wanted_ - std::min(wanted_, present_); }

  std::vector<std::string> lines() {
    add_registered();
    add_absent();
    add_refused();
    return std::move(lines_);
  }

 private:
  std::string_view noun() const { return role_ == Role::worker ? "rank" : "server"; }

  void add_registered() {
    std::vector<std::string> parts;
    if (!ranks_.empty()) parts.push_back(numbered(noun(), {ranks_.begin(), ranks_.end()}));
    std::vector<std::string> names;
    std::size_t unnamed = 0;
    for (const Member* member : others_) {
      if (!member->is_named)
        ++unnamed;
      else if (names.size() <= shown_max)
        names.push_back(names.size() < shown_max ? member->node_id : "...");
    }
    if (!names.empty())
      parts.push_back(fmt::format("node{} {}", names.size() == 1 ? "" : "s", fmt::join(names, ", ")));
    if (unnamed > 0) parts.push_back(fmt::format("{} without MS_NODE_ID", unnamed));
    if (!parts.empty()) lines_.push_back(fmt::format("registered: {}", fmt::join(parts, "; ")));
  }

  // Of a vacant rank: the processes that tried to have it.
  const Attempt* attempt_for(std::uint32_t rank) const {
    const Attempt* found = nullptr;
    for (const Attempt& attempt : attempts_.nodes())
      if (attempt.member.role == role_ && rank_asked(attempt.member.node_id, wanted_) == rank &&
          (found == nullptr || found->last <= attempt.last))
        found = &attempt;
    return found;
  }

  void add_absent() {
    if (missing() == 0) return;
    std::vector<std::uint32_t> unseen;
    std::size_t explained = 0;
    for (std::uint32_t rank = 0; rank < wanted_; ++rank) {
      if (ranks_.contains(rank)) continue;
      const Attempt* attempt = attempt_for(rank);
      if (attempt == nullptr) {
        unseen.push_back(rank);
      } else if (++explained <= shown_max) {
        lines_.push_back(
            fmt::format("absent: {} {} (MS_NODE_ID={}), {}", noun(), rank, rank, said_of(*attempt)));
      }
    }
    if (explained > shown_max)
      lines_.push_back(fmt::format("absent: {} more that came in vain", explained - shown_max));
    if (missing() <= explained || unseen.empty()) return;
    const std::size_t rest = missing() - explained;
    if (others_.empty())
      lines_.push_back(
          fmt::format("absent: {} (MS_NODE_ID{}), never seen", numbered(noun(), unseen),
                      unseen.size() == 1 ? fmt::format("={}", unseen[0]) : std::string(" is the number")));
    else  // who has another name, or none, gets one of the free numbers
      lines_.push_back(fmt::format("absent: {} {}{}, never seen ({} free)", rest, to_string(role_),
                                   rest == 1 ? "" : "s", numbered(noun(), unseen)));
  }

  // Who tried in vain and has no rank of its own to be absent from.
  void add_refused() {
    std::size_t count = 0;
    for (const Attempt& attempt : attempts_.nodes()) {
      const Member& member = attempt.member;
      if (member.role != role_) continue;
      const auto rank = rank_asked(member.node_id, wanted_);
      if (missing() > 0 && rank && !ranks_.contains(*rank)) continue;  // it is absent
      if (++count <= shown_max)
        lines_.push_back(fmt::format("{} '{}' {}", to_string(role_), member.node_id, said_of(attempt)));
    }
    if (count > shown_max)
      lines_.push_back(fmt::format("{} more {}s in vain", count - shown_max, to_string(role_)));
  }

  // "refused 1 s ago (at 10.0.0.7, pid 4711): ...", "refused 3 times, the last 1 s ago (...): ...".
  std::string said_of(const Attempt& attempt) const {
    std::string when;
    if (now_ && attempt.count > 1)
      when = fmt::format(" {} times, the last {}", attempt.count, age(attempt.last, *now_));
    else if (now_)
      when = ' ' + age(attempt.last, *now_);
    return fmt::format("{}{} ({}): {}", attempt.what, when, place_of(attempt.member), attempt.reason);
  }

  const Attempts& attempts_;
  const Role role_;
  const std::optional<TimePoint> now_;
  std::uint32_t wanted_ = 0;
  std::uint32_t present_ = 0;
  std::set<std::uint32_t> ranks_ = {};      // that a process asked for and has
  std::vector<const Member*> others_ = {};  // who get a rank in the end
  std::vector<std::string> lines_ = {};
};

std::vector<std::string> lines_of_rejected(const Attempts& attempts, std::optional<TimePoint> now) {
  std::vector<std::string> lines;
  for (const Attempt& attempt : attempts.rejected()) {
    if (lines.size() == shown_max) {
      lines.push_back(fmt::format("{} more rejected peers", attempts.rejected().size() - shown_max));
      break;
    }
    const auto when = now ? fmt::format(", {} connection{}, the last {}", attempt.count,
                                        attempt.count == 1 ? "" : "s", age(attempt.last, *now))
                          : std::string();
    lines.push_back(fmt::format("rejected peer: {}{}: {}", attempt.member.address, when, attempt.reason));
  }
  return lines;
}

}  // namespace

std::string refused_for(const Member& vacant, bool is_alone_there, const Attempts& attempts, TimePoint since,
                        TimePoint now) {
  const auto newest = [&](const std::vector<Attempt>& kept, const auto& is_it) {
    const Attempt* found = nullptr;
    for (const Attempt& attempt : kept)
      if (attempt.last >= since && is_it(attempt) && (found == nullptr || found->last <= attempt.last))
        found = &attempt;
    return found;
  };
  const std::string who = fmt::format("node {}", vacant.node_id);
  if (const Attempt* own = newest(attempts.nodes(), [&](const Attempt& attempt) {
        return attempt.what == "refused" && attempt.member.role == vacant.role &&
               attempt.member.node_id == vacant.node_id;
      }))
    return fmt::format("{} was refused {} ({}): {}", who, age(own->last, now), place_of(own->member),
                       own->reason);
  const auto is_there = [&](const Attempt& attempt) {
    return is_alone_there && attempt.member.address == vacant.address;
  };
  const auto may_be_it = [&](const Attempt& attempt) {
    return is_there(attempt) && attempt.what == "refused" && attempt.member.role == vacant.role;
  };
  if (const Attempt* other = newest(attempts.nodes(), may_be_it))
    return fmt::format("{}, or another {} at its address {}, was refused as node '{}' {}: {}", who,
                       to_string(vacant.role), vacant.address, other->member.node_id, age(other->last, now),
                       other->reason);
  const Attempt* rejected = newest(attempts.rejected(), is_there);
  if (rejected == nullptr) return {};
  return fmt::format("{}, or another process at its address {}, was turned away {}: {}", who, vacant.address,
                     age(rejected->last, now), rejected->reason);
}

bool Attempts::has_line_left(TimePoint now) {
  if (lines_ == 0 || now - lines_since_ >= lines_time) {
    lines_since_ = now;
    lines_ = 0;
  }
  return lines_++ < lines_max;
}

// Returns whether it is news.
bool Attempts::note(std::vector<Attempt>& kept, Attempt attempt) {
  const auto same = [&](const Attempt& other) {
    return other.member.role == attempt.member.role && other.member.node_id == attempt.member.node_id &&
           other.member.address == attempt.member.address && other.what == attempt.what &&
           other.reason == attempt.reason;
  };
  if (const auto found = std::find_if(kept.begin(), kept.end(), same); found != kept.end()) {
    attempt.count += found->count;
    *found = std::move(attempt);
    return false;
  }
  const auto older = [](const Attempt& a, const Attempt& b) { return a.last < b.last; };
  if (kept.size() == kept_max) kept.erase(std::min_element(kept.begin(), kept.end(), older));
  kept.push_back(std::move(attempt));
  return true;
}

bool Attempts::refused(const Member& member, const std::string& reason, TimePoint now) {
  Attempt attempt{.member = member, .what = "refused", .reason = line_of(reason), .count = 1, .last = now};
  note(nodes_, std::move(attempt));
  return has_line_left(now);
}

void Attempts::gone(const Member& member, const std::string& how, TimePoint now) {
  note(nodes_, {.member = member, .what = "gone", .reason = line_of(how), .count = 1, .last = now});
}

bool Attempts::note_rejected(const std::string& address, const std::string& reason, TimePoint now,
                             std::uint64_t count) {
  const bool is_news = note(
      rejected_, {.member = {.address = address}, .reason = line_of(reason), .count = count, .last = now});
  return is_news && has_line_left(now);
}

void Attempts::came(const Member& member) {
  std::erase_if(nodes_, [&](const Attempt& attempt) {
    return attempt.member.role == member.role && attempt.member.node_id == member.node_id;
  });
}

std::string attendance(const FormingView& view) {
  std::vector<std::string> parts;
  for (const Role role : {Role::worker, Role::server}) {
    const std::uint32_t wanted = role == Role::worker ? view.worker_num : view.server_num;
    if (wanted == 0) continue;
    const RoleTable table(view, role, std::nullopt);
    parts.push_back(fmt::format("{} of {} {}s came, {} missing", table.present(), wanted, to_string(role),
                                table.missing()));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string forming_table(const FormingView& view, std::optional<TimePoint> now) {
  std::vector<std::string> lines;
  const auto add = [&](std::vector<std::string> more) {
    std::move(more.begin(), more.end(), std::back_inserter(lines));
  };
  for (const Role role : {Role::worker, Role::server})
    if (role == Role::worker || view.server_num > 0) add(RoleTable(view, role, now).lines());
  add(view.differences);
  add(lines_of_rejected(*view.attempts, now));
  std::string text;
  for (const std::string& line : lines) text += "\n  " + line;
  return text;
}

std::string numbered(std::string_view noun, const std::vector<std::uint32_t>& numbers) {
  std::vector<std::string> ranges;
  for (std::size_t begin = 0, end = 0; begin < numbers.size(); begin = end) {
    for (end = begin + 1; end < numbers.size() && numbers[end] == numbers[end - 1] + 1;) ++end;
    if (ranges.size() == shown_max) {
      ranges.push_back(fmt::format("... ({} in all)", numbers.size()));
      break;
    }
    ranges.push_back(end - begin == 1 ? fmt::format("{}", numbers[begin])
                                      : fmt::format("{}-{}", numbers[begin], numbers[end - 1]));
  }
  return fmt::format("{}{} {}", noun, numbers.size() == 1 ? "" : "s", fmt::join(ranges, ", "));
}

Announcements::Announcements(TimePoint start) : due_(start + announced_first) {}

bool Announcements::says(const std::string& state, TimePoint now) {
  due_ = now + announced_changed;
  if (said_ == state && now < said_at_ + announced_same) return false;
  said_ = state;
  said_at_ = now;
  return true;
}

}  // namespace muster::cluster
