// Server disk: what a parameter server keeps: rows as of some position, its base, and the log since
// (docs/formats/parameter-server.md). Private to server.
//
// On the loop's thread; two other ones wait for the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "muster/server/log_sync.h"
#include "muster/server/push_log.h"
#include "muster/server/rows_file.h"
#include "muster/server/serial_thread.h"
#include "muster/server/server_machine.h"
#include "muster/server/wire.h"

namespace muster::server {

// A push that is held until no worker can go back before it. What it says is in the log once it was applied,
// and read again only where the rows go back.
struct HeldPush {
  mutable std::optional<Batch> batch = {};
  net::FrameHeader header = {};
  mutable PushLog::Place place = {};
};

class ServerDisk {
 public:
  struct Options {
    std::string path = {};  // `path`.base, `path`.0 and on
    std::uint64_t job_id = 0;
    Share share = {};
    std::uint64_t log_limit_bytes = 0;
    RowFiles files = {};
  };
  struct Events {
    std::function<void(std::uint64_t records)> kept;
    std::function<void()> restored_kept;
    std::function<void(const Error&)> failed;
  };
  // What it is given is borrowed.
  ServerDisk(net::Loop& loop, Options options, ServerMachine& machine, TableSet& tables, Events events);
  ~ServerDisk();

  // Whether there is neither a base nor a record. What an interrupted fetch has left is removed.
  static Result<bool> is_empty(const std::string& path);
  // Begins a fetch from another server: until it is known that all of it is on the disk, a server that is
  // started again fetches anew.
  static Result<> begin_fetch(const std::string& path);
  static Result<> cancel_fetch(const std::string& path);

  // The tables have the base's rows then. What was just fetched is brought to the disk while the server goes
  // on: `restored_kept` tells when it is there.
  Result<Restored> open(bool was_fetched);
  Result<> write(const LogRecord& record);
  Result<> write_table(const net::FrameHeader& header, std::span<const std::byte> payload);
  std::uint64_t log_size_bytes() const { return log_->size_bytes(); }
  // So many records were written.
  void want_kept(std::uint64_t records) { sync_->want(records); }
  Result<> load(const HeldPush& push) const;
  // The rows began with those of a checkpoint, which may not stay: a base is to have them soon.
  void want_base() { wants_base_ = true; }
  // Puts the rows back to the base.
  Result<> reset_rows();
  // All actions so far are carried out: perhaps it is time to write the rows down, or to let what is written
  // become the base.
  void look();

 private:
  Result<> restore_base(Restored& restored, StartProgress& progress);
  Result<std::uint64_t> size_to_read() const;
  void keep_fetched();
  void tell_kept(std::uint64_t records);
  Result<> read_record(net::Frame frame, const PushLog::Place& place, Restored& restored);
  Result<PushLog::Place> write_frame(net::FrameHeader header, std::span<const std::byte> payload);
  Result<PushLog::Place> write_push(const HeldPush& push, std::uint32_t flags);
  Result<> begin_segment();
  void begin_copy();
  void make_base();
  void drop_copy();
  std::string base_path() const { return options_.path + ".base"; }
  std::string next_path() const { return options_.path + ".next"; }

  net::Loop& loop_;
  Options options_;
  ServerMachine& machine_;
  TableSet& tables_;
  Events events_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for what threads post
  std::unique_ptr<PushLog> log_;
  std::unique_ptr<LogSync> sync_;  // ends before log_
  SerialThread disk_;
  std::unique_ptr<RowsCopy> copy_;  // ends before disk_
  bool is_copied_ = false;          // all of it is on the disk
  bool is_moving_ = false;          // the base
  bool wants_base_ = false;
  bool is_restored_kept_ = true;
  std::uint64_t kept_ = 0;  // records, of which nothing was told before that
};

}  // namespace muster::server
