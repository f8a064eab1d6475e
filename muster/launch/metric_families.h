// Metrics of a job, as values: `metrics_text` writes them for Prometheus, otlp.h for OpenTelemetry.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/launch/status.h"

namespace muster::launch {

using MetricLabels = std::vector<std::pair<std::string_view, std::string>>;

// A gauge: what it counts may fall, since a job goes back to recovery points.
struct MetricFamily {
  struct Sample {
    double value = 0;
    MetricLabels labels = {};
  };
  std::string name = {};
  std::string help = {};
  std::vector<Sample> samples = {};
};

// Nothing: the scheduler does not answer, which is a number as well.
std::vector<MetricFamily> metric_families(const std::optional<JobStatus>& job);

}  // namespace muster::launch
