// Groups whose connections are encrypted, and who does not get into them.
#include <gmock/gmock.h>

#include "ranks.h"
#include "tests/unit/net/authority.h"

namespace muster::collective {
namespace {

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
struct Meeting {
  std::vector<std::string> errors = std::vector<std::string>(2, "none");
  Meeting(Hosts hosts, const std::vector<Options>& options, const net::Identity& identity = {}) {
    Prepared prepared = prepare(2, hosts);
    for (Endpoint& endpoint : prepared.endpoints) endpoint.identity = identity;
    run_threads(2, [&](std::uint32_t rank) {
      Group group{.epoch = 1, .job_id = 7, .rank = rank, .endpoints = prepared.endpoints};
      const auto made =
          Communicator::connect(std::move(group), std::move(prepared.listeners[rank]), options[rank]);
      if (!made) errors[rank] = made.error().message;
    });
  }
};

constexpr std::chrono::milliseconds briefly{1500};

class SecuredGroup : public testing::TestWithParam<Hosts> {};
INSTANTIATE_TEST_SUITE_P(Layout, SecuredGroup,
                         testing::Values(Hosts::one, Hosts::each_its_own, Hosts::two_interleaved));

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
  const Meeting meeting(GetParam(), {secured(with_token(), briefly),
                                     secured(with_token("another token of some length"), briefly)});
  EXPECT_THAT(meeting.errors[1],
              AllOf(HasSubstr("cannot reach rank 0"), HasSubstr("refused this process's token")));
  EXPECT_THAT(meeting.errors[0], HasSubstr("waited"));
}

TEST(SecuredGroup, TellsARankWithoutTlsThatTheOthersUseIt) {
  const Meeting meeting(Hosts::each_its_own, {secured(with_token(), briefly), secured(nullptr, briefly)});
  EXPECT_THAT(meeting.errors[1], HasSubstr("does not use TLS, and this process does"));
  const Meeting other(Hosts::each_its_own, {secured(nullptr, briefly), secured(with_token(), briefly)});
  EXPECT_THAT(other.errors[1], HasSubstr("does not speak TLS 1.2 or 1.3"));
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
  EXPECT_EQ(Meeting(Hosts::each_its_own, {secured(ours), secured(ours)}, identity).errors,
            std::vector<std::string>(2, "none"));
  const Meeting thief(Hosts::each_its_own, {secured(ours, briefly), secured(theirs, briefly)}, identity);
  EXPECT_THAT(thief.errors[1], HasSubstr("was made for node 9, not for node 1"));
  const net::Identity elsewhere{.hosts = {"10.9.8.7"}, .node_id = "1"};
  const Meeting wrong(Hosts::one, {secured(ours, briefly), secured(ours, briefly)}, elsewhere);
  EXPECT_THAT(wrong.errors[1], HasSubstr("and for none of 10.9.8.7, muster:node:1"));
}

}  // namespace
}  // namespace muster::collective
