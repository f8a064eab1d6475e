// Worker machine: one worker's side of the protocol of parameter servers as a pure state machine
// (docs/adr/0049-parameter-servers.md).
//
// It keeps each push until all servers that hold its rows have it on the disk, and sends again what a server
// lacks. Its owner carries out the messages, calls `retry` where a connection was made anew (or an answer is
// overdue), and waits. No clock, no threads.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/server/protocol.h"
#include "muster/server/sharding.h"

namespace muster::server {

struct WorkerConfig {
  std::uint32_t worker = 0;
  std::uint32_t server_num = 1;
  std::uint32_t copies = 1;
  // What copies are asked for, where the first holder of each share is asked for rows: nothing. Their answers
  // say that they, too, have all pushes that a step must see.
  Body nothing = {};
};

struct ToServerMessage {
  std::uint32_t holder = 0;  // see Holders: where there are no copies, the server
  ToServer message = {};
};
using ToServerMessages = std::vector<ToServerMessage>;

class WorkerMachine {
 public:
  explicit WorkerMachine(WorkerConfig config);

  // All workers begin a generation at this step: pushes of it and of later steps are forgotten, pulls too.
  // `origin`, where it is known, is the step at which the job began.
  ToServerMessages begin(std::uint64_t generation, std::uint64_t step,
                         std::optional<std::uint64_t> origin = {});
  // One body for each share, in order. A step is pulled before it is pushed, and pushed once. Pulls of a
  // step are told apart by a number of their owner's.
  ToServerMessages pull(std::uint64_t step, std::vector<Body> bodies, std::uint32_t number = 0) {
    return ask({step, number}, std::move(bodies), false);
  }
  // Of a step that has not begun.
  ToServerMessages pull_ahead(std::uint64_t step, std::vector<Body> bodies, std::uint32_t number = 0) {
    return ask({step, number}, std::move(bodies), true);
  }
  // Whatever may still come of it is dropped.
  void forget_pull(std::uint64_t step, std::uint32_t number) { pulls_.erase({step, number}); }
  ToServerMessages push(std::vector<Body> bodies);
  // No worker goes back behind this step any more; servers hear of it again whenever they are welcome again.
  ToServerMessages set_common_point(std::uint64_t step);
  // This worker has ended well: it pushes nothing more.
  ToServerMessages leave() const;
  ToServerMessages receive(std::uint32_t holder, const ToWorker& message);
  // Says hello to the server again; its answer brings what it lacks.
  ToServerMessages retry(std::uint32_t holder);

  // The rows of a pull of all shares, once all servers have answered; only once.
  std::optional<std::vector<Rows>> take_rows(std::uint64_t step, std::uint32_t number = 0);
  // The step of the next push.
  std::uint64_t next() const { return next_; }
  // Every server has the pushes before this step on its disk.
  std::uint64_t kept() const;
  // Whether every server has answered this generation's hello.
  bool is_welcome() const;
  // Whether an answer of this one is awaited.
  bool awaits(std::uint32_t holder) const;
  // Whether that is one without which nothing goes on here: to a hello or to a pull.
  bool lacks_answer(std::uint32_t holder) const;
  // Why this generation cannot go on: refused, or a server wants a push that this worker does not have.
  const std::optional<Error>& failure() const { return failure_; }

  std::uint64_t generation() const { return generation_; }
  // The step at which the job began, as the servers know it once they have answered.
  std::uint64_t origin() const { return origin_.value_or(told_origin_); }
  // Servers want a step before this generation's: either rows are lost, or they have not heard yet that the
  // job began later, which this worker does not know.
  bool lacks_origin() const;
  // It began at step 0.
  ToServerMessages assume_origin();
  // Pushes that are held for servers.
  std::size_t held() const;

 private:
  struct Peer {
    std::uint64_t kept = 0;
    bool is_welcome = false;  // it has answered the last hello
    bool lacks_origin = false;
  };
  // When a server wanted what no process has.
  struct Lost {
    std::uint64_t generation = 0;
    std::uint64_t begin = 0;  // the step from which the generation went on
    friend bool operator==(const Lost&, const Lost&) = default;
  };
  using Pushes = std::deque<Push>;  // in the order of their steps, which follow each other
  struct PendingPull {
    bool is_ahead = false;
    std::vector<Body> bodies = {};  // by holder, as all that follows
    std::vector<std::uint32_t> serials = {};
    std::vector<std::optional<Rows>> early = {};
    std::vector<std::optional<Rows>> rows = {};
  };
  using PullPlace = std::pair<std::uint64_t, std::uint32_t>;  // step, number

  ToServerMessages ask(const PullPlace& place, std::vector<Body> bodies, bool is_ahead);
  Pull pull_message(const PullPlace& place, PendingPull& pending, std::uint32_t holder);
  void take(std::uint32_t holder, const Rows& rows);

  ToServerMessages taken(std::uint32_t holder, const Taken& taken);
  // The step of the first push that is there to be sent again.
  std::uint64_t first_held(std::uint32_t holder) const;
  void send_again(std::uint32_t holder, std::uint64_t next, ToServerMessages& messages);
  // Every holder of the share has the pushes before this step on its disk.
  std::uint64_t kept_of(std::uint32_t share) const;
  std::string described(std::uint32_t holder) const;
  void fail_for_lost(std::uint32_t holder, std::uint64_t next);
  void fail_with(Code code, std::string message);
  Push push_of(Body body) const;
  CommonPoint common_point() const {
    return {.worker = config_.worker, .generation = generation_, .step = common_point_};
  }

  WorkerConfig config_;
  std::uint64_t generation_ = 0;
  std::uint64_t begin_ = 0;
  std::optional<std::uint64_t> origin_ = {};
  std::uint64_t told_origin_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t common_point_ = 0;
  Holders holders_;
  std::vector<Peer> peers_;     // by holder
  std::vector<Pushes> unkept_;  // by share
  std::map<PullPlace, PendingPull> pulls_;
  std::uint32_t serial_ = 0;  // of the last pull that was sent
  std::optional<Error> failure_;
  std::optional<Lost> lost_;  // the last time
};

}  // namespace muster::server
