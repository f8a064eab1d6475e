#include "muster/train/metric_writer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "muster/net/net.h"
#include "muster/train/process.h"

namespace muster::train {

// Of one producer and one consumer. The counts only grow; a row's place is its number modulo the capacity.
struct MetricWriter::Queue {
  explicit Queue(const Write& to) : write(to) {}

  std::array<MetricRow, capacity> rows;
  alignas(64) std::atomic<std::uint64_t> pushed = 0;
  alignas(64) std::atomic<std::uint64_t> written = 0;  // or dropped
  std::atomic<bool> sleeps = false;                    // until it is told to: nothing waits
  std::atomic<bool> failed = false;                    // `error` is there, and stays

  std::mutex mutex;
  std::condition_variable wake;      // the thread
  std::condition_variable progress;  // who waits for it
  bool wanted = false;               // now, without the delay
  bool ends = false;
  std::optional<Error> error;

  Write write;
  std::thread thread;

  bool is_empty() const { return written.load() == pushed.load(); }
  void tell(bool now) {
    {
      const std::lock_guard lock(mutex);
      wanted = wanted || now;
    }
    wake.notify_one();
  }
  void run();
  void write_all();
};

namespace {

constexpr Duration limit_at_exit = std::chrono::seconds(5);

void flush_at_exit() {
  static const bool is_asked = std::atexit([] { MetricWriter::flush_all(limit_at_exit); }) == 0;
  (void)is_asked;
}

}  // namespace

// Queues with a thread, for flush_all().
struct MetricQueues {
  const std::uint32_t forks = net::fork_count();
  std::mutex mutex = {};
  std::set<void*> all = {};
};

namespace {

// In a child of fork() they are new ones: the lock of the old ones may be held by a thread that the child has
// not, and its queues are the parent's.
MetricQueues& metric_queues() {
  std::atomic<MetricQueues*>& kept = process().metric_queues;
  MetricQueues* found = kept;
  if (found != nullptr && found->forks == net::fork_count()) return *found;
  auto made = std::make_unique<MetricQueues>();
  return kept.compare_exchange_strong(found, made.get()) ? *made.release() : *found;
}

}  // namespace

// ---- The thread -------------------------------------------------------------------------------------------

void MetricWriter::Queue::run() {
  std::unique_lock lock(mutex);
  while (true) {
    // Who pushes looks at `sleeps` behind its store to `pushed`; here it is the other way around, so that one
    // of both sees the other.
    sleeps = true;
    wake.wait(lock, [&] { return ends || !is_empty(); });
    sleeps = false;
    if (is_empty()) return;
    wake.wait_for(lock, delay, [&] { return ends || wanted; });
    wanted = false;
    lock.unlock();
    write_all();
    lock.lock();
    progress.notify_all();
  }
}

void MetricWriter::Queue::write_all() {
  std::uint64_t first = written.load(std::memory_order_relaxed);
  for (const std::uint64_t end = pushed.load(); first < end;) {
    const std::size_t begin = first % capacity;
    const std::size_t count = std::min<std::size_t>(end - first, capacity - begin);
    if (!failed.load()) {
      if (const Result<> done = write(std::span(rows).subspan(begin, count)); !done) {
        const std::lock_guard lock(mutex);
        error = done.error();
        failed = true;
      }
    }
    first += count;
    written = first;
  }
}

// ---- The training -----------------------------------------------------------------------------------------

MetricWriter::MetricWriter(Write write) : write_(std::move(write)) { begin(); }

void MetricWriter::begin() {
  flush_at_exit();
  forks_ = net::fork_count();
  queue_ = std::make_unique<Queue>(write_);
  sigset_t all, before;  // signals are for the program's own threads
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  queue_->thread = std::thread([queue = queue_.get()] { queue->run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  MetricQueues& known = metric_queues();
  const std::lock_guard lock(known.mutex);
  known.all.insert(queue_.get());
}

MetricWriter::~MetricWriter() { end(); }

void MetricWriter::end() {
  if (forks_ != net::fork_count()) {
    (void)queue_.release();  // its thread is in the parent
    return;
  }
  {
    MetricQueues& known = metric_queues();
    const std::lock_guard lock(known.mutex);
    known.all.erase(queue_.get());
  }
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->ends = true;
  }
  queue_->wake.notify_one();
  queue_->thread.join();
}

Result<> MetricWriter::push(const MetricRow& row) {
  if (forks_ != net::fork_count()) {
    end();
    begin();
  }
  Queue& queue = *queue_;
  const std::uint64_t number = queue.pushed.load(std::memory_order_relaxed);
  const auto waiting = [&] { return number - queue.written.load(); };
  if (waiting() == capacity) {
    queue.tell(true);
    std::unique_lock lock(queue.mutex);
    queue.progress.wait(lock, [&] { return waiting() < capacity; });
  }
  queue.rows[number % capacity] = row;
  queue.pushed = number + 1;
  if (queue.sleeps)
    queue.tell(false);
  else if (waiting() == capacity / 2)
    queue.tell(true);
  return result();
}

Result<> MetricWriter::flush() {
  if (forks_ != net::fork_count()) return {};
  if (!queue_->is_empty()) {
    queue_->tell(true);
    std::unique_lock lock(queue_->mutex);
    queue_->progress.wait(lock, [&] { return queue_->is_empty(); });
  }
  return result();
}

Result<> MetricWriter::result() {
  if (!queue_->failed.load(std::memory_order_acquire) || told_) return {};
  told_ = true;
  return fail(*queue_->error);
}

void MetricWriter::flush_all(Duration limit) {
  const TimePoint end = real_clock().now() + limit;
  MetricQueues& known = metric_queues();
  const std::lock_guard lock(known.mutex);
  for (void* each : known.all) {
    Queue& queue = *static_cast<Queue*>(each);
    if (queue.is_empty()) continue;
    queue.tell(true);
    std::unique_lock waiting(queue.mutex);
    queue.progress.wait_for(waiting, end - real_clock().now(), [&] { return queue.is_empty(); });
  }
}

}  // namespace muster::train
