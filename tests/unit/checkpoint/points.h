// Recovery points for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <ostream>

#include "tests/unit/checkpoint/memory_storage.h"

namespace muster::checkpoint {

inline void PrintTo(const PointId& id, std::ostream* out) { *out << to_string(id); }

}  // namespace muster::checkpoint

namespace muster::checkpoint::testing {

inline constexpr const char* job = "0123456789abcdef";
inline const std::string run_folder = "/recovery/job-0123456789abcdef/worker_1";

inline PointId start_of(std::uint64_t call) { return {call, PointId::Moment::start, 0}; }
inline PointId step(std::uint64_t call, std::uint64_t number) {
  return {call, PointId::Moment::step, number};
}
inline PointId end_of(std::uint64_t call) { return {call, PointId::Moment::end, 0}; }

inline RunOptions options_in(Storage& storage) {
  return {.folder = "/recovery", .job = job, .world_size = 4, .rank = 1, .storage = &storage, .patience = {}};
}

inline RunStore open_store(const RunOptions& options) {
  auto store = RunStore::open(options);
  MUSTER_CHECK(store.has_value(), store ? "" : store.error().message);
  return std::move(*store);
}

inline RunStore open_store(Storage& storage) { return open_store(options_in(storage)); }

// What opening says; "opened" when nothing is wrong.
inline std::string refusal(const RunOptions& options) {
  const auto store = RunStore::open(options);
  return store ? "opened" : store.error().message;
}

// Tensors of several dtypes and sections, all of them made from `value`.
inline Point point(PointId id, float value) {
  const std::vector<float> weight{value, value + 1, value + 2, value + 3, value + 4, value + 5};
  return {.id = id,
          .tensors = {{"mask", Tensor::from<bool>(std::array{true, false, true}, {3})},
                      {"fc.weight", Tensor::from<float>(weight, {2, 3})},
                      {"none", Tensor(DType::float32, {0, 4})},
                      {"global_step", Tensor::scalar(static_cast<std::int64_t>(id.step))}},
          .state = {{"callback 0 LossMonitor", "{\"seen\": " + std::to_string(value) + "}"},
                    {"empty", ""},
                    {"training", std::string("any \0 \xFF bytes", 12)}}};
}

inline void expect_equal(const Point& found, const Point& wanted) {
  EXPECT_EQ(found.id, wanted.id);
  EXPECT_EQ(found.state, wanted.state);
  ASSERT_EQ(found.tensors.size(), wanted.tensors.size());
  for (std::size_t i = 0; i < found.tensors.size(); ++i) {
    const Tensor& value = found.tensors[i].value;
    const Tensor& other = wanted.tensors[i].value;
    EXPECT_EQ(found.tensors[i].name, wanted.tensors[i].name);
    EXPECT_EQ(value.dtype(), other.dtype());
    ASSERT_EQ(value.shape(), other.shape());
    EXPECT_EQ(std::memcmp(value.bytes(), other.bytes(), value.size_bytes()), 0) << wanted.tensors[i].name;
  }
}

}  // namespace muster::checkpoint::testing
