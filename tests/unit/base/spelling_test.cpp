#include <gtest/gtest.h>

#include <array>
#include <string>

#include "muster/base/base.h"

namespace muster {
namespace {

constexpr std::array<std::string_view, 3> names{"MS_ROLE", "MS_WORKER_NUM", "MS_NODE_ID"};

TEST(Spelling, FindsTheNameThatIsTwoLettersOffAtMost) {
  EXPECT_EQ(nearest_name("MS_ROEL", names), "MS_ROLE") << "swapped with a neighbour: one";
  EXPECT_EQ(nearest_name("MS_WORKERS_NUM", names), "MS_WORKER_NUM");
  EXPECT_EQ(nearest_name("MS_ND_ID", names), "MS_NODE_ID");
  EXPECT_EQ(nearest_name("MS_N_ID", names), std::nullopt);
}

TEST(Spelling, PrefersTheNearerName) {
  const std::array<std::string_view, 2> both{"abcd", "abce"};
  EXPECT_EQ(nearest_name("abce", both), "abce");
}

TEST(Spelling, FindsNothingAmongNoNamesOrForAVeryLongOne) {
  EXPECT_EQ(nearest_name("MS_ROLE", {}), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(65, 'a'), std::array<std::string_view, 1>{std::string_view("a")}),
            std::nullopt);
}

}  // namespace
}  // namespace muster
