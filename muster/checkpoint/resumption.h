// Resumption: the step at which the workers of a job continue together after processes were lost, and which
// worker sends its state to which. Every worker decides from the same rows, so there is no leader; the same
// function runs in the simulator.
//
// What holds, whatever was lost (docs/adr/0022-nothing-is-lost.md):
// - What is in the memory of those who live counts before any file: then no step is lost.
// - No call begins anew where any worker knows of a point of it that all have had. Before that nothing was
//   promised: a worker that died before its first point was on disk begins again; but not one whose folder
//   may be another one than before, as soon as a worker has a point behind the start.
// - A worker that lacks what the others have takes it from one of them, if that one has nothing that is its
//   own; where it has, from the newest point that all workers have or may take.
// - Where neither is possible it is an error that says who lacks what, and nothing is changed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/checkpoint/point.h"

namespace muster::checkpoint {

// A point that a worker has.
struct HeldPoint {
  PointId id = {};
  bool is_shared = false;  // another worker of the same stage may go on from it
  bool is_record = false;  // of an end that is all that is left: a later point has the state

  friend bool operator==(const HeldPoint&, const HeldPoint&) = default;
};

// What one worker says of itself.
struct Standing {
  enum class State : std::uint8_t {
    fresh,       // its memory is what it is at the start of the call
    spoilt,      // its memory is of no use
    live,        // its memory is what it is after `steps` steps
    committing,  // likewise, and it has all that the others gave to the next one
    behind,      // the call is over for others, and it lacks the end
    between,     // it has not begun the call, and waits for the workers that are behind
  };

  State state = State::fresh;
  std::uint64_t call = 0;
  std::uint64_t steps = 0;
  bool is_shared = false;      // another one of the same stage may go on from its memory
  std::uint32_t stage = 0;     // the part of the network that it works on
  bool knows_common = false;   // a point of the call is known to it that all workers had
  bool may_have_lost = false;  // nothing says that its folder was there when all began the call
  bool is_eager = false;       // it runs its steps op by op
  std::uint64_t finished = 0;  // it has the ends of the calls before this one
  bool has_end = false;        // of the call, on its disk or in its memory
  // Others may take the ends of the calls from this one to the one before `call`, whether those are over or
  // not.
  std::uint64_t gives_ends_from = ~std::uint64_t{0};
  std::vector<HeldPoint> points = {};  // of the call, oldest first; its end, if that is on record

  friend bool operator==(const Standing&, const Standing&) = default;
};

struct Resumption {
  enum class Way : std::uint8_t {
    ask_again,  // a worker has something to do first: then all say anew where they stand
    start,      // of the call, as it is in the memory of all
    live,       // after `steps` steps, as it is in the memory of those who have it
    point,      // `id`
    end_of,     // those who are behind take the end of their call; then all say anew where they stand
    back,       // a worker that is past `id`, which is no end that all have, has to start its script anew
    lost,       // there is no way on: see `reason`
  };

  Way way = Way::ask_again;
  PointId id = {};  // of `ask_again` the call where the others are, if some are behind
  std::uint64_t steps = 0;
  // By rank, of `live`, `point` and `end_of`: whose state it takes; nothing: it has its own.
  std::vector<std::optional<std::uint32_t>> sources = {};
  // By rank, of `ask_again`: whether it ends the step that it has all for.
  std::vector<bool> commits = {};
  // For people: of `lost` and `back` what is missing; of `point` why the memory of those who live is not
  // used, if any does.
  std::string reason = {};
};

Resumption decide(std::span<const Standing> ranks);

// As words, all rows of one length, and back; of more points than fit the newest are told.
inline constexpr std::size_t standing_points_max = 16;
std::vector<std::uint64_t> encode(const Standing& standing);
Standing decode_standing(std::span<const std::uint64_t> words);

}  // namespace muster::checkpoint
