// What becomes of listeners and connections where few descriptors are left, or none.
#include "muster/net/descriptor_limit.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crowd.h"
#include "muster/net/net.h"

namespace muster::net {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing_only::Crowd;
using testing_only::take_all_descriptors;
using testing_only::with_file_limit;

Wait within(Duration time) { return {.deadline = real_clock().now() + time}; }

rlim_t soft_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

// Opens one of the kinds of listener; what is wrong with the limits then.
std::string limits_beside(const std::function<bool()>& opens_listener) {
  return with_file_limit({.soft = 100, .hard = 300}, [&]() -> std::string {
    if (!opens_listener()) return "it cannot listen";
    if (soft_limit() != 300) return fmt::format("{} in the process that listens", soft_limit());
    const pid_t child = ::fork();
    if (child == 0) ::_exit(soft_limit() == 100 ? 0 : 1);
    int status = 0;
    ::waitpid(child, &status, 0);
    return status == 0 ? "" : "its child has the raised limit";
  });
}

TEST(DescriptorLimit, IsRaisedByWhoListensAndAsBeforeInForkedChildren) {
  EXPECT_EQ(limits_beside([] { return TcpListener::open({"127.0.0.1", 0}).has_value(); }), "");
  EXPECT_EQ(limits_beside([] { return LocalListener::open().has_value(); }), "");
  EXPECT_EQ(limits_beside([] {
              Loop loop;
              return ConnectionListener::open(loop, {"127.0.0.1", 0}, {}, {}).has_value();
            }),
            "");
}

TEST(DescriptorLimit, LeavesHalfOfThemToMembers) {
  EXPECT_EQ(with_file_limit({.soft = 200, .hard = 200},
                            []() -> std::string {
                              const std::size_t free = free_descriptors();
                              const UnauthenticatedSlots first(1000, 20), second(1000, 20);
                              const UnauthenticatedSlots bounded(2, 20);
                              if (first.count() != (free - 20) / 2 / 2)
                                return fmt::format("{}", first.count());
                              if (first.count() + second.count() > (free - 20) / 2) return "both: too many";
                              if (const UnauthenticatedSlots none_to_spare(1000, 1000);
                                  none_to_spare.count() < 4)
                                return "members have no place to say who they are";
                              if (bounded.count() != 2) return "more than asked for";
                              return "";
                            }),
            "");
}

// Unauthorized peers take what they can get, and a member is served all the same.
TEST(DescriptorLimit, IsNoReasonForAListenerToEnd) {
  EXPECT_EQ(with_file_limit(
                {.soft = 64, .hard = 64},
                []() -> std::string {
                  Loop loop;
                  std::vector<std::unique_ptr<Connection>> connections;
                  std::size_t frames = 0;
                  const ConnectionLimits limits{.payload_size_bytes = 1 << 20, .unsent_size_bytes = 1 << 20};
                  const auto listener = ConnectionListener::open(
                      loop, {"127.0.0.1", 0}, limits, [&](std::unique_ptr<Connection> connection) {
                        connection->set_events({.received = [&](const Frame&) { ++frames; }});
                        connections.push_back(std::move(connection));
                      });
                  if (!listener) return listener.error().message;
                  const Crowd crowd((*listener)->address().port, 300);
                  const auto frame = encode_frame({.type = 1}, {});
                  const Crowd member((*listener)->address().port, 1,
                                     {reinterpret_cast<const char*>(frame.data()), frame.size()});
                  const TimePoint deadline = real_clock().now() + 10s;
                  while (frames == 0 && real_clock().now() < deadline) loop.run_for(5ms);
                  return frames == 1 ? "" : "the member was not heard";
                }),
            "");
}

TEST(DescriptorLimit, WhereTheUsersFilesTakeAllLeavesSomeForConnectionsAndThenSaysWhatToDo) {
  EXPECT_EQ(with_file_limit({.soft = 64, .hard = 64},
                            []() -> std::string {
                              auto listener = TcpListener::open({"127.0.0.1", 0}).value();
                              auto local = LocalListener::open().value();
                              take_all_descriptors();
                              std::vector<Socket> made;
                              for (;;) {
                                auto socket = Socket::connect(listener.address(), within(10s));
                                if (socket) {
                                  made.push_back(*std::move(socket));
                                  continue;
                                }
                                const std::string& words = socket.error().message;
                                if (made.empty()) return "nothing was kept for it";
                                if (!listener.accept().lacks_descriptor)
                                  return "accept() did not say what it lacks";
                                if (words.find("all 64 that this process may have are open; ulimit -n") ==
                                    words.npos)
                                  return words;
                                made.clear();
                                return listener.accept().socket ? "" : "who waited is not accepted later";
                              }
                            }),
            "");
}

}  // namespace
}  // namespace muster::net
