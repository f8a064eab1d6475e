#include "muster/train/agreement.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/unit/collective/ranks.h"

namespace muster::train {
namespace {

using collective::Hosts;

NamedTensor named(std::string name, std::array<float, 2> values, Shape shape = {2}) {
  return {std::move(name), Tensor::from<float>(values, std::move(shape))};
}

// What each of three ranks is told when it brings its own parameters.
std::vector<Result<>> outcomes(const std::vector<std::vector<NamedTensor>>& parameters) {
  const auto ranks = static_cast<std::uint32_t>(parameters.size());
  const auto communicators = collective::connect_ranks(ranks, Hosts::one);
  std::vector<Result<>> results(ranks);
  collective::run_threads(ranks, [&](std::uint32_t rank) {
    results[rank] = check_agreement(parameters[rank], *communicators[rank]);
  });
  return results;
}

void expect_all_say(const std::vector<Result<>>& results, std::string_view words) {
  for (const Result<>& result : results) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::invalid_argument);
    EXPECT_NE(result.error().message.find(words), std::string::npos) << result.error().message;
  }
}

TEST(Agreement, IsReachedByEqualParameters) {
  const std::vector<NamedTensor> same{named("fc.weight", {1, 2}), named("fc.bias", {3, 4})};
  for (const Result<>& result : outcomes({same, same, same})) EXPECT_TRUE(result) << result.error().message;
}

TEST(Agreement, NamesTheParameterAndTheRanksWhoseValuesDiffer) {
  const std::vector<NamedTensor> same{named("fc.weight", {1, 2}), named("fc.bias", {3, 4})};
  const std::vector<NamedTensor> other{named("fc.weight", {1, 2}), named("fc.bias", {3, 4.0000005F})};
  expect_all_say(outcomes({same, other, other}),
                 "parameter 'fc.bias' has other values on rank 1, 2 than on rank 0");
}

TEST(Agreement, RefusesRanksThatMakeFewerSteps) {
  const auto communicators = collective::connect_ranks(2, Hosts::one);
  std::vector<Result<>> same(2), other(2);
  collective::run_threads(2, [&](std::uint32_t rank) {
    same[rank] = check_equal_steps(5, *communicators[rank]);
    other[rank] = check_equal_steps(5 - rank, *communicators[rank]);
  });
  for (const Result<>& result : same) EXPECT_TRUE(result);
  expect_all_say(other, "rank 0 makes 5 steps an epoch but rank 1 makes 4");
}

TEST(Agreement, RefusesAnotherNetwork) {
  const auto weight = named("fc.weight", {1, 2});
  expect_all_say(outcomes({{weight}, {named("fc1.weight", {1, 2})}, {weight}}), "on rank 1 than on rank 0");
  expect_all_say(outcomes({{weight}, {weight}, {named("fc.weight", {1, 2}, {1, 2})}}),
                 "on rank 2 than on rank 0");
  expect_all_say(outcomes({{weight}, {weight, weight}}), "rank 0 trains 1 parameters but rank 1 trains 2");
}

// What each rank is told of the file that it has read its piece of 'fc.weight' from: a save, or nothing.
std::vector<Result<>> outcomes_of_saves(const std::vector<std::optional<std::string>>& saves) {
  const auto ranks = static_cast<std::uint32_t>(saves.size());
  const auto communicators = collective::connect_ranks(ranks, Hosts::one);
  std::vector<Result<>> results(ranks);
  collective::run_threads(ranks, [&](std::uint32_t rank) {
    const auto parameter =
        std::make_shared<graph::Parameter>("fc.weight", Tensor::zeros(DType::float32, {2}));
    if (saves[rank])
      parameter->set_piece_source({{.save = *saves[rank], .file = "rank_" + std::to_string(rank)}});
    results[rank] = check_pieces_of_one_save({{parameter}}, *communicators[rank]);
  });
  return results;
}

TEST(Agreement, RefusesPiecesOfSeveralSavesAndNamesTheFiles) {
  for (const Result<>& result : outcomes_of_saves({"step 3", std::nullopt, "step 3"})) EXPECT_TRUE(result);
  for (const Result<>& result : outcomes_of_saves({std::nullopt, std::nullopt})) EXPECT_TRUE(result);
  expect_all_say(outcomes_of_saves({std::nullopt, "step 3", "step 4"}),
                 "'fc.weight' are of several saves: rank 1 has loaded step 3, 'rank_1', and rank 2 step 4, "
                 "'rank_2'");
  expect_all_say(outcomes_of_saves({"", "step 4"}),
                 "rank 0 has loaded an unknown step, 'rank_0', and rank 1");
}

TEST(Agreement, AForgottenSourceIsThatOfValuesThatWereSetSince) {
  graph::Parameter parameter("fc.weight", Tensor::zeros(DType::float32, {2}));
  parameter.set_piece_source({{.save = "step 3", .file = "rank_0"}});
  ASSERT_TRUE(parameter.set(Tensor::zeros(DType::float32, {2})));
  EXPECT_FALSE(parameter.piece_source());
}

// What each rank is told of what it has placed.
std::vector<Result<>> outcomes_of(const std::vector<std::vector<PlacedCell>>& places) {
  const auto ranks = static_cast<std::uint32_t>(places.size());
  const auto communicators = collective::connect_ranks(ranks, Hosts::one);
  std::vector<Result<>> results(ranks);
  collective::run_threads(ranks, [&](std::uint32_t rank) {
    results[rank] = check_equal_places(places[rank], *communicators[rank]);
  });
  return results;
}

TEST(Agreement, RefusesOtherPlacesAndNamesRankCellAndLine) {
  const PlacedCell conv{"Conv2d 'conv' on worker 0", "net.py:3"}, fc{"Dense 'fc' on worker 1", "net.py:4"};
  const PlacedCell other_fc{"Dense 'fc' on worker 0", "net.py:7"};
  expect_all_say(
      outcomes_of({{conv, fc}, {conv, fc}, {}}),
      "rank 0 has placed Conv2d 'conv' on worker 0 (net.py:3) where rank 2 has placed nothing there");
  expect_all_say(outcomes_of({{}, {conv}}), "rank 0 has placed nothing there where rank 1 has placed Conv2d");
  expect_all_say(outcomes_of({{conv, fc}, {conv, other_fc}}),
                 "rank 0 has placed Dense 'fc' on worker 1 (net.py:4) where rank 1 has placed Dense 'fc' on "
                 "worker 0 (net.py:7)");
}

TEST(Agreement, TakesTheSamePlacesFromOtherLines) {
  const auto at = [](std::string line) { return PlacedCell{"Dense 'fc' on worker 1", std::move(line)}; };
  for (const Result<>& result : outcomes_of({{at("net.py:3")}, {at("net.py:5")}}))
    EXPECT_TRUE(result) << result.error().message;
}

TEST(Agreement, OfMorePlacesThanCanBeNamedIsStillOfAll) {
  std::vector<PlacedCell> many(100, PlacedCell{"Dense on worker 1", "net.py:3"});
  std::vector<PlacedCell> others = many;
  others.back().what = "Dense on worker 2";
  expect_all_say(outcomes_of({many, others}), "their places differ after the first 64");
}

// What each rank is told of its `traits`; the last rank may be strict.
std::vector<Result<>> compared(const std::vector<cluster::Traits>& traits, bool strict) {
  const auto ranks = static_cast<std::uint32_t>(traits.size());
  const auto communicators = collective::connect_ranks(ranks, Hosts::one);
  std::vector<Result<>> results(ranks);
  collective::run_threads(ranks, [&](std::uint32_t rank) {
    results[rank] = compare_traits(traits[rank], strict && rank + 1 == ranks, *communicators[rank]);
  });
  return results;
}

TEST(Agreement, IsSilentAboutEqualTraits) {
  const cluster::Traits same = {{"seed", "18446744073709551615"}, {"rows", ""}};
  for (const Result<>& result : compared({same, same, same}, true)) EXPECT_TRUE(result);
}

TEST(Agreement, WarnsOfATraitThatDiffersAndEndsAStrictJob) {
  const std::vector<cluster::Traits> traits = {{{"seed", "1"}, {"rows", "60000"}},
                                               {{"seed", "1"}, {"rows", "59999"}},
                                               {{"seed", "1"}, {"rows", "60000"}}};
  for (const Result<>& result : compared(traits, false)) EXPECT_TRUE(result);
  expect_all_say(
      compared(traits, true),
      "the workers of this job differ: rows is '59999' at rank 1, '60000' at ranks 0, 2. Make them");
}

TEST(Agreement, CutsALongTrait) {
  const std::string base(40, 'x');
  for (const Result<>& result : compared({{{"k", base + "a"}}, {{"k", base + "b"}}}, true))
    EXPECT_TRUE(result);
}

}  // namespace
}  // namespace muster::train
