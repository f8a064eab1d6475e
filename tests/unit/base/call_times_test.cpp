// The table of call times: what is read between its sizes, and its text.
#include "muster/base/call_times.h"

#include <gtest/gtest.h>

#include "mentions.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

const CallTimes table{.workers = 4,
                      .measured_at_s = 1'700'000'000,
                      .entries = {{CallKind::all_reduce, 2, 1000, 10us},
                                  {CallKind::all_reduce, 2, 3000, 30us},
                                  {CallKind::all_reduce, 2, 4000, 50us},
                                  {CallKind::all_reduce, 4, 1000, 70us},
                                  {CallKind::all_gather, 4, 1000, 90us},
                                  {CallKind::all_gather, 4, 2000, 80us}}};

TEST(CallTimes, AreReadAlongTheLinesBetweenWhatWasMeasured) {
  EXPECT_EQ(table.time_of(CallKind::all_reduce, 2, 8), 10us);  // not below the smallest
  EXPECT_EQ(table.time_of(CallKind::all_reduce, 2, 1000), 10us);
  EXPECT_EQ(table.time_of(CallKind::all_reduce, 2, 2000), 20us);
  EXPECT_EQ(table.time_of(CallKind::all_reduce, 2, 3500), 40us);
  EXPECT_EQ(table.time_of(CallKind::all_reduce, 2, 6000), 90us);  // on along the last line
}

TEST(CallTimes, OfOneSizeAloneAreThatOfEverySize) {
  EXPECT_EQ(table.time_of(CallKind::all_reduce, 4, 1 << 20), 70us);
}

TEST(CallTimes, DoNotFallWithTheSize) { EXPECT_EQ(table.time_of(CallKind::all_gather, 4, 9000), 80us); }

TEST(CallTimes, ThatWereNotMeasuredAreNotGuessed) {
  EXPECT_FALSE(table.time_of(CallKind::all_reduce, 8, 1000));
  EXPECT_FALSE(table.time_of(CallKind::all_to_all, 2, 1000));
}

TEST(CallTimes, AreTheSameBehindTheirText) {
  const auto read = call_times_from(to_text(table));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, table);
}

TEST(CallTimes, OfAnotherFileAreAnErrorWithTheLine) {
  for (const char* text : {"", "muster call times 2\nworkers 2 0\n", "muster call times 1\n"})
    EXPECT_FALSE(call_times_from(text)) << text;
  for (const char* line : {"all_reduce 2 x 3", "all_reduce 2 1", "all_reduce 2 1 2 3", "broadcast 2 1 3",
                           "all_reduce 2 1 -3", "workers 2"}) {
    const auto read = call_times_from(std::string("muster call times 1\nworkers 2 0\n") + line + "\n");
    ASSERT_FALSE(read) << line;
    EXPECT_THAT(read.error().message, Mentions(line));
  }
}

}  // namespace
}  // namespace muster
