#include "muster/net/host.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "muster/net/address.h"
#include "muster/net/socket_address.h"

namespace muster::net {
namespace {

using ::testing::Eq;
using ::testing::Gt;

class PortReservationTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!is_local(GetParam())) GTEST_SKIP() << "this host has no " << GetParam();
  }
};

TEST_P(PortReservationTest, LetsAServerListenOnTheReservedPort) {
  const auto reservation = PortReservation::open(GetParam());
  ASSERT_TRUE(reservation.has_value()) << reservation.error().message;
  ASSERT_THAT(reservation->port(), Gt(0));

  const auto address = to_socket_address({.ip = GetParam(), .port = reservation->port()});
  ASSERT_TRUE(address.has_value());
  const Descriptor server(::socket(address->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ASSERT_THAT(::setsockopt(server.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), Eq(0));
  EXPECT_THAT(::bind(server.get(), address->get(), address->size_bytes), Eq(0));
  EXPECT_THAT(::listen(server.get(), 1), Eq(0));
}

TEST_P(PortReservationTest, KeepsThePortFromOneWhoDoesNotShare) {
  const auto reservation = PortReservation::open(GetParam());
  ASSERT_TRUE(reservation.has_value()) << reservation.error().message;
  const auto address = to_socket_address({.ip = GetParam(), .port = reservation->port()});
  const Descriptor other(::socket(address->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_THAT(::bind(other.get(), address->get(), address->size_bytes), Eq(-1));
}

INSTANTIATE_TEST_SUITE_P(Loopback, PortReservationTest, ::testing::Values("127.0.0.1", "::1"));

TEST(PortReservation, NamesAnAddressThatIsNotOfThisHost) {
  const auto reservation = PortReservation::open("192.0.2.1");  // of the documentation's network
  ASSERT_FALSE(reservation.has_value());
  EXPECT_THAT(reservation.error().message, ::testing::HasSubstr("cannot reserve a port of 192.0.2.1"));
}

}  // namespace
}  // namespace muster::net
