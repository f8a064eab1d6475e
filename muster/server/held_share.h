// Held share: the rows of one share as one server process has them: the protocol's machine, tables, disk.
// Private to server.
//
// On the loop's thread, but for two that wait for the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/net/net.h"
#include "muster/server/kept_files.h"
#include "muster/server/parameter_server.h"
#include "muster/server/rows_save.h"
#include "muster/server/server_disk.h"
#include "muster/server/server_machine.h"
#include "muster/server/shared_batches.h"
#include "muster/server/start_progress.h"
#include "muster/server/table_set.h"
#include "muster/server/wire.h"

namespace muster::server {

class HeldShare {
 public:
  struct Options {
    std::uint64_t job_id = 0;
    Share share = {};
    ServerConfig config = {};
    std::string log_path = {};  // as of ParameterServer::Options, as all that follows
    std::uint64_t log_limit_bytes = 0;
    std::uint64_t memory_bytes = 0;
    bool refuses_large_tables = false;
    RowFiles files = {};
  };
  struct Events {
    std::function<void(std::uint32_t worker, FramePtr frame)> send;
    // Where that worker's memory is, if it still is; else of no size.
    std::function<std::span<std::byte>(std::uint32_t worker, const SharedMessage& message)> place_of;
    std::function<void(const Error& error)> failed;
    std::function<void()> changed;  // something was done, or heard
  };
  HeldShare(net::Loop& loop, Options options, Events events);

  const Options& options() const { return options_; }
  // Its disk has nothing, where there is one.
  Result<bool> lacks_rows() const;
  // It has its rows behind this. What was fetched from another server is brought to the disk meanwhile.
  Result<> open(bool was_fetched);
  bool is_open() const { return is_open_; }

  // What a worker says. An error is one that it is told.
  Result<> hear(std::uint32_t worker, net::Frame frame, const SharedMessage& shared = {});
  // Whether it writes down what is pushed, with a checksum.
  bool keeps_log() const { return !options_.log_path.empty(); }

  std::uint64_t generation() const { return machine_.generation(); }
  // Of what was said and done until now.
  Result<KeptFiles> kept_files() const { return KeptFiles::open(options_.log_path); }
  ParameterServer::State state() const;

 private:
  struct WantedRows {
    Batch batch = {};
    ChangedRows changed = {};               // since they were sent early
    SharedMessage shared = {};              // where the first answer may be written
    std::optional<SaveOrder> to_save = {};  // instead of all that
  };

  Result<> hear_table(const net::Frame& frame);
  Result<> check_memory();
  Result<> hear_batch(std::uint32_t worker, net::Frame frame, const SharedMessage& shared);
  Result<> hear_save(std::uint32_t worker, const net::Frame& frame);
  void save(const Pull& pull, const SaveOrder& order);
  void send(std::uint32_t worker, FrameType type, std::uint64_t generation,
            std::span<const std::byte> payload);

  void do_all(const Actions& actions);
  Result<> act(const Append& append);
  Result<> act(const Apply& apply);
  Result<> act(const Reset& reset);
  Result<> act(const Answer& answer);
  Result<> act(const Preview& preview);
  Result<> act(const Send& send);
  // Rows as they are: into memory that is shared with the worker, if there is a place.
  Result<> send_whole(const Pull& pull, FrameType type, std::uint64_t applied);
  void send_rows(const Pull& pull, FrameType type, std::uint64_t sequence, std::vector<std::byte> frame);
  void fail_with(const Error& error);

  net::Loop& loop_;
  Options options_;
  Events events_;
  ServerMachine machine_;
  TableSet tables_;
  std::unique_ptr<ServerDisk> disk_;
  std::vector<std::weak_ptr<WantedRows>> sent_early_;         // those that the machine still has
  std::map<std::uint32_t, std::unique_ptr<RowsSave>> saves_;  // by worker
  std::unique_ptr<StartProgress> start_;                      // while it applies what the log has
  std::uint64_t appended_ = 0;
  bool is_open_ = false;
  std::optional<Error> failure_;
};

}  // namespace muster::server
