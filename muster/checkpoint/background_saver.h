// Background saver: saves recovery points on a thread of its own, so that training does not wait for the
// disk.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "muster/checkpoint/run_store.h"
#include "muster/checkpoint/write_throttle.h"

namespace muster::checkpoint {

// To whom a training hands its points. save() and wait() belong to one thread.
class Saver {
 public:
  Saver() = default;
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;
  // Waits for the save that is under way: a program that ends loses no point.
  virtual ~Saver() = default;

  // Takes the point and returns; while an earlier one is under way, waits for it. A save that fails says so
  // loudly (log::error) and is kept for wait(); training goes on.
  virtual void save(Point point) = 0;

  // Waits until nothing is under way. The first failure since the last wait(), if there was one. To be called
  // before the store's points() are asked for.
  virtual Result<> wait() = 0;
};

// At most one save is under way: memory is bounded by two points, and points reach the disk in their order.
class BackgroundSaver final : public Saver {
 public:
  // `store` outlives it and stays where it is. Points go to the disk at this rate, until a caller waits.
  BackgroundSaver(RunStore& store, const Clock& clock, double bytes_per_second = WriteThrottle::beside(1));
  ~BackgroundSaver() override;

  void save(Point point) override;
  Result<> wait() override;

 private:
  void run();
  Result<> save_slowly(const Point& point);

  RunStore& store_;
  WriteThrottle throttle_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Point> next_;  // handed over, not yet done
  std::optional<Error> failure_;
  bool ending_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace muster::checkpoint
