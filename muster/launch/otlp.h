// OTLP exporter: metrics of a job to a collector of OpenTelemetry, over HTTP as JSON.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/base.h"
#include "muster/launch/status.h"
#include "muster/net/net.h"

namespace muster::launch {

struct OtlpTarget {
  net::HostPort host = {};
  std::string path = {};                                          // "/v1/metrics"
  std::vector<std::pair<std::string, std::string>> headers = {};  // of OTEL_EXPORTER_OTLP_HEADERS
  std::string service = "muster";                                 // OTEL_SERVICE_NAME
  Duration interval = std::chrono::seconds(10);                   // OTEL_METRIC_EXPORT_INTERVAL
};
// What OTEL_EXPORTER_OTLP_ENDPOINT, or OTEL_EXPORTER_OTLP_METRICS_ENDPOINT, and the others say. Nothing: they
// are not set, or OTEL_SDK_DISABLED is. An error names the variable, its value and what is possible.
Result<std::optional<OtlpTarget>> find_otlp_target(const Environment& environment);

// An ExportMetricsServiceRequest. `time`: seconds since 1970.
std::string otlp_body(const OtlpTarget& target, const std::optional<JobStatus>& job, double time);

class OtlpExporter {
 public:
  OtlpExporter(OtlpTarget target, const Clock& clock) : target_(std::move(target)), clock_(clock) {}

  bool is_due() const { return !last_at_ || clock_.now() - *last_at_ >= target_.interval; }
  // Takes a second at most. What fails is told once, until it works again, and tried at the next time.
  void send(const std::optional<JobStatus>& job, double time);

 private:
  Result<> post(const std::string& body) const;

  OtlpTarget target_;
  const Clock& clock_;
  std::optional<TimePoint> last_at_ = {};
  std::string told_ = {};
};

}  // namespace muster::launch
