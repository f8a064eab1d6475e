// The process that imports modules for a host's processes and forks them, from the launcher's side.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/launch/launch_spec.h"
#include "muster/launch/lines.h"
#include "muster/launch/process.h"

namespace muster::launch {

// What becomes of what was ordered.
class PreloaderListener {
 public:
  virtual ~PreloaderListener() = default;
  virtual void on_forked(std::size_t process, ChildProcess child) = 0;
  virtual void on_not_forked(std::size_t process, const Error& error) = 0;
  // It was to end before it had begun.
  virtual void on_cancelled(std::size_t process, int wait_status) = 0;
  // Of the imports; `process` is one that waits for them.
  virtual void on_import_output(std::size_t process, Stream stream, std::string_view bytes) = 0;
  virtual void on_preloader_note(std::string_view line) = 0;
};

// Starts with the first order and lives on for the processes that are started again. When it has died the
// next order starts it once more. No call blocks. What it forks are children of this process, a subreaper.
class Preloader {
 public:
  Preloader(PreloaderListener& listener, const Clock& clock) : listener_(listener), clock_(clock) {}

  void order(std::size_t process, const ProcessSpec& spec);
  // Whether the process has not begun: it will not then, or end by this signal at once.
  bool cancel(std::size_t process, int signal_number);

  static constexpr std::size_t polled_count = 3;
  void add_polled(std::vector<pollfd>& polled, bool takes_output) const;
  void take(std::span<const pollfd> polled);
  // When take() has to be called at the latest.
  std::optional<TimePoint> wake_at() const {
    return cancelled_.empty() ? answer_due_ : std::optional(TimePoint{});
  }
  // A child of this process that was reaped: whether it was this one.
  bool take_child_end(pid_t pid, int wait_status);
  // What it has said so far: a process may have begun that has ended already.
  void take_messages();

 private:
  struct Order {
    std::size_t process = 0;
    ProcessSpec spec = {};
    bool was_lost_before = false;
    int end_by = 0;  // a signal, as soon as it has begun
    ChildProcess child = {};
  };

  Result<> start(const ProcessSpec& spec);
  void start_if_needed();
  void send_next();
  Result<> send(Order& order);
  void take_message(std::string_view text);
  void take_output(Stream stream);
  void end_stuck();
  void lost(int wait_status);
  void fail_all(const Error& error);
  void fail_one(Order order, const Error& error) { listener_.on_not_forked(order.process, error); }

  PreloaderListener& listener_;
  const Clock& clock_;
  pid_t pid_ = -1;  // -1: there is none
  bool is_ready_ = false;
  net::Descriptor socket_;
  std::array<net::Descriptor, 2> outputs_;  // by Stream
  std::deque<Order> waiting_;
  std::optional<Order> asked_;  // what it is to fork now
  std::optional<TimePoint> answer_due_;
  std::map<std::size_t, int> cancelled_;  // and by which signal
  std::size_t speaks_for_ = 0;
  std::string failure_;
};

}  // namespace muster::launch
