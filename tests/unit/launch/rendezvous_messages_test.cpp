#include "muster/launch/hosts/rendezvous_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/base/mentions.h"

namespace muster::launch {
namespace {

namespace message = rendezvous_message;

constexpr std::uint16_t report_type = 0x0320;
constexpr std::uint16_t roster_type = 0x0322;
constexpr std::uint16_t ended_type = 0x0324;

net::Frame frame(std::uint16_t type, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {.header = {.type = type}, .payload = {bytes.begin(), bytes.end()}};
}

std::string error_of(std::uint16_t type, std::string_view text) {
  const auto read = decode_rendezvous_message(frame(type, text));
  return read ? "no error" : read.error().message;
}

template <class T>
T there_and_back(const T& sent) {
  net::FrameDecoder decoder(rendezvous_roster_bytes_max);
  decoder.append(encode(sent));
  const auto arrived = decoder.next();
  const auto read = decode_rendezvous_message(**arrived);
  return read ? std::get<T>(*read) : T{};
}

const HostReport host{.index = 2,
                      .ports = {5000, 65535},
                      .host_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA",
                      .interface = "eth0.7",
                      .address = "10.0.0.3",
                      .sources = {"10.0.0.3", "fd00::3"}};

TEST(RendezvousMessages, ArriveAsTheyWereSent) {
  const auto report = there_and_back(message::Report{.hosts = 3, .preset = "mpi", .host = host});
  EXPECT_EQ(report.version, rendezvous_version);
  EXPECT_EQ(report.hosts, 3);
  EXPECT_EQ(report.preset, "mpi");
  EXPECT_EQ(report.host, host);
  HostReport first = host;
  first.index = 0;
  EXPECT_EQ(there_and_back(message::Roster{{first}}).hosts, std::vector{first});
  EXPECT_EQ(there_and_back(message::Ended{3, "no such column"}).exit_code, 3);
  EXPECT_EQ(there_and_back(message::Ended{3, "no such column"}).reason, "no such column");
  EXPECT_EQ(there_and_back(message::Refusal{"no"}).reason, "no");
}

TEST(RendezvousMessages, OfAnotherVersionAreReadAsFarAsTheirNumber) {
  const auto read = decode_rendezvous_message(frame(report_type, R"({"version": 3, "what": "knows who"})"));
  ASSERT_TRUE(read);
  EXPECT_EQ(std::get<message::Report>(*read).version, 3);
}

TEST(RendezvousMessages, NameWhatIsWrongWithThem) {
  EXPECT_THAT(error_of(report_type, "{"), Mentions("wrong", "'message'", "JSON"));
  EXPECT_THAT(error_of(report_type, "3"), Mentions("'message'", "JSON", "object"));
  EXPECT_THAT(error_of(report_type, R"({"version": 2})"), Mentions("wrong", "'hosts'"));
  EXPECT_THAT(error_of(report_type, R"({"version": 2, "hosts": 0})"),
              Mentions("'hosts'", "whole", "from 1", "to 4096"));
  EXPECT_THAT(error_of(ended_type, R"({"exit_code": 256, "reason": ""})"),
              Mentions("'exit_code'", "whole", "from 0", "to 255"));
  EXPECT_THAT(error_of(ended_type, R"({"exit_code": 18446744073709551615, "reason": ""})"),
              Mentions("'exit_code'", "whole", "from 0", "to 255"));
  EXPECT_THAT(error_of(0x0100, "{}"), Mentions("type", "0x0100"));
}

std::string host_with(std::string_view field, std::string_view value) {
  std::string text = R"({"hosts": [{"index": 0)";
  for (const auto& [name, good] : {std::pair{"ports", "[]"},
                                   {"host_key", "\"\""},
                                   {"interface", "\"\""},
                                   {"address", "\"\""},
                                   {"sources", "[]"}})
    text += std::string(", \"") + name + "\": " + std::string(field == name ? value : good);
  return text + "}]}";
}

// They are written into files of ssh and onto command lines.
TEST(RendezvousMessages, HoldNothingThatCouldMeanMoreThanItShould) {
  EXPECT_THAT(
      error_of(roster_type, host_with("host_key", R"("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA\nssh-rsa x")")),
      Mentions("'host_key'", "public"));
  EXPECT_EQ(
      error_of(roster_type, host_with("host_key", R"("command=\"x\" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5")")),
      "a message of the rendezvous has a wrong 'host_key': it is no public key");
  EXPECT_THAT(error_of(roster_type, host_with("interface", R"("eth0 -x")")), Mentions("'interface'", "name"));
  EXPECT_THAT(error_of(roster_type, host_with("address", R"("10.0.0.1,evil")")),
              Mentions("wrong", "'address'", "IP"));
  EXPECT_THAT(error_of(roster_type, host_with("ports", "[0]")),
              Mentions("'ports'", "whole", "from 1", "to 65535"));
  EXPECT_EQ(error_of(roster_type, host_with("ports", "[22]")), "no error");
  EXPECT_EQ(error_of(roster_type, host_with("sources", R"(["10.0.0.1\",command=\"sh"])")),
            "a message of the rendezvous has a wrong 'sources': a source is an IP address");
  EXPECT_EQ(error_of(roster_type, host_with("sources", R"(["10.0.0.1", "fd00::1"])")), "no error");
}

}  // namespace
}  // namespace muster::launch
