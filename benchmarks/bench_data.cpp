// The image pipeline of seed 002: crop, flip, resize to 224 x 224, rescale, normalize, channels first,
// batches of
// 32. Prints pictures a second.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "muster/data/data.h"

using namespace muster;

namespace {

data::Dataset pipeline(const std::string& folder) {
  return data::cifar10({.folder = folder, .usage = "train"})
      .map({data::type_cast(DType::int32)}, {"label"})
      .map({data::random_crop({.size = {32, 32}, .padding = {4, 4, 4, 4}}), data::random_horizontal_flip(),
            data::resize({224, 224}), data::rescale(1.0F / 255.0F, 0.0F),
            data::normalize({.mean = {0.4465F, 0.4822F, 0.4914F}, .std = {0.2010F, 0.1994F, 0.2023F}}),
            data::hwc2chw()},
           {"image"})
      .shuffle(10)
      .batch(32, true)
      .repeat();
}

// Whether a batch is what it should be: its shape, and values around 0 that are not all alike.
Result<> check(const data::Item& batch) {
  if (batch[0].shape() != Shape{32, 3, 224, 224}) return fail(Code::internal, "a batch has a wrong shape");
  double sum = 0, squares = 0;
  for (const float value : batch[0].span<float>()) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  const auto count = static_cast<double>(batch[0].elements());
  const double mean = sum / count, deviation = std::sqrt(squares / count - mean * mean);
  if (!(std::abs(mean) < 3 && deviation > 0.1 && deviation < 3))
    return fail(Code::internal, fmt::format("the pictures' mean is {}, their deviation {}", mean, deviation));
  return {};
}

Result<double> pictures_per_second(const std::string& folder, int workers, int batches) {
  MUSTER_TRY(auto iterator, pipeline(folder).iterate({.seed = 1, .workers = workers}));
  for (int warm = 0; warm < 16; ++warm) {
    MUSTER_TRY(const auto batch, iterator.next());
    MUSTER_TRY_VOID(check(*batch));
  }
  const TimePoint begin = real_clock().now();
  for (int taken = 0; taken < batches; ++taken) MUSTER_TRY_VOID(iterator.next());
  const std::chrono::duration<double> seconds = real_clock().now() - begin;
  return 32 * batches / seconds.count();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Pictures a second through the pipeline of seed 002.");
  std::string folder;
  int workers = 0, batches = 400;
  app.add_option("folder", folder, "data_batch_*.bin (muster data synthetic-cifar10)")->required();
  app.add_option("--workers", workers, "threads; 0: as many as processors")->capture_default_str();
  app.add_option("--batches", batches, "of 32 pictures")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto speed = pictures_per_second(folder, workers, batches);
  if (!speed) {
    fmt::print(stderr, "bench_data: {}\n", speed.error().message);
    return 1;
  }
  fmt::print("pictures/s {:.1f}\n", *speed);
  return 0;
}
