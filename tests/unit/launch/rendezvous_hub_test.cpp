#include "muster/launch/hosts/rendezvous_hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/base/mentions.h"

namespace muster::launch {
namespace {

namespace message = rendezvous_message;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

message::Report report(std::int64_t index, std::int64_t hosts = 3) {
  return {.hosts = hosts,
          .preset = "mpi",
          .host = {.index = index, .ports = {static_cast<std::uint16_t>(7000 + index)}}};
}

// A hub of three hosts on a clock that stands unless told otherwise.
class Hub : public ::testing::Test {
 protected:
  TimePoint now_{};
  RendezvousHub hub_{{.hosts = 3,
                      .preset = "mpi",
                      .place = "10.0.0.1:36665",
                      .times = {.limit = 60s, .say_every = 5s, .beat_every = 1s, .silence_max = 10s}},
                     {.ports = {7000}, .address = "10.0.0.1"},
                     now_};

  void come(RendezvousHub::Peer peer, const message::Report& said) {
    hub_.received(peer, "10.0.0." + std::to_string(said.host.index + 1), said, now_);
  }
  void meet() {
    come(1, report(1));
    come(2, report(2));
    hub_.take_sends();
  }
  // What the one who came last was told.
  std::string refusal() {
    const auto sends = hub_.take_sends();
    if (sends.empty() || !sends.back().is_last) return "not refused";
    const auto* said = std::get_if<message::Refusal>(&sends.back().message);
    return said == nullptr ? "not refused" : said->reason;
  }
  // Whom the end was told.
  std::vector<RendezvousHub::Peer> told_of_end() {
    std::vector<RendezvousHub::Peer> told;
    for (const auto& send : hub_.take_sends())
      if (std::holds_alternative<message::Ended>(send.message)) told.push_back(send.to);
    return told;
  }
};

TEST_F(Hub, TellsAllWhatEachHasToldOnceAllHaveCome) {
  come(7, report(2));
  EXPECT_FALSE(hub_.roster());
  come(8, report(1));
  ASSERT_TRUE(hub_.roster());
  std::vector<std::string> addresses;
  for (const HostReport& host : *hub_.roster()) addresses.push_back(host.address);
  EXPECT_THAT(addresses, ElementsAre("10.0.0.1", "10.0.0.2", "10.0.0.3"));
  EXPECT_THAT(hub_.roster()->at(1).ports, ElementsAre(7001));
  const auto sends = hub_.take_sends();
  ASSERT_EQ(sends.size(), 2);
  EXPECT_EQ(std::get<message::Roster>(sends[0].message).hosts, *hub_.roster());
}

TEST_F(Hub, RefusesAHostThatIsThereTwice) {
  come(1, report(1));
  hub_.received(2, "10.0.0.9", report(1), now_);
  EXPECT_THAT(refusal(), Mentions("host 1", "already", "10.0.0.2", "10.0.0.9"));
  EXPECT_TRUE(hub_.is_member(1));
  EXPECT_FALSE(hub_.is_member(2));
}

TEST_F(Hub, RefusesAHostThatCountsOthers) {
  come(1, report(1, 2));
  EXPECT_THAT(refusal(), Mentions("1 (10.0.0.2)", "told", "2 hosts", "has 3"));
}

TEST_F(Hub, RefusesAnotherVersion) {
  auto old = report(1);
  old.version = 0;
  come(1, old);
  EXPECT_THAT(refusal(), Mentions("10.0.0.2", "version 0", "version 2", "install"));
}

TEST_F(Hub, RefusesAnotherPreset) {
  auto other = report(1);
  other.preset = "tensorflow";
  come(1, other);
  EXPECT_THAT(refusal(), Mentions("1 (10.0.0.2)", "--preset", "tensorflow"));
}

TEST_F(Hub, RefusesANumberThatNoHostHas) {
  come(1, report(3));
  EXPECT_THAT(refusal(), Mentions("10.0.0.4", "host 3", "besides", "3 hosts", "numbers 1", "to 2"));
}

TEST_F(Hub, RefusesWhoComesWhenTheJobHasBegun) {
  meet();
  hub_.received(9, "10.0.0.9", report(1), now_);
  EXPECT_THAT(refusal(), Mentions("begun", "10.0.0.9"));
}

TEST_F(Hub, RefusesWhoDoesNotIntroduceItself) {
  hub_.received(1, "10.0.0.9", message::Ended{.exit_code = 3}, now_);
  EXPECT_THAT(refusal(), Mentions("host"));
  EXPECT_FALSE(hub_.end());
}

TEST_F(Hub, DoesNotLetUnauthorizedPeersFillTheScreen) {
  for (RendezvousHub::Peer peer = 1; peer <= 1000; ++peer) come(peer, report(3));
  EXPECT_LE(hub_.take_lines().size(), 5);
}

TEST_F(Hub, LetsAHostThatLeftComeAgain) {
  come(1, report(1));
  hub_.closed(1, "connection reset");
  come(3, report(1));
  EXPECT_TRUE(hub_.is_member(3));
}

TEST_F(Hub, SaysWhoIsWaitedFor) {
  come(1, report(1));
  hub_.tick(now_ + 4s);
  EXPECT_THAT(hub_.take_lines(), IsEmpty());
  hub_.received(1, "10.0.0.2", message::Beat{}, now_ + 4s);
  hub_.tick(now_ + 5s);
  EXPECT_THAT(hub_.take_lines(), ElementsAre("waiting at 10.0.0.1:36665 since 5 s for host 2 of 3"));
}

TEST_F(Hub, GivesUpAtItsLimitAndTellsThoseWhoCame) {
  come(1, report(1));
  hub_.received(1, "10.0.0.2", message::Beat{}, now_ + 55s);
  hub_.take_sends();
  hub_.tick(now_ + 60s);
  ASSERT_TRUE(hub_.failure());
  EXPECT_EQ(hub_.failure()->code, Code::timeout);
  EXPECT_THAT(hub_.failure()->message,
              Mentions("complete", "60 s", "(MS_TOPO_TIMEOUT)", "host 2", "3 did", "10.0.0.1:36665"));
  EXPECT_EQ(refusal(), hub_.failure()->message);
}

TEST_F(Hub, EndsTheJobOnceAllHostsAreDone) {
  meet();
  hub_.received(1, "", message::Ended{}, now_);
  hub_.work_ended(0);
  EXPECT_FALSE(hub_.end()) << "host 2 still works";
  hub_.received(2, "", message::Ended{}, now_);
  ASSERT_TRUE(hub_.end());
  EXPECT_EQ(hub_.end()->exit_code, 0);
  EXPECT_EQ(hub_.end()->reason, "");
  EXPECT_THAT(told_of_end(), ElementsAre(1, 2));
}

TEST_F(Hub, EndsTheJobWithTheCodeOfTheFirstThatFails) {
  meet();
  hub_.received(2, "", message::Ended{.exit_code = 3}, now_);
  hub_.received(1, "", message::Ended{.exit_code = 143}, now_);
  ASSERT_TRUE(hub_.end());
  EXPECT_EQ(hub_.end()->exit_code, 3);
  EXPECT_THAT(hub_.end()->reason, Mentions("2 (10.0.0.3)", "code 3", "output"));
  EXPECT_THAT(told_of_end(), ElementsAre(1, 2));
}

TEST_F(Hub, HandsOnTheCodeOfTheFirstHost) {
  meet();
  hub_.work_ended(7);
  EXPECT_EQ(hub_.end()->exit_code, 7);
  EXPECT_THAT(told_of_end(), ElementsAre(1, 2));
}

TEST_F(Hub, EndsTheJobWhenAHostIsLost) {
  meet();
  hub_.received(1, "", message::Ended{}, now_);  // its services may be needed still
  hub_.closed(1, "connection reset");
  ASSERT_TRUE(hub_.end());
  EXPECT_EQ(hub_.end()->exit_code, 69);
  EXPECT_THAT(hub_.end()->reason, Mentions("1 (10.0.0.2)", "reset"));
  EXPECT_THAT(told_of_end(), ElementsAre(2));
}

TEST_F(Hub, LosesAHostThatIsSilent) {
  meet();
  for (int second = 1; second <= 10; ++second) {
    hub_.received(2, "", message::Beat{}, now_ + 1s * second);
    hub_.tick(now_ + 1s * second);
  }
  EXPECT_FALSE(hub_.end());
  hub_.tick(now_ + 11s);
  ASSERT_TRUE(hub_.end());
  EXPECT_THAT(hub_.end()->reason, Mentions("1 (10.0.0.2)", "heard", "10 s"));
}

TEST_F(Hub, TellsOfASilentHostBeforeItIsLostAndWhenItSpeaksAgain) {
  meet();
  for (int second = 1; second <= 7; ++second) {
    hub_.received(2, "", message::Beat{}, now_ + 1s * second);
    hub_.tick(now_ + 1s * second);
    if (second == 4) {
      EXPECT_THAT(hub_.take_lines(), IsEmpty());
    }
  }
  EXPECT_THAT(hub_.take_lines(),
              ElementsAre("host 1 (10.0.0.2) has said nothing for 5 s; after 10 s it is lost"));
  hub_.received(1, "", message::Beat{}, now_ + 8s);
  EXPECT_THAT(hub_.take_lines(), ElementsAre("host 1 (10.0.0.2) speaks again"));
  EXPECT_FALSE(hub_.end());
}

TEST_F(Hub, BeatsSoThatTheOthersKnowThatItLives) {
  meet();
  hub_.tick(now_ + 1s);
  EXPECT_EQ(hub_.take_sends().size(), 2);
  hub_.tick(now_ + 1500ms);
  EXPECT_EQ(hub_.take_sends().size(), 0);
}

}  // namespace
}  // namespace muster::launch
