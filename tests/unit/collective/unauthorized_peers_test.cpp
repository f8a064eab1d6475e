// Unauthorized peers at the data ports: silent connections, in crowds, that no group and no call may notice.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "muster/collective/handshakes.h"
#include "relayed.h"
#include "tests/unit/net/crowd.h"

namespace muster::collective {
namespace {

using namespace std::chrono_literals;
using net::testing_only::Crowd;
using net::testing_only::FileLimit;
using net::testing_only::take_all_descriptors;
using net::testing_only::with_file_limit;

constexpr int crowd_size = 1100;

// ---- A group ----------------------------------------------------------------------------------------------

struct Case {
  bool is_secured;
  FileLimit files;
};

class UnauthorizedPeers : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Crowd, UnauthorizedPeers,
                         ::testing::Values(Case{false, {1024, 2048}}, Case{false, {256, 256}},
                                           Case{true, {1024, 2048}}, Case{true, {256, 256}}),
                         [](const auto& how) {
                           return fmt::format("{}{}", how.param.is_secured ? "Token" : "Plain",
                                              how.param.files.hard);
                         });

// Two ranks in one process, each on a host of its own.
struct Pair {
  Prepared prepared = prepare(2, Hosts::each_its_own);
  Ranks comms = Ranks(2);

  std::uint16_t port(std::uint32_t rank) const { return prepared.endpoints[rank].port; }
  // What went wrong; nothing: all is well.
  std::string connect(const Options& options) {
    return on_both([&](std::uint32_t rank) -> Result<> {
      Group group{.epoch = 1, .job_id = 7, .rank = rank, .endpoints = prepared.endpoints};
      MUSTER_TRY(comms[rank],
                 collective::connect(std::move(group), std::move(prepared.listeners[rank]), options));
      return {};
    });
  }
  std::string on_both(const std::function<Result<>(std::uint32_t)>& work) {
    std::array<std::string, 2> words;
    run_threads(2, [&](std::uint32_t rank) {
      if (const auto done = work(rank); !done)
        words[rank] = fmt::format("rank {}: {}; ", rank, done.error().message);
    });
    return words[0] + words[1];
  }
  std::string reduce_and_send() {
    return on_both([&](std::uint32_t rank) -> Result<> {
      std::vector<float> values(1000, 1);
      MUSTER_TRY_VOID(comms[rank]->all_reduce(values.data(), values.data(), values.size(), DType::float32,
                                              Reduction::sum));
      const std::span<std::byte> bytes = std::as_writable_bytes(std::span(values));
      const std::span<const std::byte> sent = bytes;
      return rank == 0 ? comms[0]->send(1, {&sent, 1}) : comms[1]->receive(0, {&bytes, 1});
    });
  }
};

TEST_P(UnauthorizedPeers, KeepNoGroupFromFormingAndEndNone) {
  const Options options = options_of(GetParam().is_secured);
  EXPECT_EQ(with_file_limit(GetParam().files,
                            [&]() -> std::string {
                              Pair pair;
                              const Crowd before(pair.port(0), crowd_size);
                              if (auto words = pair.connect(options); !words.empty())
                                return "forming: " + words;
                              std::string words = pair.reduce_and_send();
                              for (int wave = 0; wave < 3 && words.empty(); ++wave) {
                                const Crowd at_rest(pair.port(wave % 2), crowd_size);
                                words = pair.reduce_and_send();
                              }
                              return words;
                            }),
            "");
}

TEST_P(UnauthorizedPeers, EndNoCallThatIsUnderWay) {
  const Options options = options_of(GetParam().is_secured);
  EXPECT_EQ(with_file_limit(GetParam().files,
                            [&]() -> std::string {
                              Pair pair;
                              if (auto words = pair.connect(options); !words.empty()) return words;
                              return pair.on_both([&](std::uint32_t rank) {
                                if (rank == 1) const Crowd while_rank_0_waits(pair.port(0), crowd_size);
                                return pair.comms[rank]->barrier();
                              });
                            }),
            "");
}

// Where a rank had to let a member go among too many unauthorized peers, the member calls again.
TEST(UnauthorizedPeers, AreNoReasonToFailForARankThatWasLetGoWhileTheGroupFormed) {
  for (const bool secured : {false, true})
    for (const std::size_t life : {1u, 70u, 90u, 300u}) {  // in the hello, its answer, the handshake
      auto drawn = std::make_shared<std::atomic<int>>(0);
      const auto first_ends = [=]() -> std::optional<std::size_t> {
        return (*drawn)++ < 2 ? std::optional(life) : std::nullopt;
      };
      Relayed group(2, first_ends, options_of(secured));
      ASSERT_TRUE(group.comms[0] && group.comms[1]);
      run_threads(2, [&](std::uint32_t rank) { EXPECT_TRUE(group.comms[rank]->barrier()); });
    }
}

// ---- Handshakes -------------------------------------------------------------------------------------------

struct Hall {
  net::TcpListener listener = net::TcpListener::open({"127.0.0.1", 0}).value();
  Handshakes handshakes;

  explicit Hall(net::UnauthenticatedLimits limits, bool secured = true, const Clock& clock = real_clock())
      : handshakes(Handshakes::create({.tcp = listener}, {.clock = clock,
                                                          .own = {.epoch = 1, .job_id = 7},
                                                          .members = 2,
                                                          .security = options_of(secured).security,
                                                          .limits = limits})
                       .value()) {}

  net::Socket unauthorized() const {
    return net::Socket::connect(listener.address(), {.deadline = real_clock().now() + 10s}).value();
  }
  // Receives unauthenticated peers until `done`; whether that came.
  template <class Done>
  bool receive_until(Done&& done, std::vector<Handshakes::Candidate>* candidates = nullptr) {
    const TimePoint last = real_clock().now() + 10s;
    while (!done() && real_clock().now() < last) {
      std::array<pollfd, 2> polled{pollfd{.fd = handshakes.fd(), .events = POLLIN, .revents = 0}};
      const TimePoint soon = std::min(handshakes.deadline(), real_clock().now() + 10ms);
      static_cast<void>(net::poll_until(polled, {.deadline = soon}));
      for (auto& candidate : handshakes.hear())
        if (candidates != nullptr) candidates->push_back(std::move(candidate));
    }
    return done();
  }
};

bool is_closed(net::Socket& socket) {
  std::byte byte{};
  const iovec piece{.iov_base = &byte, .iov_len = 1};
  const auto received = socket.receive_some({&piece, 1});
  return !received && received.error().code == Code::peer_lost;
}

TEST(Handshakes, GivesAHandshakeLessTimeThanAnUnauthenticatedPeerHasToSayWhoItIs) {
  ManualClock clock;
  Hall hall({.count = 8, .time = 60s, .handshake_time = 3s}, true, clock);
  net::Socket silent = hall.unauthorized();
  net::Socket slow = hall.unauthorized();
  const auto start = std::array{std::byte{0x16}, std::byte{3}, std::byte{1}};
  ASSERT_TRUE(slow.send_all(start, {.deadline = real_clock().now() + 10s}));
  ASSERT_TRUE(hall.receive_until([&] { return hall.handshakes.deadline() == clock.now() + 3s; }));
  clock.advance(2999ms);
  hall.handshakes.hear();
  EXPECT_FALSE(is_closed(silent) || is_closed(slow));
  clock.advance(1ms);
  EXPECT_TRUE(hall.receive_until([&] { return is_closed(silent) && is_closed(slow); }));
}

// Half a record of TLS each: none of them can be judged.
TEST(Handshakes, HoldsNoMoreOfAllUnauthenticatedPeersTogetherThanItsLimit) {
  Hall hall({.count = 100, .time = 60s, .handshake_time = 60s, .held_size_bytes = 100'000});
  std::vector<std::byte> half(12'000);
  half[0] = std::byte{0x16}, half[1] = std::byte{3}, half[2] = std::byte{1}, half[3] = std::byte{0x3f};
  std::vector<net::Socket> unauthorized;
  for (int i = 0; i < 20; ++i) {
    unauthorized.push_back(hall.unauthorized());
    ASSERT_TRUE(unauthorized.back().send_all(half, {.deadline = real_clock().now() + 10s}));
  }
  const auto left = [&] {
    return std::ranges::count_if(unauthorized, [](auto& each) { return !is_closed(each); });
  };
  EXPECT_TRUE(hall.receive_until([&] { return left() <= 8; })) << left();
  EXPECT_GE(left(), 4) << "only as many go as must";
}

TEST(Handshakes, LetsTheOldestGoForWhoComesNow) {
  Hall hall({.count = 3});  // and the two members
  std::vector<net::Socket> unauthorized;
  for (int i = 0; i < 12; ++i) unauthorized.push_back(hall.unauthorized());
  EXPECT_TRUE(hall.receive_until([&] { return is_closed(unauthorized[6]); }));
  EXPECT_FALSE(is_closed(unauthorized[7]));
  EXPECT_FALSE(is_closed(unauthorized[11]));
}

// The user's own files may have taken all descriptors.
TEST(Handshakes, HearsAMemberThoughNoDescriptorIsFreeAndUnauthorizedPeersCome) {
  EXPECT_EQ(with_file_limit(
                {.soft = 64, .hard = 64},
                []() -> std::string {
                  Hall hall({.count = 256}, false);
                  const auto words =
                      encode_hello({.origin = {.epoch = 1, .job_id = 7}, .from = 1, .size = 2});
                  const std::uint16_t port = hall.listener.address().port;
                  const Crowd crowd(port, 40);
                  const Crowd member(port, 1, {reinterpret_cast<const char*>(words.data()), words.size()});
                  take_all_descriptors();
                  std::vector<Handshakes::Candidate> candidates;
                  hall.receive_until([&] { return !candidates.empty(); }, &candidates);
                  return candidates.size() == 1 && candidates[0].hello.from == 1 ? "" : "it was not heard";
                }),
            "");
}

}  // namespace
}  // namespace muster::collective
