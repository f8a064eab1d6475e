// Server machine: one parameter server's side of the protocol as a pure state machine
// (docs/adr/0049-parameter-servers.md).
//
// It decides what is applied when and which pull is answered; rows, log and connections are its owner's, who
// carries out the actions in their order. No clock, no threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "muster/server/protocol.h"

namespace muster::server {

// Steps that a pull may lack; none: pushes are applied as they come, and no pull waits.
using Staleness = std::optional<std::uint64_t>;

struct ServerConfig {
  std::uint32_t worker_num = 1;
  Staleness staleness = 0;
  // For errors: the server's number, and that of the other one that has the same rows.
  std::uint32_t server = 0;
  std::optional<std::uint32_t> other_holder = {};
};

// Which pushes are in rows: of each worker, those before its step. Where steps are applied whole, that is the
// same step for all.
using Position = std::vector<std::uint64_t>;

// ---- The log

// A push that was taken.
struct PushRecord {
  std::uint32_t worker = 0;
  std::uint64_t step = 0;
  Body body = {};
};
// A generation began at a step: pushes of this step and later ones that stand before it do not count.
struct GenerationRecord {
  std::uint64_t generation = 0;
  std::uint64_t begin = 0;
  std::uint64_t origin = 0;  // the step at which the job began
};
using LogRecord = std::variant<PushRecord, GenerationRecord>;

// What a server finds when it starts: rows as of a step, and the log since.
struct Restored {
  Position base = {};  // empty: of no step
  std::vector<LogRecord> log = {};
  bool is_kept = true;  // all of it is on the disk already; else `restored_kept` tells when it is
};

// ---- Actions

// Write the record behind the log. It need not be on the disk before later actions.
struct Append {
  LogRecord record = {};
};
// Update the rows once: with the pushes of all workers, by rank, or (where each counts for itself) with one.
struct Apply {
  std::uint64_t step = 0;
  std::vector<Body> bodies = {};
};
// Put the rows back to the base; what is to be applied on top of it follows.
struct Reset {};
// Read the rows that the pull asks for, as they are now, and send them as Rows.
struct Answer {
  Pull pull = {};
  std::uint64_t applied = 0;
  std::optional<std::uint64_t> since =
      {};  // those alone that have changed since its Preview, of this `applied`
};
// Send them as early ones, and note from now on which of them change.
struct Preview {
  Pull pull = {};
  std::uint64_t applied = 0;
};
struct Send {
  std::uint32_t worker = 0;
  ToWorker message = {};
};
using Action = std::variant<Append, Apply, Reset, Answer, Preview, Send>;
using Actions = std::vector<Action>;

class ServerMachine {
 public:
  explicit ServerMachine(ServerConfig config);

  // Once, before anything else: what the log says. Its rows are at the base; the actions bring them further.
  // Code::corrupt where the log contradicts itself.
  Result<Actions> restore(const Restored& restored);
  // What a worker says; what cannot be is refused.
  Actions receive(const ToServer& message);
  // The first `records` appended records, restored ones not counted, are on the disk.
  Actions log_kept(std::uint64_t records);
  // What was restored is on the disk, too. Until then `log_kept` is not called.
  Actions restored_kept();
  // The owner has rows as of an earlier `position()` as its base. The common point must have reached it.
  void base_moved(const Position& base);

  std::uint64_t generation() const { return generation_; }
  // The first step to which workers may go back.
  std::uint64_t base() const;
  // No worker goes back behind this step.
  std::uint64_t common_point() const { return common_point_; }
  // Of the rows, once all actions so far are carried out.
  Position position() const;
  // What a log has to begin with whose base are the rows of now.
  std::vector<LogRecord> carried() const;
  // Steps before this one are applied; of staleness none: of all workers.
  std::uint64_t applied() const;
  std::uint64_t next(std::uint32_t worker) const { return next_[worker]; }
  // Workers whose pulls wait for the next step to be complete, and those whose pushes it lacks.
  struct Waiting {
    std::uint32_t workers = 0;
    std::uint32_t first_missing = 0;
    std::uint32_t missing = 0;
  };
  Waiting waiting() const;
  // Whether every worker has left since this generation began.
  bool have_workers_left() const {
    return std::all_of(ends_.begin(), ends_.end(), [](const auto& end) { return end.has_value(); });
  }

 private:
  struct Held {
    Body body = {};
    std::uint64_t order = 0;  // of taking
    bool is_there = false;
  };
  struct WaitingPull {
    Pull pull = {};
    std::optional<std::uint64_t> previewed = {};  // what was applied then
  };
  struct Unkept {
    std::uint64_t record = 0;
    std::uint32_t worker = 0;
    std::uint64_t step = 0;
  };

  void hear(const Hello& hello);
  void hear(const Push& push);
  void hear(const Pull& pull);
  void hear(const CommonPoint& point);
  void hear(const Leave& leave);
  // Whether the worker is of this job and of this generation; refuses what it says where it is not.
  template <class Message>
  bool admits(const Message& message);
  void begin_generation(std::uint64_t generation, std::uint64_t begin);
  // Whether nothing was taken or kept yet, so that the job may begin at any step.
  bool is_untouched() const;
  void set_origin(std::uint64_t origin);
  // What a worker says of it; whether that fits.
  bool hear_origin(const Hello& hello);
  // Forgets pushes of this step and later ones that are not in the base; whether one of them may be in the
  // rows.
  bool forget_from(std::uint64_t step);
  void hold(const PushRecord& push);
  void apply_again();
  void apply_complete_steps();
  void answer_waiting();
  void answer(const WaitingPull& waiting);
  bool may_answer(std::uint64_t step) const;
  // Whose push this pull, which may not be answered yet, waits for in vain.
  std::optional<std::uint32_t> never_pushes_for(const Pull& pull) const;
  void refuse_endless(const Pull& pull, std::uint32_t left);
  void append(LogRecord record);
  // `message` is what a worker has said.
  template <class Message>
  void refuse(const Message& message, std::string reason) {
    actions_.push_back(
        Send{message.worker, Refusal{.generation = message.generation, .reason = std::move(reason)}});
  }
  void tell_taken(std::uint32_t worker, bool is_welcome);
  Actions take_actions() { return std::exchange(actions_, {}); }

  ServerConfig config_;
  std::uint64_t generation_ = 0;
  std::uint64_t begin_ = 0;  // of the generation
  std::uint64_t origin_ = 0;
  Position base_;
  std::uint64_t common_point_ = 0;
  std::uint64_t applied_ = 0;
  Position next_;
  std::vector<std::uint64_t> kept_;                  // by worker
  Position restored_;                                // not known to be kept; empty: it is
  std::map<std::uint64_t, std::vector<Held>> held_;  // by step since the base, by worker
  std::uint64_t taken_ = 0;
  std::vector<std::map<std::uint32_t, WaitingPull>> waiting_;  // by worker and serial
  // By worker: the first step of this generation that it does not push, once it has left.
  std::vector<std::optional<std::uint64_t>> ends_;
  std::uint64_t records_ = 0;  // appended
  std::vector<Unkept> unkept_;
  Actions actions_;
};

}  // namespace muster::server
