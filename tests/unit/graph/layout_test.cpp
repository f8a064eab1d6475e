// Layouts, and parameters that are divided by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "muster/graph/graph.h"
#include "muster/graph/sharding/mesh.h"

namespace muster::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const auto two_by_three = std::make_shared<const Mesh>(std::vector<MeshAxis>{{"data", 2}, {"model", 3}});

Tensor counted(const Shape& shape) {
  Tensor made(DType::float32, shape);
  for (std::int64_t i = 0; i < shape.elements(); ++i) made.data<float>()[i] = static_cast<float>(i);
  return made;
}

std::vector<float> elements(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.elements()};
}

TEST(Mesh, TheLastAxisVariesFastestOverTheRanks) {
  EXPECT_EQ(two_by_three->size(), 6u);
  EXPECT_EQ(two_by_three->coordinate(4, 0), 1u);
  EXPECT_EQ(two_by_three->coordinate(4, 1), 1u);
  EXPECT_THAT(two_by_three->group_of(4, {0}), ElementsAre(1u, 4u));
  EXPECT_THAT(two_by_three->group_of(4, {1}), ElementsAre(3u, 4u, 5u));
}

TEST(TensorLayout, EveryRankHasItsPieceAndTheyMakeUpTheWhole) {
  const std::vector<std::vector<TensorLayout::Axes>> all = {{{}, {}},   {{0}, {}},    {{}, {0}},   {{0}, {1}},
                                                            {{1}, {0}}, {{0, 1}, {}}, {{}, {0, 1}}};
  const Tensor whole = counted({6, 12});
  for (const auto& dims : all) {
    const TensorLayout layout{.mesh = two_by_three, .dims = dims};
    Tensor joined = Tensor::zeros(DType::float32, {6, 12});
    for (std::uint32_t rank = 0; rank < 6; ++rank) {
      const Tensor piece = piece_of(whole, layout, rank);
      EXPECT_EQ(piece.shape(), layout.piece_shape(whole.shape()));
      put_piece(piece, layout, rank, joined);
    }
    EXPECT_EQ(elements(joined), elements(whole)) << to_string(layout);
  }
}

TEST(TensorLayout, SeveralAxesCutTheOutermostFirst) {
  const TensorLayout layout{.mesh = two_by_three, .dims = {{0, 1}}};
  EXPECT_THAT(elements(piece_of(counted({6}), layout, 4)), ElementsAre(4));
}

TEST(Parameter, ADividedOneBeginsAsItsPieceOfTheWhole) {
  const auto count = [](const Tensor& out, const RandomStream&) {
    for (std::int64_t i = 0; i < out.elements(); ++i) out.data<float>()[i] = static_cast<float>(i);
  };
  Parameter parameter("weight", TensorType{DType::float32, {4, 3}}, count);
  parameter.divide(Parameter::Share{.layout = {.mesh = two_by_three, .dims = {{0}, {}}}, .rank = 5});
  EXPECT_EQ(parameter.shape(), (Shape{4, 3}));
  EXPECT_EQ(parameter.held_type().shape, (Shape{2, 3}));
  EXPECT_THAT(elements(parameter.materialize(1)), ElementsAre(6, 7, 8, 9, 10, 11));
}

TEST(Parameter, ADividedOneTakesItsPieceOfAWholeAndAPieceAsItIs) {
  const auto parameter = std::make_shared<Parameter>("weight", Tensor::zeros(DType::float32, {4, 1}));
  parameter->divide(Parameter::Share{.layout = {.mesh = two_by_three, .dims = {{0}, {}}}, .rank = 0});
  ASSERT_TRUE(parameter->set(counted({4, 1})));
  EXPECT_THAT(elements(parameter->storage()), ElementsAre(0, 1));
  ASSERT_TRUE(parameter->set(Tensor::zeros(DType::float32, {2, 1})));
  EXPECT_THAT(elements(parameter->storage()), ElementsAre(0, 0));
  EXPECT_FALSE(parameter->set(Tensor::zeros(DType::float32, {3, 1})));
  const auto read = Value(parameter).read();
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("divided over 6 workers"));
}

std::string refused(const char* mesh, const char* layout, const Shape& shape) {
  const auto made = layout_in({{"mesh", std::string(mesh)}, {"layout", std::string(layout)}}, shape);
  return made ? "" : made.error().message;
}

TEST(TensorLayout, WhatDoesNotFitIsToldWithWhatWould) {
  EXPECT_EQ(refused("data=2,model=3", "data;model", {4, 6}), "");
  EXPECT_EQ(refused("data=2,model=3", ";data+model", {4, 6}), "");
  EXPECT_THAT(refused("data=2", "model;", {4, 6}), HasSubstr("no axis 'model', it has 'data'"));
  EXPECT_THAT(refused("data=2", "data", {4, 6}), HasSubstr("1 dimensions was given for (4, 6)"));
  EXPECT_THAT(refused("data=2", "data;data", {4, 6}), HasSubstr("cuts two dimensions"));
  EXPECT_THAT(refused("data=2,model=3", "model+data;", {6, 6}), HasSubstr("in the order of the mesh"));
  EXPECT_THAT(refused("data=4", ";data", {4, 6}), HasSubstr("it can be cut into 1, 2, 3, 6"));
}

}  // namespace
}  // namespace muster::graph
