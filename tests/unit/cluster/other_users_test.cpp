#include "muster/cluster/other_users.h"

#include <gmock/gmock.h>

namespace muster::cluster {
namespace {

using ::testing::Eq;
using ::testing::Optional;

constexpr uid_t root = 0, database = 105, ada = 1000, bob = 1001, container = 1234;

// Of a host on which Ada and Bob may log in.
std::optional<std::string> person(uid_t user) {
  if (user == ada) return "ada";
  if (user == bob) return "bob";
  return std::nullopt;
}

std::optional<std::string> seen(std::vector<OwnedProcess> more, uid_t own = ada) {
  std::vector<OwnedProcess> processes = {{.pid = 1, .parent = 0, .user = root},
                                         {.pid = 20, .parent = 1, .user = database},
                                         {.pid = 30, .parent = 1, .user = ada},
                                         {.pid = 40, .parent = 30, .user = own}};
  processes.insert(processes.end(), more.begin(), more.end());
  return other_person(processes, 40, person);
}

TEST(OtherUsers, AreTheOtherPeopleWhoRunSomething) {
  EXPECT_THAT(seen({{.pid = 50, .parent = 1, .user = bob}}), Optional(Eq("bob")));
}

TEST(OtherUsers, AreNoneOnALaptopOrInAContainer) {
  EXPECT_FALSE(seen({}));
  EXPECT_FALSE(seen({{.pid = 50, .parent = 1, .user = container}})) << "a number without an account";
  EXPECT_FALSE(other_person({{.pid = 1, .parent = 0, .user = root}}, 1, person));
  EXPECT_FALSE(other_person({}, 40, person)) << "nothing can be seen";
}

TEST(OtherUsers, AreNotWhoBecameAnotherUserToStartIt) {
  EXPECT_FALSE(seen({}, root)) << "ada, by sudo";
  EXPECT_FALSE(seen({}, bob)) << "ada, by su";
}

TEST(OtherUsers, AreFoundThoughParentsSeemToGoInACircle) {
  const std::vector<OwnedProcess> processes = {{.pid = 2, .parent = 3, .user = ada},
                                               {.pid = 3, .parent = 2, .user = ada},
                                               {.pid = 4, .parent = 1, .user = bob}};
  EXPECT_THAT(other_person(processes, 2, person), Optional(Eq("bob")));
}

}  // namespace
}  // namespace muster::cluster
