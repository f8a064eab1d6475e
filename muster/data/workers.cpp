#include "muster/data/workers.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "muster/base/cores.h"
#include "muster/data/iterator.h"

namespace muster::data {

struct Workers::State {
  explicit State(int workers) : workers_count(workers) {}

  // Takes indices until none is left.
  void work(int worker) {
    while (true) {
      const std::size_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= count) return;
      (*body)(worker, index);
    }
  }

  void help(int worker) {
    std::unique_lock lock(mutex);
    std::size_t seen = 0;
    while (true) {
      begun.wait(lock, [&] { return stop || (open && call != seen && worker < wanted); });
      if (stop) return;
      seen = call;
      ++busy;
      lock.unlock();
      work(worker);
      lock.lock();
      if (--busy == 0) ended.notify_one();
    }
  }

  const int workers_count;
  std::vector<std::thread> helpers;
  std::atomic<std::size_t> next = 0;

  std::mutex mutex;  // guards what follows; `body` and `count` are read without it while a call runs
  std::condition_variable begun, ended;
  std::size_t call = 0;  // which call of for_each: helpers take part in each once
  bool open = false;     // whether helpers may still join: the caller does not wait for one that sleeps
  int wanted = 0;        // workers in this call, the caller among them
  int busy = 0;          // helpers at work
  const std::function<void(int, std::size_t)>* body = nullptr;
  std::size_t count = 0;
  bool stop = false;
};

Workers::Workers(int count) : state_(std::make_unique<State>(std::max(count, 1))) {}

Workers::~Workers() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->begun.notify_all();
  for (std::thread& helper : state_->helpers) helper.join();
}

int Workers::count() const { return state_->workers_count; }

void Workers::for_each(std::size_t count, int workers_max,
                       const std::function<void(int worker, std::size_t index)>& body) {
  int wanted = state_->workers_count;
  if (workers_max > 0) wanted = std::min(wanted, workers_max);
  if (count < static_cast<std::size_t>(wanted)) wanted = static_cast<int>(count);
  if (wanted <= 1) {
    for (std::size_t index = 0; index < count; ++index) body(0, index);
    return;
  }
  State& state = *state_;
  {
    const std::lock_guard lock(state.mutex);
    state.body = &body;
    state.count = count;
    state.next.store(0, std::memory_order_relaxed);
    state.wanted = wanted;
    state.open = true;
    ++state.call;
  }
  while (static_cast<int>(state.helpers.size()) < wanted - 1)
    state.helpers.emplace_back(
        [&state, worker = static_cast<int>(state.helpers.size()) + 1] { state.help(worker); });
  state.begun.notify_all();
  state.work(0);
  std::unique_lock lock(state.mutex);
  state.open = false;
  state.ended.wait(lock, [&] { return state.busy == 0; });
}

int workers_default() { return std::min(allowed_cores(), 8); }

}  // namespace muster::data
