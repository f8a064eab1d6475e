#include "muster/train/server_copies.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::train {
namespace {
namespace server_copies_test {

using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

cluster::Roster servers_on(const std::vector<std::string>& hosts) {
  cluster::Roster roster;
  for (const std::string& host : hosts) roster.servers.push_back({.host_key = host});
  return roster;
}

TEST(CopiesOnOneHost, AreThoseOfNeighboursInNumber) {
  EXPECT_EQ(copies_on_one_host(servers_on({"a", "a", "b", "b"}), 2), (Pairs{{0, 1}, {2, 3}}));
  EXPECT_EQ(copies_on_one_host(servers_on({"a", "b", "a"}), 2), (Pairs{{2, 0}}));
  EXPECT_EQ(copies_on_one_host(servers_on({"a#1", "a#2", "b#3"}), 2), (Pairs{{0, 1}}));
}

TEST(CopiesOnOneHost, AreNoneWhereNumbersTakeTurnsOverHosts) {
  EXPECT_EQ(copies_on_one_host(servers_on({"a", "b", "a", "b"}), 2), Pairs{});
}

TEST(CopiesOnOneHost, AreNotToldWhereThereIsNoOtherHostOrNoCopy) {
  EXPECT_EQ(copies_on_one_host(servers_on({"a", "a", "a"}), 2), Pairs{});
  EXPECT_EQ(copies_on_one_host(servers_on({"a", "a", "b", "b"}), 1), Pairs{});
}

}  // namespace server_copies_test
}  // namespace
}  // namespace muster::train
