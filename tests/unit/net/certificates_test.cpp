#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/net/net.h"

namespace muster::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t begin_s = 1'700'000'000;
constexpr std::int64_t end_s = 1'900'000'000;

Credential authority() {
  return *make_certificate(
      {.common_name = "Test authority", .is_authority = true, .begin_s = begin_s, .end_s = end_s}, nullptr);
}

CertificateSpec node_spec() {
  return {.common_name = "worker",
          .alternative_names = {"DNS:a.example", "IP:10.0.0.7", "IP:::1", "URI:muster:node:3"},
          .for_servers = true,
          .begin_s = begin_s,
          .end_s = end_s};
}

TEST(Certificates, SayWhatTheyWereMadeFor) {
  const Credential above = authority();
  const auto made = make_certificate(node_spec(), &above);
  ASSERT_TRUE(made) << made.error().message;
  const auto facts = read_certificates(made->certificate_pem);
  ASSERT_TRUE(facts) << facts.error().message;
  ASSERT_EQ(facts->size(), 1u);
  EXPECT_EQ(facts->front().subject, "CN = worker");
  EXPECT_EQ(facts->front().issuer, "CN = Test authority");
  EXPECT_THAT(facts->front().alternative_names,
              ElementsAre("DNS:a.example", "IP:10.0.0.7", "IP:::1", "URI:muster:node:3"));
  EXPECT_EQ(facts->front().begin_s, begin_s);
  EXPECT_EQ(facts->front().end_s, end_s);
  EXPECT_FALSE(facts->front().is_authority);
  EXPECT_TRUE(read_certificates(above.certificate_pem)->front().is_authority);
  EXPECT_EQ(read_certificates(above.certificate_pem + made->certificate_pem)->size(), 2u);
}

TEST(Certificates, RefuseNamesThatAreNone) {
  const Credential above = authority();
  for (const char* name : {"a.example", "DNS:", "IP:10.0.0", "IP:a.example", "MAIL:a@b"}) {
    CertificateSpec spec = node_spec();
    spec.alternative_names = {name};
    const auto made = make_certificate(spec, &above);
    ASSERT_FALSE(made) << name;
    EXPECT_THAT(made.error().message, HasSubstr(name));
  }
}

TEST(Certificates, GoIntoAFileThatOpensWithItsPasswordAlone) {
  const Credential above = authority();
  const Credential made = *make_certificate(node_spec(), &above);
  const auto file = make_pkcs12({.credential = made, .chain_pem = above.certificate_pem}, "secret");
  ASSERT_TRUE(file) << file.error().message;
  const auto content = read_pkcs12(*file, "secret");
  ASSERT_TRUE(content) << content.error().message;
  EXPECT_EQ(content->credential.certificate_pem, made.certificate_pem);
  EXPECT_EQ(content->credential.key_pem, made.key_pem);
  EXPECT_EQ(content->chain_pem, above.certificate_pem);
  for (const char* wrong : {"", "Secret", "secret "}) {
    const auto refused = read_pkcs12(*file, wrong);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "the password is wrong");
  }
  EXPECT_THAT(read_pkcs12("secret", "secret").error().message, HasSubstr("no PKCS#12 file"));
}

TEST(Certificates, WithoutTheirKeyAreNoCredential) {
  const Credential above = authority();
  const Credential made = *make_certificate(node_spec(), &above);
  const auto without = make_pkcs12({.credential = {made.certificate_pem, ""}}, "secret");
  EXPECT_THAT(read_pkcs12(*without, "secret").error().message, HasSubstr("no private key"));
  const auto foreign = make_pkcs12({.credential = {made.certificate_pem, above.key_pem}}, "secret");
  EXPECT_THAT(read_pkcs12(*foreign, "secret").error().message, HasSubstr("belongs to its key"));
}

TEST(Certificates, AreRevokedByTheirSerial) {
  const Credential above = authority();
  const Credential made = *make_certificate(node_spec(), &above);
  const RevokedCertificate revoked{read_certificates(made.certificate_pem)->front().serial, begin_s + 5};
  const auto crl = make_crl({.begin_s = begin_s, .end_s = end_s, .revoked = {revoked}}, above);
  ASSERT_TRUE(crl) << crl.error().message;
  const auto list = read_crl(*crl);
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ(list->issuer, "CN = Test authority");
  EXPECT_EQ(list->begin_s, begin_s);
  EXPECT_EQ(list->end_s, end_s);
  EXPECT_THAT(list->revoked, ElementsAre(revoked));
  EXPECT_FALSE(read_crl(made.certificate_pem));
}

}  // namespace
}  // namespace muster::net
