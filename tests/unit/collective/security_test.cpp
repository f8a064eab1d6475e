// Groups whose connections are encrypted, and who does not get into them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "ranks.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/net/authority.h"

namespace muster::collective {
namespace {
namespace security_test {

using net::testing_only::Authority;
using net::testing_only::Folder;
using net::testing_only::ProcessFiles;
using ::testing::AllOf;
using ::testing::HasSubstr;
using SecurityPointer = std::shared_ptr<const net::Security>;

constexpr std::string_view token = "0123456789abcdef0123456789abcdef";
SecurityPointer with_token(std::string_view text = token) { return net::Security::from_token(text).value(); }

Options secured(SecurityPointer security,
                std::chrono::milliseconds connect_timeout = std::chrono::seconds(30)) {
  return {.connect_timeout = connect_timeout,
          .call_timeout = std::chrono::seconds(60),
          .security = std::move(security)};
}

// What each of two ranks says when they try to meet.
struct GroupFormation {
  std::vector<std::string> errors = std::vector<std::string>(2, "none");
  GroupFormation(Hosts hosts, const std::vector<Options>& options, const net::Identity& identity = {}) {
    Prepared prepared = prepare(2, hosts);
    for (Endpoint& endpoint : prepared.endpoints) endpoint.identity = identity;
    run_threads(2, [&](std::uint32_t rank) {
      Group group{.epoch = 1, .job_id = 7, .rank = rank, .endpoints = prepared.endpoints};
      const auto made = connect(std::move(group), std::move(prepared.listeners[rank]), options[rank]);
      if (!made) errors[rank] = made.error().message;
    });
  }
};

constexpr std::chrono::milliseconds briefly{1500};

class SecuredGroup : public ::testing::TestWithParam<Hosts> {};
INSTANTIATE_TEST_SUITE_P(Layout, SecuredGroup,
                         ::testing::Values(Hosts::one, Hosts::each_its_own, Hosts::two_interleaved));

TEST_P(SecuredGroup, ReducesSendsAndSplitsLikeAPlainOne) {
  Ranks comms = connect_ranks(4, GetParam(), secured(with_token()));
  constexpr std::size_t count = (1 << 20) + 3;
  run_threads(4, [&](std::uint32_t rank) {
    std::vector<float> values(count, static_cast<float>(rank + 1));
    ASSERT_TRUE(comms[rank]->all_reduce(values.data(), values.data(), count, DType::float32, Reduction::sum));
    EXPECT_EQ(values, std::vector<float>(count, 10.0f));
    std::vector<std::byte> bytes(300'000, static_cast<std::byte>(rank));
    const std::span<const std::byte> sent(bytes);
    std::vector<std::byte> got(bytes.size());
    const std::span<std::byte> received(got);
    const std::uint32_t next = (rank + 1) % 4, before = (rank + 3) % 4;
    std::thread sender([&] { EXPECT_TRUE(comms[rank]->send(next, {&sent, 1})); });
    EXPECT_TRUE(comms[rank]->receive(before, {&received, 1}));
    sender.join();
    EXPECT_EQ(got, std::vector<std::byte>(bytes.size(), static_cast<std::byte>(before)));
    auto half = comms[rank]->split(rank / 2);
    ASSERT_TRUE(half) << half.error().message;
    float one = 1;
    ASSERT_TRUE((*half)->all_reduce(&one, &one, 1, DType::float32, Reduction::sum));
    EXPECT_EQ(one, 2.0f);
  });
}

TEST_P(SecuredGroup, KeepsOutARankWithAnotherToken) {
  const GroupFormation formation(GetParam(), {secured(with_token(), briefly),
                                              secured(with_token("another token of some length"), briefly)});
  EXPECT_THAT(formation.errors[1],
              AllOf(HasSubstr("cannot reach rank 0"), HasSubstr("refused this process's token")));
  EXPECT_THAT(formation.errors[0], HasSubstr("waited"));
}

TEST(SecuredGroup, TellsARankWithoutTlsThatTheOthersUseIt) {
  const GroupFormation formation(Hosts::each_its_own,
                                 {secured(with_token(), briefly), secured(nullptr, briefly)});
  EXPECT_THAT(formation.errors[1], HasSubstr("not use TLS"));
  const GroupFormation other(Hosts::each_its_own,
                             {secured(nullptr, briefly), secured(with_token(), briefly)});
  EXPECT_THAT(other.errors[1], Mentions("speak", "TLS 1.2", "1.3"));
}

TEST(SecuredGroup, MeetsEachRankAsWhoItsCertificateSays) {
  const Authority authority("Job authority");
  const Folder here, there;
  ProcessFiles other;
  other.client.alternative_names.push_back("URI:muster:node:9");
  const auto ours =
      net::Security::from_certificates(ProcessFiles().write(here, authority, authority.pem())).value();
  const auto theirs =
      net::Security::from_certificates(other.write(there, authority, authority.pem())).value();
  const net::Identity identity{.hosts = {"127.0.0.1"}, .node_id = "1"};
  EXPECT_EQ(GroupFormation(Hosts::each_its_own, {secured(ours), secured(ours)}, identity).errors,
            std::vector<std::string>(2, "none"));
  const GroupFormation thief(Hosts::each_its_own, {secured(ours, briefly), secured(theirs, briefly)},
                             identity);
  EXPECT_THAT(thief.errors[1], Mentions("made", "node 9", "node 1"));
  const net::Identity elsewhere{.hosts = {"10.9.8.7"}, .node_id = "1"};
  const GroupFormation wrong(Hosts::one, {secured(ours, briefly), secured(ours, briefly)}, elsewhere);
  EXPECT_THAT(wrong.errors[1], Mentions("none", "10.9.8.7, muster:node:1"));
}

// ---- Who is revoked while connected
// ---------------------------------------------------------------------------

// Two ranks of two hosts if nothing else is said, with certificates and a revocation list each.
struct Revocable {
  Authority authority{"Job authority"};
  Folder folders[3];
  ProcessFiles files;
  net::Credential server = authority.issue(files.server), client = authority.issue(files.client);
  Ranks comms;

  // Rank 1 calls, and so shows what is for clients; rank 0 shows the other.
  explicit Revocable(const std::vector<std::string>& hosts = {"host 0", "host 1"}) : comms(hosts.size()) {
    Prepared prepared = prepare(hosts);
    for (Endpoint& endpoint : prepared.endpoints) endpoint.identity = {.hosts = {"127.0.0.1"}};
    run_threads(ranks(), [&](std::uint32_t rank) {
      const auto options = ProcessFiles::write(
          folders[rank], rank == 0 ? server : authority.issue(files.server),
          rank == 1 ? client : authority.issue(files.client), authority.pem(), authority.crl());
      Group group{.epoch = 1, .job_id = 7, .rank = rank, .endpoints = prepared.endpoints};
      comms[rank] = connect(std::move(group), std::move(prepared.listeners[rank]),
                            secured(net::Security::from_certificates(options).value()))
                        .value();
    });
  }
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(comms.size()); }
  void expect_still_together() {
    run_threads(ranks(), [&](std::uint32_t rank) { EXPECT_TRUE(comms[rank]->barrier()); });
  }
};

constexpr auto noticed_within = std::chrono::seconds(5);  // two, and time for a slow machine

TEST(SecuredGroup, EndsWhenItsPeerIsRevokedWhileACallWaitsForIt) {
  for (const std::uint32_t revoked : {0u, 1u}) {
    Revocable group;
    group.expect_still_together();
    const std::uint32_t other = 1 - revoked;
    group.authority.revoke(revoked == 0 ? group.server : group.client);
    group.folders[other].write("crl.pem", group.authority.crl());
    const TimePoint begin = real_clock().now();
    const auto waited = group.comms[other]->barrier();
    EXPECT_LT(real_clock().now() - begin, noticed_within);
    ASSERT_FALSE(waited);
    EXPECT_EQ(waited.error().code, Code::refused);
    EXPECT_THAT(waited.error().message, AllOf(HasSubstr(fmt::format("rank {} (", revoked)),
                                              Mentions("take", "part"), HasSubstr("certificate revoked")));
    static_cast<void>(group.comms[revoked]->barrier());  // to which the other one had called
    const auto theirs = group.comms[revoked]->barrier();
    ASSERT_FALSE(theirs);
    EXPECT_EQ(theirs.error().code, Code::peer_lost) << theirs.error().message;
  }
}

TEST(SecuredGroup, EndsWhenItsPeerIsRevokedWhileAMessageIsAwaitedOrNobodyCalls) {
  for (const bool calls : {false, true}) {
    Revocable group;
    group.expect_still_together();
    group.authority.revoke(group.client);
    group.folders[0].write("crl.pem", group.authority.crl());
    std::vector<std::byte> bytes(8);
    const std::span<std::byte> piece(bytes);
    // A rank that calls nothing ends the group all the same: the other one hears of it.
    const TimePoint begin = real_clock().now();
    const auto waited =
        calls ? group.comms[0]->receive(1, {&piece, 1}) : group.comms[1]->receive(0, {&piece, 1});
    EXPECT_LT(real_clock().now() - begin, noticed_within);
    ASSERT_FALSE(waited);
    EXPECT_EQ(waited.error().code, calls ? Code::refused : Code::peer_lost) << waited.error().message;
  }
}

// Between hosts of two ranks and one there is one lane, and it is that of rank 1.
TEST(SecuredGroup, EndsWhenARankIsRevokedThatIsConnectedForMessagesOnly) {
  Revocable group({"host 0", "host 0", "host 1"});
  group.expect_still_together();
  const std::vector<std::byte> given(8);
  std::vector<std::byte> bytes(8);
  const std::span<const std::byte> sent(given);
  const std::span<std::byte> piece(bytes);
  run_threads(2, [&](std::uint32_t rank) {
    EXPECT_TRUE(rank == 0 ? group.comms[0]->send(2, {&sent, 1}) : group.comms[2]->receive(0, {&piece, 1}));
  });
  group.authority.revoke(group.server);
  group.folders[2].write("crl.pem", group.authority.crl());
  const TimePoint begin = real_clock().now();
  const auto waited = group.comms[2]->receive(0, {&piece, 1});
  EXPECT_LT(real_clock().now() - begin, noticed_within);
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, Code::refused);
  EXPECT_THAT(waited.error().message, AllOf(HasSubstr("rank 0 ("), Mentions("take", "part")));
}

TEST(SecuredGroup, StaysWhenARevocationListComesThatNamesNobodyOfIt) {
  Revocable group;
  group.expect_still_together();
  group.authority.revoke(group.authority.issue(group.files.client));
  for (const Folder& folder : group.folders) folder.write("crl.pem", group.authority.crl());
  for (const TimePoint last = real_clock().now() + std::chrono::milliseconds(2500);
       real_clock().now() < last;)
    group.expect_still_together();
}

}  // namespace security_test
}  // namespace
}  // namespace muster::collective
