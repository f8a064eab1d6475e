#include "muster/launch/hosts/agent_messages.h"

#include <gmock/gmock.h>

#include <span>

namespace muster::launch::agent {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;

net::Frame framed(const Message& message) {
  net::FrameDecoder decoder(payload_size_max);
  const std::string bytes = encode(message);
  decoder.append(std::as_bytes(std::span(bytes)));
  return **decoder.next();
}

TEST(AgentMessages, ComeOutAsTheyWentIn) {
  const std::vector<Message> messages = {
      agent::Setup{.folder = "/job"},
      Reserve{.count = 3, .min = 5000, .max = 10000},
      MakeFile{.path = "/run/x", .contents = std::string("a\0b", 3), .is_secret = true},
      Start{.process = 7, .arguments = {"python3", "train.py", ""}, .environment = {{"A", "1"}, {"B", ""}}},
      Start{.arguments = {"python3", "train.py"},
            .preload = Preload{.modules = {"torch"}, .origin = "--preload", .environment = {{"A", "1"}}}},
      Signal{.process = 7, .number = 15},
      Heartbeat{},
      End{},
      Hello{.host = "b", .pid = 4711, .run_folder = "/tmp/muster-0-1"},
      Ports{.numbers = {5001, 5002}},
      Started{.process = 7, .pid = 4712},
      StartFailed{.process = 7, .message = "cannot start 'x'"},
      Output{.process = 7, .stream = Stream::error, .bytes = "loss\n"},
      Ended{.process = 7, .wait_status = 9},
      Failed{.message = "no"},
      Gone{.none_left = false},
      Note{.line = "words"}};
  ASSERT_THAT(messages.size(), Eq(std::variant_size_v<Message> + 1));  // start with modules and without
  for (const Message& message : messages) {
    const auto read = decode(framed(message));
    ASSERT_TRUE(read) << message.index() << ": " << read.error().message;
    EXPECT_TRUE(*read == message) << message.index();
  }
}

TEST(AgentMessages, AreTheBytesOfTheirPage) {
  const net::Frame signal = framed(Signal{.process = 258, .number = 15});
  EXPECT_THAT(signal.header.type, Eq(0x0304));
  const std::vector<std::byte> expected = {std::byte{2},  std::byte{1}, std::byte{0}, std::byte{0},
                                           std::byte{15}, std::byte{0}, std::byte{0}, std::byte{0}};
  EXPECT_THAT(signal.payload, Eq(expected));
  EXPECT_THAT(framed(Gone{}).header.type, Eq(0x0317));
}

TEST(AgentMessages, ThatAreCutOrUnknownAreRefused) {
  net::Frame frame = framed(Start{.arguments = {"a"}, .environment = {{"A", "1"}}});
  for (frame.payload.pop_back();; frame.payload.pop_back()) {
    EXPECT_FALSE(decode(frame)) << frame.payload.size();
    if (frame.payload.empty()) break;
  }
  frame.header.type = 0x03ff;
  const auto unknown = decode(frame);
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("unknown type 0x03ff"));
}

}  // namespace
}  // namespace muster::launch::agent
