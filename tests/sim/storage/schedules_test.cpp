#include "tests/sim/storage/schedules.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace muster::train::sim {
namespace {

using ::testing::IsEmpty;

// A million of them: ./dev sim --only storage
TEST(StorageSchedules, LoseNothingWhateverGoesWrong) {
  ::setenv("MUSTER_LOG", "off", 0);
  constexpr std::uint64_t count = 1000;
  std::uint64_t ended_well = 0, refused = 0, saved = 0;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const RunResult result = run_schedule(seed);
    ASSERT_THAT(result.broken, IsEmpty()) << "seed " << seed << '\n'
                                          << fmt::format("{}", fmt::join(explain(seed), "\n"));
    ended_well += result.ended_well;
    refused += result.was_refused;
    saved += result.saved;
  }
  fmt::print("{} schedules: {} ended well, {} were refused, {} points\n", count, ended_well, refused, saved);
  EXPECT_EQ(ended_well + refused, count);
  EXPECT_GT(ended_well, count * 7 / 10);
  EXPECT_GT(saved, count * 10);
}

// 1529: a point that all went back to was forgotten for an older one, and removed while one disk was full.
// 1639: whoever lacked the end of a call, but had the record of it, was waited for without end.
// 2729, 11512, 12868: a stale incarnation that was stopped before it had opened its folder took it from its
// successor. 7642, 9915, 19070, 21684: whoever came back without an end that no disk had taken never met the
// others. 1321, 8897, 19139: a folder that had lost earlier ends was no way on, whatever later points were in
// it. 42009: an end that all had agreed on was read once more, from a folder that was lost by then. 18156: a
// record was read, and told of, that a loss of power took. 31223: who knew of a point of call 2 that all had
// did not say so in call 0, which began anew. 274128: all went over the end of call 0, and forgot what they
// all had of call 1. 272384, 354953, 408229: a point that had been told of once, to some, was no common one
// for all. 283174: a stale incarnation kept a point in a folder that its successor had seen, and could not
// take. 254706: a disk that could not be written had an older common point than all had gone back to. 420458:
// a folder was lost in the middle of an exchange of names in it. 259174, 435351: a stale incarnation that
// came too late saw its successor's line first, and then took the folder from it. 38908: whoever had just
// been given a point still counted as one that stands at the start of the call. 747057: the record of an end
// that was damaged hid the steps before it from who could take them. 950382: that all had the last step of a
// call was not said at its end, and so one let it go. 711319, 911833, 35, 475: whoever had lost its folder
// began anew where nobody knew what all had had. 91669: a call that was begun while a disk was full could
// never be begun again. 233065: a folder that had vanished was spoken of as if it were there. 994438: a disk
// that was well again by the second round of an agreement was not looked at again.
TEST(StorageSchedules, FindNoMoreWhatTheyHaveFound) {
  ::setenv("MUSTER_LOG", "off", 0);
  for (const std::uint64_t seed :
       {1529,   1610,   1639,   2729,   11512,  12868,  7642,   9915,   19070,  21684,  1321,   8897,
        19139,  42009,  18156,  31223,  274128, 38908,  272384, 354953, 408229, 283174, 254706, 420458,
        259174, 435351, 994438, 747057, 950382, 711319, 911833, 35,     475,    91669,  233065})
    EXPECT_THAT(run_schedule(seed).broken, IsEmpty()) << "seed " << seed;
}

}  // namespace
}  // namespace muster::train::sim
