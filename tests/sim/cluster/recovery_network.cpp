// The connections between simulated processes and their scheduler: late, cut off, closed from either side.
#include <algorithm>

#include "recovery_simulator.h"

namespace muster::cluster::sim {

void RecoverySimulator::connect(std::size_t index) {
  if (is_replaced(index))
    return after(0ms, [this, index] { process_step(index, node_event::Replaced{newer_has_folder}); });
  if (processes_[index]->opened_job == 0) processes_[index]->memory = memory_of(processes_[index]->node);
  const PeerId id = next_connection_++;
  processes_[index]->connection = id;
  connections_[id] = {.process = index};
  const Line& line = line_of(connections_[id]);
  at(std::max({now_ + delay(), line.to_scheduler, line.to_node}), [this, index, id] {
    if (processes_[index]->connection != id || !processes_[index]->alive) return;
    if (!scheduler_alive_) {
      on_process(index, [this, index, id] {
        if (processes_[index]->connection != id) return;
        processes_[index]->connection = 0;
        process_step(index, node_event::Disconnected{"connection refused"});
      });
      return;
    }
    Connection& connection = connections_[id];
    connection.scheduler = scheduler_life_;
    connection.node_open = connection.scheduler_open = true;
    on_process(index, [this, index, id] {
      if (processes_[index]->connection == id)
        process_step(index, node_event::Connected{processes_[index]->memory.found});
    });
  });
}

void RecoverySimulator::send_to_scheduler(PeerId id, const Message& message) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || !found->second.node_open) return;
  Line& line = line_of(found->second);
  TimePoint& free = found->second.to_scheduler_free;
  free = std::max({now_ + delay(), free, line.to_scheduler});
  remember(line.said_to_scheduler, found->second.process, message);
  at(free, [this, id, message] {
    if (connections_[id].scheduler == scheduler_life_)
      on_scheduler([this, id, message] {
        if (connections_[id].scheduler_open) scheduler_step(scheduler_event::Received{id, message});
      });
  });
}

void RecoverySimulator::send_to_node(PeerId id, const Message& message) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || !found->second.scheduler_open) return;
  expect_may_hear(found->second.process, message);
  Line& line = line_of(found->second);
  TimePoint& free = found->second.to_node_free;
  free = std::max({now_ + delay(), free, line.to_node});
  remember(line.said_to_node, found->second.process, message);
  at(free, [this, id, message, index = found->second.process] {
    on_process(index, [this, id, message, index] {
      if (processes_[index]->connection == id && connections_[id].node_open)
        process_step(index, node_event::Received{message});
    });
  });
}

// The other side learns of it behind everything that is under way.
void RecoverySimulator::close_by_node(PeerId id) {
  Connection& connection = connections_[id];
  if (!std::exchange(connection.node_open, false)) return;
  connection.to_scheduler_free =
      std::max({now_ + delay(), connection.to_scheduler_free, line_of(connection).to_scheduler});
  at(connection.to_scheduler_free, [this, id] {
    if (connections_[id].scheduler != scheduler_life_) return;
    on_scheduler([this, id] {
      if (std::exchange(connections_[id].scheduler_open, false)) scheduler_step(scheduler_event::Closed{id});
    });
  });
}

void RecoverySimulator::close_by_scheduler(PeerId id) {
  Connection& connection = connections_[id];
  if (!std::exchange(connection.scheduler_open, false)) return;
  connection.to_node_free = std::max({now_ + delay(), connection.to_node_free, line_of(connection).to_node});
  at(connection.to_node_free, [this, id, index = connection.process] {
    on_process(index, [this, id, index] {
      if (!std::exchange(connections_[id].node_open, false) || processes_[index]->connection != id) return;
      processes_[index]->connection = 0;
      process_step(index, node_event::Disconnected{"connection reset"});
    });
  });
}

}  // namespace muster::cluster::sim
