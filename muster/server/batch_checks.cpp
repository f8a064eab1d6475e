#include "muster/server/batch_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "muster/server/wire.h"

namespace muster::server {
namespace {

// The first number that is none, if there is one.
const float* find_nan(std::span<const float> values) {
  float sum = 0;  // stays 0 as long as all are finite: quicker than a look at each
  for (const float value : values) sum += value * 0.0F;
  if (sum == 0) return nullptr;
  const auto found =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  return found == values.end() ? nullptr : &*found;
}

}  // namespace

Result<> check_ids(const TableSpec& spec, std::span<const std::uint64_t> ids) {
  if (spec.sharding == Sharding::hash) return {};
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] >= spec.rows)
      return fail(Code::invalid_argument,
                  fmt::format("table '{}' has rows 0 to {}: id {} at place {} of the batch is "
                              "not among them",
                              spec.name, spec.rows - 1, ids[i], i));
  return {};
}

Result<> check_gradient(const TableSpec& spec, const ParameterClient::Gradient& gradient, std::uint64_t step,
                        std::uint32_t worker) {
  const std::size_t width = gradient.has_states ? whole_width(spec) : spec.width;
  MUSTER_CHECK(gradient.values.size() == gradient.ids.size() * width, "ids and gradients differ in number");
  const float* const bad = find_nan(gradient.values);
  if (bad == nullptr) return {};
  const auto place = static_cast<std::size_t>(bad - gradient.values.data()) / width;
  return fail(
      Code::invalid_argument,
      fmt::format(
          "the gradient of row {} of table '{}' is {} in step {} of worker {}: nothing was pushed; lower "
          "the learning rate, or look for its source with train.detect_anomaly",
          gradient.ids[place], spec.name, *bad, step, worker));
}

Result<> check_size(std::size_t size_bytes, std::string_view what, std::uint64_t step, std::uint32_t server) {
  if (size_bytes <= batch_limit_bytes) return {};
  return fail(
      Code::invalid_argument,
      fmt::format(
          "{} in step {} take {} MiB on parameter server {}, and a message has {} MiB at most: start more "
          "servers, make the batch smaller, or load a table of that size from a checkpoint that was "
          "saved with integrated_save=False, which the servers read themselves",
          what, step, size_bytes >> 20, server, batch_limit_bytes >> 20));
}

}  // namespace muster::server
