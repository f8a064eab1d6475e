#include "muster/net/loop.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "muster/net/net.h"
#include "tests/unit/base/mentions.h"

namespace muster::net {
namespace {
namespace loop_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr ConnectionLimits limits{.payload_size_bytes = 1 << 20, .unsent_size_bytes = 8 << 20};

std::shared_ptr<const std::vector<std::byte>> frame_of(std::uint16_t type, std::size_t size) {
  return std::make_shared<std::vector<std::byte>>(encode_frame({.type = type}, std::vector<std::byte>(size)));
}

// Serves events until `done`, at most ten seconds.
template <class Done>
bool serve_until(Loop& loop, Done done) {
  const TimePoint deadline = real_clock().now() + 10s;
  while (!done() && real_clock().now() < deadline) loop.run_for(5ms);
  return done();
}

// A listener that keeps what connects to it.
struct Server {
  Loop& loop;
  std::string ip = "127.0.0.1";
  std::vector<std::unique_ptr<Connection>> connections = {};
  std::vector<std::uint16_t> types = {};
  std::vector<std::string> ends = {};
  std::unique_ptr<ConnectionListener> listener = {};
  UnauthenticatedLimits unauthenticated = {};

  void open() {
    const ConnectionLimits with_unauthenticated_peers{.payload_size_bytes = limits.payload_size_bytes,
                                                      .unsent_size_bytes = limits.unsent_size_bytes,
                                                      .unauthenticated = unauthenticated};
    auto made = ConnectionListener::open(
        loop, {ip, 0}, with_unauthenticated_peers, [this](std::unique_ptr<Connection> connection) {
          connection->set_events({.received = [this](Frame frame) { types.push_back(frame.header.type); },
                                  .closed = [this](const Error& error) { ends.push_back(error.message); }});
          connections.push_back(std::move(connection));
        });
    ASSERT_TRUE(made) << made.error().message;
    listener = *std::move(made);
  }
};

class LoopOverBothFamilies : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Family, LoopOverBothFamilies, ::testing::Values("127.0.0.1", "::1"));

TEST_P(LoopOverBothFamilies, BringsFramesInOrderAndThenTheEnd) {
  Loop loop;
  Server server{.loop = loop, .ip = GetParam()};
  server.open();
  bool opened = false;
  auto client =
      Connection::connect(loop, server.listener->address(), limits, {.opened = [&] { opened = true; }});
  ASSERT_TRUE(serve_until(loop, [&] { return opened; }));
  std::vector<std::uint16_t> sent;
  for (std::uint16_t type = 1; type <= 300; ++type) {
    client->send(frame_of(type, type * 37));
    sent.push_back(type);
  }
  client->finish();
  client.reset();
  ASSERT_TRUE(serve_until(loop, [&] { return !server.ends.empty(); }));
  EXPECT_EQ(server.types, sent);
  EXPECT_THAT(server.ends[0], HasSubstr("closed the connection"));
}

TEST(Loop, SaysThatNobodyListens) {
  Loop loop;
  auto reservation = PortReservation::open("127.0.0.1");
  ASSERT_TRUE(reservation);
  std::string reason;
  auto client = Connection::connect(loop, {"127.0.0.1", reservation->port()}, limits,
                                    {.closed = [&](const Error& error) { reason = error.message; }});
  ASSERT_TRUE(serve_until(loop, [&] { return !reason.empty(); }));
  EXPECT_THAT(reason, HasSubstr("refused"));
}

TEST(Loop, ClosesAConnectionThatSendsGarbageOrTooMuch) {
  Loop loop;
  Server server{.loop = loop};
  server.open();
  Wait wait{.deadline = real_clock().now() + 10s};
  auto garbage = Socket::connect(server.listener->address(), wait);
  auto large = Socket::connect(server.listener->address(), wait);
  ASSERT_TRUE(garbage && large);
  const std::string text(200, 'x');
  ASSERT_TRUE(garbage->send_all(std::as_bytes(std::span(text)), wait));
  ASSERT_TRUE(serve_until(loop, [&] { return server.ends.size() == 1; }));
  const auto header = encode_header({.type = 1, .payload_size_bytes = limits.payload_size_bytes + 1});
  ASSERT_TRUE(large->send_all(header, wait));
  ASSERT_TRUE(serve_until(loop, [&] { return server.ends.size() == 2; }));
  EXPECT_TRUE(server.types.empty());
}

TEST(Loop, ClosesAConnectionWhosePeerDoesNotRead) {
  Loop loop;
  Server server{.loop = loop};
  server.open();
  auto silent = Socket::connect(server.listener->address(), {.deadline = real_clock().now() + 10s});
  ASSERT_TRUE(silent);
  ASSERT_TRUE(serve_until(loop, [&] { return !server.connections.empty(); }));
  const auto frame = frame_of(1, 1 << 20);
  for (int i = 0; i < 1000 && server.ends.empty(); ++i) {
    server.connections[0]->send(frame);
    loop.run_for(1ms);
  }
  ASSERT_FALSE(server.ends.empty());
  EXPECT_THAT(server.ends[0], HasSubstr("does not read"));
}

TEST(Loop, LetsACallbackDestroyItsConnection) {
  Loop loop;
  Server server{.loop = loop};
  server.open();
  std::unique_ptr<Connection> client;
  bool opened = false;
  client = Connection::connect(loop, server.listener->address(), limits, {.opened = [&] {
                                 opened = true;
                                 client.reset();
                               }});
  ASSERT_TRUE(serve_until(loop, [&] { return opened && !server.ends.empty(); }));
}

// The sender's loop does not run again: what waits behind the first frame has to be sent now.
TEST(Loop, SendsEveryFrameThatGoesWithoutWaiting) {
  Loop sending, receiving;
  Server server{receiving};
  server.open();
  bool is_open = false;
  const auto connection =
      Connection::connect(sending, server.listener->address(), limits, {.opened = [&] { is_open = true; }});
  ASSERT_TRUE(serve_until(sending, [&] { return is_open; }));
  for (const std::uint16_t type : {1, 2, 3}) connection->send(frame_of(type, 100));
  sending.run_ready();
  EXPECT_TRUE(serve_until(receiving, [&] { return server.types.size() == 3; }));
}

TEST(Loop, CallsTheTimerOnceAtItsTime) {
  Loop loop;
  int early = 0;
  int calls = 0;
  loop.set_timer(real_clock().now() + 1ms, [&] { ++early; });
  loop.set_timer(real_clock().now() + 2ms, [&] { ++calls; });
  ASSERT_TRUE(serve_until(loop, [&] { return calls > 0; }));
  EXPECT_EQ(early, 0);
  EXPECT_EQ(calls, 1);
}

TEST(Loop, TellsThatAProcessHasEnded) {
  Loop loop;
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  bool ended = false;
  const auto note = [&](std::optional<int> status) {
    ended = true;
    EXPECT_EQ(status, std::nullopt);  // nobody has waited for it
  };
  loop.watch_process(child, note);
  loop.run_for(1ms);
  EXPECT_FALSE(ended);
  ::kill(child, SIGKILL);
  EXPECT_TRUE(serve_until(loop, [&] { return ended; }));  // before it is reaped
  ::waitpid(child, nullptr, 0);
  ended = false;
  loop.watch_process(child, note);
  EXPECT_TRUE(serve_until(loop, [&] { return ended; })) << "a process that is gone already";
}

TEST(Loop, TellsHowAProcessHasEndedOnceItsParentKnows) {
  Loop loop;
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const auto watched = open_process(child);
  std::optional<std::optional<int>> told;
  loop.watch_process(child, [&](std::optional<int> status) { told = status; });
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(serve_until(loop, [&] { return told.has_value(); }));
  if (!wait_status(*watched)) GTEST_SKIP() << "this kernel tells only the parent (Linux 6.15 is needed)";
  EXPECT_EQ(*told, SIGKILL);
}

TEST(Loop, DoesNotKeepAConnectionOpenInAForkedChild) {
  Loop loop;
  Server server{.loop = loop};
  server.open();
  bool opened = false;
  auto client =
      Connection::connect(loop, server.listener->address(), limits, {.opened = [&] { opened = true; }});
  ASSERT_TRUE(serve_until(loop, [&] { return opened && !server.connections.empty(); }));
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  client.reset();
  EXPECT_TRUE(serve_until(loop, [&] { return !server.ends.empty(); }));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(ConnectionListener, ClosesAnUnauthenticatedPeerThatDoesNotSayWhoItIs) {
  Loop loop;
  Server server{.loop = loop, .unauthenticated = {.time = 500ms}};
  server.open();
  const Wait wait{.deadline = real_clock().now() + 10s};
  auto silent = Socket::connect(server.listener->address(), wait);
  ASSERT_TRUE(silent);
  auto admitted = Socket::connect(server.listener->address(), wait);
  ASSERT_TRUE(admitted);
  ASSERT_TRUE(serve_until(loop, [&] { return server.connections.size() == 2; }));
  EXPECT_TRUE(server.connections[1]->is_unauthenticated());
  server.connections[1]->admit();
  EXPECT_FALSE(server.connections[1]->is_unauthenticated());
  ASSERT_TRUE(serve_until(loop, [&] { return !server.ends.empty(); }));
  EXPECT_THAT(server.ends[0], Mentions("identify", "0.5"));
  ASSERT_TRUE(admitted->send_all(*frame_of(7, 10), wait));
  ASSERT_TRUE(serve_until(loop, [&] { return !server.types.empty(); }));
  EXPECT_EQ(server.ends.size(), 1);
}

TEST(ConnectionListener, DropsTheOldestOfTooManyUnauthenticatedPeers) {
  Loop loop;
  Server server{.loop = loop, .unauthenticated = {.count = 2}};
  server.open();
  const Wait wait{.deadline = real_clock().now() + 10s};
  std::vector<Socket> unauthenticated;
  for (int i = 0; i < 100; ++i) {  // more than are accepted in one turn
    auto peer = Socket::connect(server.listener->address(), wait);
    ASSERT_TRUE(peer);
    unauthenticated.push_back(*std::move(peer));
  }
  ASSERT_TRUE(serve_until(loop, [&] { return server.ends.size() == 98; }));
  EXPECT_THAT(server.ends[0], Mentions("newer", "took"));
  ASSERT_TRUE(unauthenticated[99].send_all(*frame_of(7, 10), wait));
  ASSERT_TRUE(serve_until(loop, [&] { return !server.types.empty(); }));
}

TEST(ConnectionListener, TakesNoLargeFrameOfAnUnauthenticatedPeer) {
  Loop loop;
  Server server{.loop = loop, .unauthenticated = {.payload_size_bytes = 1000}};
  server.open();
  const Wait wait{.deadline = real_clock().now() + 10s};
  auto peer = Socket::connect(server.listener->address(), wait);
  auto member = Socket::connect(server.listener->address(), wait);
  ASSERT_TRUE(peer && member);
  ASSERT_TRUE(serve_until(loop, [&] { return server.connections.size() == 2; }));
  server.connections[1]->admit();
  ASSERT_TRUE(peer->send_all(encode_header({.type = 1, .payload_size_bytes = 1001}), wait));
  ASSERT_TRUE(member->send_all(*frame_of(7, 1001), wait));
  ASSERT_TRUE(serve_until(loop, [&] { return !server.ends.empty() && !server.types.empty(); }));
  EXPECT_THAT(server.ends[0], HasSubstr("over the limit of 1000"));
}

TEST(ConnectionListener, HoldsLittleOfAllItsUnauthenticatedPeers) {
  Loop loop;
  Server server{.loop = loop, .unauthenticated = {.held_size_bytes = 10'000}};
  server.open();
  const Wait wait{.deadline = real_clock().now() + 10s};
  const auto whole = frame_of(7, 8'000);
  std::vector<Socket> unauthenticated;
  for (int i = 0; i < 3; ++i) {
    auto peer = Socket::connect(server.listener->address(), wait);
    ASSERT_TRUE(peer);
    ASSERT_TRUE(peer->send_all(std::span(*whole).first(4'000), wait));
    unauthenticated.push_back(*std::move(peer));
  }
  ASSERT_TRUE(serve_until(loop, [&] { return !server.ends.empty(); }));
  EXPECT_THAT(server.ends[0], Mentions("sent", "10000 bytes"));
  EXPECT_EQ(server.ends.size(), 1);
}

// What each of them is told is one and the same; what the kernel keeps of it is each one's own.
TEST(ConnectionListener, LeavesLittleUnreadByAllItsUnauthenticatedPeers) {
  constexpr std::size_t answer_size_bytes = 2 << 20;
  constexpr std::size_t count = 40;
  Loop loop;
  Server server{.loop = loop, .unauthenticated = {.unread_size_bytes = 1 << 20}};
  server.open();
  const Wait wait{.deadline = real_clock().now() + 10s};
  const auto answer = frame_of(7, answer_size_bytes);
  std::vector<Socket> unauthenticated;
  for (std::size_t i = 0; i < count; ++i) {
    auto peer = Socket::connect(server.listener->address(), wait);
    ASSERT_TRUE(peer);
    unauthenticated.push_back(*std::move(peer));
    ASSERT_TRUE(serve_until(loop, [&] { return server.connections.size() == i + 1; }));
    server.connections[i]->send_shared(answer);
    loop.run_for(1ms);
  }
  ASSERT_TRUE(serve_until(loop, [&] { return server.ends.size() > count / 2; }));
  EXPECT_THAT(server.ends[0], Mentions("1048576", "answers"));
  // The newest is there, and hears all of it once it reads.
  std::vector<std::byte> heard(answer->size());
  std::thread reader([&] { EXPECT_TRUE(unauthenticated.back().receive_all(heard, wait)); });
  bool is_heard = false;
  std::thread waiter([&] { reader.join(), loop.post([&] { is_heard = true; }); });
  EXPECT_TRUE(serve_until(loop, [&] { return is_heard; }));
  waiter.join();
  EXPECT_EQ(heard, *answer);
}

TEST(ConnectionListener, CountsWhatOnlyOnePeerIsToldForThatOne) {
  Loop loop;
  Server server{.loop = loop, .unauthenticated = {.unread_size_bytes = 1 << 20}};
  server.open();
  const Wait wait{.deadline = real_clock().now() + 10s};
  auto peer = Socket::connect(server.listener->address(), wait);
  auto member = Socket::connect(server.listener->address(), wait);
  ASSERT_TRUE(peer && member);
  ASSERT_TRUE(serve_until(loop, [&] { return server.connections.size() == 2; }));
  server.connections[1]->admit();
  for (int i = 0; i < 80; ++i)
    for (const auto& connection : server.connections) connection->send(frame_of(7, 64 << 10));
  ASSERT_TRUE(serve_until(loop, [&] { return !server.ends.empty(); }));
  EXPECT_THAT(server.ends[0], HasSubstr("answers"));
  ASSERT_TRUE(member->send_all(*frame_of(9, 10), wait));
  EXPECT_TRUE(serve_until(loop, [&] { return !server.types.empty(); })) << "a member may be slow";
}

TEST(ConnectionListener, ReadsOnlySoMuchOfWhoGoesOnTalkingAfterTheEnd) {
  Loop loop;
  Server server{.loop = loop};
  server.open();
  const Wait wait{.deadline = real_clock().now() + 10s};
  auto talker = Socket::connect(server.listener->address(), wait);
  ASSERT_TRUE(talker);
  ASSERT_TRUE(serve_until(loop, [&] { return server.connections.size() == 1; }));
  server.connections[0]->finish();
  server.connections.clear();
  const std::vector<std::byte> words(64 << 10);
  const iovec piece{.iov_base = const_cast<std::byte*>(words.data()), .iov_len = words.size()};
  std::size_t taken = 0;
  const TimePoint begin = real_clock().now();
  EXPECT_TRUE(serve_until(loop, [&] {
    const auto sent = talker->send_some({&piece, 1});
    taken += sent.value_or(0);
    return !sent;
  }));
  EXPECT_LT(real_clock().now() - begin, 900ms)
      << "it was read until the time was over, " << taken << " bytes";
}

// A listener that takes frames of type 7 for a beginning.
struct ScreeningServer : Server {
  std::vector<RejectedPeer> rejected = {};

  void open_screened() {
    const ConnectionLimits with_unauthenticated_peers{.payload_size_bytes = limits.payload_size_bytes,
                                                      .unsent_size_bytes = limits.unsent_size_bytes,
                                                      .unauthenticated = unauthenticated};
    auto made = ConnectionListener::open(
        loop, {ip, 0}, with_unauthenticated_peers,
        [this](std::unique_ptr<Connection> connection) {
          connection->set_events({.received = [this](Frame frame) { types.push_back(frame.header.type); },
                                  .closed = [this](const Error& error) { ends.push_back(error.message); }});
          connections.push_back(std::move(connection));
        },
        {},
        {.may_begin = [](const Frame& frame) -> Result<> {
           if (frame.header.type != 7) return fail(Code::corrupt, "no greeting");
           return {};
         },
         .turned_away =
             [this](const std::vector<RejectedPeer>& some) {
               rejected.insert(rejected.end(), some.begin(), some.end());
             }});
    ASSERT_TRUE(made) << made.error().message;
    listener = *std::move(made);
  }
};

class Screening : public ::testing::Test {
 protected:
  Socket connect() {
    auto made = Socket::connect(server.listener->address(), wait);
    EXPECT_TRUE(made) << made.error().message;
    return *std::move(made);
  }
  void serve_rejected(std::size_t count) {
    EXPECT_TRUE(serve_until(loop, [&] { return server.rejected.size() >= count; }));
  }
  Loop loop;
  ScreeningServer server{{.loop = loop}};
  const Wait wait{.deadline = real_clock().now() + 10s};
};

TEST_F(Screening, MakesAConnectionOfWhoBeginsWithAFrameHoweverItArrives) {
  server.open_screened();
  const auto frame = frame_of(7, 100);
  auto whole = connect();
  ASSERT_TRUE(whole.send_all(*frame, wait));
  ASSERT_TRUE(serve_until(loop, [&] { return server.types.size() == 1; }));
  auto slow = connect();
  loop.run_for(5ms);
  ASSERT_TRUE(slow.send_all(std::span(*frame).first(30), wait));
  loop.run_for(5ms);
  ASSERT_TRUE(slow.send_all(std::span(*frame).subspan(30, 60), wait));
  loop.run_for(5ms);
  EXPECT_EQ(server.connections.size(), 1) << "what is not whole is no connection";
  ASSERT_TRUE(slow.send_all(std::span(*frame).subspan(90), wait));
  ASSERT_TRUE(slow.send_all(*frame_of(8, 10), wait));
  ASSERT_TRUE(serve_until(loop, [&] { return server.types.size() == 3; }));
  EXPECT_EQ(server.types, (std::vector<std::uint16_t>{7, 7, 8}));
  EXPECT_EQ(server.connections.size(), 2);
  EXPECT_TRUE(server.connections[1]->is_unauthenticated()) << "it is admitted by its owner alone";
}

TEST_F(Screening, TurnsOthersAwayAndSaysHowManyTheyWere) {
  server.open_screened();
  std::vector<Socket> rejected;
  for (int i = 0; i < 3; ++i) {
    rejected.push_back(connect());
    ASSERT_TRUE(rejected.back().send_all(*frame_of(8, 10), wait));
  }
  serve_rejected(1);
  EXPECT_EQ(server.rejected[0], (RejectedPeer{"127.0.0.1", "no greeting", 3}));
  rejected.push_back(connect());
  loop.run_for(5ms);  // its connection is pending
  ASSERT_TRUE(rejected.back().send_all(std::as_bytes(std::span("GET", 3)), wait));
  serve_rejected(2);
  EXPECT_THAT(server.rejected[1].reason, Mentions("first", "MSTR"));
  std::byte rest{};
  for (Socket& each : rejected) EXPECT_FALSE(each.receive_all({&rest, 1}, wait)) << "still open";
  EXPECT_TRUE(server.connections.empty());
}

TEST_F(Screening, LetsThoseInWhoComeAmongUnauthorizedPeersAndAfterThem) {
  server.open_screened();
  const auto greeting = frame_of(7, 10);
  std::vector<Socket> rejected, members;
  for (std::size_t i = 0; i < 3; ++i) {
    for (int k = 0; k < 100; ++k) {
      rejected.push_back(connect());
      ASSERT_TRUE(rejected.back().send_all(*frame_of(8, 10), wait));
    }
    members.push_back(connect());
    ASSERT_TRUE(members.back().send_all(*greeting, wait));
    ASSERT_TRUE(serve_until(loop, [&] { return server.connections.size() == i + 1; }));
  }
  serve_rejected(1);  // it is over
  members.push_back(connect());
  ASSERT_TRUE(members.back().send_all(*greeting, wait));
  EXPECT_TRUE(serve_until(loop, [&] { return server.connections.size() == 4; }));
}

TEST_F(Screening, GivesThoseWhoSayNothingTheirTimeAndNoMore) {
  server.unauthenticated = {.time = 50ms};
  server.open_screened();
  auto silent = connect();
  auto begun = connect();
  ASSERT_TRUE(begun.send_all(std::span(*frame_of(7, 100)).first(70), wait));
  auto gone = connect();
  loop.run_for(5ms);
  gone = connect();  // who leaves without a word is no news
  serve_rejected(1);
  EXPECT_THAT(server.rejected[0].reason, Mentions("identify", "0.05"));
  EXPECT_EQ(server.rejected[0].count, 3);
  EXPECT_TRUE(server.connections.empty());
}

TEST_F(Screening, CountsThoseWhoWaitAndThoseWhoAreConnectionsTogether) {
  server.unauthenticated = {.count = 2};
  server.open_screened();
  auto first = connect();
  ASSERT_TRUE(first.send_all(*frame_of(7, 10), wait));
  ASSERT_TRUE(serve_until(loop, [&] { return server.connections.size() == 1; }));
  auto second = connect();
  auto third = connect();  // the connection goes for it
  ASSERT_TRUE(serve_until(loop, [&] { return server.ends.size() == 1; }));
  EXPECT_THAT(server.ends[0], Mentions("newer", "took"));
  auto fourth = connect();  // and the second for this one
  serve_rejected(1);
  EXPECT_THAT(server.rejected[0].reason, Mentions("newer", "took"));
  ASSERT_TRUE(fourth.send_all(*frame_of(7, 10), wait));
  ASSERT_TRUE(serve_until(loop, [&] { return server.connections.size() == 2; }));
}

TEST_F(Screening, HoldsLittleOfAllWhoHaveBegun) {
  server.unauthenticated = {.held_size_bytes = 10'000};
  server.open_screened();
  const auto whole = frame_of(7, 8'000);
  std::vector<Socket> unauthenticated;
  for (int i = 0; i < 3; ++i) {
    unauthenticated.push_back(connect());
    ASSERT_TRUE(unauthenticated.back().send_all(std::span(*whole).first(4'000), wait));
  }
  serve_rejected(1);
  EXPECT_THAT(server.rejected[0].reason, Mentions("sent", "10000 bytes"));
  EXPECT_EQ(server.rejected[0].count, 1);
}

TEST_F(Screening, AnswersAFewWhoSpeakTlsWhereNobodyDoes) {
  server.open_screened();
  std::vector<Socket> speakers;
  const std::vector<std::byte> hello(100, std::byte{0x16});
  for (int i = 0; i < 150; ++i) {
    speakers.push_back(connect());
    ASSERT_TRUE(speakers.back().send_all(hello, wait));
  }
  serve_rejected(1);
  ASSERT_TRUE(serve_until(loop, [&] { return server.ends.size() >= 100; }));
  EXPECT_THAT(server.ends[0], HasSubstr("uses TLS"));
  EXPECT_THAT(server.rejected[0].reason, HasSubstr("uses TLS"));
  std::byte answer{};
  EXPECT_TRUE(speakers[0].receive_all({&answer, 1}, wait));
  EXPECT_EQ(answer, std::byte{0x15}) << "an alert";
}

TEST(ConnectionListener, NamesTheProcessThatHoldsItsPort) {
  Loop loop;
  Server server{.loop = loop};
  server.open();
  const auto second = ConnectionListener::open(loop, server.listener->address(), limits, {});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr(fmt::format("process {} (", ::getpid())));
}

}  // namespace loop_test
}  // namespace
}  // namespace muster::net
