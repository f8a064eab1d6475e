#include "muster/server/start_progress.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace muster::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

TEST(StartProgress, TellsEachFewSecondsHowFarItIs) {
  ManualClock clock;
  std::vector<std::string> told;
  StartProgress progress(
      "server 0 has read", 4 * gib, [&](const std::string& text) { told.push_back(text); }, clock);
  progress.add(gib);
  clock.advance(std::chrono::seconds(6));
  progress.add(gib / 2);
  progress.add(gib / 2);
  clock.advance(std::chrono::seconds(6));
  progress.add(gib);
  clock.advance(std::chrono::seconds(6));
  progress.add(gib);  // it is done, and serves
  EXPECT_THAT(told, ElementsAre(HasSubstr("server 0 has read 1.50 of 4.00 GiB"), HasSubstr("3.00")));
}

}  // namespace
}  // namespace muster::server
