#include "muster/launch/memory_events.h"

#include <gmock/gmock.h>

namespace muster::launch {
namespace {
namespace memory_events_test {

using ::testing::AllOf;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Optional;

TEST(MemoryEvents, AreReadFromTheFileOfAControlGroup) {
  EXPECT_THAT(out_of_memory_kills("low 0\nhigh 0\nmax 7\noom 4\noom_kill 3\noom_group_kill 0\n"),
              Optional(3));
  EXPECT_THAT(out_of_memory_kills("low 0\n"), Eq(std::nullopt));
  EXPECT_THAT(out_of_memory_kills("oom_kill x"), Eq(std::nullopt));
  EXPECT_THAT(out_of_memory_kills(""), Eq(std::nullopt));
}

TEST(MemoryHint, SaysWhatIsKnown) {
  EXPECT_THAT(memory_hint("worker 1", std::nullopt, 831'488),
              AllOf(HasSubstr("worker 1"), HasSubstr("dmesg"), HasSubstr("812 MiB")));
  EXPECT_THAT(memory_hint("worker 1", std::nullopt, 0), AllOf(HasSubstr("dmesg"), Not(HasSubstr("MiB"))));
  EXPECT_THAT(memory_hint("worker 1", true, 831'488), AllOf(HasSubstr("batches"), Not(HasSubstr("dmesg"))));
  EXPECT_THAT(memory_hint("worker 1", false, 831'488), IsEmpty());
}

}  // namespace memory_events_test
}  // namespace
}  // namespace muster::launch
