#include "muster/net/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/base/base.h"
#include "muster/net/host.h"
#include "tests/unit/base/mentions.h"

namespace muster::net {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(Address, HasOneCanonicalText) {
  EXPECT_EQ(parse_ip("127.0.0.1").value(), "127.0.0.1");
  EXPECT_EQ(parse_ip("[::1]").value(), "::1");
  EXPECT_EQ(parse_ip("2001:DB8:0:0::7").value(), "2001:db8::7");
  EXPECT_EQ(parse_ip("::ffff:10.0.0.7").value(), "10.0.0.7");
  EXPECT_EQ(to_string(Address{"10.0.0.7", 8118}), "10.0.0.7:8118");
  EXPECT_EQ(to_string(Address{"::1", 8118}), "[::1]:8118");
}

TEST(Address, RefusesWhatIsNoAddress) {
  for (const char* text : {"", "1", "256.1.1.1", "1.2.3", "host", ":::", "0x7f000001"}) {
    const auto parsed = parse_ip(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr(text));
  }
}

TEST(HostPort, ReadsNamesAndBothFamilies) {
  EXPECT_EQ(parse_host_port("node-1:8118").value().host, "node-1");
  EXPECT_EQ(parse_host_port("[fe80::1]:80").value().host, "fe80::1");
  EXPECT_EQ(parse_host_port("[fe80::1]:80").value().port, 80);
  for (const char* text : {"node", ":80", "node:", "node:x", "node:65536", "node:-1", "::1:80"})
    EXPECT_FALSE(parse_host_port(text)) << text;
}

TEST(Resolve, GivesNumbersBackAndNamesTheHostItCannotFind) {
  EXPECT_EQ(resolve("127.0.0.1").value(), std::vector<std::string>{"127.0.0.1"});
  EXPECT_FALSE(resolve("localhost").value().empty());
  const auto missing = resolve("no-such-host.invalid");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::not_found);
  EXPECT_THAT(missing.error().message, HasSubstr("no-such-host.invalid"));
}

TEST(LocalAddresses, IncludeLoopbackAndKnowWhatIsNotHere) {
  EXPECT_THAT(local_addresses().value(), Contains("127.0.0.1"));
  EXPECT_TRUE(is_local("127.0.0.1"));
  EXPECT_TRUE(is_local("127.4.5.6"));
  EXPECT_FALSE(is_local("192.0.2.1")) << "an address that is reserved for documentation";
  EXPECT_FALSE(is_local("0.0.0.0"));
  EXPECT_FALSE(is_local("name"));
}

TEST(SourceAddress, IsLoopbackForLoopback) {
  EXPECT_EQ(source_address({"127.0.0.1", 8118}).value(), "127.0.0.1");
  EXPECT_FALSE(source_address({"name", 8118}));
}

TEST(InterfaceOf, NamesTheInterfaceThatHasAnAddress) {
  EXPECT_EQ(interface_of("127.0.0.1").value(), "lo");
  EXPECT_THAT(interface_of("192.0.2.1").error().message, Mentions("interface", "192.0.2.1"));
}

FixedEnvironment with_key(const std::string& key) {
  return FixedEnvironment(std::map<std::string, std::string, std::less<>>{{"MUSTER_HOST_KEY", key}});
}

TEST(HostKey, IsStableAndCanBeOverridden) {
  const FixedEnvironment empty = with_key("");
  EXPECT_EQ(host_key(empty).value(), host_key(empty).value());
  EXPECT_EQ(host_key(with_key("elsewhere")).value(), "elsewhere");
  EXPECT_FALSE(host_key(with_key(std::string(1000, 'x'))));
}

}  // namespace
}  // namespace muster::net
