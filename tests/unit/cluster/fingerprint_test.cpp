#include "muster/cluster/fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::cluster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Ranks 0, 1, ...
std::vector<std::string> differences(const std::vector<Traits>& all) {
  std::vector<FingerprintSource> sources;
  for (std::uint32_t rank = 0; rank < all.size(); ++rank)
    sources.push_back({.rank = rank, .traits = &all[rank]});
  return trait_differences(sources);
}

TEST(Fingerprint, IsSilentWhenAllAgree) {
  EXPECT_THAT(differences({}), IsEmpty());
  EXPECT_THAT(differences({{{"script", "a"}}}), IsEmpty());
  EXPECT_THAT(differences({{{"script", "a"}}, {{"script", "a"}}}), IsEmpty());
}

TEST(Fingerprint, NamesKeyBothValuesAndWhoIsOdd) {
  EXPECT_THAT(differences({{{"script", "a"}}, {{"script", "b"}}, {{"script", "a"}}, {{"script", "a"}}}),
              ElementsAre("script is 'b' at rank 1, 'a' at ranks 0, 2-3"));
}

TEST(Fingerprint, ComparesServersWithWorkersButForVariablesOfTheEnvironment) {
  const Traits worker{{"OMP_NUM_THREADS", "4"}, {"script", "a"}}, server{{"script", "b"}};
  const std::vector<FingerprintSource> sources{{.rank = 0, .traits = &worker},
                                               {.rank = 1, .traits = &worker},
                                               {.name = "server 0", .is_server = true, .traits = &server}};
  EXPECT_THAT(trait_differences(sources), ElementsAre("script is 'b' at server 0, 'a' at ranks 0-1"));
}

TEST(Fingerprint, NamesAVariableThatIsNotSetSomewhere) {
  EXPECT_THAT(differences({{}, {{"OMP_NUM_THREADS", "4"}}, {{"OMP_NUM_THREADS", "4"}}}),
              ElementsAre("OMP_NUM_THREADS is not set at rank 0, '4' at ranks 1-2"));
}

TEST(Fingerprint, IsBoundedWhateverProcessesSay) {
  std::vector<Traits> all(300);
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    for (int key = 0; key < 32; ++key)
      all[rank].push_back({std::to_string(32 * rank + key), std::to_string(rank)});
  const auto lines = differences(all);
  EXPECT_THAT(lines, SizeIs(64));
  for (std::size_t rank = 0; rank < all.size(); ++rank) all[rank] = {{"k", std::to_string(rank)}};
  EXPECT_THAT(differences(all),
              ElementsAre("k is '0' at rank 0, '1' at rank 1, '10' at rank 10, '99' at rank 99"));
}

TEST(Fingerprint, HasVersionByteOrderAndTheVariablesThatMatter) {
  const Traits traits = traits_of(
      FixedEnvironment({{"OMP_NUM_THREADS", "4"}, {"MUSTER_LOG", "debug"}, {"PYTHONHASHSEED", ""}}));
  EXPECT_THAT(traits, SizeIs(3));
  EXPECT_THAT(traits, Contains(Trait{"OMP_NUM_THREADS", "4"}));
  EXPECT_THAT(traits, Contains(Trait{"byte order", "little"}));
  EXPECT_THAT(traits, Not(Contains(Trait{"MUSTER_LOG", "debug"})));
}

}  // namespace
}  // namespace muster::cluster
