#include "muster/graph/execution/call_thread.h"

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "muster/base/state_clock.h"

namespace muster::graph {

struct CallThread::Shared {
  struct Given {
    void (*run)(const KernelCall&);
    const KernelCall* call;
  };

  std::mutex mutex;
  std::condition_variable wanted;
  std::condition_variable finished;
  std::deque<Given> calls;  // guarded by mutex, like the next three
  std::uint64_t done = 0;
  bool failed = false;
  bool closing = false;
  pid_t process = ::getpid();
  std::thread thread;

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      wanted.wait(lock, [this] { return closing || !calls.empty(); });
      if (calls.empty()) return;
      const Given next = calls.front();
      calls.pop_front();
      if (!failed) {
        lock.unlock();
        next.run(*next.call);
        lock.lock();
        failed = next.call->failure->has_value();
      }
      ++done;
      finished.notify_one();
    }
  }
};

CallThread::CallThread() : shared_(std::make_unique<Shared>()) {
  shared_->thread = std::thread([shared = shared_.get()] { shared->run(); });
}

CallThread::~CallThread() {
  if (!exists()) {
    // Nothing here can be destroyed in a forked child: the thread that waits on it is not there to wake up.
    static_cast<void>(shared_.release());
    return;
  }
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->closing = true;
  }
  shared_->wanted.notify_one();
  shared_->thread.join();
}

bool CallThread::exists() const { return shared_->process == ::getpid(); }

void CallThread::give(void (*run)(const KernelCall&), const KernelCall& call) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->calls.push_back({run, &call});
  }
  ++given_;
  shared_->wanted.notify_one();
}

void CallThread::wait(std::uint64_t count) {
  const WaitingScope waiting;
  const auto is_done = [&] { return shared_->done >= count; };
  std::unique_lock lock(shared_->mutex);
  while (!shared_->finished.wait_for(lock, wait_slice, is_done)) {
    lock.unlock();
    look_while_waiting();
    lock.lock();
  }
}

void CallThread::finish() {
  wait(given_);
  const std::lock_guard lock(shared_->mutex);
  shared_->failed = false;
}

}  // namespace muster::graph
