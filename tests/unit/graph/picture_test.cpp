// The picture and the text of a divided network.
#include "muster/graph/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

namespace muster::graph {
namespace {
namespace picture_test {

using ::testing::HasSubstr;
using ::testing::Not;

Partition three_workers() {
  return {.name = "step",
          .reader = 2,
          .stages = {{.rank = 0,
                      .placed = {"Net 'a<b>&\"c\"', net.py:3"},
                      .parameters = {"a.weight", "a.bias"},
                      .nodes = 7,
                      .flops = 2.5e6,
                      .parameters_bytes = 3072,
                      .activations_bytes = 4096},
                     {.rank = 1},
                     {.rank = 2, .placed = {"Net 'head', net.py:4"}, .parameters = {}, .nodes = 1}},
          .value_transfers = {
              {.from = 2, .to = 0, .what = "input 0", .type = {DType::float32, {32, 8}}, .message = 0},
              {.from = 2, .to = 0, .what = "input 1", .type = {DType::int32, {32}}, .message = 0},
              {.from = 0, .to = 1, .what = "%9 (reduce_sum)", .type = {DType::float32, {}}, .message = 1}}};
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

// Elements that begin and end as XML wants it, each attribute in quotes, and text without loose ends.
void expect_well_formed(const std::string& svg) {
  static const std::regex tag(R"(<(/?)([a-z]+)((?:\s+[A-Za-z0-9:-]+="[^"<]*")*)\s*(/?)>)");
  std::vector<std::string> open;
  std::size_t end = 0;
  for (auto found = std::sregex_iterator(svg.begin(), svg.end(), tag); found != std::sregex_iterator();
       ++found) {
    const auto place = static_cast<std::size_t>(found->position());
    EXPECT_EQ(svg.substr(end, place - end).find_first_of("<>"), std::string::npos)
        << svg.substr(end, place - end);
    end = place + static_cast<std::size_t>(found->length());
    if (!(*found)[1].str().empty()) {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ((*found)[2].str(), open.back());
      open.pop_back();
    } else if ((*found)[4].str().empty()) {
      open.push_back((*found)[2].str());
    }
  }
  EXPECT_TRUE(open.empty());
  static const std::regex loose("&(?!amp;|lt;|gt;|quot;)");
  EXPECT_FALSE(std::regex_search(svg, loose));
}

TEST(Picture, HasABoxForEachWorkerAndAnArrowForEachMessage) {
  const std::string svg = to_svg(three_workers());
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "class=\"worker\""), 3u);
  EXPECT_EQ(count(svg, "class=\"message\""), 2u);
  EXPECT_THAT(svg, HasSubstr(">worker 2<"));
  EXPECT_THAT(svg, HasSubstr("2 parameters, 3.0 KiB"));
  EXPECT_THAT(svg, HasSubstr("nothing is placed here"));
  EXPECT_THAT(svg, HasSubstr("2 values, 1.1 KiB"));
  EXPECT_THAT(svg, HasSubstr(">float32 (), 4 B<"));
}

TEST(Picture, EscapesWhatPeopleCallTheirLayers) {
  const std::string svg = to_svg(three_workers());
  EXPECT_THAT(svg, HasSubstr(">Net 'a&lt;b&gt;&amp;&quot;c&quot;'<"));
  EXPECT_THAT(svg, HasSubstr(">net.py:3<"));
  EXPECT_THAT(svg, Not(HasSubstr("a<b>")));
}

TEST(Picture, CutsLongNamesBetweenLetters) {
  Partition partition = three_workers();
  std::string name = "Net '";
  for (int i = 0; i < 40; ++i) name += "卷";
  partition.stages[0].placed = {name};
  const std::string svg = to_svg(partition);
  expect_well_formed(svg);
  EXPECT_THAT(svg, HasSubstr("卷…<"));
  EXPECT_THAT(svg, HasSubstr("<title>" + name + "</title>"));
}

TEST(Picture, OfManyMessagesStaysOne) {
  Partition partition = three_workers();
  for (std::size_t i = 2; i < 1000; ++i) {
    partition.value_transfers.push_back(partition.value_transfers.back());
    partition.value_transfers.back().message = i;
  }
  const std::string svg = to_svg(partition);
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "class=\"message\""), 120u);
  EXPECT_THAT(svg, HasSubstr("and 880 messages more"));
}

TEST(PartsInWords, TellWhatEachWorkerHoldsAndWhatCrosses) {
  const std::string text = to_string(three_workers());
  EXPECT_THAT(text, HasSubstr("workers: 3, worker 2 has the inputs; 3 values cross in 2 messages, 1.1 KiB"));
  EXPECT_THAT(text,
              HasSubstr("worker 0: 7 nodes, 2.5 MFLOP, 2 parameters of 3.0 KiB, 4.0 KiB of activations"));
  EXPECT_THAT(text, HasSubstr("worker 1: nothing"));
  EXPECT_THAT(text, HasSubstr("%9 (reduce_sum)"));
}

MeshPlan two_by_three() {
  const auto mesh = std::make_shared<const Mesh>(std::vector<MeshAxis>{{"data", 2}, {"model", 3}});
  return {.name = "step",
          .mesh = mesh,
          .parameters = {{"fc<1>.weight", {DType::float32, {6, 4}}, {mesh, {{1}, {}}}},
                         {"fc<1>.bias", {DType::float32, {4}}, {mesh, {{}}}}},
          .calls = {{.op = "all_reduce", .axes = {1}, .calls = 4, .sent_bytes = 2048},
                    {.op = "all_gather", .axes = {0, 1}, .calls = 2, .sent_bytes = 100}}};
}

TEST(MeshPicture, HasABoxForEachRankWithWhatItHoldsAndEdgesAlongEachAxis) {
  const std::string svg = to_svg(two_by_three());
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "class=\"worker\""), 6u);
  EXPECT_EQ(count(svg, "class=\"edge\""), 4u + 3u) << "along model and along data";
  EXPECT_EQ(count(svg, ">4 all_reduce, 2.0 KiB<"), 4u) << "along model alone";
  EXPECT_EQ(count(svg, "stroke-dasharray"), 3u) << "nothing travels along data alone";
  EXPECT_THAT(svg, HasSubstr("between the ranks of data x model: 2 all_gather, 100 B"));
  EXPECT_EQ(count(svg, ">data 1, model 2<"), 1u);
  EXPECT_EQ(count(svg, ">fc&lt;1&gt;.weight (2, 4)<"), 6u);
  EXPECT_EQ(count(svg, "part 2 of 3 of dim 0 (model)"), 2u);
  EXPECT_EQ(count(svg, ">holds 48 B of 112 B<"), 6u) << "its part of the weight, and the bias";
}

TEST(MeshPicture, SaysTheSameInWords) {
  const std::string text = to_string(two_by_three());
  EXPECT_THAT(text, HasSubstr("step over 6 ranks: data=2, model=3"));
  EXPECT_THAT(text, HasSubstr("along model: 4 all_reduce, 2.0 KiB by each rank"));
  EXPECT_THAT(text, HasSubstr("fc<1>.weight float32 (6, 4): (model, -)"));
  EXPECT_THAT(text, HasSubstr("fc<1>.bias float32 (4,): whole on each rank"));
}

TEST(MeshPicture, OfManyRanksShowsSome) {
  const auto mesh = std::make_shared<const Mesh>(std::vector<MeshAxis>{{"data", 20}, {"model", 10}});
  const std::string svg = to_svg(MeshPlan{.name = "step", .mesh = mesh});
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "class=\"worker\""), 128u);
  EXPECT_THAT(svg, HasSubstr("and 72 ranks more"));
}

}  // namespace picture_test
}  // namespace
}  // namespace muster::graph
