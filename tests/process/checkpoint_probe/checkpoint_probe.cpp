// Writes what a job would have left, for tests of the command line, and times saving.
//
//   checkpoint_probe run FOLDER JOB WORLD STEPS [RANK STEP]   from STEP on, RANK computes something else
//   checkpoint_probe hold FOLDER JOB                          saves a point, says so, and stays until its
//   input ends checkpoint_probe file PATH VALUE                          a .ckpt or .safetensors file
//   checkpoint_probe time FOLDER MEGABYTES                    saves, loads and saves to .ckpt, with times
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "muster/checkpoint/checkpoint.h"

namespace {

using namespace muster;
using namespace muster::checkpoint;

[[noreturn]] void die(const std::string& message) {
  fmt::print(stderr, "checkpoint_probe: {}\n", message);
  std::exit(1);
}

template <class T>
T must(Result<T> result) {
  if (!result) die(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

std::vector<Entry> tensors(float value) {
  const std::vector<float> weight{1, 2, value, 4, 5, 6};
  return {{"fc.weight", Tensor::from<float>(weight, {2, 3})},
          {"fc.bias", Tensor::zeros(DType::float32, {2})}};
}

std::uint64_t number(const char* text) { return std::strtoull(text, nullptr, 10); }

void write_run(int argc, char** argv) {
  const std::uint64_t world_size = number(argv[4]), steps = number(argv[5]);
  const std::uint64_t other_rank = argc > 7 ? number(argv[6]) : world_size;
  const std::uint64_t other_step = argc > 7 ? number(argv[7]) : 0;
  for (std::uint64_t rank = 0; rank < world_size; ++rank) {
    auto store =
        must(RunStore::open({.folder = argv[2], .job = argv[3], .world_size = world_size, .rank = rank}));
    must(store.save({.id = {0, PointId::Moment::start, 0}, .tensors = tensors(0)}));
    for (std::uint64_t step = 1; step <= steps; ++step) {
      const float value = static_cast<float>(step) + (rank == other_rank && step >= other_step ? 0.5F : 0.0F);
      must(store.add_step_hash(0, step, hash_bytes(&value, sizeof value)));
      if (step % 10 != 0) continue;
      must(store.save({.id = {0, PointId::Moment::step, step},
                       .tensors = tensors(value),
                       .state = {{"training", fmt::format("{{\"step\": {}}}", step)}}}));
    }
    must(store.finish_call({.call = 0, .kind = "train", .result = ""}));
  }
}

void hold(const std::string& folder, const std::string& job) {
  auto store = must(RunStore::open({.folder = folder, .job = job}));
  must(store.save({.id = {0, PointId::Moment::step, 1}, .tensors = tensors(1)}));
  fmt::print("saved\n");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
}

void write_file(const std::string& path, float value) {
  const auto entries = tensors(value);
  must(path.ends_with(safetensors::extension) ? safetensors::save(path, entries) : save(path, entries));
}

template <class Work>
void time(const char* what, std::size_t bytes, const Work& work) {
  std::vector<double> seconds;
  for (int round = 0; round < 5; ++round) {
    const TimePoint begin = real_clock().now();
    work();
    seconds.push_back(std::chrono::duration<double>(real_clock().now() - begin).count());
  }
  std::sort(seconds.begin(), seconds.end());
  fmt::print("{:<28} {:8.1f} ms {:8.0f} MB/s\n", what, 1e3 * seconds[2],
             static_cast<double>(bytes) / 1e6 / seconds[2]);
}

void time_saving(const std::string& folder, std::size_t bytes) {
  Point point{.id = {0, PointId::Moment::step, 1}};
  for (std::size_t i = 0; i < 10; ++i)
    point.tensors.push_back(
        {fmt::format("weight{}", i), Tensor::zeros(DType::float32, {static_cast<std::int64_t>(bytes / 40)})});
  auto store =
      must(RunStore::open({.folder = folder, .job = "0123456789abcdef", .world_size = 1, .rank = 0}));
  std::uint64_t hash = 0;
  time("XXH3", bytes, [&] {
    for (const Entry& entry : point.tensors)
      hash = hash_bytes(entry.value.bytes(), entry.value.size_bytes(), hash);
  });
  time("copy", bytes, [&] {
    for (const Entry& entry : point.tensors) hash += entry.value.clone().data<float>()[0] != 0;
  });
  time("save a point", bytes, [&] {
    ++point.id.step;
    must(store.save(point));
  });
  time("load a point", bytes, [&] { must(store.load(point.id)); });
  time("save a .ckpt", bytes, [&] { must(save(folder + "/a.ckpt", point.tensors)); });
  time("write the same bytes, synced", bytes, [&] {
    const auto file = must(real_storage().append_to(folder + "/bytes", 0));
    for (const Entry& entry : point.tensors)
      must(file->append({entry.value.bytes(), entry.value.size_bytes()}));
    must(file->sync());
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "run" && argc > 5)
    write_run(argc, argv);
  else if (what == "hold" && argc > 3)
    hold(argv[2], argv[3]);
  else if (what == "file" && argc > 3)
    write_file(argv[2], std::strtof(argv[3], nullptr));
  else if (what == "time" && argc > 3)
    time_saving(argv[2], number(argv[3]) * 1'000'000);
  else
    die("run, hold, file or time");
}
