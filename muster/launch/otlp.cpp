#include "muster/launch/otlp.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "muster/launch/metric_families.h"

namespace muster::launch {
namespace {
namespace otlp {

using nlohmann::json;

constexpr Duration post_limit = std::chrono::seconds(1);
constexpr std::size_t answer_bytes_max = 4096;  // of which the first line is wanted
constexpr std::uint16_t port_default = 4318;
constexpr const char* endpoint_name = "OTEL_EXPORTER_OTLP_ENDPOINT";
constexpr const char* metrics_endpoint_name = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";
constexpr const char* interval_name = "OTEL_METRIC_EXPORT_INTERVAL";

tl::unexpected<Error> wrong(std::string_view name, std::string_view value, std::string_view why) {
  return fail(Code::invalid_argument, fmt::format("{}={}: {}", name, value, why));
}

// "http://collector:4318/prefix" to host and path.
Result<OtlpTarget> parse_endpoint(std::string_view name, const std::string& value, std::string_view suffix) {
  constexpr std::string_view scheme = "http://";
  if (value.starts_with("https://"))
    return wrong(name, value, "only http:// is spoken here: name a collector on this host, which speaks TLS");
  if (!value.starts_with(scheme)) return wrong(name, value, "it begins with http://");
  const std::string rest = value.substr(scheme.size());
  const auto slash = std::min(rest.find('/'), rest.size());
  std::string where = rest.substr(0, slash);
  const bool has_port =
      where.find(':', where.rfind(']') == std::string::npos ? 0 : where.rfind(']')) != std::string::npos;
  if (!has_port) where += fmt::format(":{}", port_default);
  const auto host = net::parse_host_port(where);
  if (!host) return wrong(name, value, host.error().message);
  std::string path = rest.substr(slash);
  while (!suffix.empty() && path.ends_with('/')) path.pop_back();
  path += suffix;
  const auto is_plain = [](char c) { return c > ' ' && c < 0x7f; };
  if (!std::ranges::all_of(path, is_plain)) return wrong(name, value, "a path has no blanks");
  return OtlpTarget{.host = *host, .path = path.empty() ? "/" : path};
}

// Without blanks around it, and as in an address: "Basic%20abc". A percent sign without two digits stays.
std::string decoded(std::string_view text) {
  const auto begin = std::min(text.find_first_not_of(' '), text.size());
  text = text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
  std::string made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char* const digits = text.data() + i + 1;
    unsigned char byte = 0;
    const bool is_coded = text[i] == '%' && i + 2 < text.size() &&
                          std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
    made += is_coded ? static_cast<char>(byte) : text[i];
    if (is_coded) i += 2;
  }
  return made;
}

// "key=value,key=value". Names are those of HTTP.
Result<> read_headers(OtlpTarget& target, std::string_view name, std::string_view text) {
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    const auto equals = std::min(pair.find('='), pair.size());
    std::string key = decoded(pair.substr(0, equals));
    std::string value = decoded(pair.substr(std::min(equals + 1, pair.size())));
    const auto is_good = [](char c) { return c > ' ' && c < 0x7f && c != ':'; };
    const auto is_control = [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; };
    if (equals == pair.size() || key.empty() || !std::ranges::all_of(key, is_good) ||
        std::ranges::any_of(value, is_control))
      return fail(Code::invalid_argument, fmt::format("{}: headers are name=value,name=value", name));
    target.headers.emplace_back(std::move(key), std::move(value));
  }
  return {};
}

json attribute(std::string_view key, const std::string& value) {
  return {{"key", key}, {"value", {{"stringValue", value}}}};
}

json point(const MetricFamily::Sample& sample, const std::string& nanoseconds) {
  json attributes = json::array();
  for (const auto& [label, text] : sample.labels) attributes.push_back(attribute(label, text));
  // JSON has no word for what is no number; protobuf's JSON takes these texts.
  json value = sample.value;
  if (std::isnan(sample.value)) value = "NaN";
  if (std::isinf(sample.value)) value = sample.value > 0 ? "Infinity" : "-Infinity";
  return {
      {"attributes", std::move(attributes)}, {"timeUnixNano", nanoseconds}, {"asDouble", std::move(value)}};
}

bool waits_for(const net::Socket& socket, short events, TimePoint until, const Clock& clock) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock.now()).count();
  pollfd polled{.fd = socket.fd(), .events = events, .revents = 0};
  return left > 0 && ::poll(&polled, 1, static_cast<int>(left)) > 0;
}

Result<net::Socket> reach(const net::HostPort& host, TimePoint until, const Clock& clock) {
  MUSTER_TRY(const auto ips, net::resolve(host.host));
  Result<net::Socket> reached = fail(Code::not_found, host.host + " has no address");
  for (const std::string& ip : ips) {
    const net::Address address{.ip = ip, .port = host.port};
    reached = net::Socket::begin_connecting(address);
    while (reached) {
      const auto connected = reached->finish_connecting(address);
      if (!connected) reached = fail(connected.error());
      if (!connected) break;
      if (*connected) return reached;
      if (!waits_for(*reached, POLLOUT, until, clock))
        reached = fail(Code::timeout, fmt::format("{}: no answer", net::to_string(address)));
    }
  }
  return reached;
}

}  // namespace otlp
}  // namespace

Result<std::optional<OtlpTarget>> find_otlp_target(const Environment& environment) {
  const auto value_of = [&](const char* name) { return environment.get(name).value_or(""); };
  const std::string all = value_of(otlp::endpoint_name), metrics = value_of(otlp::metrics_endpoint_name);
  if ((all.empty() && metrics.empty()) || value_of("OTEL_SDK_DISABLED") == "true") return std::nullopt;
  if (value_of("OTEL_METRICS_EXPORTER") == "none") return std::nullopt;
  Result<OtlpTarget> target = metrics.empty()
                                  ? otlp::parse_endpoint(otlp::endpoint_name, all, "/v1/metrics")
                                  : otlp::parse_endpoint(otlp::metrics_endpoint_name, metrics, "");
  if (!target) return fail(target.error());
  for (const char* name : {"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"})
    if (const std::string protocol = value_of(name); protocol == "grpc")
      return otlp::wrong(name, protocol, "metrics go over HTTP as JSON: set it to http/json, or unset it");
  for (const char* name : {"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS"})
    MUSTER_TRY_VOID(otlp::read_headers(*target, name, value_of(name)));
  if (const std::string service = value_of("OTEL_SERVICE_NAME"); !service.empty()) target->service = service;
  if (const std::string text = value_of(otlp::interval_name); !text.empty()) {
    std::uint32_t milliseconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), milliseconds);
    if (error != std::errc{} || end != text.data() + text.size() || milliseconds == 0)
      return otlp::wrong(otlp::interval_name, text, "milliseconds from 1");
    target->interval = std::chrono::milliseconds(milliseconds);
  }
  return std::optional(*std::move(target));
}

std::string otlp_body(const OtlpTarget& target, const std::optional<JobStatus>& job, double time) {
  using otlp::json;
  const std::string nanoseconds = std::to_string(static_cast<std::uint64_t>(time * 1e6) * 1000);
  json metrics = json::array();
  for (const MetricFamily& family : metric_families(job)) {
    json points = json::array();
    for (const auto& sample : family.samples) points.push_back(otlp::point(sample, nanoseconds));
    if (points.empty()) continue;
    metrics.push_back({{"name", family.name},
                       {"description", family.help},
                       {"gauge", {{"dataPoints", std::move(points)}}}});
  }
  json resource = {otlp::attribute("service.name", target.service)};
  if (job) resource.push_back(otlp::attribute("muster.job", fmt::format("{:016x}", job->job_id)));
  const json made = {{"resourceMetrics",
                      {{{"resource", {{"attributes", std::move(resource)}}},
                        {"scopeMetrics",
                         {{{"scope", {{"name", "muster"}, {"version", MUSTER_VERSION}}},
                           {"metrics", std::move(metrics)}}}}}}}};
  return made.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<> OtlpExporter::post(const std::string& body) const {
  const TimePoint until = clock_.now() + otlp::post_limit;
  MUSTER_TRY(net::Socket socket, otlp::reach(target_.host, until, clock_));
  std::string request = fmt::format(
      "POST {} HTTP/1.1\r\nHost: {}:{}\r\nContent-Type: application/json\r\nContent-Length: "
      "{}\r\nConnection: close\r\n",
      target_.path, target_.host.host, target_.host.port, body.size());
  for (const auto& [name, value] : target_.headers) request += fmt::format("{}: {}\r\n", name, value);
  request += "\r\n" + body;
  const auto late = [] { return fail(Code::timeout, "it does not answer within a second"); };
  for (std::size_t sent = 0; sent < request.size();) {
    const iovec piece{request.data() + sent, request.size() - sent};
    MUSTER_TRY(const std::size_t size, socket.send_some(std::span(&piece, 1)));
    sent += size;
    if (size == 0 && !otlp::waits_for(socket, POLLOUT, until, clock_)) return late();
  }
  std::string answer;
  while (answer.find("\r\n") == std::string::npos && answer.size() < otlp::answer_bytes_max) {
    if (!otlp::waits_for(socket, POLLIN, until, clock_)) return late();
    std::array<char, 1024> bytes;
    const iovec piece{bytes.data(), bytes.size()};
    MUSTER_TRY(const std::size_t size, socket.receive_some(std::span(&piece, 1)));
    answer.append(bytes.data(), size);
  }
  const std::string line = answer.substr(0, answer.find("\r\n"));
  if (!line.starts_with("HTTP/1.1 2") && !line.starts_with("HTTP/1.0 2"))
    return fail(Code::refused, fmt::format("it answers '{}'", printable(cut(line, 200))));
  return {};
}

void OtlpExporter::send(const std::optional<JobStatus>& job, double time) {
  last_at_ = clock_.now();
  const auto posted = post(otlp_body(target_, job, time));
  const std::string trouble = posted ? "" : posted.error().message;
  if (!trouble.empty() && told_.empty())
    log::warning(fmt::format("the numbers of this job do not reach http://{}:{}{}: {}", target_.host.host,
                             target_.host.port, target_.path, trouble));
  told_ = trouble;
}

}  // namespace muster::launch
