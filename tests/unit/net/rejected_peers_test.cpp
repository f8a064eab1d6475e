#include "muster/net/rejected_peers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::net {
namespace {
namespace rejected_peers_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t limit = 1000;

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string error_of(std::span<const std::byte> bytes,
                     const std::function<Result<>(const Frame&)>& may_begin = {}) {
  const auto looked = look_at_first_frame(bytes, limit, may_begin);
  return looked ? "none" : looked.error().message;
}

TEST(RejectedPeerTally, CountsThoseWhoAreAlike) {
  RejectedPeerTally tally;
  EXPECT_TRUE(tally.empty());
  tally.add("10.0.0.1", "garbage");
  tally.add("10.0.0.2", "garbage");
  tally.add("10.0.0.1", "garbage");
  EXPECT_FALSE(tally.empty());
  EXPECT_THAT(tally.take(),
              ElementsAre(RejectedPeer{"10.0.0.1", "garbage", 2}, RejectedPeer{"10.0.0.2", "garbage", 1}));
  EXPECT_TRUE(tally.empty());
  EXPECT_THAT(tally.take(), IsEmpty());
}

TEST(RejectedPeerTally, HoldsFewKindsHoweverManyCome) {
  RejectedPeerTally tally;
  for (int i = 0; i < 1000; ++i) tally.add("10.0.0." + std::to_string(i), "garbage");
  const auto taken = tally.take();
  ASSERT_EQ(taken.size(), RejectedPeerTally::kinds_max + 1);
  EXPECT_EQ(taken.back().ip, "more addresses");
  EXPECT_EQ(taken.back().count, 1000 - RejectedPeerTally::kinds_max);
  tally.add("10.0.0.999", "garbage");
  EXPECT_THAT(tally.take(), ElementsAre(RejectedPeer{"10.0.0.999", "garbage", 1})) << "room again";
}

TEST(FirstFrame, IsTakenWhenItIsWholeAndSound) {
  const auto frame = encode_frame({.type = 7}, bytes_of("payload"));
  std::vector<std::uint16_t> asked;
  const auto note = [&](const Frame& begun) -> Result<> {
    asked.push_back(begun.header.type);
    EXPECT_EQ(begun.payload, bytes_of("payload"));
    return {};
  };
  for (std::size_t size = 0; size < frame.size(); ++size)
    EXPECT_EQ(look_at_first_frame(std::span(frame).first(size), limit, note).value(), false) << size;
  EXPECT_THAT(asked, IsEmpty());
  EXPECT_EQ(look_at_first_frame(frame, limit, note).value(), true);
  auto more = frame;
  more.push_back(std::byte{1});
  EXPECT_EQ(look_at_first_frame(more, limit, note).value(), true) << "what follows is not looked at";
  EXPECT_THAT(asked, ElementsAre(7, 7));
}

TEST(FirstFrame, IsRefusedAtTheFirstByteThatTells) {
  EXPECT_THAT(error_of(bytes_of("G")), HasSubstr("the first bytes are not MSTR"));
  EXPECT_THAT(error_of(bytes_of("MSTx")), HasSubstr("the first bytes are not MSTR"));
  auto frame = encode_frame({.type = 7}, bytes_of("payload"));
  frame.back() ^= std::byte{1};
  EXPECT_THAT(error_of(frame), HasSubstr("does not match its checksum"));
  frame[20] ^= std::byte{1};
  EXPECT_THAT(error_of(std::span(frame).first(frame_header_size_bytes)), HasSubstr("header does not match"));
  EXPECT_THAT(error_of(encode_header({.type = 7, .payload_size_bytes = limit + 1})),
              HasSubstr("over the limit of 1000"));
}

TEST(FirstFrame, IsRefusedWhereItMayNotBeTheFirst) {
  const auto refuse = [](const Frame&) -> Result<> { return fail(Code::corrupt, "no greeting"); };
  EXPECT_EQ(error_of(encode_frame({.type = 7}, {}), refuse), "no greeting");
}

}  // namespace rejected_peers_test
}  // namespace
}  // namespace muster::net
