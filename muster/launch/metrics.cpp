#include "muster/launch/metrics.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/launch/child_environment.h"

namespace muster::launch {
namespace {

using cluster::in_seconds;
using cluster::message::Status;
using Labels = std::vector<std::pair<std::string_view, std::string>>;

constexpr std::size_t request_bytes_max = 8192;
constexpr Duration request_limit = std::chrono::seconds(2);
constexpr Duration ask_interval = std::chrono::milliseconds(500);
constexpr Duration look_interval =
    std::chrono::seconds(5);  // whether the job is over, where no request comes
// A scheduler that has died is started again within this time, where the job recovers.
constexpr Duration restart_timeout = std::chrono::seconds(35);

std::string escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n')
      text += "\\n";
    else
      text += c;
  }
  return text;
}

// All samples of a metric stand together behind what it is.
class Family {
 public:
  Family(std::string_view name, std::string_view help)
      : name_(name), text_(fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", name, help)) {}

  Family& add(double value, const Labels& labels = {}) {
    std::string inside;
    for (const auto& [label, text] : labels)
      inside += fmt::format("{}{}=\"{}\"", inside.empty() ? "" : ",", label, escaped(text));
    text_ += inside.empty() ? fmt::format("{} {}\n", name_, value)
                            : fmt::format("{}{{{}}} {}\n", name_, inside, value);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string_view name_;
  std::string text_;
};

std::string of_job(const JobStatus& job) {
  const Status& status = job.status;
  Family info("muster_job_info", "The job, always 1.");
  info.add(1, {{"job", fmt::format("{:016x}", job.job_id)}, {"scheduler", job.scheduler}});
  Family state("muster_job_state", "1 for the state that the job is in.");
  for (const auto each :
       {Status::State::forming, Status::State::running, Status::State::recovering, Status::State::ended})
    state.add(each == status.state ? 1 : 0, {{"state", std::string(state_name(each))}});
  Family wanted("muster_job_processes_wanted", "Processes that the job is made of.");
  wanted.add(status.worker_num, {{"role", "worker"}}).add(status.server_num, {{"role", "server"}});
  return info.text() + state.text() + wanted.text() +
         Family("muster_job_epoch", "Epoch of the job: one more each time that a lost process has come back.")
             .add(static_cast<double>(job.epoch))
             .text() +
         Family("muster_job_age_seconds", "Time since the job began.").add(in_seconds(status.age)).text() +
         Family("muster_job_without_step_seconds", "Time since any rank finished a step.")
             .add(in_seconds(status.without_step))
             .text();
}

std::string of_processes(const std::vector<Status::Node>& nodes) {
  Family up("muster_process_up", "1: connected to the scheduler, or it has left well; 0: lost.");
  Family step("muster_process_step", "Steps that the rank has finished; it falls when the job goes back.");
  Family epoch("muster_process_train_epoch", "Epoch of the training that the rank is in, from 1.");
  Family silence("muster_process_heartbeat_age_seconds", "Time since the last heartbeat.");
  Family phase("muster_process_phase", "1 for what the main thread does.");
  Family waits("muster_process_in_call", "1: in a call with other workers.");
  Family call("muster_process_call_number", "Number of the collective call that it is in, or was in last.");
  for (const Status::Node& node : nodes) {
    const Labels who = {{"role", std::string(to_string(node.role))},
                        {"rank", node.has_rank ? std::to_string(node.rank) : ""},
                        {"host", node.address}};
    up.add(node.is_connected || node.has_left ? 1 : 0, who);
    silence.add(in_seconds(node.silence), who);
    if (node.step != cluster::no_step) step.add(static_cast<double>(node.step), who);
    if (node.activity.train_epoch != 0) epoch.add(static_cast<double>(node.activity.train_epoch), who);
    waits.add(node.activity.call != CallKind::none ? 1 : 0, who);
    if (node.activity.call_number != 0) call.add(static_cast<double>(node.activity.call_number), who);
    for (const auto each :
         {cluster::WorkPhase::starting, cluster::WorkPhase::script, cluster::WorkPhase::reading_data,
          cluster::WorkPhase::computing, cluster::WorkPhase::saving, cluster::WorkPhase::evaluating}) {
      Labels labels = who;
      labels.emplace_back("phase", phase_name(each));
      phase.add(each == node.activity.phase ? 1 : 0, labels);
    }
  }
  return up.text() + step.text() + epoch.text() + silence.text() + phase.text() + waits.text() + call.text();
}

std::string response(std::string_view status, std::string_view body) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: "
      "{}\r\nConnection: close\r\n\r\n{}",
      status, body.size(), body);
}

// What stands before the body of a request, which has none.
Result<std::string> receive_request(net::Socket& socket, const Clock& clock) {
  const TimePoint deadline = clock.now() + request_limit;
  std::string request;
  std::array<char, 1024> bytes;
  while (request.find("\r\n\r\n") == std::string::npos) {
    if (request.size() > request_bytes_max) return fail(Code::corrupt, "the request is too long");
    std::array<pollfd, 2> polled{{{.fd = socket.fd(), .events = POLLIN, .revents = 0}, {}}};
    MUSTER_TRY(const net::Readiness ready, net::poll_until(polled, {.deadline = deadline}));
    if (ready != net::Readiness::ready) return fail(Code::timeout, "the request does not come");
    const iovec piece{bytes.data(), bytes.size()};
    MUSTER_TRY(const std::size_t size, socket.receive_some(std::span(&piece, 1)));
    request.append(bytes.data(), size);
  }
  return request;
}

}  // namespace

std::string metrics_text(const std::optional<JobStatus>& job) {
  std::string text =
      Family("muster_up", "1: the scheduler of the job answers.").add(job.has_value() ? 1 : 0).text();
  if (job) text += of_job(*job) + of_processes(job->status.nodes);
  return text;
}

Result<MetricsServer> MetricsServer::open(const std::string& where) {
  const bool is_port = !where.empty() && where.find_first_not_of("0123456789") == std::string::npos;
  const auto named = net::parse_host_port(is_port ? "127.0.0.1:" + where : where);
  if (!named)
    return fail(Code::invalid_argument,
                fmt::format("'{}' is no port and no HOST:PORT: 9400, 10.0.0.5:9400: {}", where,
                            named.error().message));
  MUSTER_TRY(const auto ips, net::resolve(named->host));
  MUSTER_TRY(net::TcpListener listener, net::TcpListener::open({.ip = ips.front(), .port = named->port}));
  return MetricsServer(std::move(listener));
}

std::string MetricsServer::answer(const std::string& request, const Ask& ask, const Clock& clock) {
  const std::string_view line = std::string_view(request).substr(0, request.find("\r\n"));
  const std::string_view method = line.substr(0, line.find(' '));
  if (method != "GET") return response("405 Method Not Allowed", "only GET /metrics is answered\n");
  std::string_view path = line.substr(std::min(line.size(), method.size() + 1));
  path = path.substr(0, path.find_first_of(" ?"));
  if (path != "/metrics") return response("404 Not Found", "the numbers are at /metrics\n");
  if (clock.now() - asked_at_ >= ask_interval) refresh(ask, clock);
  return response("200 OK", metrics_text(last_));
}

void MetricsServer::refresh(const Ask& ask, const Clock& clock) {
  auto job = ask();
  asked_at_ = clock.now();
  if (job) {
    reached_at_ = asked_at_;
    is_over_ = is_over(*job);
  } else if (reached_at_) {
    is_over_ = asked_at_ - *reached_at_ > restart_timeout;
  }
  last_ = job ? std::optional(*std::move(job)) : std::nullopt;
}

Result<> MetricsServer::answer_one(net::Socket socket, const Ask& ask, const Clock& clock) {
  MUSTER_TRY(const std::string request, receive_request(socket, clock));
  const std::string text = answer(request, ask, clock);
  MUSTER_TRY_VOID(socket.send_all(std::as_bytes(std::span(text.data(), text.size())),
                                  {.deadline = clock.now() + request_limit}));
  socket.finish_sending();
  return {};
}

Result<> MetricsServer::serve(const Ask& ask, const Clock& clock) {
  while (!is_over_) {
    std::array<pollfd, 2> polled{{{.fd = listener_.fd(), .events = POLLIN, .revents = 0}, {}}};
    MUSTER_TRY(const net::Readiness ready,
               net::poll_until(polled, {.deadline = clock.now() + look_interval}));
    if (ready != net::Readiness::ready)
      refresh(ask, clock);
    else if (net::Arrival arrival = listener_.accept(); arrival.socket)
      // What a client does wrong ends its own connection alone.
      (void)answer_one(*std::move(arrival.socket), ask, clock);
  }
  return {};
}

Result<> MetricsServer::serve_beside(const ProcessSpec& spec, const std::string& token, const Clock& clock) {
  MUSTER_TRY(net::Descriptor copy, listener_.duplicate());
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("cannot start another process", errno);
  if (pid > 0) return {};
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
  listener_ = net::TcpListener::adopt(std::move(copy), listener_.address());
  const ChildEnvironment environment(spec);
  const auto scheduler = find_scheduler("", environment);
  const auto security = token.empty() ? find_security(environment) : net::Security::from_token(token);
  if (!scheduler || !security) ::_exit(1);
  const auto served = serve([&] { return ask_status(*scheduler, *security, clock); }, clock);
  ::_exit(served ? 0 : 1);
}

}  // namespace muster::launch
