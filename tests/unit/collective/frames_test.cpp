#include "muster/collective/frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "muster/collective/hello.h"

namespace muster::collective {
namespace {

using testing::HasSubstr;

constexpr FrameSource source{.origin = {.epoch = 3, .job_id = 9}, .sequence = 4};

// A frame's checksum is made when its turn comes: the first one does not wait for that of the others.
TEST(Frames, GoOneAfterAnother) {
  std::vector<std::byte> first(FrameList::enough_bytes, std::byte{1}), second(5000, std::byte{2});
  FrameList frames;
  frames.add_outgoing(FrameType::data, first, source);
  frames.add_outgoing(FrameType::data, second, source);
  std::array<iovec, FrameList::piece_limit> storage;
  const auto at_once = frames.rest(storage);
  ASSERT_EQ(at_once.size(), 2U);
  EXPECT_EQ(at_once[1].iov_base, first.data());
  second[77] = std::byte{3};
  for (std::size_t left = net::frame_header_size_bytes + first.size(); left > 0;) left -= frames.take(left);
  ASSERT_EQ(frames.rest(storage).size(), 2U);
  const auto header = net::decode_header(frames.header(1), payload_limit_bytes);
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->sequence, 4U);
  EXPECT_EQ(header->epoch, 3U);
  EXPECT_TRUE(net::check_payload(*header, second));
}

TEST(Frames, ThatAreSmallGoTogether) {
  const std::vector<std::byte> little(64);
  FrameList frames;
  for (int i = 0; i < 3; ++i) frames.add_outgoing(FrameType::data, little, source);
  std::array<iovec, FrameList::piece_limit> storage;
  EXPECT_EQ(frames.rest(storage).size(), 6U);
}

// Its calls would have other frames.
TEST(Frames, TheHelloOfAnOlderProtocolIsRefused) {
  const auto bytes = net::encode_frame({.type = 0x0207, .epoch = 1, .job_id = 7},
                                       std::array<std::byte, hello_payload_size_bytes>{});
  const auto hello = decode_hello(std::span(bytes).first<hello_size_bytes>());
  ASSERT_FALSE(hello);
  EXPECT_THAT(hello.error().message, HasSubstr("type 0x0207 is no hello"));
}

}  // namespace
}  // namespace muster::collective
