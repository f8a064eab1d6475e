// Private to train: this worker's part in the steps of parameters that live on parameter servers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "muster/checkpoint/checkpoint.h"
#include "muster/cluster/cluster.h"
#include "muster/graph/served.h"
#include "muster/server/server.h"

namespace muster::train {

class Session;

// One for a session. Its steps are those of the optimizer: who goes back to a step goes back on the servers,
// too, when it makes that step in the next epoch of the cluster.
class ServedParameters {
 public:
  struct Options {
    Duration call_timeout{};
    std::shared_ptr<const net::Security> security = {};  // null: plain
  };
  // The session is borrowed.
  ServedParameters(Session& session, Options options) : session_(session), options_(std::move(options)) {}

  Result<> update(std::int64_t steps, std::span<const graph::ServedUpdate> updates);

  // A recovery point of this moment is being saved: who goes back to it makes the same steps again.
  void note_point(const checkpoint::PointId& point);
  // All workers have that point or a later one of the call: servers need not go back behind its steps.
  void note_common_point(const checkpoint::PointId& point);

 private:
  Result<> update_now(std::uint64_t step, std::span<const graph::ServedUpdate> updates);
  Result<> follow_epoch(std::uint64_t step);
  Result<> add_table(std::int64_t number);
  Result<> push(std::span<const graph::ServedUpdate> updates);
  Result<> pull(std::uint64_t step, std::span<const graph::ServedUpdate> updates);
  Result<> check_step(std::uint64_t step) const;

  struct Table {
    std::uint32_t number = 0;             // on the servers
    std::vector<std::uint64_t> ids = {};  // of all rows
  };

  Session& session_;
  Options options_;
  std::vector<cluster::Member> servers_;  // of the epoch
  std::unique_ptr<server::ParameterClient> client_;
  std::map<std::int64_t, Table> tables_;  // by number of the parameter
  std::optional<std::uint64_t> epoch_;
  std::set<std::int64_t> begun_;                         // parameters whose values were said in this epoch
  std::uint64_t next_ = 0;                               // step
  std::map<checkpoint::PointId, std::uint64_t> points_;  // the next step of each that is not common yet
  std::optional<Error> failure_;                         // of this epoch
};

// Sets up what the ops of served parameters call.
void watch_served_parameters();

}  // namespace muster::train
