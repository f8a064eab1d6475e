// Whoever makes a broken connection again hears soon that its peer has left, at whatever moment it left: a
// connection that nobody will answer is closed.
#include <gtest/gtest.h>

#include "muster/collective/frame_stream.h"
#include "muster/collective/hello.h"
#include "muster/collective/reconnect_acceptor.h"
#include "ranks.h"

namespace muster::collective {
namespace {

using std::chrono::seconds;

class AcceptorOfRank0 : public ::testing::Test {
 protected:
  net::Wait wait() const { return {.deadline = real_clock().now() + seconds(5)}; }
  net::Socket connect() const {
    return net::Socket::connect({"127.0.0.1", prepared_.endpoints[0].port}, wait()).value();
  }
  // Rank 1 goes on with its connection for calls, as if it had broken.
  net::Socket resume() const {
    net::Socket socket = connect();
    const Hello hello{.origin = {.epoch = 1, .job_id = 7},
                      .from = 1,
                      .to = 0,
                      .size = 2,
                      .intent = Intent::resume,
                      .generation = 1};
    EXPECT_TRUE(socket.send_all(encode_hello(hello), wait()));
    return socket;
  }
  // Serves the acceptor until `is_done`.
  void serve_until(const std::function<bool()>& is_done) {
    while (!is_done()) {
      std::array<pollfd, 2> polled{{{.fd = acceptor_->fd(), .events = POLLIN, .revents = 0}, {}}};
      ASSERT_EQ(net::poll_until(polled, wait()).value(), net::Readiness::ready);
      acceptor_->serve();
    }
  }
  // Whether the other side closes the connection, after at most `before` bytes.
  bool is_closed(net::Socket& socket, std::size_t before = 0) const {
    std::vector<std::byte> bytes(before + 1);
    const auto received = socket.receive_all(bytes, wait());
    return !received && received.error().code == Code::peer_lost;
  }

  Prepared prepared_ = prepare(2, Hosts::each_its_own);
  std::unique_ptr<ReconnectAcceptor> acceptor_ =
      ReconnectAcceptor::open(std::make_shared<const Group>(Group{
                                  .epoch = 1, .job_id = 7, .rank = 0, .endpoints = prepared_.endpoints}),
                              {1}, std::move(prepared_.listeners[0]), nullptr, real_clock())
          .value();
};

TEST_F(AcceptorOfRank0, ThatIsShutClosesTheConnectionOfWhoWaitsToBeWelcomed) {
  net::Socket waits = resume();
  serve_until([&] { return acceptor_->has_news(); });
  acceptor_->shut();
  EXPECT_TRUE(is_closed(waits));
}

TEST_F(AcceptorOfRank0, ThatIsShutClosesTheConnectionOfWhoHasNotSaidAllOfItsHello) {
  net::Socket begins = connect();
  net::Socket waits = resume();
  serve_until([&] { return acceptor_->has_news(); });  // `begins` has been accepted before it
  acceptor_->shut();
  EXPECT_TRUE(is_closed(begins));
}

TEST_F(AcceptorOfRank0, TellsWhoWaitsToBeWelcomedThatNoMoreCallsCanBeMade) {
  net::Socket waits = resume();
  serve_until([&] { return acceptor_->has_news(); });
  acceptor_->end_calls("rank 2 left the group");
  Bytes answer(
      encode_refusal({.epoch = 1, .job_id = 7}, "no more calls can be made: rank 2 left the group").size());
  ASSERT_TRUE(waits.receive_all(answer, wait()));
  EXPECT_EQ(answer,
            encode_refusal({.epoch = 1, .job_id = 7}, "no more calls can be made: rank 2 left the group"));
}

TEST_F(AcceptorOfRank0, AConnectionThatIsMadeAgainAfterItsOwnerHasLeftIsClosed) {
  FrameStream wire(1, Purpose::calls, *acceptor_);
  net::Socket waits = resume();
  serve_until([&] { return acceptor_->has_news(); });
  wire.close();
  EXPECT_TRUE(wire.mend().value());
  EXPECT_TRUE(is_closed(waits, encode_welcome({.epoch = 1, .job_id = 7}, {}).size()));
}

}  // namespace
}  // namespace muster::collective
