// Private to launch: the processes of a launcher, from their start to the verdict.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/launch/console.h"
#include "muster/launch/early_ends.h"
#include "muster/launch/local_crew.h"
#include "muster/launch/memory_events.h"
#include "muster/launch/outputs.h"
#include "muster/launch/restarts.h"
#include "muster/launch/state_watch.h"
#include "muster/launch/supervisor.h"

namespace muster::launch {

struct Running {
  const ProcessSpec* spec = nullptr;
  Crew* crew = nullptr;
  std::string host = {};  // empty: there is only one
  pid_t pid = -1;
  std::optional<int> wait_status = {};
  int last_wait_status = 0;  // of the life before this one
  std::string loss = {};     // why its host is lost
  bool was_asked_to_end = false;
  Restarts restarts;
  std::optional<TimePoint> restart_at = {};  // it has ended, and will be started again

  bool is_scheduler() const { return spec->role == "scheduler"; }
  bool is_service() const { return spec->kind == ProcessSpec::Kind::service; }
  bool has_ended() const { return wait_status || !loss.empty(); }
  bool is_over() const { return has_ended() && !restart_at; }
};

class Supervisor final : public CrewListener {
 public:
  Supervisor(const std::vector<HostWork>& hosts, const SupervisorOptions& options)
      : hosts_(hosts),
        options_(options),
        console_(STDOUT_FILENO, STDERR_FILENO, options.is_colored),
        outputs_(console_, options.log_folder, options.tail),
        local_(options.run_folder, options.clock),
        early_ends_(options.token, options.clock) {}

  int run();

  void on_start(std::size_t process, pid_t pid) override { processes_[process].pid = pid; }
  void on_start_failure(std::size_t process, const Error& error) override;
  void on_output(std::size_t process, Stream stream, std::string_view bytes) override {
    outputs_.take(process, stream, bytes, options_.clock.now());
  }
  void on_end(std::size_t process, int wait_status) override;
  void on_loss(const Crew& crew, const std::string& reason) override;
  void on_note(const Crew& crew, std::string_view line) override;

 private:
  // regrouping: one has failed, all end, and all are started again. settling: one has failed, the others may
  // notice. closing: the work is over, the services end.
  enum class Phase { running, regrouping, settling, ending, closing, killing };

  Result<> prepare();
  Result<> take_over_signals();
  void start_all();
  void start_watch();
  void wait(std::optional<TimePoint> until);
  void advance();
  void take_signals();
  void take_lease();
  void note_failure(Running& process);
  bool is_behind_the_end(const Running& process) const;
  void tell_of_end_behind_the_end(const Running& process);
  void note_end_of_job();
  void end_what_came_too_late();
  bool plan_restart(Running& process);
  bool plan_group_restart(Running& process);
  void restart_group_when_ended();
  static ProcessSpec spec_of_return(ProcessSpec spec, std::size_t restarts);
  ProcessSpec spec_of_group(ProcessSpec spec) const;
  void restart_what_is_due();
  void restart_what_is_asked_for();
  void restart_asked(std::uint32_t rank);
  void tell_of_early_ends();
  void tell_other_hosts_of_early_ends();
  bool has_work_left_besides(const Running& process) const;
  bool has_own_work_left() const;
  bool has_work_left() const;
  bool is_running() const;
  void enter(Phase phase, int signal_number);
  void signal_all(int number, bool is_for_services);
  bool ends_in_order() const;
  void end_what_was_spared();
  void end_all();
  void show_state();
  std::string state() const;
  std::string host_of(const Crew& crew) const;
  int finish();
  int report();
  int report_failure();
  void hint_at_memory(const Running& process);
  void show_held_but_interrupts();

  // To the record of the run, where there is one.
  void note(const std::string& kind, const Running& process, const std::string& text);
  void say(std::string_view text) { console_.line(Stream::error, {}, fmt::format("muster: {}", text)); }
  std::size_t index_of(const Running& process) const {
    return static_cast<std::size_t>(&process - processes_.data());
  }

  const std::vector<HostWork>& hosts_;
  const SupervisorOptions& options_;
  Console console_;
  Outputs outputs_;
  LocalCrew local_;
  std::vector<Crew*> crews_;
  net::Descriptor signals_;
  std::optional<StateWatch> watch_;
  MemoryEvents memory_events_;
  std::pair<pid_t, std::int64_t> memory_peak_kib_{-1, 0};  // of the process that has ended here last
  EarlyEnds early_ends_;
  std::vector<Running> processes_;
  std::vector<std::size_t> failed_;  // in the order in which they ended, until the others are asked to end
  std::string start_failure_;
  Phase phase_ = Phase::running;
  std::size_t group_restarts_ = 0;
  bool job_has_ended_ = false;                 // its scheduler has, with exit code 0
  std::optional<TimePoint> late_end_at_ = {};  // of who was started again behind that
  TimePoint begin_ = options_.clock.now();
  TimePoint deadline_{};
  int interrupted_by_ = 0;
  std::optional<Lease::End> released_;
  bool keeper_is_gone_ = false;
  bool was_killed_ = false;
};

}  // namespace muster::launch
