// What every Link must do, whatever moves its bytes. A new one has a line in `every_link`, and passes the
// rest unchanged. (What a group over it must do is in transport_conformance_test.cpp.)
#include "muster/collective/link.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <thread>
#include <utility>

#include "muster/collective/collective.h"
#include "ranks.h"

namespace muster::collective {
namespace {
namespace link_conformance_test {

using LinkPtr = std::unique_ptr<Link>;
struct Ends {
  LinkPtr near, far;
};

net::Wait before_long() { return {.deadline = real_clock().now() + std::chrono::seconds(30)}; }

struct Sockets {
  net::Socket near, far;
};
Sockets connected() {
  auto listener = net::TcpListener::open({"127.0.0.1", 0}).value();
  auto near = net::Socket::connect(listener.address(), before_long()).value();
  return {std::move(near), *std::move(listener.accept().socket)};
}

Ends over_tcp() {
  Sockets sockets = connected();
  return {make_link(std::move(sockets.near), LinkKind::socket),
          make_link(std::move(sockets.far), LinkKind::socket)};
}
// UCX reads its variables whenever the first link of a process begins. No ends: it is not here.
Ends over_ucx(const char* transports) {
  if (why_no_ucx()) return {};
  ::setenv("UCX_TLS", transports, 1);
  Sockets sockets = connected();
  return {make_link(std::move(sockets.near), LinkKind::ucx),
          make_link(std::move(sockets.far), LinkKind::ucx)};
}
Ends over_ucx_tcp() { return over_ucx("tcp"); }
Ends over_ucx_shared_memory() { return over_ucx("posix,sysv,self"); }
Ends over_tls() {
  const auto security = net::Security::from_token("a token of some length").value();
  Sockets sockets = connected();
  std::thread other(
      [&] { EXPECT_TRUE(sockets.far.start_tls({.security = security, .listens = true}, before_long())); });
  EXPECT_TRUE(sockets.near.start_tls({.security = security}, before_long()));
  other.join();
  return {make_link(std::move(sockets.near), LinkKind::socket),
          make_link(std::move(sockets.far), LinkKind::socket)};
}

struct Over {
  const char* name;
  Ends (*make)();
};
constexpr Over every_link[] = {{"Tcp", over_tcp},
                               {"Tls", over_tls},
                               {"UcxTcp", over_ucx_tcp},
                               {"UcxSharedMemory", over_ucx_shared_memory}};

iovec piece_of(std::span<std::byte> bytes) { return {.iov_base = bytes.data(), .iov_len = bytes.size()}; }

// Whether the link had ended when the wait for it did.
bool wait_for(const Link& link, Interest interest) {
  WaitList waits;
  link.add_to(waits, interest);
  EXPECT_EQ(waits.wait(before_long()).value(), net::Readiness::ready);
  return waits.has_ended(0);
}

void send_all(Link& link, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const iovec piece = piece_of(bytes);
    const auto sent = link.send_some({&piece, 1});
    ASSERT_TRUE(sent) << sent.error().message;
    if (*sent == 0) wait_for(link, {.writing = true});
    bytes = bytes.subspan(*sent);
  }
}

void receive_all(Link& link, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const iovec piece = piece_of(bytes);
    const auto received = link.receive_some({&piece, 1});
    ASSERT_TRUE(received) << received.error().message;
    if (*received == 0) wait_for(link, {.reading = true});
    bytes = bytes.subspan(*received);
  }
}

// Why the link gives nothing any more.
Error end_of(Link& link) {
  for (;;) {
    std::array<std::byte, 64> bytes;
    const iovec piece = piece_of(bytes);
    const auto received = link.receive_some({&piece, 1});
    if (!received) return received.error();
    EXPECT_EQ(*received, 0u) << "bytes that nobody sent";
    if (*received > 0) return {};
    wait_for(link, {.reading = true});
  }
}

// As many bytes as go while nobody takes them.
std::size_t fill(Link& link, std::span<std::byte> bytes) {
  std::size_t total = 0;
  for (;;) {
    const iovec piece = piece_of(bytes.subspan(total));
    const auto sent = link.send_some({&piece, 1});
    EXPECT_TRUE(sent);
    if (!sent || *sent == 0) return total;
    total += *sent;
  }
}

class EveryLink : public ::testing::TestWithParam<Over> {
 protected:
  void SetUp() override {
    seed_ = entropy();
    fmt::print("seed {}\n", seed_);
    if (!link_.near) GTEST_SKIP() << why_no_ucx().value_or("UCX gave no link");
  }
  std::uint64_t seed_ = 0;
  Ends link_ = GetParam().make();
};

TEST_P(EveryLink, MovesPiecesInOrderEmptyOnesToo) {
  Bytes bytes = bytes_of(seed_, 0, 1000), got(bytes.size());
  const std::span all(bytes);
  const std::array pieces{piece_of(all.first(0)), piece_of(all.first(1)), piece_of(all.subspan(1, 0)),
                          piece_of(all.subspan(1))};
  ASSERT_EQ(link_.near->send_some(pieces).value(), bytes.size());
  receive_all(*link_.far, std::span(got).first(700));
  receive_all(*link_.far, std::span(got).subspan(700));
  EXPECT_TRUE(got == bytes);
}

TEST_P(EveryLink, NeverWaits) {
  std::array<std::byte, 16> bytes{};
  const iovec piece = piece_of(bytes);
  EXPECT_EQ(link_.far->receive_some({&piece, 1}).value(), 0u) << "nothing was sent";
  Bytes many = bytes_of(seed_, 0, 256 << 20);
  EXPECT_LT(fill(*link_.near, many), many.size()) << "nobody takes it";
}

TEST_P(EveryLink, GoesOnWhereItWasFull) {
  Bytes many = bytes_of(seed_, 0, 64 << 20), got(many.size());
  const std::size_t sent = fill(*link_.near, many);
  std::thread receiver([&] { receive_all(*link_.far, got); });
  send_all(*link_.near, std::span(many).subspan(sent));
  receiver.join();
  EXPECT_TRUE(got == many);
}

TEST_P(EveryLink, CarriesBothWaysAtOnce) {
  const std::array links{link_.near.get(), link_.far.get()};
  std::array<Bytes, 2> sent{bytes_of(seed_, 0, 8 << 20), bytes_of(seed_, 1, 8 << 20)}, got;
  run_threads(2, [&](std::uint32_t side) {
    Link& link = *links[side];
    got[side].resize(sent[side].size());
    std::span<std::byte> outgoing(sent[side]), incoming(got[side]);
    while (!outgoing.empty() || !incoming.empty()) {
      const iovec out = piece_of(outgoing), in = piece_of(incoming);
      const std::size_t went = outgoing.empty() ? 0 : link.send_some({&out, 1}).value();
      const std::size_t came = incoming.empty() ? 0 : link.receive_some({&in, 1}).value();
      outgoing = outgoing.subspan(went);
      incoming = incoming.subspan(came);
      if (went == 0 && came == 0)
        wait_for(link, {.reading = !incoming.empty(), .writing = !outgoing.empty()});
    }
  });
  EXPECT_TRUE(got[0] == sent[1]);
  EXPECT_TRUE(got[1] == sent[0]);
}

TEST_P(EveryLink, DeliversWhatWasSentBeforeItsEnd) {
  Bytes bytes = bytes_of(seed_, 0, 10'000), got(bytes.size());
  send_all(*link_.near, bytes);
  link_.near->finish_sending();
  receive_all(*link_.far, got);
  EXPECT_TRUE(got == bytes);
  EXPECT_EQ(end_of(*link_.far).code, Code::peer_lost);
  const net::Wait wait = before_long();  // the other side's system may acknowledge the end later
  while (!link_.near->is_delivered() && real_clock().now() < wait.deadline) std::this_thread::yield();
  EXPECT_TRUE(link_.near->is_delivered());
}

TEST_P(EveryLink, EndsForTheOtherSideWhenItIsClosed) {
  Bytes bytes = bytes_of(seed_, 0, 10'000), got(bytes.size());
  send_all(*link_.near, bytes);
  link_.near->close();
  receive_all(*link_.far, got);
  EXPECT_TRUE(got == bytes);
  EXPECT_EQ(end_of(*link_.far).code, Code::peer_lost);
}

// Whoever waits only to write, or for nothing at all, hears of it, too.
TEST_P(EveryLink, WakesEveryWaitOfTheOtherSideWhenItIsReset) {
  link_.near->reset();
  EXPECT_TRUE(wait_for(*link_.far, {}));
  EXPECT_TRUE(link_.far->is_broken()) << "it had not been closed before";
  EXPECT_EQ(end_of(*link_.far).code, Code::peer_lost);
}

TEST_P(EveryLink, EndsWithTheObjectOfTheOtherSide) {
  link_.near.reset();
  EXPECT_EQ(end_of(*link_.far).code, Code::peer_lost);
}

TEST_P(EveryLink, BelievesThePeerThatItBeganWith) { EXPECT_TRUE(link_.near->check_peer()); }

INSTANTIATE_TEST_SUITE_P(All, EveryLink, ::testing::ValuesIn(every_link),
                         [](const auto& over) { return over.param.name; });

}  // namespace link_conformance_test
}  // namespace
}  // namespace muster::collective
