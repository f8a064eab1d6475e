#include "muster/net/frame.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "muster/base/base.h"
#include "muster/net/security.h"

namespace muster::net {
namespace {

// FIPS 180-2, appendix B.1.
TEST(Digest, IsSha256) {
  const std::string text = "abc";
  std::string hex;
  for (const std::byte byte : sha256(std::as_bytes(std::span(text))))
    hex += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  EXPECT_EQ(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

using ::testing::HasSubstr;

constexpr std::uint64_t limit = 1 << 16;
const FrameHeader sample{
    .type = 0x0123, .flags = 5, .epoch = 3, .job_id = 0xfedcba9876543210, .sequence = 42};

std::vector<std::byte> random_bytes(RandomStream& random, std::uint64_t& index, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random.bits(index++));
  return bytes;
}

std::uint64_t printed_seed() {
  const std::uint64_t seed = entropy();
  ::testing::Test::RecordProperty("seed", std::to_string(seed));
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

TEST(Frame, HasTheDocumentedBytes) {
  const auto bytes = encode_frame(sample, {});
  ASSERT_EQ(bytes.size(), 64u);
  const std::string magic(reinterpret_cast<const char*>(bytes.data()), 4);
  EXPECT_EQ(magic, "MSTR");
  EXPECT_EQ(load_little<std::uint16_t>(&bytes[4]), 1);
  EXPECT_EQ(load_little<std::uint16_t>(&bytes[6]), sample.type);
  EXPECT_EQ(load_little<std::uint32_t>(&bytes[8]), sample.flags);
  EXPECT_EQ(load_little<std::uint32_t>(&bytes[12]), 0u);
  EXPECT_EQ(load_little<std::uint64_t>(&bytes[16]), sample.epoch);
  EXPECT_EQ(load_little<std::uint64_t>(&bytes[24]), sample.job_id);
  EXPECT_EQ(load_little<std::uint64_t>(&bytes[32]), sample.sequence);
  EXPECT_EQ(load_little<std::uint64_t>(&bytes[40]), 0u);
  EXPECT_EQ(load_little<std::uint64_t>(&bytes[48]), hash_bytes(nullptr, 0));
  EXPECT_EQ(load_little<std::uint64_t>(&bytes[56]), hash_bytes(bytes.data(), 56));
}

TEST(Frame, RefusesEverySingleFlippedBitOfAHeader) {
  const FrameHeaderBytes sound = encode_header(sample);
  ASSERT_EQ(decode_header(sound, limit).value(), sample);
  for (std::size_t bit = 0; bit < 8 * frame_header_size_bytes; ++bit) {
    FrameHeaderBytes damaged = sound;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto decoded = decode_header(damaged, limit);
    ASSERT_FALSE(decoded) << "bit " << bit;
    EXPECT_EQ(decoded.error().code, Code::corrupt);
  }
}

TEST(Frame, NamesTheRuleThatIsBroken) {
  FrameHeaderBytes web{};
  const std::string_view request = "GET / HTTP/1.1\r\n";
  std::transform(request.begin(), request.end(), web.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  EXPECT_THAT(decode_header(web, limit).error().message, HasSubstr("MSTR"));

  FrameHeaderBytes newer = encode_header(sample);
  newer[4] = std::byte{9};
  EXPECT_THAT(decode_header(newer, limit).error().message, HasSubstr("version 9"));

  FrameHeader huge = sample;
  huge.payload_size_bytes = limit + 1;
  EXPECT_THAT(decode_header(encode_header(huge), limit).error().message,
              HasSubstr("over the limit of 65536"));
}

TEST(FrameDecoder, FindsTheSameFramesHoweverTheStreamIsCut) {
  const std::uint64_t seed = printed_seed();
  RandomStream random(seed, 0);
  std::uint64_t index = 0;
  std::vector<Frame> sent;
  std::vector<std::byte> stream;
  for (std::uint64_t i = 0; i < 200; ++i) {
    FrameHeader header = sample;
    header.sequence = i;
    const auto payload = random_bytes(random, index, random.below(i, 300) * (i % 3));
    const auto bytes = encode_frame(header, payload);
    stream.insert(stream.end(), bytes.begin(), bytes.end());
    sent.push_back({header, payload});
  }
  FrameDecoder decoder(limit);
  std::vector<Frame> received;
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t piece = std::min<std::size_t>(stream.size() - at, 1 + random.below(index++, 500));
    decoder.append(std::span(stream).subspan(at, piece));
    at += piece;
    for (auto frame = decoder.next(); frame.value(); frame = decoder.next())
      received.push_back(std::move(**frame));
  }
  ASSERT_EQ(received.size(), sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(received[i].header.sequence, i);
    EXPECT_EQ(received[i].payload, sent[i].payload);
  }
}

TEST(FrameDecoder, RefusesRandomBytesAndStaysRefusing) {
  const std::uint64_t seed = printed_seed();
  RandomStream random(seed, 0);
  std::uint64_t index = 0;
  for (int round = 0; round < 2000; ++round) {
    FrameDecoder decoder(limit);
    decoder.append(
        random_bytes(random, index, frame_header_size_bytes + static_cast<std::size_t>(round) / 10));
    EXPECT_FALSE(decoder.next());
    decoder.append(encode_frame(sample, {}));
    EXPECT_FALSE(decoder.next());
  }
}

TEST(FrameDecoder, NeverPassesOnADamagedFrame) {
  const std::uint64_t seed = printed_seed();
  RandomStream random(seed, 0);
  std::uint64_t index = 0;
  for (int round = 0; round < 2000; ++round) {
    auto bytes = encode_frame(sample, random_bytes(random, index, 1 + static_cast<std::size_t>(round) / 20));
    const std::size_t place = random.below(index++, bytes.size());
    bytes[place] ^= static_cast<std::byte>(1 + random.below(index++, 255));
    FrameDecoder decoder(limit);
    decoder.append(bytes);
    const auto frame = decoder.next();
    EXPECT_FALSE(frame && frame->has_value());
  }
}

TEST(Bytes, ReadBackWhatWasWritten) {
  ByteWriter writer;
  writer.number(std::uint8_t{7});
  writer.number(std::uint64_t{0x0102030405060708});
  writer.text("rank 3");
  ByteReader reader(writer.bytes());
  EXPECT_EQ(reader.number<std::uint8_t>(), 7);
  EXPECT_EQ(reader.number<std::uint64_t>(), 0x0102030405060708u);
  EXPECT_EQ(reader.text(6), "rank 3");
  EXPECT_TRUE(reader.finish("sample"));
}

TEST(Bytes, RefuseCutOffOverlongAndTrailing) {
  ByteWriter writer;
  writer.text("seven!!");
  ByteReader over_limit(writer.bytes());
  EXPECT_EQ(over_limit.text(6), "");
  EXPECT_THAT(over_limit.finish("sample").error().message, HasSubstr("sample"));

  ByteReader cut_off(std::span(writer.bytes()).first(6));
  cut_off.text(100);
  EXPECT_EQ(cut_off.finish("sample").error().code, Code::corrupt);

  ByteReader trailing(writer.bytes());
  trailing.number<std::uint32_t>();
  EXPECT_THAT(trailing.finish("sample").error().message, HasSubstr("7 bytes too many"));

  ByteReader many(writer.bytes());
  EXPECT_EQ(many.count(100, 2), 0u) << "seven items of two bytes do not fit into seven bytes";
  EXPECT_FALSE(many.ok());
}

}  // namespace
}  // namespace muster::net
