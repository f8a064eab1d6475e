// What the variables of OpenTelemetry say, and what is sent.
#include "muster/launch/otlp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace muster::launch {
namespace {
namespace otlp_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

Result<std::optional<OtlpTarget>> found(const std::map<std::string, std::string>& variables) {
  return find_otlp_target(FixedEnvironment({variables.begin(), variables.end()}));
}
std::string error_of(const std::map<std::string, std::string>& variables) {
  const auto target = found(variables);
  return target ? "none" : target.error().message;
}

TEST(Otlp, IsSentNowhereUntilAVariableSaysWhere) {
  EXPECT_FALSE(found({})->has_value());
  EXPECT_FALSE(
      found({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"}, {"OTEL_SDK_DISABLED", "true"}})->has_value());
  EXPECT_FALSE(found({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"}, {"OTEL_METRICS_EXPORTER", "none"}})
                   ->has_value());
}

TEST(Otlp, IsSentWhereTheVariablesSay) {
  auto target = **found({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4400/"}});
  EXPECT_EQ(target.host.host, "collector");
  EXPECT_EQ(target.host.port, 4400);
  EXPECT_EQ(target.path, "/v1/metrics");
  target = **found({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector/otel"},
                    {"OTEL_SERVICE_NAME", "net"},
                    {"OTEL_METRIC_EXPORT_INTERVAL", "2500"},
                    {"OTEL_EXPORTER_OTLP_HEADERS", "api-key=a=b,x=y"}});
  EXPECT_EQ(target.host.port, 4318);
  EXPECT_EQ(target.path, "/otel/v1/metrics");
  EXPECT_EQ(target.service, "net");
  EXPECT_EQ(target.interval, 2500ms);
  EXPECT_EQ(target.headers[0], (std::pair<std::string, std::string>("api-key", "a=b")));
  EXPECT_EQ(target.headers[1], (std::pair<std::string, std::string>("x", "y")));
  target = **found({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://other"},
                    {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://[::1]:9/as/it/is"}});
  EXPECT_EQ(target.host.host, "::1");
  EXPECT_EQ(target.path, "/as/it/is");
}

TEST(Otlp, DecodesHeadersAsAddresses) {
  const auto target =
      **found({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"},
               {"OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20YTpi%3D, x = 50% ,y=%4,z="}});
  const std::vector<std::pair<std::string, std::string>> wanted = {
      {"Authorization", "Basic YTpi="}, {"x", "50%"}, {"y", "%4"}, {"z", ""}};
  EXPECT_EQ(target.headers, wanted);
}

TEST(Otlp, RefusesWhatItCannotDoByName) {
  EXPECT_THAT(error_of({{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://c:4318"}}),
              HasSubstr("OTEL_EXPORTER_OTLP_ENDPOINT=https://c:4318: only http:// is spoken"));
  EXPECT_THAT(error_of({{"OTEL_EXPORTER_OTLP_ENDPOINT", "c:4318"}}), HasSubstr("begins with http://"));
  EXPECT_THAT(error_of({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:x"}}), HasSubstr("http://c:x"));
  EXPECT_THAT(error_of({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c/a b\r\nX: y"}}), HasSubstr("no blanks"));
  const std::pair<const std::string, std::string> good{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"};
  EXPECT_THAT(error_of({good, {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}}), HasSubstr("HTTP as JSON"));
  EXPECT_THAT(error_of({good, {"OTEL_METRIC_EXPORT_INTERVAL", "1s"}}), HasSubstr("milliseconds"));
  EXPECT_THAT(error_of({good, {"OTEL_EXPORTER_OTLP_HEADERS", "key"}}), HasSubstr("name=value"));
  EXPECT_THAT(error_of({good, {"OTEL_EXPORTER_OTLP_HEADERS", "key=a\r\nb: c"}}), HasSubstr("name=value"));
  EXPECT_THAT(error_of({good, {"OTEL_EXPORTER_OTLP_HEADERS", "key=a%0D%0Ab: c"}}), HasSubstr("name=value"));
  EXPECT_THAT(error_of({good, {"OTEL_EXPORTER_OTLP_HEADERS", "=a"}}), HasSubstr("name=value"));
}

TEST(Otlp, HasTheNumbersOfAllRanks) {
  JobStatus job{.scheduler = "a:1", .job_id = 5};
  cluster::message::Status::Node node{.rank = 3, .address = "10.0.0.7", .has_rank = true};
  node.stats = cluster::ProcessStats{.loss = std::nan(""), .memory_bytes = 4096};
  job.status.nodes.push_back(node);
  const auto body = nlohmann::json::parse(otlp_body({.service = "net"}, job, 1700000000.5));
  const auto& resource = body["resourceMetrics"][0];
  EXPECT_EQ(resource["resource"]["attributes"][0]["key"], "service.name");
  EXPECT_EQ(resource["resource"]["attributes"][0]["value"]["stringValue"], "net");
  std::map<std::string, nlohmann::json> points;
  for (const auto& metric : resource["scopeMetrics"][0]["metrics"]) {
    EXPECT_FALSE(metric["description"].get<std::string>().empty());
    points[metric["name"]] = metric["gauge"]["dataPoints"];
  }
  EXPECT_EQ(points["muster_up"][0]["asDouble"], 1.0);
  EXPECT_EQ(points["muster_process_loss"][0]["asDouble"], "NaN");
  EXPECT_EQ(points["muster_process_memory_bytes"][0]["asDouble"], 4096.0);
  EXPECT_EQ(points["muster_process_memory_bytes"][0]["timeUnixNano"], "1700000000500000000");
  EXPECT_EQ(points["muster_process_memory_bytes"][0]["attributes"][1]["value"]["stringValue"], "3");
  EXPECT_FALSE(points.contains("muster_job_slow_rank")) << "no point, no metric";
}

}  // namespace otlp_test
}  // namespace
}  // namespace muster::launch
