// Log sync: a thread that brings the log of pushes to the disk while the server goes on. Private to server.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "muster/server/push_log.h"

namespace muster::server {

class LogSync {
 public:
  // Called on the thread, with how many of the records are on the disk, or why they cannot be.
  using Done = std::function<void(Result<std::uint64_t>)>;
  // The log is borrowed.
  LogSync(PushLog& log, Done done);
  ~LogSync();

  // So many records were appended.
  void want(std::uint64_t records);

 private:
  void run();

  PushLog& log_;
  Done done_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t wanted_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace muster::server
