#include "muster/net/socket.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <numeric>
#include <thread>

#include "muster/base/base.h"
#include "muster/net/security.h"
#include "muster/net/shared_memory.h"
#include "tests/unit/base/mentions.h"

namespace muster::net {
namespace {
namespace socket_test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

Wait within(Duration time) { return {.deadline = real_clock().now() + time}; }

struct Pair {
  Socket near, far;
};

// The connection is in the listener's queue as soon as connect() has returned.
Pair tcp_pair() {
  TcpListener listener = TcpListener::open({"127.0.0.1", 0}).value();
  Socket near = Socket::connect(listener.address(), within(seconds(10))).value();
  return {std::move(near), std::move(*listener.accept().socket)};
}
Pair local_pair() {
  LocalListener listener = LocalListener::open().value();
  Socket near = Socket::connect_local(listener.name(), within(seconds(10))).value();
  return {std::move(near), std::move(*listener.accept().socket)};
}

std::shared_ptr<const Security> security() {
  static const auto made = Security::from_token("0123456789abcdef0123456789abcdef").value();
  return made;
}
Pair secured(Pair pair) {
  std::thread other([&] {
    EXPECT_TRUE(pair.far.start_tls({.security = security(), .listens = true}, within(seconds(10))));
  });
  EXPECT_TRUE(pair.near.start_tls({.security = security()}, within(seconds(10))));
  other.join();
  return pair;
}
Pair secured_tcp_pair() { return secured(tcp_pair()); }
Pair secured_local_pair() { return secured(local_pair()); }

class SocketContract : public ::testing::TestWithParam<Pair (*)()> {};

TEST_P(SocketContract, CarriesMoreThanAnyBufferHolds) {
  Pair pair = GetParam()();
  std::vector<std::byte> sent(32 << 20), received(sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 + i / 251);
  std::thread sender([&] { EXPECT_TRUE(pair.near.send_all(sent, within(seconds(30)))); });
  EXPECT_TRUE(pair.far.receive_all(received, within(seconds(30))));
  sender.join();
  EXPECT_TRUE(sent == received);
}

TEST_P(SocketContract, GivesUpAtTheDeadline) {
  Pair pair = GetParam()();
  std::array<std::byte, 1> byte{};
  const auto received = pair.far.receive_all(byte, within(milliseconds(20)));
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, Code::timeout);
}

TEST_P(SocketContract, WakesWhenItIsStopped) {
  Pair pair = GetParam()();
  StopSignal stop = StopSignal::create().value();
  std::thread other([&] { stop.raise(); });
  std::array<std::byte, 1> byte{};
  const auto received =
      pair.far.receive_all(byte, {.deadline = real_clock().now() + seconds(60), .stop = &stop});
  other.join();
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, Code::aborted);
}

TEST_P(SocketContract, DeliversWhatWasSentBeforeTheEnd) {
  Pair pair = GetParam()();
  std::array<std::byte, 3> bytes{std::byte{1}, std::byte{2}, std::byte{3}};
  ASSERT_TRUE(pair.near.send_all(bytes, within(seconds(10))));
  pair.near.finish_sending();
  std::array<std::byte, 3> received{};
  EXPECT_TRUE(pair.far.receive_all(received, within(seconds(10))));
  EXPECT_EQ(received, bytes);
  EXPECT_EQ(pair.far.receive_all(received, within(seconds(10))).error().code, Code::peer_lost);
}

TEST_P(SocketContract, SendsOnOneThreadWhatAnotherReceives) {
  Pair pair = GetParam()();
  const std::vector<std::byte> bytes(24 << 20, std::byte{7});
  std::vector<std::byte> near_got(bytes.size()), far_got(bytes.size());
  std::thread near_sends([&] { EXPECT_TRUE(pair.near.send_all(bytes, within(seconds(60)))); });
  std::thread far_sends([&] { EXPECT_TRUE(pair.far.send_all(bytes, within(seconds(60)))); });
  std::thread near_receives([&] { EXPECT_TRUE(pair.near.receive_all(near_got, within(seconds(60)))); });
  EXPECT_TRUE(pair.far.receive_all(far_got, within(seconds(60))));
  for (std::thread* each : {&near_sends, &far_sends, &near_receives}) each->join();
  EXPECT_TRUE(near_got == bytes);
  EXPECT_TRUE(far_got == bytes);
}

INSTANTIATE_TEST_SUITE_P(Kinds, SocketContract,
                         ::testing::Values(&tcp_pair, &local_pair, &secured_tcp_pair, &secured_local_pair));

TEST(SecuredSocket, PassesADescriptorBehindEncryptedBytes) {
  Pair pair = secured_local_pair();
  Segment made = Segment::create(8192).value();
  made.data()[5] = std::byte{42};
  const std::vector<std::byte> bytes(100'000, std::byte{3});
  std::thread sender([&] {
    EXPECT_TRUE(pair.near.send_all(bytes, within(seconds(10))));
    EXPECT_TRUE(pair.near.send_fd(made.fd(), within(seconds(10))));
  });
  std::vector<std::byte> received(bytes.size());
  ASSERT_TRUE(pair.far.receive_all(received, within(seconds(10))));
  auto descriptor = pair.far.receive_fd(within(seconds(10)));
  sender.join();
  ASSERT_TRUE(descriptor) << descriptor.error().message;
  EXPECT_EQ(Segment::open(*std::move(descriptor), 8192).value().data()[5], std::byte{42});
}

TEST(SecuredSocket, SaysWhyTheOtherSideIsNotBelieved) {
  Pair pair = tcp_pair();
  const auto unauthorized = Security::from_token("another token of some length").value();
  std::string far_says = "nothing";
  std::thread other([&] {
    const auto done = pair.far.start_tls({.security = security(), .listens = true}, within(seconds(10)));
    if (!done) far_says = done.error().message;
  });
  const auto done =
      pair.near.start_tls({.security = unauthorized, .peer_name = "rank 0"}, within(seconds(10)));
  other.join();
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, Mentions("0 refused", "token"));
  EXPECT_THAT(far_says, HasSubstr("has another token"));
}

TEST(SecuredSocket, AnswersWhoSpeaksPlainInPlain) {
  Pair pair = tcp_pair();
  const std::string hello = "MSTR and so on";
  ASSERT_TRUE(pair.near.send_all(std::as_bytes(std::span(hello)), within(seconds(10))));
  const auto done = pair.far.start_tls({.security = security(), .listens = true}, within(seconds(10)));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("not use TLS"));
  ASSERT_TRUE(pair.far.spoke_plain());
  pair.far.end_tls();
  EXPECT_TRUE(pair.far.send_all(std::as_bytes(std::span(hello)), within(seconds(10))));
  std::vector<std::byte> answer(hello.size());
  EXPECT_TRUE(pair.near.receive_all(answer, within(seconds(10))));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(answer.data()), answer.size()), hello);
}

TEST(TcpSocket, WaitsForAListenerThatComesLater) {
  const Address address = TcpListener::open({"127.0.0.1", 0}).value().address();  // closed again
  std::optional<TcpListener> listener;
  std::thread server([&] { listener.emplace(TcpListener::open(address).value()); });
  EXPECT_TRUE(Socket::connect(address, within(seconds(30))));
  server.join();
}

TEST(TcpSocket, NamesTheAddressThatNobodyListensOn) {
  const Address address = TcpListener::open({"127.0.0.1", 0}).value().address();
  const auto connected = Socket::connect(address, within(milliseconds(50)));
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code, Code::timeout);
  EXPECT_THAT(connected.error().message, HasSubstr(to_string(address)));
}

TEST(LocalSocket, NamesAListenerThatDoesNotExist) {
  const auto connected = Socket::connect_local("muster-no-such-name", within(seconds(10)));
  ASSERT_FALSE(connected);
  EXPECT_THAT(connected.error().message, HasSubstr("muster-no-such-name"));
}

TEST(Segment, IsSharedThroughADescriptor) {
  Pair pair = local_pair();
  Segment made = Segment::create(8192).value();
  made.data()[5000] = std::byte{42};
  ASSERT_TRUE(pair.near.send_fd(made.fd(), within(seconds(10))));
  Segment opened = Segment::open(pair.far.receive_fd(within(seconds(10))).value(), 8192).value();
  EXPECT_EQ(opened.data()[5000], std::byte{42});
  opened.data()[1] = std::byte{7};
  EXPECT_EQ(made.data()[1], std::byte{7});
}

TEST(Segment, RefusesMemoryThatCouldShrinkAndAnotherSize) {
  ProcessDescriptor unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), 8192), 0);
  EXPECT_THAT(Segment::open(std::move(unsealed), 8192).error().message, HasSubstr("not sealed"));
  Segment made = Segment::create(8192).value();
  EXPECT_THAT(Segment::open(ProcessDescriptor(::dup(made.fd())), 4096).error().message,
              HasSubstr("8192 bytes instead of 4096"));
}

TEST(Segment, HasRoomThatHoldsZerosEachTimeItIsReserved) {
  constexpr Extent extent{.offset_bytes = 8192 + 4096, .size_bytes = 8192};
  Segment made = Segment::create(8192, 1 << 20).value();
  Segment opened = Segment::open(ProcessDescriptor(::dup(made.fd())), 8192, 1 << 20).value();
  EXPECT_EQ(opened.room_bytes(), std::size_t{1} << 20);
  const Mapping elsewhere = opened.map(extent).value();
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(made.reserve(extent));
    const Mapping here = made.map(extent).value();
    EXPECT_EQ(here.data()[5000], std::byte{0});
    here.data()[5000] = std::byte{42};
    EXPECT_EQ(elsewhere.data()[5000], std::byte{42});
    made.release(extent);
  }
}

TEST(Segment, RefusesMoreRoomThanItExpects) {
  Segment made = Segment::create(8192, 8192).value();
  EXPECT_THAT(Segment::open(ProcessDescriptor(::dup(made.fd())), 8192, 4096).error().message,
              HasSubstr("16384 bytes instead of 8192"));
}

TEST(Segment, MakesNoFileThatTheProcessMayNotHave) {
  const pid_t child = ::fork();  // the limit cannot be taken back
  if (child == 0) {
    const rlimit limit{.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    const bool limited = ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
    const auto made = Segment::create(8192, 1 << 30);
    std::_Exit(limited && made && made->room_bytes() == (1 << 20) - 8192 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ProcessDescriptor, IsClosedInAForkedChild) {
  const ProcessDescriptor descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::uint32_t forks = fork_count();
  const pid_t child = ::fork();
  if (child == 0) std::_Exit(::fcntl(descriptor.get(), F_GETFD) == -1 && fork_count() == forks + 1 ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_NE(::fcntl(descriptor.get(), F_GETFD), -1) << "the parent keeps it";
}

// The system's own choice may pace what is sent by what the other side took before.
std::string control_of(const Socket& socket) {
  std::array<char, 64> name{};
  socklen_t size = name.size();
  EXPECT_EQ(::getsockopt(socket.fd(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &size), 0);
  return name.data();
}

TEST(Socket, BetweenProcessesOfThisHostIsNotPaced) {
  const Pair pair = tcp_pair();
  EXPECT_EQ(control_of(pair.near), "reno");
  EXPECT_EQ(control_of(pair.far), "reno");
  const TcpListener listener = TcpListener::open({"127.0.0.1", 0}).value();
  EXPECT_EQ(control_of(Socket::begin_connecting(listener.address()).value()), "reno");
}

}  // namespace socket_test
}  // namespace
}  // namespace muster::net
