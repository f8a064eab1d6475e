// Thread that goes on with links over UCX that have bytes to get rid of while their owners do something else:
// it does for them what the system does for a socket. It sleeps while there are none.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace muster::collective {

class UcxPump {
 public:
  class Work {
   public:
    Work() = default;
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;
    virtual ~Work() = default;
    // Without waiting, not even for another thread that uses it; false: there is nothing more to do.
    virtual bool pump() = 0;
  };

  // Of all who hold one now in this process; a forked child has its own.
  static std::shared_ptr<UcxPump> shared();
  UcxPump();
  ~UcxPump();
  UcxPump(const UcxPump&) = delete;
  UcxPump& operator=(const UcxPump&) = delete;

  // Borrowed until its pump() says false, or until it is removed.
  void add(Work& work);
  // Once it returns, the work is not under way.
  void remove(Work& work);

 private:
  void run();

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<Work*> works_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace muster::collective
