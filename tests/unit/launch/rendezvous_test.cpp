#include "muster/launch/hosts/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <mutex>

#include "tests/unit/base/mentions.h"

namespace muster::launch {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr int patience_ms = 20'000;

// A port that stays free for the first host.
net::PortReservation& port() {
  static auto reserved = net::PortReservation::open("127.0.0.1");
  return *reserved;
}

struct Lines {
  std::mutex mutex;
  std::string text;
};

RendezvousOptions options(std::int64_t index, std::int64_t hosts = 2) {
  return {.clock = real_clock(),
          .hosts = hosts,
          .preset = "mpi",
          .own = {.index = index, .ports = {static_cast<std::uint16_t>(7000 + index)}},
          .place = {"127.0.0.1", port().port()},
          .times = {.limit = 20s, .beat_every = 20ms}};
}

std::unique_ptr<Rendezvous> open(RendezvousOptions options) { return *Rendezvous::open(std::move(options)); }

Lease::End end_of(Rendezvous& rendezvous) {
  pollfd over{.fd = rendezvous.fd(), .events = POLLIN, .revents = 0};
  if (::poll(&over, 1, patience_ms) != 1) return {-1, "it does not end"};
  return rendezvous.take().value_or(Lease::End{-1, "it has not ended"});
}

TEST(Rendezvous, TellsEveryHostWhatAllHaveTold) {
  const auto second = open(options(1));  // the first host may come last
  const auto first = open(options(0));
  for (const auto& rendezvous : {std::cref(first), std::cref(second)}) {
    const auto met = rendezvous.get()->wait({});
    ASSERT_TRUE(met) << met.error().message;
    EXPECT_EQ(met->at(0).ports.at(0), 7000);
    EXPECT_EQ(met->at(1).ports.at(0), 7001);
    EXPECT_EQ(met->at(1).address, "127.0.0.1");
    EXPECT_EQ(met->at(0).sources, std::vector<std::string>{"127.0.0.1"}) << "where ssh will come from";
  }
}

TEST(Rendezvous, EndsOnceTheWorkOfAllHostsHasEnded) {
  const auto first = open(options(0));
  const auto second = open(options(1));
  ASSERT_TRUE(first->wait({}) && second->wait({}));
  second->work_ended(0);
  EXPECT_FALSE(second->take());
  first->work_ended(0);
  EXPECT_EQ(end_of(*first).exit_code, 0);
  EXPECT_EQ(end_of(*second).exit_code, 0);
  EXPECT_EQ(end_of(*second).reason, "");
}

TEST(Rendezvous, HandsAFailureToAllHosts) {
  const auto first = open(options(0, 3));
  const auto second = open(options(1, 3));
  auto third = open(options(2, 3));
  ASSERT_TRUE(first->wait({}) && second->wait({}) && third->wait({}));
  third->work_ended(3);
  third.reset();  // it says so before it goes
  EXPECT_EQ(end_of(*first).exit_code, 3);
  EXPECT_EQ(end_of(*second).exit_code, 3);
  EXPECT_THAT(end_of(*second).reason, HasSubstr("host 2 (127.0.0.1) ended with code 3"));
}

TEST(Rendezvous, EndsForTheOthersWhenTheFirstHostGoes) {
  auto first = open(options(0));
  const auto second = open(options(1));
  ASSERT_TRUE(first->wait({}) && second->wait({}));
  first.reset();
  EXPECT_EQ(end_of(*second).exit_code, 69);
}

TEST(Rendezvous, RefusesAnImpostor) {
  const auto first = open(options(0, 3));
  const auto second = open(options(1, 3));
  const auto impostor = open(options(1, 2));
  const auto met = impostor->wait({});
  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().code, Code::refused);
  EXPECT_THAT(met.error().message, Mentions("told", "2 hosts"));
}

TEST(Rendezvous, RefusesWhoDoesNotKnowTheToken) {
  auto with_token = options(0);
  with_token.security = *net::Security::from_token("a token that is long enough for it");
  const auto first = open(with_token);
  auto other_token = options(1);
  other_token.security = *net::Security::from_token("another one, which is as long as it");
  for (const auto& unauthorized : {other_token, options(1)}) {
    const auto met = open(unauthorized)->wait({});
    ASSERT_FALSE(met);
    EXPECT_EQ(met.error().code, Code::refused) << met.error().message;
  }
  with_token.own.index = 1;
  const auto second = open(with_token);
  EXPECT_TRUE(second->wait({}));
}

TEST(Rendezvous, SaysWhatItWaitsForAndGivesUpAtItsLimit) {
  Lines lines;
  auto alone = options(1);
  alone.times = {.limit = 60ms, .say_every = 20ms, .beat_every = 5ms};
  alone.say = [&](const std::string& line) {
    const std::lock_guard lock(lines.mutex);
    lines.text += line + "\n";
  };
  const auto met = open(alone)->wait({});
  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().code, Code::timeout);
  EXPECT_THAT(met.error().message, HasSubstr("was not reached within"));
  EXPECT_THAT(met.error().message, HasSubstr("nothing listens at 127.0.0.1"));
  const std::lock_guard lock(lines.mutex);
  EXPECT_THAT(lines.text, HasSubstr("for the first host, 127.0.0.1:"));
}

TEST(Rendezvous, StopsWhenItIsToldTo) {
  auto stop = net::StopSignal::create();
  stop->raise();
  const auto first = open(options(0));
  const int fd = stop->fd();
  const auto met = first->wait(std::span(&fd, 1));
  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().code, Code::aborted);
}

TEST(Rendezvous, TellsThoseWhoCameThatTheFirstHostStops) {
  auto has_come = net::StopSignal::create();
  auto asked = options(0, 3);
  asked.times.say_every = 5ms;
  asked.say = [&](const std::string& line) {
    if (line.ends_with("for host 2 of 3") && !has_come->raised()) has_come->raise();
  };
  auto first = open(asked);
  const auto second = open(options(1, 3));
  pollfd come{.fd = has_come->fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&come, 1, patience_ms), 1);
  first.reset();
  const auto met = second->wait({});
  ASSERT_FALSE(met);
  EXPECT_THAT(met.error().message, Mentions("first", "ended"));
}

TEST(Rendezvous, IsNotHeldWhereTheFirstHostIsNot) {
  auto elsewhere = options(0);
  elsewhere.place.host = "192.0.2.1";
  const auto met = open(elsewhere)->wait({});
  ASSERT_FALSE(met);
  EXPECT_THAT(met.error().message, Mentions("192.0.2.1", "address"));
}

}  // namespace
}  // namespace muster::launch
