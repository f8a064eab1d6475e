// A supervised job as the tests see it: shell commands, what is written, how it ends.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "muster/net/net.h"

namespace muster::launch::testing {

struct Times {
  int settle_ms = 60'000;
  int grace_ms = 60'000;
  int restarts = 0;
  int restart_delay_ms = 1;
  const char* tail = nullptr;  // the one rank that is shown
  bool has_lease = false;      // there is a rest of the job, for which the test speaks
};

class Job {
 public:
  explicit Job(const std::vector<std::string>& commands, Times times = {});
  ~Job();

  // Reads on until a line holds `text`, and returns that line. A failure after 20 seconds, or at the end.
  std::string line_with(const std::string& text);
  // Reads on until a line "pid <number>" comes; the descriptor becomes readable when that process has ended.
  net::Descriptor process_announced();
  // The exit code, or 128 and the signal; everything written is in `text` then.
  int wait();
  void stop_reading() { output_.reset(); }
  void signal(int number) const;
  // Sends a signal to the child of the process that was started: the one that does the work.
  void signal_supervisor(int number) const;
  net::Descriptor supervisor() const;

  const std::string& text() const { return text_; }
  std::string log(int rank) const;
  bool has_run_folder() const;
  // How the job ended elsewhere: "<exit code> <reason>".
  void end_elsewhere(const std::string& line) const;

 private:
  bool read_some();
  pid_t supervisor_pid() const;

  std::string folder_;
  pid_t pid_ = -1;
  net::Descriptor ended_;
  net::Descriptor output_;
  std::string text_;
  std::size_t looked_at_ = 0;
};

// Whether the process behind the descriptor has ended or ends within 20 seconds.
bool ends(const net::Descriptor& process);

}  // namespace muster::launch::testing
