// Pulls and pushes of a worker and its parameter servers on this host, through shared memory or TCP, the rows
// of the batch checked first:
// ./dev bench servers. Each server is a process of its own.
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "muster/server/server.h"

namespace {

using namespace muster;
using namespace muster::server;

struct Options {
  std::uint64_t rows = 10'000'000;
  std::uint32_t width = 16;
  std::size_t batch = 100'000;
  std::uint32_t servers = 1;
  std::uint64_t rounds = 30;
  std::string rule = "Adam";
  std::string log_folder;
  std::uint64_t log_limit_mib = 64;
  std::uint64_t compute_ms = 0;
  bool restarts = false;
  bool starts_only = false;
  bool any_id = false;
  bool low = false;
  bool tcp = false;
};

class ServerProcess {
 public:
  explicit ServerProcess(const ParameterServer::Options& options) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    child_ = ::fork();
    if (child_ == 0) serve(options, ends[1]);
    ::close(ends[1]);
    if (::read(ends[0], &address_.port, sizeof address_.port) != static_cast<ssize_t>(sizeof address_.port))
      std::abort();
    ::close(ends[0]);
    address_.ip = "127.0.0.1";
  }
  ~ServerProcess() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  ServerProcess(const ServerProcess&) = delete;
  const net::Address& address() const { return address_; }
  double seconds_of_processors() const {
    clockid_t clock = 0;
    timespec used{};
    if (::clock_getcpuclockid(child_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) std::abort();
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
  }

 private:
  [[noreturn]] static void serve(const ParameterServer::Options& options, int told) {
    net::Loop loop;
    const auto server = ParameterServer::open(loop, options);
    if (!server) {
      fmt::print(stderr, "{}\n", server.error().message);
      ::_exit(1);
    }
    const std::uint16_t port = (*server)->address().port;
    if (::write(told, &port, sizeof port) != static_cast<ssize_t>(sizeof port)) ::_exit(1);
    loop.run_for(std::chrono::hours(1));
    ::_exit(0);
  }

  pid_t child_ = -1;
  net::Address address_;
};

TableSpec spec_of(const Options& options) {
  TableSpec spec{.name = "table",
                 .sharding = options.any_id ? Sharding::hash : Sharding::ranges,
                 .rows = options.any_id ? 0 : options.rows,
                 .width = options.width,
                 .seed = 1,
                 .dtype = options.low ? DType::bfloat16 : DType::float32};
  spec.rule.kind = rule_of_optimizer(options.rule).value();
  return spec;
}

double seconds(TimePoint begin) { return std::chrono::duration<double>(real_clock().now() - begin).count(); }

class Bench {
 public:
  Bench(const Options& options, std::vector<net::Address> addresses)
      : options_(options),
        client_(
            {.servers = std::move(addresses),
             .job_id = 1,
             .shared_from_bytes = options.tcp ? std::nullopt : ParameterClient::Options{}.shared_from_bytes}),
        values_(options.batch * options.width),
        gradients_(options.batch * options.width, 0.25F) {
    client_.add_table(spec_of(options)).value();
    client_.begin(1, 0).value();
  }

  // Every row gets an update, so that all are kept from here on.
  void fill() {
    std::vector<std::uint64_t> ids(options_.batch);
    for (std::uint64_t first = 0; first < options_.rows; first += ids.size()) {
      ids.resize(std::min<std::uint64_t>(options_.batch, options_.rows - first));
      std::iota(ids.begin(), ids.end(), first);
      push(ids);
    }
  }

  // The rows that come must be those of a table in this process.
  void check() {
    Table table = Table::make(spec_of(options_), {}).value();
    std::vector<std::uint64_t> ids(std::min<std::uint64_t>(options_.batch, options_.rows));
    std::iota(ids.begin(), ids.end(), options_.rows - ids.size());
    std::vector<float> expected(ids.size() * options_.width);
    table.read(ids, expected).value();
    std::vector<float> rows(expected.size());
    const ParameterClient::Lookup lookup{.ids = ids, .rows = rows};
    client_.pull(step_, std::span(&lookup, 1)).value();
    if (rows != expected) {
      fmt::print("the rows that came are not those of the table\n");
      std::exit(1);
    }
  }

  void measure() {
    std::vector<double> pulls, pushes;
    const RandomStream random(5, 6);
    std::vector<std::uint64_t> ids(options_.batch);
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      for (std::size_t i = 0; i < ids.size(); ++i)
        ids[i] = random.below(round * ids.size() + i, options_.rows);
      const TimePoint begin = real_clock().now();
      const ParameterClient::Lookup lookup{.ids = ids, .rows = values_};
      client_.pull(step_, std::span(&lookup, 1)).value();
      const double pulled = seconds(begin);
      push(ids);
      // An empty pull of the next step waits until the push is applied.
      client_.pull(step_, {}).value();
      pulls.push_back(pulled);
      pushes.push_back(seconds(begin) - pulled);
    }
    tell("pull", pulls);
    tell(fmt::format("push, {}", options_.rule), pushes);
  }

  // Steps that compute for a while between pull and push, without and with rows that are asked for ahead.
  void measure_steps() {
    const RandomStream random(7, 8);
    const auto ids_of = [&](std::uint64_t step) {
      std::vector<std::uint64_t> ids(options_.batch);
      for (std::size_t i = 0; i < ids.size(); ++i)
        ids[i] = random.below(step * ids.size() + i, options_.rows);
      return ids;
    };
    for (const bool looks_ahead : {false, true}) {
      std::vector<double> times;
      for (std::uint64_t round = 0; round < options_.rounds; ++round) {
        const auto ids = ids_of(step_), next = ids_of(step_ + 1);
        const TimePoint begin = real_clock().now();
        const ParameterClient::Lookup lookup{.ids = ids, .rows = values_};
        client_.pull(step_, std::span(&lookup, 1)).value();
        if (looks_ahead) client_.pull_ahead(step_ + 1, 0, next).value();
        const TimePoint end = real_clock().now() + std::chrono::milliseconds(options_.compute_ms);
        while (real_clock().now() < end) {
        }
        push(ids);
        times.push_back(1e3 * seconds(begin));
      }
      std::sort(times.begin(), times.end());
      fmt::print("a step that computes for {} ms{}: {:.1f} ms (median)\n", options_.compute_ms,
                 looks_ahead ? ", its rows asked for ahead" : "", times[times.size() / 2]);
    }
  }

  // Small pulls, one after the other, while the rows are written down: the longest one.
  void measure_while_writing() {
    client_.flush().value();
    client_.set_common_point(step_);
    std::vector<std::uint64_t> ids{0, options_.rows / 2, options_.rows - 1};
    std::vector<float> rows(ids.size() * options_.width);
    std::vector<double> times;
    const TimePoint end = real_clock().now() + std::chrono::seconds(8);
    while (real_clock().now() < end) {
      const TimePoint begin = real_clock().now();
      const ParameterClient::Lookup lookup{.ids = ids, .rows = rows};
      client_.pull(step_, std::span(&lookup, 1)).value();
      times.push_back(1e3 * seconds(begin));
      push(ids);
      client_.flush().value();
      client_.set_common_point(step_);
    }
    std::sort(times.begin(), times.end());
    fmt::print("pulls beside writing: {} of {:.3f} ms (median), the longest {:.2f} ms\n", times.size(),
               times[times.size() / 2], times.back());
  }

 private:
  void push(std::span<const std::uint64_t> ids) {
    const ParameterClient::Gradient gradient{
        .learning_rate = 0.01F,
        .ids = ids,
        .values = std::span(gradients_).first(ids.size() * options_.width)};
    client_.push(std::span(&gradient, 1)).value();
    ++step_;
  }
  void tell(const std::string& what, std::vector<double> times) const {
    std::sort(times.begin(), times.end());
    const auto rate = [&](double time) { return static_cast<double>(options_.batch) / time / 1e6; };
    fmt::print("{:12} {:7.2f} M rows/s (median of {}; {:.2f} to {:.2f}), {:.2f} ms a batch\n", what,
               rate(times[times.size() / 2]), times.size(), rate(times.back()), rate(times.front()),
               1e3 * times[times.size() / 2]);
  }

  Options options_;
  ParameterClient client_;
  std::vector<float> values_;
  std::vector<float> gradients_;
  std::uint64_t step_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
  Options options;
  CLI::App app{"Rows pulled and pushed a second, one worker, on this host"};
  app.add_option("--rows", options.rows)->capture_default_str();
  app.add_option("--width", options.width, "numbers of a row")->capture_default_str();
  app.add_option("--batch", options.batch, "ids, drawn")->capture_default_str();
  app.add_option("--servers", options.servers)->capture_default_str();
  app.add_option("--rounds", options.rounds)->capture_default_str();
  app.add_option("--rule", options.rule, "an optimizer's class")->capture_default_str();
  app.add_option("--log-folder", options.log_folder,
                 "the servers keep their logs there; none: they keep none");
  app.add_option("--log-limit", options.log_limit_mib, "MiB of the log from which rows are written down")
      ->capture_default_str();
  app.add_option("--compute-ms", options.compute_ms, "also steps that compute for so long");
  app.add_flag("--restart", options.restarts,
               "the longest pull beside writing, then how long servers take to have their rows again");
  app.add_flag("--start-only", options.starts_only,
               "only how long servers take to have the rows that --log-folder has");
  app.add_flag("--any-id", options.any_id, "a table without vocabulary");
  app.add_flag("--tcp", options.tcp, "no shared memory");
  app.add_flag("--bfloat16", options.low, "rows of 16 bits");
  CLI11_PARSE(app, count, arguments);
  const auto options_of = [&](std::uint32_t server) {
    return ParameterServer::Options{
        .job_id = 1,
        .share = {.server = server, .servers = options.servers},
        .config = {.worker_num = 1},
        .log_path = options.log_folder.empty() ? "" : fmt::format("{}/pushes-{}", options.log_folder, server),
        .log_limit_bytes = options.log_limit_mib << 20};
  };
  if (!options.starts_only) {
    std::vector<std::unique_ptr<ServerProcess>> servers;
    std::vector<net::Address> addresses;
    for (std::uint32_t i = 0; i < options.servers; ++i) {
      servers.push_back(std::make_unique<ServerProcess>(options_of(i)));
      addresses.push_back(servers.back()->address());
    }
    Bench bench(options, addresses);
    bench.check();
    bench.fill();
    bench.measure();
    if (options.compute_ms > 0) bench.measure_steps();
    if (options.restarts) bench.measure_while_writing();
  }
  if (options.restarts || options.starts_only) {
    const TimePoint begin = real_clock().now();
    const ServerProcess again(options_of(0));
    fmt::print("server 0 has its rows again after {:.3f} s\n", seconds(begin));
    if (options.starts_only) fmt::print("{:.2f} s of processors\n", again.seconds_of_processors());
  }
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  fmt::print("largest server: {} MiB\n", used.ru_maxrss / 1024);
  return 0;
}
