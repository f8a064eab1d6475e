#include "muster/net/tls_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "tests/unit/base/mentions.h"
#include "tests/unit/net/authority.h"

namespace muster::net {
namespace {
namespace tls_session_test {

using ::testing::HasSubstr;
using testing_only::Authority;
using testing_only::day_s;
using testing_only::Folder;
using testing_only::password;
using testing_only::ProcessFiles;
using testing_only::seconds_from_now;

constexpr std::string_view token = "0123456789abcdef0123456789abcdef";
using SecurityPointer = std::shared_ptr<const Security>;

// Two sessions with a wire between them.
struct Wire {
  std::unique_ptr<TlsSession> listener;
  std::unique_ptr<TlsSession> connector;
  std::string listener_error = {};
  std::string connector_error = {};

  Wire(SecurityPointer here, SecurityPointer there,
       std::optional<Identity> expected = Identity{{"127.0.0.1"}, {}})
      : listener(
            TlsSession::create(std::move(here), {.side = TlsSide::listener, .peer = "the node"}).value()),
        connector(TlsSession::create(
                      std::move(there),
                      {.side = TlsSide::connector, .peer = "the scheduler", .expected = std::move(expected)})
                      .value()) {}

  // Lets bytes travel until neither side has more to say.
  void run() {
    std::vector<std::byte> to_listener, to_connector;
    do {
      go_on(*connector, to_connector, connector_error);
      to_listener = connector->take_output();
      go_on(*listener, to_listener, listener_error);
      to_connector = listener->take_output();
    } while (!to_listener.empty() || !to_connector.empty());
  }
  static void go_on(TlsSession& session, const std::vector<std::byte>& input, std::string& error) {
    session.set_input(input);
    std::array<std::byte, 1024> plain;
    for (;;) {
      const auto read = session.read(plain);
      if (!read) error = read.error().message;
      if (!read || *read == 0) return;
    }
  }
  bool is_open() const {
    return listener->is_open() && connector->is_open() && listener_error.empty() && connector_error.empty();
  }
};

std::vector<std::byte> carry(TlsSession& from, TlsSession& to, const std::vector<std::byte>& bytes) {
  EXPECT_TRUE(from.write(bytes));
  const auto wire = from.take_output();
  to.set_input(wire);
  std::vector<std::byte> got(bytes.size() + 1);
  std::size_t size = 0;
  for (;;) {
    const auto read = to.read(std::span(got).subspan(size));
    EXPECT_TRUE(read);
    if (!read || *read == 0) break;
    size += *read;
  }
  got.resize(size);
  return got;
}

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

SecurityPointer security_of(const CertificateOptions& options) {
  auto made = Security::from_certificates(options);
  EXPECT_TRUE(made) << made.error().message;
  return made.value_or(nullptr);
}

class TlsSessionWithCertificates : public ::testing::Test {
 protected:
  Authority authority_{"Job authority"};
  Folder here_;
  Folder there_;
  ProcessFiles files_;

  SecurityPointer good(const Folder& folder, const std::string& revocations = {}) const {
    return security_of(files_.write(folder, authority_, authority_.pem(), revocations));
  }
  // The listener is good, the connector has what the test gives it.
  Wire against_good(const CertificateOptions& bad) const { return Wire(good(here_), security_of(bad)); }
};

TEST_F(TlsSessionWithCertificates, CarriesBytesBothWaysWhenBothSidesAreBelieved) {
  Wire wire(good(here_, authority_.crl()), good(there_, authority_.crl()));
  wire.run();
  ASSERT_TRUE(wire.is_open()) << wire.listener_error << wire.connector_error;
  const auto bytes = pattern(100'000);
  EXPECT_EQ(carry(*wire.connector, *wire.listener, bytes), bytes);
  EXPECT_EQ(carry(*wire.listener, *wire.connector, bytes), bytes);
  ASSERT_NE(wire.listener->peer_names(), nullptr);
  EXPECT_THAT(wire.listener->peer_names()->subject, HasSubstr("client"));
  EXPECT_THAT(wire.listener->peer_names()->addresses, ::testing::ElementsAre("127.0.0.1", "::1"));
  EXPECT_THAT(wire.listener->peer_names()->hosts, ::testing::ElementsAre("localhost"));
}

TEST_F(TlsSessionWithCertificates, SaysWhenTheOtherSideClosed) {
  Wire wire(good(here_), good(there_));
  wire.run();
  wire.connector->finish();
  wire.run();
  EXPECT_THAT(wire.listener_error, Mentions("closed", "connection"));
}

TEST_F(TlsSessionWithCertificates, NoticesAChangedByte) {
  Wire wire(good(here_), good(there_));
  wire.run();
  ASSERT_TRUE(wire.connector->write(pattern(100)));
  auto bytes = wire.connector->take_output();
  bytes[bytes.size() / 2] ^= std::byte{1};
  wire.listener->set_input(bytes);
  std::array<std::byte, 200> plain;
  const auto read = wire.listener->read(plain);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::corrupt) << read.error().message;
}

// ---- Certificates that are refused
// -------------------------------------------------------------------------

struct Refusal {
  const char* name;
  // Makes the files of a connector that a good listener has to refuse.
  std::function<CertificateOptions(const Folder&, Authority&)> make;
  const char* listener_says;
  const char* connector_says;
};

class RefusesAConnector : public ::testing::TestWithParam<Refusal> {};

CertificateOptions with_client(const Folder& folder, const Authority& authority, const Credential& client) {
  const ProcessFiles files;
  return ProcessFiles::write(folder, authority.issue(files.server), client, authority.pem());
}

INSTANTIATE_TEST_SUITE_P(
    Tls, RefusesAConnector,
    ::testing::Values(
        Refusal{"AnotherAuthority",
                [](const Folder& folder, Authority& authority) {
                  return with_client(folder, authority,
                                     Authority("Unauthorized peer").issue(ProcessFiles().client));
                },
                "its issuer CN=Unauthorized peer is not in ca_cert_path", "its issuer is not one"},
        Refusal{"AnotherAuthorityOfTheSameName",
                [](const Folder& folder, Authority& authority) {
                  return with_client(folder, authority,
                                     Authority("Job authority").issue(ProcessFiles().client));
                },
                "the certificate of the node is refused", "the scheduler"},
        Refusal{"SelfSigned",
                [](const Folder& folder, Authority& authority) {
                  CertificateSpec spec = ProcessFiles().client;
                  spec.begin_s = seconds_from_now(-day_s);
                  spec.end_s = seconds_from_now(day_s);
                  return with_client(folder, authority, make_certificate(spec, nullptr).value());
                },
                "self-signed", "refused this process's certificate"},
        Refusal{"Revoked",
                [](const Folder& folder, Authority& authority) {
                  const Credential client = authority.issue(ProcessFiles().client);
                  authority.revoke(client);
                  return with_client(folder, authority, client);
                },
                "certificate revoked (CN=client)", "refused this process's certificate: it was revoked"}),
    [](const auto& tested) { return tested.param.name; });

TEST_P(RefusesAConnector, AndBothSidesSayWhy) {
  Authority authority("Job authority");
  const Folder here, there;
  const CertificateOptions bad = GetParam().make(there, authority);
  Wire wire(security_of(ProcessFiles().write(here, authority, authority.pem(), authority.crl())),
            security_of(bad));
  wire.run();
  EXPECT_FALSE(wire.listener->is_open());
  EXPECT_THAT(wire.listener_error, HasSubstr(GetParam().listener_says));
  EXPECT_THAT(wire.connector_error, HasSubstr(GetParam().connector_says));
}

// ---- Whom a connector meets
// --------------------------------------------------------------------------------

TEST_F(TlsSessionWithCertificates, RefuseAListenerOfAnotherName) {
  Wire wire(good(here_), good(there_), Identity{.hosts = {"10.0.0.7", "other.example"}});
  wire.run();
  EXPECT_THAT(wire.connector_error, Mentions("localhost", "127.0.0.1, ::1", "10.0.0.7, other.example"));
  EXPECT_THAT(wire.listener_error, Mentions("refused", "certificate"));
}

TEST_F(TlsSessionWithCertificates, NeverTakeACommonNameForAName) {
  files_.server = {.common_name = "127.0.0.1", .for_servers = true};
  Wire wire(good(here_), good(there_));
  wire.run();
  EXPECT_THAT(wire.connector_error, HasSubstr("no names at all"));
}

TEST_F(TlsSessionWithCertificates, RefuseAWorkersCertificateWhereTheSchedulerIsExpected) {
  files_.server.alternative_names.push_back("URI:muster:node:3");
  const Identity scheduler{.hosts = {"127.0.0.1"}, .node_id = std::string(scheduler_node_id)};
  Wire wire(good(here_), good(there_), scheduler);
  wire.run();
  EXPECT_THAT(wire.connector_error, Mentions("made", "node 3"));
}

// ---- Tokens
// ------------------------------------------------------------------------------------------------

SecurityPointer with_token(std::string_view text) { return Security::from_token(text).value(); }

TEST(TlsSessionWithToken, CarriesBytesBothWays) {
  Wire wire(with_token(token), with_token(token));
  wire.run();
  ASSERT_TRUE(wire.is_open()) << wire.listener_error << wire.connector_error;
  const auto bytes = pattern(50'000);
  EXPECT_EQ(carry(*wire.connector, *wire.listener, bytes), bytes);
  EXPECT_EQ(wire.listener->peer_names(), nullptr);
}

TEST(TlsSessionWithToken, KeepsOutWhoHasAnotherOne) {
  Wire wire(with_token(token), with_token("another token of some length"));
  wire.run();
  EXPECT_FALSE(wire.listener->is_open());
  EXPECT_FALSE(wire.connector->is_open());
  EXPECT_THAT(wire.listener_error, Mentions("node", "token"));
  EXPECT_THAT(wire.connector_error, Mentions("refused", "token"));
}

TEST(TlsSessionWithToken, RefusesATokenThatCanBeGuessed) {
  const auto made = Security::from_token("secret");
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, Mentions("token", "6 characters", "16", "to 1024"));
  EXPECT_THAT(made.error().message, ::testing::Not(HasSubstr("secret")));
}

TEST_F(TlsSessionWithCertificates, DoNotGoWithATokenOnTheOtherSide) {
  Wire there(good(here_), with_token(token));
  there.run();
  EXPECT_THAT(there.connector_error, Mentions("TLS", "certificates"));
  EXPECT_FALSE(there.listener->is_open());
  Wire here(with_token(token), good(there_));
  here.run();
  EXPECT_FALSE(here.connector->is_open());
  EXPECT_THAT(here.listener_error, Mentions("showed", "token"));
  EXPECT_THAT(here.connector_error, HasSubstr("a token on the other"));
}

// ---- Bytes that are no TLS
// ---------------------------------------------------------------------------------

std::string error_after(TlsSession& session, std::span<const std::byte> bytes) {
  session.set_input(bytes);
  const auto done = session.shake_hands();
  return done ? "none" : done.error().message;
}

TEST(TlsSession, KnowsAPlainMusterFromNoise) {
  for (const TlsSide side : {TlsSide::listener, TlsSide::connector}) {
    auto session = TlsSession::create(with_token(token), {.side = side, .peer = "the other"}).value();
    const auto frame = encode_frame({.type = 1}, {});
    EXPECT_THAT(error_after(*session, frame), HasSubstr("not use TLS"));
    EXPECT_TRUE(session->spoke_plain());
    auto second = TlsSession::create(with_token(token), {.side = side, .peer = "the other"}).value();
    const std::string noise = "GET / HTTP/1.1\r\n";
    EXPECT_THAT(error_after(*second, std::as_bytes(std::span(noise))), HasSubstr("neither TLS nor Muster's"));
    EXPECT_FALSE(second->spoke_plain());
  }
}

TEST(TlsSession, UnderstandsTheAlertOfAPlainListener) {
  auto session =
      TlsSession::create(with_token(token), {.side = TlsSide::connector, .peer = "the other"}).value();
  ASSERT_TRUE(session->shake_hands());
  const std::array alert{std::byte{0x15}, std::byte{3}, std::byte{3}, std::byte{0},
                         std::byte{2},    std::byte{2}, std::byte{70}};
  EXPECT_THAT(error_after(*session, alert), Mentions("speak", "TLS"));
}

TEST(TlsSession, EndsAHandshakeThatIsTooLong) {
  auto session =
      TlsSession::create(with_token(token), {.side = TlsSide::listener, .peer = "the other"}).value();
  // Handshake records with pieces of one huge message.
  std::vector<std::byte> record(5 + 16000);
  record[0] = std::byte{0x16}, record[1] = std::byte{3}, record[2] = std::byte{1};
  record[3] = std::byte{16000 >> 8}, record[4] = std::byte{16000 & 0xff};
  record[5] = std::byte{1}, record[6] = std::byte{1};  // ClientHello of 65,536 bytes and more
  std::string error = "none";
  for (int i = 0; i < 8 && error == "none"; ++i) error = error_after(*session, record);
  EXPECT_NE(error, "none");
  EXPECT_FALSE(session->is_open());
}

}  // namespace tls_session_test
}  // namespace
}  // namespace muster::net
