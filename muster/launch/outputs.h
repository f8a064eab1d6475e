// Outputs of the processes of a job: each goes to a log of its own and as prefixed lines to the console; the
// last lines are kept for the report.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/launch/console.h"
#include "muster/launch/crew.h"
#include "muster/launch/last_lines.h"
#include "muster/launch/launch_spec.h"
#include "muster/launch/lines.h"
#include "muster/net/net.h"

namespace muster::launch {

class Outputs {
 public:
  // `tail`: the ranks whose lines the console shows; empty: all.
  Outputs(Console& console, std::string log_folder, std::vector<std::int64_t> tail)
      : console_(console), log_folder_(std::move(log_folder)), tail_(std::move(tail)) {}

  // Processes are numbered in the order in which they are added. Makes its log.
  Result<> add(const ProcessSpec& spec);

  void take(std::size_t process, Stream stream, std::string_view bytes);
  // It has ended: what stands on a line that is not complete is a line.
  void finish(std::size_t process);
  // It is started again: what it wrote in its last life is not repeated.
  void forget(std::size_t process);
  // The end of what it wrote: of its standard error, unless nothing came there.
  std::vector<std::string> last_lines(std::size_t process) const;
  void show_last_lines(std::size_t process);

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
  };

  void show(Process& process, Stream stream, std::string_view line);
  void set_live(const Process* process);

  Console& console_;
  std::string log_folder_;
  std::vector<std::int64_t> tail_;
  std::vector<std::unique_ptr<Process>> processes_;
  const Process* live_owner_ = nullptr;
};

// Whether `--tail` with these ranks shows the lines of a process; a process without a rank belongs to all.
bool is_tailed(const ProcessSpec& spec, const std::vector<std::int64_t>& tail);

}  // namespace muster::launch
