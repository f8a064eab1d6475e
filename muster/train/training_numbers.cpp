#include "muster/train/training_numbers.h"

#include <atomic>
#include <bit>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/train/activity_scope.h"
#include "muster/train/process.h"
#include "muster/train/session.h"
#include "muster/train/step_logger.h"

namespace muster::train {
namespace {

using NamedNumbers = std::vector<std::pair<std::string, double>>;

constexpr Duration rate_interval = std::chrono::milliseconds(250);

std::optional<double> number_in(const std::atomic<std::uint64_t>& bits) {
  const std::uint64_t read = bits.load(std::memory_order_relaxed);
  if (read == TrainingNumbers::no_number) return std::nullopt;
  return std::bit_cast<double>(read);
}

std::uint64_t microseconds(Duration duration) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(duration).count());
}

static_assert(first_phase_state + cluster::work_phase_count <= StateClock::states);
static_assert(first_phase_state + static_cast<std::size_t>(cluster::WorkPhase::script) == StateClock::script);
static_assert(first_phase_state + static_cast<std::size_t>(cluster::WorkPhase::computing) ==
              StateClock::computing);

}  // namespace

void note_loss(double loss) {
  process().training.loss_bits.store(std::bit_cast<std::uint64_t>(loss), std::memory_order_relaxed);
}

void note_step_of_model(const CallbackContext& context, std::span<const Tensor> batch) {
  if (Session::current() == nullptr) return;
  TrainingNumbers& numbers = process().training;
  if (!batch.empty() && batch.front().shape().rank() > 0 &&
      numbers.stage.load(std::memory_order_relaxed) == 0)
    numbers.samples.fetch_add(static_cast<std::uint64_t>(batch.front().shape()[0]),
                              std::memory_order_relaxed);
  const TimePoint now = real_clock().now();
  if (now < numbers.rate_due) return;
  numbers.rate_due = now + rate_interval;
  const auto rate = rate_of_next_step(context);
  numbers.learning_rate_bits.store(rate ? std::bit_cast<std::uint64_t>(*rate) : TrainingNumbers::no_number,
                                   std::memory_order_relaxed);
}

void note_metrics(const MetricValues& values) {
  auto told = std::make_unique<NamedNumbers>();
  for (const auto& [name, value] : values)
    if (const auto number = number_of(value)) told->emplace_back(name, *number);
  const std::unique_ptr<NamedNumbers> unread(process().training.metrics.exchange(told.release()));
}

void note_stage(std::uint32_t stage) { process().training.stage.store(stage, std::memory_order_relaxed); }

cluster::ProcessCounters times_of_main_thread() {
  const auto spent = process().activity.clock.spent(real_clock().now());
  cluster::ProcessCounters times{.waiting_us = microseconds(spent.at(StateClock::waiting))};
  for (std::size_t phase = 0; phase < cluster::work_phase_count; ++phase)
    times.own_us.at(phase) = microseconds(spent.at(first_phase_state + phase));
  return times;
}

cluster::ProcessStats numbers_of_training() {
  TrainingNumbers& numbers = process().training;
  const std::unique_ptr<NamedNumbers> news(numbers.metrics.exchange(nullptr));
  if (news) numbers.last_metrics = *news;
  cluster::ProcessStats stats{.counters = times_of_main_thread(),
                              .loss = number_in(numbers.loss_bits),
                              .learning_rate = number_in(numbers.learning_rate_bits),
                              .stage = numbers.stage.load(std::memory_order_relaxed),
                              .metrics = numbers.last_metrics,
                              .marks = numbers.marks.last()};
  stats.counters.samples = numbers.samples.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace muster::train
