// Private to train: metric writer: a queue of rows of numbers that a training hands over, and a thread that
// writes them, so that a step pays for neither their text nor the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "muster/base/base.h"

namespace muster::train {

// What a logger writes of a step.
struct MetricRow {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  double time = 0;  // seconds since 1970
  double step_seconds = 0;
  std::optional<double> loss = {};
  std::optional<double> learning_rate = {};
};

// Rows are written in the order of push(), at the latest a while after it that `delay` says; the destructor
// writes what is left. When the file cannot take them, the next push() or flush() returns that error, once,
// and later rows are dropped. A child of fork() has neither the rows of its parent nor the thread: it gets
// its own.
//
// Threads: push(), flush() and the destructor belong to one. `write` is called on another one, and never
// while flush() has returned and nothing was pushed since.
class MetricWriter {
 public:
  using Write = std::function<Result<>(std::span<const MetricRow>)>;
  static constexpr std::size_t capacity = 1024;
  static constexpr Duration delay = std::chrono::milliseconds(100);

  explicit MetricWriter(Write write);
  ~MetricWriter();
  MetricWriter(const MetricWriter&) = delete;
  MetricWriter& operator=(const MetricWriter&) = delete;

  // Allocates nothing and never waits, unless `capacity` rows wait already: then until some are written.
  Result<> push(const MetricRow& row);
  // Until everything is written. Costs a load where nothing waits.
  Result<> flush();

  // Of all writers of this process, from any thread, for at most `limit`: before the process ends without its
  // destructors. Called by exit().
  static void flush_all(Duration limit);

 private:
  struct Queue;
  void begin();
  void end();
  Result<> result();

  Write write_;
  std::unique_ptr<Queue> queue_;
  bool told_ = false;        // of the error
  std::uint32_t forks_ = 0;  // of this process and its ancestors, when the thread was started
};

}  // namespace muster::train
