#include "muster/checkpoint/write_throttle.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>
#include <vector>

namespace muster::checkpoint {
namespace {

using std::chrono::milliseconds;

int niceness() { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); }

int niceness_of_a_piece(std::size_t bytes) {
  int found = -1;
  const std::vector<std::byte> content(bytes);
  EXPECT_TRUE(WriteThrottle::in_pieces(content, [&](std::span<const std::byte>) -> Result<> {
    found = niceness();
    return {};
  }));
  return found;
}

void write(std::size_t bytes) { (void)niceness_of_a_piece(bytes); }

// What runs there is paced, not the thread of the test.
template <typename Work>
void on_another_thread(Work work) {
  std::thread(work).join();
}

TEST(WriteThrottle, SpreadsPiecesOverTheTimeThatTheyMayTake) {
  on_another_thread([] {
    WriteThrottle throttle(1e6, real_clock());
    const TimePoint begin = real_clock().now();
    const WriteThrottle::Work work(throttle, 60'000);
    write(20'000);
    write(40'000);
    EXPECT_GE(real_clock().now() - begin, milliseconds(20)) << "a third of 60 ms";
  });
}

// Each of those below would take a day.
constexpr double bytes_per_day = 1.0 / 86'400;

TEST(WriteThrottle, LetsTheFirstPieceGoAtOnce) {
  on_another_thread([] {
    WriteThrottle throttle(bytes_per_day, real_clock());
    const WriteThrottle::Work work(throttle, 1);
    write(1);
  });
}

TEST(WriteThrottle, RestsNoLongerOnceSomebodyWaits) {
  WriteThrottle throttle(bytes_per_day, real_clock());
  std::thread writer([&] {
    const WriteThrottle::Work work(throttle, 2);
    write(1);
    write(1);
  });
  const WriteThrottle::Flush flush(throttle);
  writer.join();
}

TEST(WriteThrottle, RestsAgainOnceNobodyWaits) {
  on_another_thread([] {
    WriteThrottle throttle(1e6, real_clock());
    { const WriteThrottle::Flush over(throttle); }
    const TimePoint begin = real_clock().now();
    const WriteThrottle::Work work(throttle, 20'000);
    write(10'000);
    write(10'000);
    EXPECT_GE(real_clock().now() - begin, milliseconds(10));
  });
}

TEST(WriteThrottle, IsSuchThatWorkIsDoneBeforeTheNextComes) {
  on_another_thread([] {
    WriteThrottle throttle(bytes_per_day, real_clock());
    { const WriteThrottle::Work first(throttle, 2); }
    const WriteThrottle::Work second(throttle, 2);  // so soon after the first, it has next to no time
    write(1);
    write(1);
  });
}

TEST(WriteThrottle, IsOnlyForThoseThatWorkAtOne) {
  on_another_thread([] {
    WriteThrottle throttle(bytes_per_day, real_clock());
    { const WriteThrottle::Work over(throttle, 2); }
    write(1);
    write(1);
  });
}

constexpr std::size_t large = std::size_t{2} << 20;

TEST(WriteThrottle, LetsOtherThreadsGoFirstWhereThereIsTime) {
  on_another_thread([] {
    WriteThrottle throttle(bytes_per_day, real_clock());
    const WriteThrottle::Work work(throttle, 2 * large);
    EXPECT_EQ(niceness_of_a_piece(large), 19);
    const WriteThrottle::Flush flush(throttle);
    EXPECT_EQ(niceness_of_a_piece(large), niceness()) << "somebody waits";
  });
}

TEST(WriteThrottle, DoesWhatIsSmallItself) {
  on_another_thread([] {
    WriteThrottle throttle(bytes_per_day, real_clock());
    const WriteThrottle::Work work(throttle, 1000);
    EXPECT_EQ(niceness_of_a_piece(1000), niceness());
  });
}

TEST(WriteThrottle, YieldsNoMoreWhenTheWorkIsLate) {
  on_another_thread([] {
    WriteThrottle throttle(1e15, real_clock());
    const WriteThrottle::Work work(throttle, large);  // to be done in 2 ns
    EXPECT_EQ(niceness_of_a_piece(large), niceness());
  });
}

TEST(WriteThrottle, HandsOutLargeContentInPiecesThatEndWherePagesDo) {
  const std::vector<std::byte> memory((std::size_t{9} << 20) + 5000);
  for (const std::size_t begin : {std::size_t{0}, std::size_t{1}, std::size_t{4095}}) {
    const auto content = std::span(memory).subspan(begin);
    const std::byte* end = content.data();
    EXPECT_TRUE(WriteThrottle::in_pieces(content, [&](std::span<const std::byte> piece) -> Result<> {
      EXPECT_EQ(piece.data(), end);
      end = piece.data() + piece.size();
      const bool is_last = end == content.data() + content.size();
      EXPECT_TRUE(is_last || reinterpret_cast<std::uintptr_t>(end) % 4096 == 0);
      return {};
    }));
    EXPECT_EQ(end, content.data() + content.size());
  }
}

TEST(WriteThrottle, StopsAtTheFirstError) {
  on_another_thread([] {
    WriteThrottle throttle(1e9, real_clock());
    const WriteThrottle::Work work(throttle, 5 * large);
    const std::vector<std::byte> content(5 * large);
    int calls = 0;
    const auto done = WriteThrottle::in_pieces(content, [&](std::span<const std::byte>) -> Result<> {
      ++calls;
      return fail(Code::io, "the disk is full");
    });
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, "the disk is full");
    EXPECT_EQ(calls, 1);
  });
}

}  // namespace
}  // namespace muster::checkpoint
