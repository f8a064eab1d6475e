#include "muster/launch/measure.h"

#include <algorithm>
#include <string>
#include <vector>

namespace muster::launch {
namespace {

using namespace std::chrono_literals;
using cluster::message::Echo;

constexpr std::size_t round_trips = 20;
constexpr Duration round_trips_limit = 1s;
constexpr Duration answer_limit = 2s;
constexpr std::size_t filling_bytes = 32 << 10;
constexpr std::size_t fillings_max = 64;
constexpr std::size_t in_flight_max = 4;
constexpr Duration fillings_limit = 1s;

std::int64_t wall_clock_us() {
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

Result<Echo> hear_echo(cluster::Visit& visit, std::uint64_t number) {
  MUSTER_TRY(cluster::Message heard, visit.hear(answer_limit));
  auto* echo = std::get_if<Echo>(&heard.body);
  if (echo == nullptr || echo->number != number)
    return fail(Code::corrupt, "something else than was asked for is answered");
  return std::move(*echo);
}

Result<> measure_round_trips(cluster::Visit& visit, const Clock& clock, Way& way) {
  std::vector<Duration> times;
  const TimePoint start = clock.now();
  for (std::uint64_t number = 0; number < round_trips; ++number) {
    const TimePoint sent = clock.now();
    const std::int64_t sent_us = wall_clock_us();
    visit.say(Echo{.number = number});
    MUSTER_TRY(const Echo echo, hear_echo(visit, number));
    const Duration time = clock.now() - sent;
    const auto there = static_cast<std::int64_t>(echo.wall_clock_us);
    // The quickest answer says the other side's time most exactly: it was read half a round trip ago.
    if (times.empty() || time < *std::min_element(times.begin(), times.end())) {
      const auto half = std::chrono::duration_cast<std::chrono::microseconds>(time / 2);
      way.clock_ahead = std::chrono::microseconds(there - sent_us) - half;
    }
    times.push_back(time);
    if (clock.now() - start > round_trips_limit) break;
  }
  std::sort(times.begin(), times.end());
  way.round_trip = times[times.size() / 2];
  way.slowest = times.back();
  return {};
}

// Some are always under way, so that the round-trip time hides.
Result<> measure_bandwidth(cluster::Visit& visit, const Clock& clock, Way& way) {
  const std::string filling(filling_bytes, 'm');
  const TimePoint start = clock.now();
  std::uint64_t sent = 0;
  std::uint64_t heard = 0;
  TimePoint now = start;
  bool sends = true;
  while (sends || heard < sent) {
    while (sends && sent - heard < in_flight_max) {
      visit.say(Echo{.number = round_trips + sent++, .filling = filling});
      sends = sent < fillings_max && now - start < fillings_limit;
    }
    MUSTER_TRY_VOID(hear_echo(visit, round_trips + heard++));
    now = clock.now();
    sends = sends && now - start < fillings_limit;
  }
  const double time_s = std::max(std::chrono::duration<double>(now - start).count(), 1e-6);
  way.bits_per_second = 8.0 * static_cast<double>(heard * filling_bytes) / time_s;
  return {};
}

}  // namespace

Result<Way> measure(cluster::Visit& visit, const Clock& clock) {
  Way way;
  MUSTER_TRY_VOID(measure_round_trips(visit, clock, way));
  MUSTER_TRY_VOID(measure_bandwidth(visit, clock, way));
  return way;
}

}  // namespace muster::launch
