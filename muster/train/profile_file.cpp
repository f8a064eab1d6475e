#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "muster/base/base.h"
#include "muster/base/cores.h"
#include "muster/net/net.h"
#include "muster/nn/nn.h"
#include "muster/train/job.h"
#include "muster/train/profile.h"

namespace muster::train {
namespace {

using nn::Value;

std::int64_t nanoseconds(TimePoint time) { return Duration(time.time_since_epoch()).count(); }

std::string_view name_of_phase(std::uint32_t index) {
  return cluster::phase_name(static_cast<cluster::WorkPhase>(index));
}

// Work in a nanosecond of the fastest of five runs.
template <class Run>
double best_rate(double work, const Run& run) {
  Duration best = Duration::max();
  for (int i = 0; i < 5; ++i) {
    const TimePoint begin = real_clock().now();
    run();
    best = std::min(best, real_clock().now() - begin);
  }
  return work / static_cast<double>(std::max(best, Duration(1)).count());
}

// What this process reaches now: GFLOP/s of a large product, GB/s of a copy past the caches.
nlohmann::json peaks() {
  constexpr std::int64_t side = 768, floats = 8 << 20;
  const Value square = Tensor::zeros(DType::float32, {side, side});
  const Value many = Tensor::zeros(DType::float32, {floats});
  return {best_rate(2.0 * side * side * side, [&] { nn::ops::matmul(square, square); }),
          best_rate(2.0 * sizeof(float) * floats, [&] { nn::ops::neg(many); })};
}

// All but the spans, of which there may be a million.
nlohmann::json head_of(const Profile& profile) {
  nlohmann::json phases = nlohmann::json::object(), worked = nlohmann::json::object(),
                 ops = nlohmann::json::array(), largest = nlohmann::json::array();
  for (std::uint32_t i = 0; i < Profile::phases_count; ++i) {
    phases[std::string(name_of_phase(i))] = profile.phases.at(i).count();
    worked[std::string(name_of_phase(i))] = profile.worked.at(i).count();
  }
  for (const Profile::Op& op : profile.ops)
    ops.push_back({op.what, op.op, op.talks, op.calls, op.total.count(), op.flops, op.bytes, op.held_bytes,
                   op.elsewhere.count()});
  for (const auto& held : profile.peak.largest)
    largest.push_back(nlohmann::json::array({held.what, held.bytes}));
  return {{"rank", rank()},
          {"host", net::host_name()},
          {"begin", nanoseconds(profile.begin)},
          {"end", nanoseconds(profile.end)},
          {"phases", std::move(phases)},
          {"worked", std::move(worked)},
          {"threads", threads()},
          {"cores", allowed_cores()},
          {"ops", std::move(ops)},
          {"dropped", profile.dropped},
          {"peak",
           {profile.peak.what, profile.peak.held_bytes, profile.peak.parameters_bytes, std::move(largest)}},
          {"peaks", peaks()}};
}

std::string spans_text(const Profile& profile, bool of_ops) {
  std::string text = "[";
  for (const Profile::Span& span : profile.spans) {
    if (span.is_op != of_ops) continue;
    if (text.size() > 1) text += ',';
    const auto times = fmt::format("{},{}", nanoseconds(span.begin), nanoseconds(span.end));
    if (of_ops)
      fmt::format_to(std::back_inserter(text), "[{},{}{}]", span.index, times, span.is_elsewhere ? ",1" : "");
    else
      fmt::format_to(std::back_inserter(text), "[\"{}\",{}]", name_of_phase(span.index), times);
  }
  return text + "]";
}

}  // namespace

Result<std::string> stop_profile(const std::string& folder) {
  MUSTER_TRY(const Profile profile, stop_profile());
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(Code::io, fmt::format("cannot make folder '{}': {}", folder, error.message()));
  std::string text = head_of(profile).dump();
  text.pop_back();
  text += fmt::format(R"(,"op_spans":{},"phase_spans":{}}})", spans_text(profile, true),
                      spans_text(profile, false));
  std::string path = fmt::format("{}/rank{}.json", folder, rank());
  MUSTER_TRY_VOID(real_files().write(path, std::as_bytes(std::span(text))));
  return path;
}

}  // namespace muster::train
