#include "muster/launch/dashboard/job_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "muster/json/json.h"
#include "muster/launch/child_environment.h"
#include "muster/launch/dashboard/earlier_runs.h"
#include "muster/launch/dashboard/http_server.h"
#include "muster/launch/dashboard/job_history.h"
#include "muster/launch/dashboard/job_json.h"
#include "muster/launch/dashboard/log_files.h"
#include "muster/launch/dashboard/network_picture.h"
#include "muster/launch/dashboard/page.h"
#include "muster/launch/dashboard/page_actions.h"
#include "muster/launch/dashboard/step_lines.h"
#include "muster/launch/otlp.h"
#include "muster/launch/runs/run_files.h"
#include "muster/launch/runs/run_record.h"
#include "muster/launch/status.h"
#include "muster/net/net.h"
#include "muster/telemetry/telemetry.h"

namespace muster::launch {
namespace {

constexpr Duration ask_interval = std::chrono::milliseconds(500);
constexpr Duration record_ask_interval = std::chrono::seconds(1);  // of who only keeps the history
constexpr Duration look_interval =
    std::chrono::seconds(5);  // whether the job is over, where no request comes
constexpr Duration end_limit = std::chrono::seconds(1);
constexpr int end_limit_ms = 1200;  // of who waits for that
// A scheduler that has died is started again within this time, where the job recovers.
constexpr Duration restart_timeout = std::chrono::seconds(35);
constexpr double states_recorded = 1000;  // about; of a job of any length
constexpr std::size_t record_line_bytes_max = 16 << 20;

std::string event_text(std::string_view name, const std::string& data) {
  return fmt::format("event: {}\ndata: {}\n\n", name, data);
}

// Of "host:port", "[::1]:port" or either without a port.
std::string host_in(std::string_view text) {
  if (text.starts_with('[')) return std::string(text.substr(1, text.find(']') - 1));
  return std::string(text.substr(0, text.find(':')));
}

std::string own_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::uint64_t number_or(const std::string& text, std::uint64_t fallback) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty() ? value : fallback;
}

std::string value_of(const HttpRequest& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? "" : found->second;
}

HttpResponse json_response(const nlohmann::json& value) {
  return {.type = "application/json; charset=utf-8", .body = line_of(value)};
}

}  // namespace

class JobServer::Implementation {
 public:
  Implementation(Shows shows, std::string where, HttpServer http)
      : shows_(shows), where_(std::move(where)), http_(std::move(http)) {}

  bool is_local() const { return net::is_loopback(http_.address().ip); }
  void encrypt(std::shared_ptr<const net::Security> security) { http_.encrypt(std::move(security)); }
  std::string origin(std::string_view host) const;
  std::string url() const;
  void set_logs(const std::string& folder, bool records);
  void export_numbers(const OtlpTarget& target) { otlp_target_ = target; }
  Result<> allow_actions(const Actions& actions);
  int fd_beside() const { return beside_.get(); }
  std::optional<std::uint32_t> take_restart();
  Result<> serve(const Ask& ask, const Clock& clock);
  Result<> read_record();
  [[noreturn]] void serve_recorded(const Clock& clock);
  Result<> serve_beside(const ProcessSpec& spec, const std::string& token, const Clock& clock);
  pid_t process_beside() const { return process_beside_; }
  void end_beside(int exit_code);

 private:
  HttpResponse answer(const HttpRequest& request, const Ask& ask, const Clock& clock);
  HttpResponse answer_page(const HttpRequest& request) const;
  HttpResponse act(const HttpRequest& request, const Clock& clock);
  HttpResponse answer_log(const HttpRequest& request) const;
  HttpResponse answer_run(const HttpRequest& request) const;
  HttpResponse answer_network() const;
  std::optional<std::string> why_foreign(const HttpRequest& request) const;
  void refresh(const Ask& ask, const Clock& clock);
  void add_warnings(std::vector<JobEvent>& news, double time);
  void tell(const std::vector<JobEvent>& news, const Clock& clock);
  void tell_network(const Clock& clock);
  void tell_end(std::optional<int> exit_code, const Clock& clock);
  void record(const std::string& line);
  std::string greeting() const;
  double now() { return time_.at(telemetry::wall_seconds()); }

  Shows shows_;
  std::string where_;
  HttpServer http_;
  std::optional<LogFolder> logs_;
  std::optional<NetworkPicture> network_;
  PageActions actions_{{.why_not = "nothing can be changed here: the page of `muster run --dashboard` can"}};
  std::string token_ = {};  // of the link
  std::optional<OtlpTarget> otlp_target_ = {};
  telemetry::AppendFile record_;
  RisingTime time_;
  double recorded_at_ = 0;
  double record_interval_ = 0;

  std::optional<JobStatus> last_;
  std::string state_ = {};  // the last that there was, as the page is told
  bool is_answered_ = false;
  JobHistory history_;
  TimePoint asked_at_{};
  std::optional<TimePoint> reached_at_;
  bool is_over_ = false;
  std::string end_ = {};  // the last event of a job that has ended

  pid_t process_beside_ = -1;
  net::Descriptor beside_;  // the other side of it is the process beside this one, or this one is that
};

// ---- What is answered -------------------------------------------------------------------------------------

std::string JobServer::Implementation::origin(std::string_view host) const {
  return fmt::format("{}://{}", http_.is_encrypted() ? "https" : "http", host);
}

std::string JobServer::Implementation::url() const {
  return fmt::format("{}/{}{}", origin(to_string(http_.address())), shows_ == Shows::numbers ? "metrics" : "",
                     token_.empty() ? "" : "#token=" + token_);
}

// No token goes over a network in clear text.
Result<> JobServer::Implementation::allow_actions(const Actions& actions) {
  if (!is_local() && !http_.is_encrypted()) {
    actions_ = PageActions(
        {.why_not =
             "nothing can be changed over a network without TLS: the page at a port of the launcher's "
             "host alone (--dashboard or --dashboard=PORT) can, through ssh -L, and that of a job with "
             "certificates (--tls-config)"});
    return {};
  }
  MUSTER_TRY(token_, new_page_token());
  actions_ = PageActions({.token = token_,
                          .folder = actions.run_folder,
                          .reaches_workers = actions.reaches_workers,
                          .restarts = actions.restarts,
                          .worker_num = actions.worker_num});
  return {};
}

void JobServer::Implementation::set_logs(const std::string& folder, bool records) {
  logs_.emplace(folder);
  network_.emplace(folder);
  if (!records) return;
  auto file = telemetry::AppendFile::open(folder + '/' + history_name);
  if (file)
    record_ = *std::move(file);
  else
    log::warning("the history of this job is not kept: " + file.error().message);
}

// A page of another site that this browser shows may not read the job, whatever name it gives this server:
// names can be made to mean any address.
std::optional<std::string> JobServer::Implementation::why_foreign(const HttpRequest& request) const {
  const std::string host = host_in(request.header("host"));
  const bool is_known = net::parse_ip(host) || host == "localhost" || host == own_name() ||
                        (!where_.empty() && host == host_in(where_));
  if (!is_known)
    return fmt::format("this server is not called '{}': use its address, or start it as --dashboard {}:PORT",
                       printable(host), printable(host));
  const std::string_view origin = request.header("origin");
  if (!origin.empty() && origin != this->origin(request.header("host"))) return "other sites may not ask";
  const std::string_view site = request.header("sec-fetch-site");
  const bool is_own = site.empty() || site == "same-origin" || site == "none";
  if (!is_own && request.header("sec-fetch-mode") != "navigate") return "other sites may not ask";
  return std::nullopt;
}

HttpResponse JobServer::Implementation::answer(const HttpRequest& request, const Ask& ask,
                                               const Clock& clock) {
  if (request.path == "/act" && shows_ == Shows::page) return act(request, clock);
  if (request.method != "GET") return refusal(405, "only GET is answered: nothing can be changed here");
  if (request.path == "/metrics") {
    if (clock.now() - asked_at_ >= ask_interval && ask) refresh(ask, clock);
    return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics_text(last_)};
  }
  if (shows_ == Shows::numbers) return refusal(404, "the numbers are at /metrics");
  if (const auto reason = why_foreign(request)) return refusal(403, *reason);
  return answer_page(request);
}

HttpResponse JobServer::Implementation::act(const HttpRequest& request, const Clock& clock) {
  if (const auto reason = why_foreign(request)) return refusal(403, *reason);
  if (!end_.empty() || is_over_) return refusal(409, "the job has ended");
  const PageActions::Checked checked = actions_.check(request, clock.now());
  if (!checked.action) return checked.refused;
  const PageAction& action = *checked.action;
  if (action.kind != PageAction::Kind::restart) {
    if (const auto asked = actions_.ask_workers(action); !asked) return refusal(500, asked.error().message);
  } else if (::send(beside_.get(), &action.rank, sizeof action.rank, MSG_NOSIGNAL) < 0) {
    return refusal(500, "the launcher does not answer");
  }
  const JobEvent event{"asked", now(), "", to_string(action)};
  history_.add(event);
  tell({event}, clock);
  return {.status = 202, .body = event.text + "\n"};
}

HttpResponse JobServer::Implementation::answer_page(const HttpRequest& request) const {
  if (const auto file = find_page_file(request.path))
    return {.type = std::string(file->type), .body = std::string(file->text)};
  if (request.path == "/events")
    return {.type = "text/event-stream", .body = greeting() + end_, .is_stream = true};
  if (request.path == "/logs") {
    nlohmann::json files = nlohmann::json::array();
    if (logs_)
      for (const LogFile& file : logs_->files())
        files.push_back({{"name", file.name}, {"bytes", file.size_bytes}});
    return json_response(files);
  }
  if (request.path == "/log") return answer_log(request);
  if (request.path == "/runs")
    return json_response(logs_ ? EarlierRuns(logs_->folder()).list() : nlohmann::json::array());
  if (request.path == "/run") return answer_run(request);
  if (request.path == "/timeline")
    return json_response(logs_ ? step_across_ranks(logs_->folder()) : nlohmann::json(nullptr));
  if (request.path == "/network.svg") return answer_network();
  return refusal(404, "there is no such page: begin at /");
}

// ?name=worker_0.log, and &end=OFFSET for what stands before there, or &find=TEXT.
HttpResponse JobServer::Implementation::answer_log(const HttpRequest& request) const {
  if (!logs_) return refusal(404, "the logs of this job are not here");
  const std::string name = value_of(request, "name");
  const std::string wanted = value_of(request, "find");
  const auto lines = wanted.empty()
                         ? logs_->lines_before(name, number_or(value_of(request, "end"), UINT64_MAX))
                         : logs_->find(name, wanted);
  if (!lines) return refusal(404, lines.error().message);
  nlohmann::json made = nlohmann::json::array();
  for (const LogLine& line : *lines) made.push_back({line.offset, line.text});
  return json_response(made);
}

// ?name=20260101-120000: a run beside this one.
HttpResponse JobServer::Implementation::answer_run(const HttpRequest& request) const {
  if (!logs_) return refusal(404, "the folder of this job is not here");
  const auto points = EarlierRuns(logs_->folder()).points(value_of(request, "name"));
  return points ? json_response({{"points", *points}}) : refusal(404, points.error().message);
}

HttpResponse JobServer::Implementation::answer_network() const {
  if (!network_) return refusal(404, "the folder of this job is not here");
  auto svg = network_->svg();
  return svg ? HttpResponse{.type = "image/svg+xml", .body = *std::move(svg)}
             : refusal(404, svg.error().message);
}

// All that a page needs that is opened now.
std::string JobServer::Implementation::greeting() const {
  nlohmann::json events = nlohmann::json::array();
  for (const JobEvent& event : history_.events()) events.push_back(event_json(event));
  const nlohmann::json hello = {{"version", 1},
                                {"columns", rank_columns()},
                                {"points", points_json(history_.points())},
                                {"events", std::move(events)},
                                {"may_act", actions_.may_act()},
                                {"restarts", actions_.restarts()},
                                {"has_logs", logs_.has_value()}};
  std::string text = event_text("hello", line_of(hello));
  if (network_ && !network_->told().empty()) text += event_text("network", network_->told());
  if (!state_.empty()) text += event_text("state", state_);
  if (!is_answered_ && !state_.empty() && end_.empty()) text += event_text("silent", "{}");
  return text;
}

// ---- A job that runs --------------------------------------------------------------------------------------

void JobServer::Implementation::refresh(const Ask& ask, const Clock& clock) {
  auto job = ask();
  asked_at_ = clock.now();
  const double time = now();
  std::vector<JobEvent> news;
  if (job) {
    reached_at_ = asked_at_;
    is_over_ = is_over(*job);
    news = history_.add(*job, time);
    const nlohmann::json state = state_json(*job, time);
    state_ = line_of(state);
    if (time - recorded_at_ >= record_interval_) record(line_of({{"state", state}}));
  } else if (reached_at_) {
    is_over_ = asked_at_ - *reached_at_ > restart_timeout;
  }
  if (is_answered_ && !job && shows_ == Shows::page)
    http_.publish(std::make_shared<const std::string>(event_text("silent", "{}")), false, clock);
  is_answered_ = job.has_value();
  last_ = job ? std::optional(*std::move(job)) : std::nullopt;
  if (shows_ == Shows::numbers) return;
  add_warnings(news, time);
  tell(news, clock);
  tell_network(clock);
  if (is_answered_)
    http_.publish(std::make_shared<const std::string>(event_text("state", state_)), true, clock);
}

void JobServer::Implementation::add_warnings(std::vector<JobEvent>& news, double time) {
  if (!logs_) return;
  for (JobEvent& event : logs_->warnings(time)) {
    if (history_.has_late(event)) continue;
    history_.add(event);
    news.push_back(std::move(event));
  }
}

void JobServer::Implementation::tell(const std::vector<JobEvent>& news, const Clock& clock) {
  for (const JobEvent& event : news) {
    const std::string line = line_of(event_json(event));
    http_.publish(std::make_shared<const std::string>(event_text("event", line)), false, clock);
    record(line_of({{"event", event_json(event)}}));
  }
}

void JobServer::Implementation::tell_network(const Clock& clock) {
  if (shows_ != Shows::page || !network_ || !network_->look()) return;
  http_.publish(std::make_shared<const std::string>(event_text("network", network_->told())), false, clock);
}

void JobServer::Implementation::tell_end(std::optional<int> exit_code, const Clock& clock) {
  if (shows_ == Shows::numbers) return;
  std::vector<JobEvent> last;  // what processes have said at their end
  add_warnings(last, now());
  tell(last, clock);
  tell_network(clock);
  const nlohmann::json end = {{"exit_code", exit_code ? nlohmann::json(*exit_code) : nlohmann::json(nullptr)},
                              {"time", now()}};
  end_ = event_text("end", line_of(end));
  if (!state_.empty()) record(fmt::format("{{\"state\":{}}}", state_));
  http_.publish(std::make_shared<const std::string>(end_), false, clock);
}

// States ever more seldom, the longer the job lasts; events all.
void JobServer::Implementation::record(const std::string& line) {
  if (!record_.is_open()) return;
  if (line.starts_with("{\"state\"")) {
    recorded_at_ = now();
    if (!history_.points().empty())
      record_interval_ = (recorded_at_ - history_.points().front().time) / states_recorded;
  }
  if (!record_.append(line + '\n')) record_ = {};  // a full disk takes nothing from the job
}

Result<> JobServer::Implementation::serve(const Ask& ask, const Clock& clock) {
  const HttpServer::Handler handler = [&](const HttpRequest& request) { return answer(request, ask, clock); };
  std::optional<int> exit_code;
  std::optional<OtlpExporter> exporter;
  if (otlp_target_) exporter.emplace(*otlp_target_, clock);
  bool is_told = false;
  // Beside a launcher, until that says how the job has ended.
  const Duration interval = shows_ == Shows::page      ? ask_interval
                            : shows_ == Shows::nothing ? record_ask_interval
                                                       : look_interval;
  while (beside_ ? !is_told : !is_over_) {
    if (!is_over_ && clock.now() - asked_at_ >= interval) refresh(ask, clock);
    if (exporter && reached_at_ && exporter->is_due()) exporter->send(last_, telemetry::wall_seconds());
    http_.serve_until(clock.now() + interval, beside_.get(), handler, clock);
    pollfd word{.fd = beside_.get(), .events = POLLIN, .revents = 0};
    if (beside_ && ::poll(&word, 1, 0) > 0) {
      int code = 0;
      is_told = true;
      if (::recv(beside_.get(), &code, sizeof code, 0) == static_cast<ssize_t>(sizeof code)) exit_code = code;
    }
  }
  tell_end(exit_code, clock);
  http_.finish(clock.now() + end_limit, clock);
  return {};
}

Result<> JobServer::Implementation::serve_beside(const ProcessSpec& spec, const std::string& token,
                                                 const Clock& clock) {
  MUSTER_TRY(net::Descriptor copy, http_.duplicate());
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail_errno("cannot make a pair of sockets", errno);
  net::Descriptor here(ends[0]), there(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("cannot start another process", errno);
  if (pid > 0) {
    process_beside_ = pid;
    beside_ = std::move(here);
    return {};
  }
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
  here.reset();
  beside_ = std::move(there);
  http_.adopt(std::move(copy));
  const ChildEnvironment environment(spec);
  const auto scheduler = find_scheduler("", environment);
  const auto security = token.empty() ? find_security(environment) : net::Security::from_token(token);
  if (!scheduler || !security) ::_exit(1);
  const auto served = serve([&] { return ask_status(*scheduler, *security, clock); }, clock);
  ::_exit(served ? 0 : 1);
}

std::optional<std::uint32_t> JobServer::Implementation::take_restart() {
  std::uint32_t rank = 0;
  const ssize_t size = beside_ ? ::recv(beside_.get(), &rank, sizeof rank, MSG_DONTWAIT) : -1;
  if (size == 0) beside_.reset();  // that process is gone
  return size == static_cast<ssize_t>(sizeof rank) ? std::optional(rank) : std::nullopt;
}

void JobServer::Implementation::end_beside(int exit_code) {
  if (!beside_) return;
  if (::send(beside_.get(), &exit_code, sizeof exit_code, MSG_NOSIGNAL) ==
      static_cast<ssize_t>(sizeof exit_code)) {
    pollfd end{.fd = beside_.get(), .events = POLLIN, .revents = 0};
    ::poll(&end, 1, end_limit_ms);
  }
  beside_.reset();
}

// ---- A job that has ended ---------------------------------------------------------------------------------

Result<> JobServer::Implementation::read_record() {
  if (!logs_) return fail(Code::invalid_argument, "no folder was named");
  const std::string path = logs_->folder() + '/' + history_name;
  std::ifstream file = file_of_bytes(path);
  if (!file && logs_->files().empty())
    return fail(Code::not_found,
                fmt::format("'{}' is no folder of a run: it has no logs; `muster run` names its folder when "
                            "it starts (muster-logs/<time>)",
                            logs_->folder()));
  std::string text;
  std::string end = "{}";
  while (std::getline(file, text)) {
    if (text.size() > record_line_bytes_max) continue;
    const auto line = muster::json::parse(text, path, {.bytes = record_line_bytes_max});
    if (!line || !line->is_object()) continue;  // the last may be cut
    if (line->contains("event") && line->at("event").is_object()) history_.add(event_from(line->at("event")));
    if (line->contains("end")) end = line_of(line->at("end"));
    if (!line->contains("state") || !line->at("state").is_object()) continue;
    history_.add(point_from(line->at("state")));
    state_ = line_of(line->at("state"));
  }
  end_ = event_text("end", end);
  network_->look();
  return {};
}

void JobServer::Implementation::serve_recorded(const Clock& clock) {
  const HttpServer::Handler handler = [&](const HttpRequest& request) {
    return answer(request, nullptr, clock);
  };
  while (true) http_.serve_until(clock.now() + look_interval, -1, handler, clock);
}

// ---- From outside -----------------------------------------------------------------------------------------

JobServer::JobServer(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
JobServer::JobServer(JobServer&& other) noexcept = default;
JobServer::~JobServer() = default;

Result<JobServer> JobServer::open(Shows shows, const std::string& where) {
  MUSTER_TRY(HttpServer http, HttpServer::open(where));
  return JobServer(std::make_unique<Implementation>(shows, where, std::move(http)));
}

JobServer JobServer::recorder() {
  return JobServer(std::make_unique<Implementation>(Shows::nothing, "", HttpServer::closed()));
}

bool JobServer::is_local() const { return implementation_->is_local(); }
void JobServer::encrypt(std::shared_ptr<const net::Security> security) {
  implementation_->encrypt(std::move(security));
}
std::string JobServer::url() const { return implementation_->url(); }
void JobServer::set_logs(const std::string& folder, bool records) {
  implementation_->set_logs(folder, records);
}
Result<> JobServer::serve(const Ask& ask, const Clock& clock) { return implementation_->serve(ask, clock); }
Result<> JobServer::read_record() { return implementation_->read_record(); }
void JobServer::serve_recorded(const Clock& clock) { implementation_->serve_recorded(clock); }
Result<> JobServer::serve_beside(const ProcessSpec& spec, const std::string& token, const Clock& clock) {
  return implementation_->serve_beside(spec, token, clock);
}
void JobServer::export_numbers(const OtlpTarget& target) { implementation_->export_numbers(target); }
Result<> JobServer::allow_actions(const Actions& actions) { return implementation_->allow_actions(actions); }
int JobServer::fd_beside() const { return implementation_->fd_beside(); }
std::optional<std::uint32_t> JobServer::take_restart() { return implementation_->take_restart(); }
pid_t JobServer::process_beside() const { return implementation_->process_beside(); }
void JobServer::end_beside(int exit_code) { implementation_->end_beside(exit_code); }

}  // namespace muster::launch
