// Parameter server: a process of the role MS_PSERVER: connections of workers, its rows, and the log of what
// they have pushed.
//
// It lives on a loop, on whose thread all of it runs but for one thread that brings the log to the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/net/net.h"
#include "muster/server/saved_rows.h"
#include "muster/server/server_machine.h"
#include "muster/server/sharding.h"

namespace muster::server {

class ParameterServer {
 public:
  struct Options {
    net::Address address = {.ip = "127.0.0.1", .port = 0};
    std::uint64_t job_id = 0;
    Share share = {};
    ServerConfig config = {};
    // How many servers have each row; see Holders. With 2 the server has the rows of the one before it, too,
    // and gets what its disk has lost from those that have it.
    std::uint32_t copies = 1;
    std::vector<net::Address> servers = {};  // all of them, by number; of copies alone
    // Of the job, when this process joined it: see RowsFetch.
    std::uint64_t generation = 0;
    // How the connection to another server is protected; null: plain.
    std::function<net::ConnectionSecurity(std::uint32_t server)> security_of = {};
    // The server keeps `log_path`.base, its rows as of some step, and `log_path`.0 and on, a log of what was
    // pushed since; of the share of server 3, `log_path`_copy_3.base and on. Empty: nothing; then the
    // server's death loses its rows, and workers cannot go back.
    std::string log_path = {};
    // From this length of the log on, and an eighth of the rows', rows are written down anew.
    std::uint64_t log_limit_bytes = std::uint64_t{64} << 20;
    // That rows may take here; 0: not known. Tables that could take more, once all of their rows were
    // updated, are told of before their first update, or refused.
    std::uint64_t memory_bytes = 0;
    bool refuses_large_tables = false;
    RowFiles files = {};  // of checkpoints; none: rows are neither saved nor loaded
    net::ListenerSecurity security = {};
    // Batches of workers on this host lie in memory that they share with it; not where connections are
    // encrypted.
    bool shares_memory = true;
    const Clock& clock = real_clock();  // borrowed
  };
  // The loop is borrowed. Where the log is there already, the server has its rows when this returns; where
  // another server has them, workers are answered once they are here.
  static Result<std::unique_ptr<ParameterServer>> open(net::Loop& loop, Options options);
  ~ParameterServer();
  ParameterServer(const ParameterServer&) = delete;
  ParameterServer& operator=(const ParameterServer&) = delete;

  const net::Address& address() const;
  // Where another server is that was started again elsewhere. Any thread.
  void set_address(std::uint32_t server, const net::Address& address);
  // Why it serves no more (its disk or its memory is full); the loop is stopped then.
  const std::optional<Error>& failure() const;
  struct State {
    std::uint64_t rows = 0;  // that are kept, of all tables
    std::uint64_t size_bytes = 0;
    std::uint64_t updates = 0;  // steps that are applied, as what follows of its own share
    ServerMachine::Waiting waiting = {};
    bool have_workers_left = false;
  };
  // Tells it as of a moment ago: from any thread, and behind this server's end.
  std::function<State()> watch() const;

 private:
  class Implementation;
  explicit ParameterServer(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace muster::server
