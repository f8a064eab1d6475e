// Serial thread: a thread that does what it is given, one after the other: what waits for disks. Private to
// server.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace muster::server {

class SerialThread {
 public:
  using Job = std::function<void()>;
  SerialThread() : thread_([this] { run(); }) {}
  // Does what it was given before.
  ~SerialThread();
  void post(Job job);
  // Waits until everything that was given is done.
  void finish();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool is_busy_ = false;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace muster::server
