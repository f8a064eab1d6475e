// Outputs of the processes of a job: each goes to a log of its own and as prefixed lines to the console; the
// last lines are kept for the report.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/launch/console.h"
#include "muster/launch/crew.h"
#include "muster/launch/held_traceback.h"
#include "muster/launch/last_lines.h"
#include "muster/launch/launch_spec.h"
#include "muster/launch/lines.h"
#include "muster/launch/repeated_warnings.h"
#include "muster/net/net.h"

namespace muster::launch {

class Outputs {
 public:
  // `tail`: the ranks whose lines the console shows; empty: all.
  Outputs(Console& console, std::string log_folder, std::vector<std::int64_t> tail)
      : console_(console), log_folder_(std::move(log_folder)), tail_(std::move(tail)) {}

  // Processes are numbered in the order in which they are added. Makes its log.
  Result<> add(const ProcessSpec& spec);

  void take(std::size_t process, Stream stream, std::string_view bytes, TimePoint now);
  // It has ended: what stands on a line that is not complete is a line.
  void finish(std::size_t process, TimePoint now);
  // It is started again: what it wrote in its last life is not repeated.
  void forget(std::size_t process);
  // A traceback that a process may end with is not shown at first (HeldTraceback); this is it, if there is
  // one.
  const std::vector<std::string>& held(std::size_t process) const {
    return processes_[process]->held.lines();
  }
  // It is not what the process ended with, or will not be reported: it is shown.
  void release(std::size_t process);
  // What was held too long is shown by release_due, which has to be called at this time.
  std::optional<TimePoint> due() const;
  void release_due(TimePoint now);
  // The end of what it wrote: the traceback that is held, else of its standard error, unless nothing came
  // there.
  std::vector<std::string> last_lines(std::size_t process) const;
  void show(std::size_t process, const std::vector<std::string>& lines);

 private:
  struct Lines {
    LineBuffer buffer = {};
    LastLines last = {};
  };
  struct Process {
    std::string label = {};
    std::string log_path = {};
    net::Descriptor log = {};
    bool is_shown = true;
    std::array<Lines, 2> streams = {};  // by Stream
    HeldTraceback held = {};
    bool has_ended = false;
  };

  void take_line(std::size_t index, Stream stream, std::string_view line, TimePoint now);
  void set_live(const Process* process, Stream stream = Stream::out);

  Console& console_;
  std::string log_folder_;
  std::vector<std::int64_t> tail_;
  std::vector<std::unique_ptr<Process>> processes_;
  const Process* live_owner_ = nullptr;
  Stream live_stream_ = Stream::out;
  RepeatedWarnings warnings_;
};

// Whether `--tail` with these ranks shows the lines of a process; a process without a rank belongs to all.
bool is_tailed(const ProcessSpec& spec, const std::vector<std::int64_t>& tail);

}  // namespace muster::launch
