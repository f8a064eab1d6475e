// Small jobs with parameter servers: workers whose script looks rows up and pushes gradients of them, and
// servers in processes of their own, for tests.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "muster/server/parameter_client.h"
#include "muster/server/table.h"
#include "tests/unit/server/servers.h"

namespace muster::server::small_jobs {

using Ids = std::vector<std::uint64_t>;

inline constexpr std::uint32_t width = 3;
inline constexpr std::uint64_t vocabulary = 50;
inline constexpr std::size_t batch = 40;

inline TableSpec adam_table(Sharding sharding = Sharding::ranges) {
  return {.name = "embedding",
          .sharding = sharding,
          .rows = sharding == Sharding::hash ? 0 : vocabulary,
          .width = width,
          .seed = 5,
          .rule = {.kind = RuleKind::adam}};
}

inline ParameterServer::Options options_of(Share share, ServerConfig config) {
  return {.job_id = 9, .share = share, .config = config};
}

inline std::vector<RunningServer> servers_of(std::uint32_t servers, ServerConfig config,
                                             std::uint32_t copies = 1) {
  std::vector<RunningServer> made;
  for (std::uint32_t i = 0; i < servers; ++i) {
    ParameterServer::Options options = options_of({.server = i, .servers = servers}, config);
    options.copies = copies;
    made.emplace_back(std::move(options));
  }
  return made;
}

inline std::vector<net::Address> addresses_of(const std::vector<RunningServer>& servers) {
  std::vector<net::Address> addresses;
  for (const RunningServer& server : servers) addresses.push_back(server.address());
  return addresses;
}

// Shared memory for the smallest batches, too; with this variable, sockets alone: tests run both ways.
inline std::optional<std::size_t> shared_from_bytes() {
  return std::getenv("MUSTER_TEST_SOCKETS") == nullptr ? std::optional<std::size_t>(1) : std::nullopt;
}

// How a worker comes by its rows, beside pulling them in their step.
struct Ways {
  std::optional<std::size_t> shared_from_bytes = small_jobs::shared_from_bytes();
  std::size_t cached_rows = 0;
  bool looks_ahead = false;
  std::uint32_t copies = 1;
};

// A worker's script: looks rows up, and pushes a gradient that depends on them, for as many steps.
class Worker {
 public:
  Worker(std::uint32_t worker, std::vector<net::Address> servers, Duration timeout = std::chrono::seconds(20),
         Ways ways = {}, Staleness staleness = 0)
      : worker_(worker),
        ways_(ways),
        client_({.worker = worker,
                 .servers = std::move(servers),
                 .copies = ways.copies,
                 .job_id = 9,
                 .staleness = staleness,
                 .timeout = timeout,
                 .shared_from_bytes = ways.shared_from_bytes}) {}

  ParameterClient& client() { return client_; }
  void begin(const TableSpec& spec, std::uint64_t generation = 1, std::uint64_t step = 0) {
    ASSERT_TRUE(client_.add_table(spec, ways_.cached_rows));
    const Result<> begun = client_.begin(generation, step);
    ASSERT_TRUE(begun) << begun.error().message;
  }
  void train(
      std::uint64_t from, std::uint64_t to, const std::function<void()>& before_push = [] {}) {
    for (std::uint64_t step = from; step < to; ++step) {
      const Ids ids = ids_of(step);
      std::vector<float> rows(ids.size() * width);
      const ParameterClient::Lookup lookup{.ids = ids, .rows = rows};
      const Result<> pulled = client_.pull(step, std::span(&lookup, 1));
      ASSERT_TRUE(pulled) << pulled.error().message;
      if (ways_.looks_ahead) {
        ASSERT_TRUE(client_.pull_ahead(step + 1, 0, ids_of(step + 1)));
      }
      for (std::size_t i = 0; i < rows.size(); ++i)
        rows[i] = 0.5F * rows[i] + 0.01F * static_cast<float>(i % 7) - 0.02F * static_cast<float>(worker_);
      before_push();
      const ParameterClient::Gradient gradient{.learning_rate = 0.1F, .ids = ids, .values = rows};
      const Result<> pushed = client_.push(std::span(&gradient, 1));
      ASSERT_TRUE(pushed) << pushed.error().message;
    }
  }
  // All rows as the step sees them.
  std::vector<float> rows(std::uint64_t step) {
    Ids ids(vocabulary);
    for (std::uint64_t i = 0; i < vocabulary; ++i) ids[i] = i;
    std::vector<float> rows(vocabulary * width);
    const ParameterClient::Lookup lookup{.ids = ids, .rows = rows};
    const Result<> pulled = client_.pull(step, std::span(&lookup, 1));
    EXPECT_TRUE(pulled) << pulled.error().message;
    return rows;
  }

 private:
  Ids ids_of(std::uint64_t step) const {
    const RandomStream random(worker_, step);
    Ids ids(batch);
    for (std::size_t i = 0; i < batch; ++i) ids[i] = random.below(i, vocabulary);
    return ids;
  }

  std::uint32_t worker_;
  Ways ways_;
  ParameterClient client_;
};

// The rows after so many steps of `workers` workers.
inline std::vector<float> trained(std::uint32_t workers, std::uint32_t servers, const TableSpec& spec,
                                  Staleness staleness = 0, std::uint64_t steps = 12, Ways ways = {},
                                  ParameterClient::Counts* counts = nullptr) {
  const auto running = servers_of(servers, {.worker_num = workers, .staleness = staleness}, ways.copies);
  std::vector<std::thread> threads;
  std::vector<float> rows;
  for (std::uint32_t i = 0; i < workers; ++i)
    threads.emplace_back([&, i] {
      Worker worker(i, addresses_of(running), std::chrono::seconds(20), ways, staleness);
      worker.begin(spec);
      worker.train(0, steps);
      if (i == 0 && counts != nullptr) *counts = worker.client().counts();
      const Result<> flushed = worker.client().flush();
      EXPECT_TRUE(flushed) << flushed.error().message;
      if (i == 0) rows = worker.rows(steps);
    });
  for (std::thread& thread : threads) thread.join();
  return rows;
}

// A server in a process of its own, so that it can be killed.
class ServerProcess {
 public:
  explicit ServerProcess(ParameterServer::Options options) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    child_ = ::fork();
    if (child_ == 0) serve(std::move(options), ends[1]);
    ::close(ends[1]);
    EXPECT_EQ(::read(ends[0], &address_.port, sizeof address_.port),
              static_cast<ssize_t>(sizeof address_.port));
    ::close(ends[0]);
    address_.ip = "127.0.0.1";
  }
  ServerProcess(const ServerProcess&) = delete;
  ~ServerProcess() { kill(); }

  void stop() const { ::kill(child_, SIGSTOP); }
  void kill() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }
  const net::Address& address() const { return address_; }

 private:
  [[noreturn]] static void serve(ParameterServer::Options options, int told) {
    net::Loop loop;
    auto server = ParameterServer::open(loop, std::move(options));
    if (!server) ::_exit(1);
    const std::uint16_t port = (*server)->address().port;
    if (::write(told, &port, sizeof port) != static_cast<ssize_t>(sizeof port)) ::_exit(1);
    loop.run_for(std::chrono::seconds(60));
    ::_exit(1);
  }

  pid_t child_ = -1;
  net::Address address_;
};

class LogFolder {
 public:
  LogFolder() : path_(::testing::TempDir() + fmt::format("muster-servers-{}-{}", ::getpid(), entropy())) {
    std::filesystem::create_directory(path_);
  }
  ~LogFolder() { std::filesystem::remove_all(path_); }
  std::string log() const { return path_ + "/pushes"; }
  void clear() const {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
  }

 private:
  std::string path_;
};

}  // namespace muster::server::small_jobs
