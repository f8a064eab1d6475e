// Write throttle: a thread writes beside a training slowly and with the least priority, as long as no caller
// waits for it.
//
// Hashing 100 MB and handing them to the disk take 20 ms of a core from training; spread over a second and
// done in the gaps that training leaves, no step notices. A thread of low priority alone is not enough: where
// other programs keep the cores busy it starves, a caller that waits for it waits as long, and its priority
// cannot be raised again. So the thread itself keeps its priority and gives pieces of its work to one that
// has the least; when a caller waits, or the work is late, it does them itself.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "muster/base/base.h"

namespace muster::checkpoint {

class WriteThrottle {
 public:
  // What a training hardly notices (a disk may be slower, and then sets the rate), where so many workers
  // share the cores of this host. In bytes a second.
  static double beside(std::uint32_t workers_of_host);

  // `clock` is borrowed.
  WriteThrottle(double bytes_per_second, const Clock& clock);
  WriteThrottle(const WriteThrottle&) = delete;
  WriteThrottle& operator=(const WriteThrottle&) = delete;
  ~WriteThrottle();

  // While it lives, the calling thread works at this rate. `bytes` is how much that will be. It is to be done
  // in half of the time since the work before began, so that the next one need not wait.
  class Work {
   public:
    Work(WriteThrottle& throttle, std::size_t bytes);
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;
    ~Work();
  };

  // While it lives, a caller waits: no thread rests or yields.
  class Flush {
   public:
    explicit Flush(WriteThrottle& throttle);
    Flush(const Flush&) = delete;
    Flush& operator=(const Flush&) = delete;
    ~Flush();

   private:
    WriteThrottle& throttle_;
  };

  // Calls `handle` with the content piece by piece, in order, up to the first error. Large pieces end where
  // pages do (DirectWriter). If the calling thread is throttled, each when it is its turn, perhaps on
  // another thread, which is waited for.
  using Handle = std::function<Result<>(std::span<const std::byte>)>;
  static Result<> in_pieces(std::span<const std::byte> content, const Handle& handle);

 private:
  class Yielding;

  void begin(std::size_t bytes);
  Result<> take_turn(std::span<const std::byte> piece, const Handle& handle);
  bool rest_until_turn();

  const double bytes_per_second_;
  const Clock& clock_;
  std::unique_ptr<Yielding> yielding_;  // made at its first use
  // Of the work that is under way; they belong to its thread.
  TimePoint began_ = {};
  Duration duration_ = {};
  std::size_t bytes_ = 0;
  std::size_t written_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  int waiters_ = 0;
};

}  // namespace muster::checkpoint
