#include "muster/cluster/tls_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/base/mentions.h"

namespace muster::cluster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The fields that must be there, and `more`.
std::string with(const std::string& more) {
  return R"({"server_cert_path": "server.p12", "client_cert_path": "client.p12", "ca_cert_path": "ca.crt")" +
         more + "}";
}

std::string error_of(const std::string& text) {
  const auto config = parse_tls_config(text, "config.json");
  return config ? "no error" : config.error().message;
}

TEST(TlsConfig, HasTheFieldsOfTheField) {
  const auto config = parse_tls_config(R"({
    "server_cert_path": "server.p12",
    "crl_path": "",
    "client_cert_path": "client.p12",
    "ca_cert_path": "ca.crt",
    "cipher_list": "ECDHE-R SA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256",
    "cert_expire_warning_time_in_day": 30
  })",
                                       "config.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->server_cert_path, "server.p12");
  EXPECT_EQ(config->client_cert_path, "client.p12");
  EXPECT_EQ(config->ca_cert_path, "ca.crt");
  EXPECT_EQ(config->crl_path, "");
  EXPECT_EQ(config->cipher_list, "ECDHE-R SA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256");
  EXPECT_EQ(config->cert_expire_warning_time_in_day, 30);
  EXPECT_THAT(config->warnings, IsEmpty());
}

TEST(TlsConfig, NeedsNoListOfRevokedCertificatesNorOfCiphers) {
  const auto config = parse_tls_config(with(""), "config.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->crl_path, "");
  EXPECT_EQ(config->cipher_list, "");
  EXPECT_EQ(config->cert_expire_warning_time_in_day, 90);
}

TEST(TlsConfig, WarnsOfAFieldThatIsNoneWithTheNearestName) {
  const auto config = parse_tls_config(
      with(R"(, "cert_expire_warning_time_in_da": 7, "recovery": {"a": [1]})"), "/etc/config.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->cert_expire_warning_time_in_day, 90);
  EXPECT_THAT(
      config->warnings,
      ElementsAre("/etc/config.json: 'cert_expire_warning_time_in_da' is no field of it and is not used; did "
                  "you mean 'cert_expire_warning_time_in_day'?",
                  AllOf(Mentions("'recovery'", "field"), Mentions("fields", "server_cert_path"))));
}

TEST(TlsConfig, NamesTheFieldThatIsWrong) {
  EXPECT_THAT(error_of("{}"), Mentions("config.json", "'server_cert_path'", "names"));
  EXPECT_THAT(error_of(R"({"server_cert_path": ""})"), Mentions("'server_cert_path'", "empty"));
  EXPECT_THAT(error_of(R"({"server_cert_path": 7})"), Mentions("'server_cert_path'", "text"));
  EXPECT_THAT(error_of(R"({"server_cert_path": "a\u0000b"})"), HasSubstr("zero byte"));
  EXPECT_THAT(error_of(with(R"(, "crl_path": null)")), Mentions("'crl_path'", "null"));
  EXPECT_THAT(error_of(with(R"(, "crl_path": ")" + std::string(5000, 'a') + "\"")),
              Mentions("'crl_path'", "5000 bytes", "have 4096"));
  for (const char* days : {"-1", "1.5", "\"90\"", "36501", "18446744073709551616", "true"})
    EXPECT_THAT(error_of(with(std::string(R"(, "cert_expire_warning_time_in_day": )") + days)),
                Mentions("'cert_expire_warning_time_in_day'", "days", "from 0", "to 36500"))
        << days;
}

TEST(TlsConfig, IsNoOtherTextThanAnObject) {
  for (const char* text : {"[]", "7", "null"})
    EXPECT_THAT(error_of(text), Mentions("config.json", "JSON", "object")) << text;
  for (const char* text : {"", "{\"server_cert_path\"", "\xff\xfe"})
    EXPECT_THAT(error_of(text), Mentions("config.json", "JSON", "line 1", "column")) << text;
  EXPECT_THAT(error_of(std::string(60'000, '[')), Mentions("config.json", "deeply"));
  EXPECT_THAT(error_of(with(R"(, "crl_path": "a", "crl_path": "")")), Mentions("'crl_path'", "twice"));
  EXPECT_THAT(error_of(std::string(70'000, ' ')), HasSubstr("may have 65536 at most"));
}

}  // namespace
}  // namespace muster::cluster
