// Numbers of a job for Prometheus and what reads its format, asked from the job's scheduler.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "muster/launch/launch_spec.h"
#include "muster/launch/status.h"
#include "muster/net/net.h"

namespace muster::launch {

// Text exposition format 0.0.4. Nothing: the scheduler does not answer, which is a number as well
// (muster_up).
std::string metrics_text(const std::optional<JobStatus>& job);

// Answers GET /metrics over HTTP, one request after the other. A request has 2 s and 8 KiB, and the scheduler
// is asked at most twice a second, however many there are.
class MetricsServer {
 public:
  using Ask = std::function<Result<JobStatus>()>;

  // "9400", of this host alone, or "10.0.0.5:9400"; port 0 takes a free one.
  static Result<MetricsServer> open(const std::string& where);
  const net::Address& address() const { return listener_.address(); }

  // Until the job is over, or for ever where it was never reached.
  Result<> serve(const Ask& ask, const Clock& clock);
  // The same in a process of its own, which ends with this one, for the job whose scheduler the variables of
  // `spec` name, with its `token`.
  Result<> serve_beside(const ProcessSpec& spec, const std::string& token, const Clock& clock);

 private:
  explicit MetricsServer(net::TcpListener listener) : listener_(std::move(listener)) {}
  // How a request is answered.
  std::string answer(const std::string& request, const Ask& ask, const Clock& clock);
  void refresh(const Ask& ask, const Clock& clock);
  Result<> answer_one(net::Socket socket, const Ask& ask, const Clock& clock);

  net::TcpListener listener_;
  std::optional<JobStatus> last_;
  TimePoint asked_at_{};
  std::optional<TimePoint> reached_at_;
  bool is_over_ = false;
};

}  // namespace muster::launch
