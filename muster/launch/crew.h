// Crew: starts and ends processes for the supervisor, on this host or through an agent on another one. The
// supervisor decides, a crew acts.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "muster/base/base.h"
#include "muster/launch/launch_spec.h"
#include "muster/launch/lines.h"

namespace muster::launch {

class Crew;

// What happens to the processes of crews. `process` is the number that the process was started under.
class CrewListener {
 public:
  virtual ~CrewListener() = default;
  virtual void on_start(std::size_t process, pid_t pid) = 0;
  virtual void on_start_failure(std::size_t process, const Error& error) = 0;
  virtual void on_output(std::size_t process, Stream stream, std::string_view bytes) = 0;
  // All that the process itself wrote came before; what children of it write may follow.
  virtual void on_end(std::size_t process, int wait_status) = 0;
  // Nothing more comes of this crew or of its processes.
  virtual void on_loss(const Crew& crew, const std::string& reason) = 0;
  // What the crew itself has to say, for people.
  virtual void on_note(const Crew& crew, std::string_view line) = 0;
};

// One thread. No call blocks, except where it says so.
class Crew {
 public:
  virtual ~Crew() = default;

  // Who is told from here on; outlives the crew.
  virtual void set_listener(CrewListener& listener) = 0;
  // What the processes find from before the first one starts until the crew has ended.
  virtual void make_files(const std::vector<FileSpec>& files) = 0;
  // The same number again: the process has ended and is started once more.
  virtual void start(std::size_t process, const ProcessSpec& spec) = 0;
  // To the process and its group; nothing when it has ended.
  virtual void signal(std::size_t process, int number) = 0;

  // The descriptors to wait for; without those that bring output, when it cannot be taken now.
  virtual void add_polled(std::vector<pollfd>& polled, bool takes_output) const = 0;
  // `polled` is what add_polled added, after poll().
  virtual void take(std::span<const pollfd> polled) = 0;
  // A child of this process that was reaped; whether it is one of this crew's.
  virtual bool take_child_end(pid_t pid, int wait_status) = 0;
  // When take() has to be called even though no descriptor is ready.
  virtual std::optional<TimePoint> wake_at() const { return std::nullopt; }

  // Everything that it started, and that descends from it, is killed.
  virtual void begin_end() = 0;
  virtual bool has_ended() const = 0;
};

}  // namespace muster::launch
