#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/net/security.h"
#include "tests/unit/base/mentions.h"

namespace muster::net {
namespace {

using ::testing::HasSubstr;

PeerNames names() {
  return {.hosts = {"a.example", "*.cluster.example"},
          .addresses = {"10.0.0.7", "fe80::1"},
          .node_ids = {},
          .subject = "CN=a"};
}
bool fits(const std::string& host) { return check_identity(names(), {.hosts = {host}}).has_value(); }

TEST(Identity, IsANameOrAnAddressOfTheCertificate) {
  for (const char* host : {"a.example", "A.Example", "a.example.", "10.0.0.7", "fe80::1", "[fe80::1]",
                           "fe80:0::1", "b.cluster.example"})
    EXPECT_TRUE(fits(host)) << host;
  for (const char* host : {"", "example", "b.example", "xa.example", "10.0.0.70", "10.0.0.8", "fe80::2",
                           "cluster.example", "a.b.cluster.example", ".cluster.example"})
    EXPECT_FALSE(fits(host)) << host;
}

TEST(Identity, TakesAnAddressForNoNameAndANameForNoAddress) {
  const PeerNames odd{.hosts = {"10.0.0.9"}, .addresses = {}, .node_ids = {}, .subject = "CN=odd"};
  EXPECT_FALSE(check_identity(odd, {.hosts = {"10.0.0.9"}}));
  const PeerNames wide{.hosts = {"*", "*.example"}, .addresses = {}, .node_ids = {}, .subject = "CN=wide"};
  EXPECT_FALSE(check_identity(wide, {.hosts = {"a.example", "example", "a"}}))
      << "too much for one certificate";
}

TEST(Identity, OfACertificateForNodesIsTheNodeAlone) {
  PeerNames nodes = names();
  nodes.node_ids = {"3", "4"};
  EXPECT_TRUE(check_identity(nodes, {.hosts = {"elsewhere"}, .node_id = "4"}));
  const auto other = check_identity(nodes, {.hosts = {"a.example"}, .node_id = "5"});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, Mentions("made", "3, 4", "node 5"));
  EXPECT_FALSE(check_identity(nodes, {.hosts = {"a.example"}}));
}

TEST(Identity, SaysWhatWasExpectedAndWhatIsThere) {
  const auto other = check_identity(names(), {.hosts = {"b.example", "b.example", ""}, .node_id = "7"});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::refused);
  EXPECT_THAT(other.error().message,
              Mentions("certificate", "(CN=a)", "a.example, *.cluster.example, 10.0.0.7, fe80::1",
                       "b.example, muster:node:7"));
}

}  // namespace
}  // namespace muster::net
