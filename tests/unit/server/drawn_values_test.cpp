#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "muster/base/base.h"
#include "muster/server/drawn_values.h"

namespace muster::server {
namespace {

template <class Number>
std::vector<float> one_by_one(const DrawnFrom& from, std::size_t count, const Number& number) {
  const RandomStream stream(from.seed, from.stream);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(number(stream, from.index + i));
  return values;
}

std::size_t different_bits(const std::vector<float>& a, const std::vector<float>& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += std::memcmp(&a[i], &b[i], sizeof(float)) != 0 ? 1 : 0;
  return count;
}

// So many that some lie so near to the middle between two floats that vectors cannot tell where they round
// to.
TEST(DrawnValues, HaveTheBitsOfTheStream) {
  for (const auto& [scale, mean] : {std::pair(0.01, 0.0), std::pair(2.0, -1.0), std::pair(-0.3, 1000.0),
                                    std::pair(0.0, 0.5), std::pair(1e-30, 0.0), std::pair(1e-41, -0.0)}) {
    const DrawnFrom from{.seed = 7, .stream = 0xFEDCBA9876543210, .index = 0xFFFFFFF0};
    std::vector<float> values(500'001);
    draw_normal(from, scale, mean, values);
    const auto expected =
        one_by_one(from, values.size(), [&, scale = scale, mean = mean](const RandomStream& stream, auto i) {
          return mean + scale * stream.normal(i);
        });
    EXPECT_EQ(different_bits(values, expected), 0) << scale << " " << mean;
  }
}

TEST(DrawnValues, BeginAtAnyNumberAndEndAtAny) {
  for (std::uint64_t index = 0; index < 20; ++index)
    for (std::size_t count = 0; count < 40; ++count) {
      const DrawnFrom from{.seed = std::uint64_t{1} << 63, .stream = index, .index = index};
      std::vector<float> normal(count), uniform(count);
      draw_normal(from, 1, 0, normal);
      draw_uniform(from, 0.07, uniform);
      ASSERT_EQ(normal, one_by_one(from, count, [](const auto& stream, auto i) { return stream.normal(i); }));
      ASSERT_EQ(uniform, one_by_one(from, count, [](const auto& stream, auto i) {
                  return 0.07 * (2 * stream.uniform(i) - 1);
                }));
    }
}

}  // namespace
}  // namespace muster::server
