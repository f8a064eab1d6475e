#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/net/net.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/net/authority.h"

namespace muster::net {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing_only::Authority;
using testing_only::Folder;
using testing_only::ProcessFiles;

constexpr ConnectionLimits limits{.payload_size_bytes = 1 << 20, .unsent_size_bytes = 8 << 20};
constexpr std::string_view token = "0123456789abcdef0123456789abcdef";
constexpr std::uint16_t refusal_type = 0x77;
using SecurityPointer = std::shared_ptr<const Security>;

std::shared_ptr<const std::vector<std::byte>> frame_of(std::uint16_t type, std::size_t size) {
  return std::make_shared<std::vector<std::byte>>(encode_frame({.type = type}, std::vector<std::byte>(size)));
}

// A listener and what connects to it, on one loop.
struct Job {
  Loop loop = {};
  std::vector<std::unique_ptr<Connection>> accepted = {};
  std::vector<std::uint16_t> types = {};
  std::vector<Error> ends = {};
  std::unique_ptr<ConnectionListener> listener = {};

  std::unique_ptr<Connection> client = {};
  bool opened = false;
  std::vector<std::uint16_t> client_types = {};
  std::vector<Error> client_ends = {};

  void listen(SecurityPointer security) {
    const auto refusal = [](const std::string& reason) {
      return encode_frame({.type = refusal_type}, std::as_bytes(std::span(reason)));
    };
    const auto accept = [this](std::unique_ptr<Connection> connection) {
      connection->set_events({.received =
                                  [this, peer = connection.get()](const Frame& frame) {
                                    peer->admit();
                                    types.push_back(frame.header.type);
                                  },
                              .closed = [this](const Error& error) { ends.push_back(error); }});
      accepted.push_back(std::move(connection));
    };
    auto made = ConnectionListener::open(loop, {"127.0.0.1", 0}, limits, accept,
                                         {.security = std::move(security), .plain_refusal = refusal});
    ASSERT_TRUE(made) << made.error().message;
    listener = *std::move(made);
  }
  void connect(SecurityPointer security, Identity expected = {.hosts = {"127.0.0.1"}}) {
    client = Connection::connect(
        loop, listener->address(), limits,
        {.opened = [this] { opened = true; },
         .received = [this](const Frame& frame) { client_types.push_back(frame.header.type); },
         .closed = [this](const Error& error) { client_ends.push_back(error); }},
        {.security = std::move(security), .expected = std::move(expected), .peer_name = "the scheduler"});
  }
  // Serves events until `done`, at most ten seconds.
  template <class Done>
  bool serve_until(Done done) {
    const TimePoint deadline = real_clock().now() + 10s;
    while (!done() && real_clock().now() < deadline) loop.run_for(5ms);
    return done();
  }
  bool both_ended() {
    return serve_until([this] { return !ends.empty() && !client_ends.empty(); });
  }
};

SecurityPointer with_token(std::string_view text = token) { return Security::from_token(text).value(); }

class LoopSecurity : public ::testing::Test {
 protected:
  Authority authority_{"Job authority"};
  Folder here_;
  Folder there_;

  SecurityPointer certificates(const Folder& folder, const std::string& revocations = {}) const {
    return Security::from_certificates(
               ProcessFiles().write(folder, authority_, authority_.pem(), revocations))
        .value();
  }
};

TEST_F(LoopSecurity, CarriesFramesInOrderAndThenTheEnd) {
  for (const bool by_token : {false, true}) {
    Job job;
    job.listen(by_token ? with_token() : certificates(here_));
    job.connect(by_token ? with_token() : certificates(there_));
    ASSERT_TRUE(job.serve_until([&] { return job.opened; }));
    std::vector<std::uint16_t> sent;
    for (std::uint16_t type = 1; type <= 300; ++type) {
      job.client->send(frame_of(type, type * 37));
      sent.push_back(type);
    }
    job.client->send(frame_of(301, 1 << 20));
    sent.push_back(301);
    ASSERT_TRUE(job.serve_until([&] { return job.types.size() == sent.size(); }));
    EXPECT_EQ(job.types, sent);
    job.accepted[0]->send(frame_of(7, 100'000));
    ASSERT_TRUE(job.serve_until([&] { return !job.client_types.empty(); }));
    EXPECT_EQ(job.accepted[0]->peer_names() == nullptr, by_token);
    job.client->finish();
    job.client.reset();
    ASSERT_TRUE(job.serve_until([&] { return !job.ends.empty(); }));
    EXPECT_THAT(job.ends[0].message, HasSubstr("closed the connection"));
    EXPECT_EQ(job.ends[0].code, Code::peer_lost);
  }
}

TEST_F(LoopSecurity, SendsNothingReadable) {
  Job job;
  job.listen(with_token());
  auto spy = TcpListener::open({"127.0.0.1", 0}).value();
  job.client = Connection::connect(job.loop, spy.address(), limits, {}, {.security = with_token()});
  job.client->send(frame_of(1, 100));
  std::optional<Socket> seen;
  ASSERT_TRUE(job.serve_until([&] {
    if (!seen) seen = spy.accept().socket;
    return seen.has_value();
  }));
  job.loop.run_for(50ms);
  std::array<std::byte, 4096> bytes;
  const iovec piece{.iov_base = bytes.data(), .iov_len = bytes.size()};
  const auto size = seen->receive_some({&piece, 1});
  ASSERT_TRUE(size);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), *size);
  EXPECT_GT(*size, 50u);
  EXPECT_EQ(text.find("MSTR"), std::string_view::npos);
}

TEST_F(LoopSecurity, AnswersWhoSpeaksPlainInPlain) {
  Job job;
  job.listen(certificates(here_));
  job.connect(nullptr);
  ASSERT_TRUE(job.serve_until([&] { return job.opened; }));
  job.client->send(frame_of(1, 10));
  ASSERT_TRUE(job.both_ended());
  EXPECT_THAT(job.client_types, ::testing::ElementsAre(refusal_type));
  EXPECT_THAT(job.ends[0].message, HasSubstr("not use TLS"));
  EXPECT_EQ(job.ends[0].code, Code::refused);
  EXPECT_TRUE(job.types.empty());
}

TEST_F(LoopSecurity, TellsWhoSpeaksTlsThatNobodyElseDoes) {
  Job job;
  job.listen(nullptr);
  job.connect(with_token());
  ASSERT_TRUE(job.both_ended());
  EXPECT_THAT(job.client_ends[0].message, Mentions("speak", "TLS 1.2", "1.3"));
  EXPECT_THAT(job.ends[0].message, HasSubstr("uses TLS"));
  EXPECT_EQ(job.client_ends[0].code, Code::refused);
  EXPECT_FALSE(job.opened);
}

TEST_F(LoopSecurity, TellsARefusedCertificateWhy) {
  const Credential client = authority_.issue(ProcessFiles().client);
  authority_.revoke(client);
  Job job;
  job.listen(certificates(here_, authority_.crl()));
  job.connect(Security::from_certificates(ProcessFiles::write(there_, authority_.issue(ProcessFiles().server),
                                                              client, authority_.pem()))
                  .value());
  ASSERT_TRUE(job.both_ended());
  EXPECT_THAT(job.ends[0].message, HasSubstr("certificate revoked (CN=client)"));
  EXPECT_THAT(job.client_ends[0].message, Mentions("certificate", "revoked"));
  EXPECT_EQ(job.client_ends[0].code, Code::refused);
}

TEST_F(LoopSecurity, DeliversNothingOfWhoWasRefused) {
  Job job;
  job.listen(with_token());
  job.connect(with_token("another token of some length"));
  job.client->send(frame_of(1, 10));
  ASSERT_TRUE(job.both_ended());
  EXPECT_THAT(job.ends[0].message, HasSubstr("has another token"));
  EXPECT_TRUE(job.types.empty());
  EXPECT_FALSE(job.opened);
}

TEST_F(LoopSecurity, GivesAHandshakeThreeSeconds) {
  Job job;
  job.listen(with_token());
  const TimePoint start = real_clock().now();
  auto silent = Socket::connect(job.listener->address(), {.deadline = start + 10s}).value();
  ASSERT_TRUE(job.serve_until([&] { return !job.ends.empty(); }));
  EXPECT_THAT(job.ends[0].message, Mentions("TLS", "handshake", "3 s"));
  EXPECT_LT(real_clock().now() - start, 4s);
}

TEST_F(LoopSecurity, CutsOffWhoIsRevokedWhileConnected) {
  const Credential client = authority_.issue(ProcessFiles().client);
  Job job;
  job.listen(certificates(here_, authority_.crl()));
  const auto theirs =
      Security::from_certificates(
          ProcessFiles::write(there_, authority_.issue(ProcessFiles().server), client, authority_.pem()))
          .value();
  job.connect(theirs);
  ASSERT_TRUE(job.serve_until([&] { return job.opened; }));
  authority_.revoke(client);
  here_.write("crl.pem", authority_.crl());
  const TimePoint start = real_clock().now();
  // As a node's heartbeats do.
  ASSERT_TRUE(job.serve_until([&] {
    if (job.client_ends.empty()) job.client->send(frame_of(1, 10));
    return !job.ends.empty();
  }));
  EXPECT_THAT(job.ends[0].message, Mentions("longer", "(CN=client)"));
  EXPECT_LT(real_clock().now() - start, 3s);
  EXPECT_FALSE(job.types.empty());
  job.client_ends.clear();
  job.connect(theirs);
  ASSERT_TRUE(job.both_ended());
  EXPECT_THAT(job.client_ends[0].message, HasSubstr("it was revoked"));
}

TEST_F(LoopSecurity, ShowsCertificatesThatReplacedItsOwn) {
  const auto ours = certificates(here_);
  const auto theirs = certificates(there_);
  Job job;
  job.listen(ours);
  std::string seen;  // both sides' names on a new connection
  const auto look = [&] {
    job.opened = false;
    job.connect(theirs);
    ASSERT_TRUE(job.serve_until([&] { return job.opened; }));
    job.types.clear();
    job.client->send(frame_of(1, 10));
    ASSERT_TRUE(job.serve_until([&] { return !job.types.empty(); }));
    seen = job.client->peer_names()->subject + ", " + job.accepted.back()->peer_names()->subject;
  };
  const auto comes = [&](const std::string& names) {
    return job.serve_until([&] { return look(), seen == names; });
  };
  look();
  EXPECT_EQ(seen, "CN=server, CN=client");
  ProcessFiles renewed;
  renewed.server.common_name = "renewed server";
  renewed.client.common_name = "renewed client";
  renewed.write(here_, authority_, authority_.pem());
  renewed.write(there_, authority_, authority_.pem());
  EXPECT_TRUE(comes("CN=renewed server, CN=renewed client"));
  // A file that cannot be used changes nothing, and the next one does.
  here_.write("server.p12", "half of a file");
  ProcessFiles again;
  again.client.common_name = "client again";
  again.write(there_, authority_, authority_.pem());
  EXPECT_TRUE(comes("CN=renewed server, CN=client again"));
  again.server.common_name = "server again";
  again.write(here_, authority_, authority_.pem());
  EXPECT_TRUE(comes("CN=server again, CN=client again"));
}

TEST_F(LoopSecurity, BelievesAnAuthorityThatWasAdded) {
  const Authority next("Next authority");
  const auto ours = certificates(here_);
  const auto theirs =
      Security::from_certificates(ProcessFiles().write(there_, next, authority_.pem() + next.pem())).value();
  Job job;
  job.listen(ours);
  job.connect(theirs);
  ASSERT_TRUE(job.both_ended());
  EXPECT_THAT(job.ends[0].message, Mentions("authority", "ca_cert_path"));
  here_.write("ca.pem", "nonsense");  // the one of before is believed still
  const Folder elsewhere;
  const auto neighbour = certificates(elsewhere);
  job.connect(neighbour);
  ASSERT_TRUE(job.serve_until([&] { return job.opened; }));
  here_.write("ca.pem", authority_.pem() + next.pem());
  job.client_ends.clear();
  job.connect(theirs);
  ASSERT_TRUE(job.serve_until([&] {
    if (!job.client_ends.empty()) {  // too early
      job.client_ends.clear();
      job.connect(theirs);
    }
    job.client->send(frame_of(1, 10));  // lost while it is not open
    return !job.types.empty();
  }));
}

TEST_F(LoopSecurity, EndsNoConnectionOnADate) {
  CertificateSpec brief = ProcessFiles().client;
  const std::int64_t end_s = testing_only::seconds_from_now(2);
  brief.end_s = end_s;
  const auto theirs =
      Security::from_certificates(ProcessFiles::write(there_, authority_.issue(ProcessFiles().server),
                                                      authority_.issue(brief), authority_.pem()))
          .value();
  Job job;
  job.listen(certificates(here_, authority_.crl()));
  job.connect(theirs);
  ASSERT_TRUE(job.serve_until([&] { return job.opened; }));
  const auto veteran = std::move(job.client);
  ASSERT_TRUE(job.serve_until([&] { return testing_only::seconds_from_now(0) > end_s; }));
  here_.write("crl.pem", authority_.crl(60));  // all are looked at again
  job.connect(theirs);
  ASSERT_TRUE(job.serve_until([&] { return !job.ends.empty(); }));
  EXPECT_THAT(job.ends[0].message, HasSubstr("certificate has expired on"));
  const TimePoint until = real_clock().now() + 1500ms;  // who is connected is looked at every second
  ASSERT_TRUE(job.serve_until([&] {
    veteran->send(frame_of(1, 10));
    return real_clock().now() > until;
  }));
  EXPECT_EQ(job.ends.size(), 1);
  job.types.clear();
  veteran->send(frame_of(5, 10));
  EXPECT_TRUE(job.serve_until([&] { return !job.types.empty(); }));
}

TEST_F(LoopSecurity, SaysForWhomARefusedCertificateWasMade) {
  CertificateSpec client = ProcessFiles().client;
  client.alternative_names.push_back("URI:muster:node:3");
  const Credential revoked = authority_.issue(client);
  authority_.revoke(revoked);
  Job job;
  job.listen(certificates(here_, authority_.crl()));
  job.connect(Security::from_certificates(ProcessFiles::write(there_, authority_.issue(ProcessFiles().server),
                                                              revoked, authority_.pem()))
                  .value());
  ASSERT_TRUE(job.both_ended());
  ASSERT_NE(job.accepted[0]->refused_names(), nullptr);
  EXPECT_THAT(job.accepted[0]->refused_names()->node_ids, ::testing::ElementsAre("3"));
  EXPECT_EQ(job.accepted[0]->peer_names(), nullptr) << "nobody vouches for it";
}

TEST_F(LoopSecurity, LetsNobodyNewInWhileTheRevocationListIsBroken) {
  const auto ours = certificates(here_, authority_.crl());
  const auto theirs = certificates(there_);
  Job job;
  job.listen(ours);
  job.connect(theirs);
  ASSERT_TRUE(job.serve_until([&] { return job.opened; }));
  here_.write("crl.pem", "-----BEGIN X509 CRL-----\nnonsense\n-----END X509 CRL-----\n");
  std::vector<std::unique_ptr<Connection>> newcomers;
  std::vector<Error> told;
  const auto knock = [&] {
    newcomers.push_back(Connection::connect(job.loop, job.listener->address(), limits,
                                            {.closed = [&](const Error& error) { told.push_back(error); }},
                                            {.security = theirs, .expected = {.hosts = {"127.0.0.1"}}}));
  };
  ASSERT_TRUE(job.serve_until([&] {
    knock();
    return !job.ends.empty() && !told.empty();
  }));
  EXPECT_THAT(told[0].message, Mentions("side", "check"));
  EXPECT_EQ(told[0].code, Code::peer_lost) << "it may come again";
  EXPECT_THAT(job.ends[0].message, Mentions("revocation", "crl_path"));
  EXPECT_THAT(job.ends[0].message, HasSubstr("is damaged"));
  newcomers.clear();
  // Who is in stays.
  job.types.clear();
  job.client->send(frame_of(5, 10));
  ASSERT_TRUE(job.serve_until([&] { return !job.types.empty(); }));
  // And a good list lets connections in again.
  here_.write("crl.pem", authority_.crl());
  job.opened = false;
  job.client_ends.clear();
  job.connect(theirs);
  ASSERT_TRUE(job.serve_until([&] {
    if (!job.client_ends.empty()) {  // too early
      job.client_ends.clear();
      job.connect(theirs);
    }
    return job.opened;
  }));
}

}  // namespace
}  // namespace muster::net
