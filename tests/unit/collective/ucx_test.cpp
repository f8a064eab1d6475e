// Links over UCX: the order and the limits of the stream over its port, here one of this test's own; who gets
// such a link; and that a group over it computes the same bits. What every link must do is in
// link_conformance_test.cpp.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <numeric>

#include "muster/collective/link_choice.h"
#include "muster/collective/ucx_library.h"
#include "muster/collective/ucx_stream.h"
#include "ranks.h"

#include "tests/unit/base/mentions.h"

namespace muster::collective {
namespace {
namespace ucx_test {

// ---- The stream

// Two ports that hand each other messages when the test says so.
class FakePort final : public UcxPort {
 public:
  explicit FakePort(UcxReceiver& receiver) : receiver_(receiver) {}

  const std::vector<std::byte>& address() const override { return address_; }
  Result<> connect(std::span<const std::byte>) override { return {}; }
  std::size_t queue_bytes() const override { return 420 << 10; }
  void send(Kind kind, UcxMessage& message) override {
    message.is_under_way = true;
    sent.push_back({kind, &message});
  }
  void flush(UcxMessage&) override {}
  bool progress() override { return false; }
  bool arm() override { return true; }
  int fd() const override { return -1; }
  void release(const std::byte*) override {}
  const std::optional<Error>& failure() const override { return failure_; }

  struct Sent {
    Kind kind;
    UcxMessage* message;
  };
  void deliver(const Sent& each) {
    if (each.kind == Kind::data)
      receiver_.take_data(each.message->number, each.message->bytes, false);
    else
      receiver_.take_credit(each.message->number);
  }
  std::deque<Sent> sent;

 private:
  UcxReceiver& receiver_;
  const std::vector<std::byte> address_;
  const std::optional<Error> failure_;
};

std::vector<FakePort*>& ports() {
  static std::vector<FakePort*> opened;
  return opened;
}

struct Streams {
  std::unique_ptr<UcxStream> near, far;
  FakePort* near_port = nullptr;
  FakePort* far_port = nullptr;
};
void pass(FakePort& from, FakePort& to, bool backwards = false);

// Both have heard of each other.
Streams two_streams() {
  ports().clear();
  const UcxLibrary library{.version = ucx_port_version,
                           .name = "fake",
                           .open = [](UcxReceiver& receiver) -> Result<std::unique_ptr<UcxPort>> {
                             auto made = std::make_unique<FakePort>(receiver);
                             ports().push_back(made.get());
                             return made;
                           }};
  Streams made{.near = UcxStream::open(library).value(), .far = UcxStream::open(library).value()};
  made.near_port = ports()[0];
  made.far_port = ports()[1];
  EXPECT_TRUE(made.near->connect({}));
  EXPECT_TRUE(made.far->connect({}));
  pass(*made.near_port, *made.far_port);
  pass(*made.far_port, *made.near_port);
  return made;
}

// Hands on what `from` has sent, the last message first if that is asked for.
void pass(FakePort& from, FakePort& to, bool backwards) {
  while (!from.sent.empty()) {
    const FakePort::Sent each = backwards ? from.sent.back() : from.sent.front();
    if (backwards)
      from.sent.pop_back();
    else
      from.sent.pop_front();
    to.deliver(each);
    each.message->is_under_way = false;
  }
}

// Until both sides have got all that they may have of each other.
void pass_all(Streams& streams, bool backwards = false) {
  do {
    streams.near->progress();
    pass(*streams.near_port, *streams.far_port, backwards);
    streams.far->progress();
    pass(*streams.far_port, *streams.near_port);
    streams.near->progress();
  } while (!streams.near_port->sent.empty());
}

iovec piece_of(std::span<std::byte> bytes) { return {.iov_base = bytes.data(), .iov_len = bytes.size()}; }
std::size_t send(UcxStream& stream, std::span<std::byte> bytes) {
  const iovec piece = piece_of(bytes);
  return stream.send_some({&piece, 1});
}
std::size_t receive(UcxStream& stream, std::span<std::byte> bytes) {
  const iovec piece = piece_of(bytes);
  return stream.receive_some({&piece, 1});
}

TEST(UcxStream, PutsMessagesThatOvertookEachOtherInOrder) {
  Streams streams = two_streams();
  Bytes bytes = bytes_of(1, 0, 300'000), got(bytes.size());
  ASSERT_EQ(send(*streams.near, bytes), bytes.size());
  pass(*streams.near_port, *streams.far_port, true);
  ASSERT_EQ(receive(*streams.far, got), got.size());
  EXPECT_TRUE(got == bytes);
}

TEST(UcxStream, HoldsNoMoreThanARingOfWhatNobodyTakes) {
  Streams streams = two_streams();
  Bytes bytes = bytes_of(1, 0, 4 << 20), got(bytes.size());
  const std::size_t sent = send(*streams.near, bytes);
  EXPECT_LE(sent, 1u << 20);
  EXPECT_GT(sent, 900u << 10);
  pass_all(streams);
  EXPECT_EQ(send(*streams.near, std::span(bytes).subspan(sent)), 0u)
      << "it has arrived, and nobody has taken it";
  const std::size_t arrived = receive(*streams.far, got);
  EXPECT_LE(arrived, 420u << 10) << "what UCX's queues hold";
  EXPECT_GT(arrived, 300u << 10);
  pass_all(streams);  // the credit
  EXPECT_GT(send(*streams.near, std::span(bytes).subspan(sent)), 0u);
}

TEST(UcxStream, KeepsBytesAsTheyAreWhileTheyAreUnderWay) {
  Streams streams = two_streams();
  Bytes bytes = bytes_of(1, 0, 1 << 20), got(bytes.size());
  const std::size_t sent = send(*streams.near, bytes);
  const FakePort::Sent first = streams.near_port->sent.front();
  pass(*streams.near_port, *streams.far_port);
  first.message->is_under_way = true;  // it has arrived, and this side's device reads it once more
  receive(*streams.far, std::span(got).first(sent));
  pass_all(streams);
  EXPECT_EQ(send(*streams.near, bytes), 0u);
  first.message->is_under_way = false;
  EXPECT_GT(send(*streams.near, bytes), 0u);
}

TEST(UcxStream, CarriesMoreThanItsRingInPiecesOfAnySize) {
  Streams streams = two_streams();
  Bytes bytes = bytes_of(2, 0, 5'000'001), got(bytes.size());
  std::size_t sent = 0, received = 0;
  for (std::size_t turn = 0; received < bytes.size(); ++turn) {
    ASSERT_LT(turn, 100'000u);
    const std::size_t some = 1 + turn * 7919 % 100'000;
    const auto rest = std::span(bytes).subspan(sent);
    sent += send(*streams.near, rest.first(std::min(some, rest.size())));
    pass_all(streams, turn % 2 == 0);
    const auto place = std::span(got).subspan(received);
    received += receive(*streams.far, place.first(std::min(some + 13, place.size())));
    pass_all(streams);
  }
  EXPECT_TRUE(got == bytes);
}

// ---- Who gets one

TEST(LinkChoice, TakesUcxWhereBothHaveItAndTcpWhereNobodyDemandsMore) {
  using enum LinkOffer;
  EXPECT_EQ(link_between(socket_only, socket_only, 1, 0).value(), LinkKind::socket);
  EXPECT_EQ(link_between(ucx_where_both_can, socket_only, 1, 0).value(), LinkKind::socket);
  EXPECT_EQ(link_between(socket_only, ucx_where_both_can, 1, 0).value(), LinkKind::socket);
  EXPECT_EQ(link_between(ucx_where_both_can, ucx_where_both_can, 1, 0).value(), LinkKind::ucx);
  EXPECT_EQ(link_between(ucx_only, ucx_where_both_can, 1, 0).value(), LinkKind::ucx);
}

TEST(LinkChoice, NamesWhoDoesNotHaveWhatAnotherDemands) {
  const auto chosen = link_between(LinkOffer::ucx_only, LinkOffer::socket_only, 3, 1);
  ASSERT_FALSE(chosen);
  EXPECT_THAT(chosen.error().message,
              Mentions("rank 3 demands UCX", "rank 1 does not have it", "MUSTER_TRANSPORT"));
}

TEST(LinkChoice, SendsNoPlainBytesOfAJobThatIsEncrypted) {
  const auto security = net::Security::from_token("a token of some length").value();
  const auto demanded = link_offer(Transport::ucx, security.get());
  ASSERT_FALSE(demanded);
  EXPECT_THAT(demanded.error().message, Mentions("MUSTER_TRANSPORT=ucx", "plain", "MUSTER_TRANSPORT=tcp"));
  EXPECT_EQ(link_offer(Transport::automatic, security.get()).value(), LinkOffer::socket_only);
}

TEST(LinkChoice, TakesTransportsOfNoNetworkForNoRdma) {
  for (const char* device : {"self/memory", "tcp/eth0", "posix/memory", "sysv/memory", "cma/memory"})
    EXPECT_FALSE(is_rdma(device)) << device;
  for (const char* device : {"rc_mlx5/mlx5_0:1", "rc_verbs/irdma0:1", "ud_verbs/rxe0:1", "dc_mlx5/mlx5_1:1"})
    EXPECT_TRUE(is_rdma(device)) << device;
}

// ---- A group

class UcxGroup : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = why_no_ucx()) GTEST_SKIP() << *reason;
    ::setenv("UCX_TLS", "tcp,posix,sysv,self", 1);
  }
};

std::vector<float> reduced(Hosts hosts, std::size_t count) {
  const Ranks comms = connect_ranks(3, hosts, patient);
  std::vector<float> of_rank_0;
  run_threads(3, [&](std::uint32_t rank) {
    const RandomStream random(5, rank);
    std::vector<float> numbers(count);
    for (std::size_t i = 0; i < count; ++i)
      numbers[i] = static_cast<float>(random.bits(i) >> 40) * (rank == 1 ? 1e-7f : 3e2f);
    const auto summed =
        comms[rank]->all_reduce(numbers.data(), numbers.data(), count, DType::float32, Reduction::mean);
    EXPECT_TRUE(summed) << summed.error().message;
    if (rank == 0) of_rank_0 = std::move(numbers);
  });
  return of_rank_0;
}

TEST_F(UcxGroup, ComputesTheBitsOfTcp) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{777}, std::size_t{3'000'001}}) {
    const auto over_tcp = reduced(Hosts::each_its_own, count);
    const auto over_ucx = reduced(Hosts::each_its_own_over_ucx, count);
    ASSERT_EQ(over_tcp.size(), over_ucx.size());
    EXPECT_EQ(std::memcmp(over_tcp.data(), over_ucx.data(), count * sizeof(float)), 0) << count;
  }
}

TEST_F(UcxGroup, LeavesWithWhatItSent) {
  for (int round = 0; round < 5; ++round) {
    Ranks comms = connect_ranks(2, Hosts::each_its_own_over_ucx, patient);
    const Bytes bytes = bytes_of(7, static_cast<std::uint64_t>(round), 200'000);
    run_threads(2, [&](std::uint32_t rank) {
      if (rank == 0) {
        const std::span<const std::byte> piece(bytes);
        EXPECT_TRUE(comms[0]->send(1, {&piece, 1}));
        comms[0]->leave({Code::aborted, "rank 0 has nothing more to do"});
        comms[0].reset();
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(round * 10));
      Bytes got(bytes.size());
      const std::span<std::byte> piece(got);
      const auto received = comms[1]->receive(0, {&piece, 1});
      EXPECT_TRUE(received) << received.error().message;
      EXPECT_TRUE(got == bytes);
    });
  }
}

TEST_F(UcxGroup, IsRefusedByARankThatTalksTcp) {
  Prepared prepared = prepare(2, Hosts::each_its_own);
  std::array<Error, 2> errors;
  run_threads(2, [&](std::uint32_t rank) {
    Group group{.epoch = 1,
                .job_id = 7,
                .rank = rank,
                .endpoints = prepared.endpoints,
                .transport = rank == 1 ? Transport::ucx : Transport::tcp};
    const auto made = connect(std::move(group), std::move(prepared.listeners[rank]),
                              {.connect_timeout = std::chrono::milliseconds(500)});
    ASSERT_FALSE(made);
    errors[rank] = made.error();
  });
  EXPECT_EQ(errors[1].code, Code::refused);
  EXPECT_THAT(errors[1].message, Mentions("rank 0", "rank 1 demands UCX", "MUSTER_TRANSPORT"));
}

TEST_F(UcxGroup, SaysWhatUcxFoundWhenItCannotBegin) {
  ::setenv("UCX_TLS", "rc", 1);  // there is no such device where this test is of use
  const auto state = ucx_state();
  ::setenv("UCX_TLS", "tcp,posix,sysv,self", 1);
  if (state) GTEST_SKIP() << "this host has RDMA: " << fmt::format("{}", fmt::join(state->devices, ", "));
  EXPECT_THAT(state.error().message, Mentions("UCX", "UCX_TLS"));
}

}  // namespace ucx_test
}  // namespace
}  // namespace muster::collective
