// Protocol of parameter servers: what workers and servers say to each other. What is pushed and pulled is
// opaque here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "muster/base/base.h"

namespace muster::server {

// Ids and gradients, ids that are asked for, or rows: the machines hand them on and never look inside.
using Body = std::shared_ptr<const void>;

// ---- From a worker

// The first word of a connection, and of a generation: this worker begins, or began, the generation at that
// step.
struct Hello {
  std::uint32_t worker = 0;
  std::uint64_t generation = 0;
  std::uint64_t begin = 0;
  // The step at which the job began, where this worker knows it: above 0 after a checkpoint with the
  // optimizer.
  std::optional<std::uint64_t> origin = {};
  friend bool operator==(const Hello&, const Hello&) = default;
};
struct Push {
  std::uint32_t worker = 0;
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  Body body = {};
};
struct Pull {
  std::uint32_t worker = 0;
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  std::uint32_t serial = 0;  // of the worker's messages: a pull that is sent again has another one
  // The step has not begun: what is there is sent at once, and once the step may be seen what has changed
  // since.
  bool is_ahead = false;
  Body body = {};
};
// All workers have a recovery point of this step or a later one: none goes back behind it any more.
struct CommonPoint {
  std::uint32_t worker = 0;
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
};
// This worker has ended well: it pushes nothing from this step on.
struct Leave {
  std::uint32_t worker = 0;
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
};
using ToServer = std::variant<Hello, Push, Pull, CommonPoint, Leave>;

// ---- From a server

// Pushes of this worker before `next` were taken, those before `kept` are on the disk.
struct Taken {
  std::uint64_t generation = 0;
  std::uint64_t next = 0;
  std::uint64_t kept = 0;
  std::uint64_t origin = 0;  // the step at which the job began
  bool is_welcome = false;   // the answer to Hello: what was sent before and is missing has to be sent again
};
struct Rows {
  enum class Kind : std::uint8_t { whole, early, changed };
  std::uint64_t generation = 0;
  std::uint32_t serial = 0;  // of the pull
  Kind kind = Kind::whole;
  std::uint64_t applied = 0;  // steps before this one are in the rows; 0 where each push is applied by itself
  std::uint64_t since = 0;    // of changed ones: `applied` of the early ones
  Body body = {};
  Body early = {};  // of changed ones that have come: what they change
};
// The worker's generation is over, or it asks for what cannot be.
struct Refusal {
  std::uint64_t generation = 0;  // of what is refused
  std::string reason = {};
};
using ToWorker = std::variant<Taken, Rows, Refusal>;

}  // namespace muster::server
