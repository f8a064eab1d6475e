// Table of a cluster that is still forming: nodes that have registered, nodes that are missing, and failed
// attempts with their reasons. Plain values; no time passes here by itself.
//
//   waiting since 2 s: 2 of 4 workers came, 2 missing
//     registered: ranks 0-1
//     absent: rank 2 (MS_NODE_ID=2), never seen
//     absent: rank 3 (MS_NODE_ID=3), refused 1 s ago (at 10.0.0.7, pid 4711): wrong worker number: ...
//     worker '1' refused 1 s ago (at 10.0.0.8, pid 815): duplicate id: ...
//     rejected peer: 10.0.0.9, 3 connections, the last 1 s ago: not a Muster frame: ...
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/cluster/roster.h"

namespace muster::cluster {

// One that led to nothing.
struct Attempt {
  Member member = {};       // node_id is empty for an unauthorized peer, who did not say who it is
  std::string what = {};    // "refused", or "gone": was part of the job and is so no more
  std::string reason = {};  // made printable
  std::uint64_t count = 0;
  TimePoint last = {};
};

// The newest attempts; bounded, however many there are.
class Attempts {
 public:
  static constexpr std::size_t kept_max = 32;  // of nodes, and as many of unauthorized peers

  // Returns whether it is worth a log line now: a flood of attempts is not one of lines.
  bool refused(const Member& member, const std::string& reason, TimePoint now);
  void gone(const Member& member, const std::string& how, TimePoint now);
  bool note_rejected(const std::string& address, const std::string& reason, TimePoint now,
                     std::uint64_t count = 1);
  // It is part of the job now.
  void came(const Member& member);

  const std::vector<Attempt>& nodes() const { return nodes_; }
  const std::vector<Attempt>& rejected() const { return rejected_; }

 private:
  bool note(std::vector<Attempt>& kept, Attempt attempt);
  bool has_line_left(TimePoint now);

  std::vector<Attempt> nodes_;
  std::vector<Attempt> rejected_;
  TimePoint lines_since_ = {};
  std::uint32_t lines_ = 0;
};

struct FormingView {
  std::uint32_t worker_num = 0;
  std::uint32_t server_num = 0;
  std::vector<const Member*> present = {};  // in the order in which they came
  const Attempts* attempts = nullptr;
  std::vector<std::string> differences = {};  // see fingerprint.h
};

// "2 of 4 workers came, 2 missing".
std::string attendance(const FormingView& view);
// The lines below that, each after a line break and two spaces. Without `now` they leave out times and
// counts, which change although nothing happens.
std::string forming_table(const FormingView& view, std::optional<TimePoint> now);

// What is known of attempts since `since` to be the process that held a vacant place: made with its id, or,
// by peers that did not identify themselves, at its address where no other node is missing. Nothing, or a
// line.
std::string refused_for(const Member& vacant, bool is_alone_there, const Attempts& attempts, TimePoint since,
                        TimePoint now);

// "ranks 0-2, 5, 7", "rank 4"; ascending numbers. `noun` is the singular.
std::string numbered(std::string_view noun, const std::vector<std::uint32_t>& numbers);

// When a text that may change is said again: at 2 s, then every 4 s when it has changed, else every 16 s.
class Announcements {
 public:
  explicit Announcements(TimePoint start);
  TimePoint due() const { return due_; }
  // Call it when due; `state` is the text without what changes by itself.
  bool says(const std::string& state, TimePoint now);

 private:
  TimePoint due_;
  TimePoint said_at_ = {};
  std::optional<std::string> said_ = {};
};

}  // namespace muster::cluster
