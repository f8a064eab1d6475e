// Job server: shows a job over HTTP, its numbers for Prometheus at /metrics and its page (docs/guide/
// dashboard.md), and keeps its history. Who has the page's token may ask for a few actions (page_actions.h).
// Public for apps.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "muster/launch/launch_spec.h"
#include "muster/launch/status.h"
#include "muster/net/net.h"

namespace muster::launch {

struct OtlpTarget;

class JobServer {
 public:
  enum class Shows { nothing, numbers, page };
  using Ask = std::function<Result<JobStatus>()>;

  JobServer(JobServer&& other) noexcept;
  ~JobServer();

  // `where`: "9400", of this host alone, or "10.0.0.5:9400"; port 0 takes a free one.
  static Result<JobServer> open(Shows shows, const std::string& where);
  // Listens nowhere: only keeps the history of the job in the folder that set_logs names.
  static JobServer recorder();
  // Whether this host alone reaches it.
  bool is_local() const;
  // HTTPS from here on, by these certificates.
  void encrypt(std::shared_ptr<const net::Security> security);
  // "http://127.0.0.1:9400/metrics", "https://10.0.0.5:9400/".
  std::string url() const;
  // Where the logs of the job lie. With `records`, what the page shows is kept there, for serve_recorded.
  void set_logs(const std::string& folder, bool records);

  // Numbers of the job go there as long as it is served. Before serve().
  void export_numbers(const OtlpTarget& target);
  // Who opens url() may save, stop and restart. Before serve_beside.
  struct Actions {
    std::string run_folder = {};
    bool reaches_workers = false;
    bool restarts = false;
    std::uint32_t worker_num = 0;
  };
  Result<> allow_actions(const Actions& actions);

  // Until the job is over, or for ever where it was never reached.
  Result<> serve(const Ask& ask, const Clock& clock);
  // What was kept of a job in the folder that set_logs named: read, and served until the process is ended.
  Result<> read_record();
  [[noreturn]] void serve_recorded(const Clock& clock);

  // serve() in a process of its own, which ends with this one, for the job whose scheduler the variables of
  // `spec` name, with its `token`.
  Result<> serve_beside(const ProcessSpec& spec, const std::string& token, const Clock& clock);
  // That process; -1: there is none.
  pid_t process_beside() const;
  // Readable: there may be a rank for take_restart(). -1: there is no such process.
  int fd_beside() const;
  // A rank that a person wants to have restarted.
  std::optional<std::uint32_t> take_restart();
  // The job has ended: open pages hear of it. Waits for that, a second at most.
  void end_beside(int exit_code);

 private:
  class Implementation;
  explicit JobServer(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace muster::launch
