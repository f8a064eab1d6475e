// In which order the workers of a divided graph run their nodes.
#include "muster/graph/partition/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace muster::graph {
namespace {

// What micro batches make of two workers with a layer each: all ways forward, then all ways back, the last
// part first.
struct Pipeline {
  Graph graph;
  Places places;

  ValueId value() {
    graph.values.push_back({DType::float32, Shape({1 << 20})});
    places.values.push_back(0);
    return static_cast<ValueId>(graph.values.size() - 1);
  }
  ValueId add(std::uint32_t worker, std::vector<ValueId> inputs) {
    const ValueId made = value();
    graph.nodes.push_back(
        {.op = find_op("relu"), .inputs = std::move(inputs), .outputs = {made}, .attributes = {}});
    places.nodes.push_back(worker);
    return made;
  }
  std::vector<std::size_t> order() const {
    return order_for_workers(graph, places, std::vector<std::size_t>(graph.nodes.size(), 0), 2);
  }
};

Pipeline pipeline_of_two(std::size_t parts) {
  Pipeline made;
  std::vector<ValueId> first, second;
  for (std::size_t k = 0; k < parts; ++k) {
    first.push_back(made.add(0, {made.value()}));
    second.push_back(made.add(1, {first.back()}));
  }
  for (std::size_t k = parts; k-- > 0;) made.add(0, {made.add(1, {second[k]}), first[k]});
  return made;
}

// The most parts of which the first worker holds results, for the way back.
std::size_t most_under_way(const Pipeline& pipeline) {
  std::size_t under_way = 0, most = 0;
  for (const std::size_t i : pipeline.order()) {
    if (pipeline.places.nodes[i] != 0) continue;
    under_way = i < pipeline.graph.nodes.size() / 2 ? under_way + 1 : under_way - 1;
    most = std::max(most, under_way);
  }
  return most;
}

TEST(AnOrderForWorkers, KeepsAsManyPartsUnderWayHoweverManyThereAre) {
  EXPECT_LE(most_under_way(pipeline_of_two(8)), 4u);
  EXPECT_EQ(most_under_way(pipeline_of_two(64)), most_under_way(pipeline_of_two(8)));
}

TEST(AnOrderForWorkers, MakesEachValueBeforeItIsUsed) {
  const Pipeline pipeline = pipeline_of_two(8);
  std::vector<std::size_t> position(pipeline.graph.nodes.size());
  const std::vector<std::size_t> order = pipeline.order();
  for (std::size_t at = 0; at < order.size(); ++at) position[order[at]] = at;
  for (std::size_t i = 0; i < order.size(); ++i)
    for (std::size_t k = 0; k < order.size(); ++k)
      for (const ValueId id : pipeline.graph.nodes[i].inputs) {
        if (pipeline.graph.nodes[k].outputs.front() != id) continue;
        EXPECT_LT(position[k], position[i]);
      }
}

TEST(AnOrderForWorkers, IsThatOfTheProgramWhereNothingIsWon) {
  Pipeline chain;
  ValueId last = chain.value();
  for (const std::uint32_t worker : {0u, 0u, 1u, 1u, 0u}) last = chain.add(worker, {last});
  std::vector<std::size_t> in_program_order(chain.graph.nodes.size());
  std::iota(in_program_order.begin(), in_program_order.end(), std::size_t{0});
  EXPECT_EQ(chain.order(), in_program_order);
}

}  // namespace
}  // namespace muster::graph
