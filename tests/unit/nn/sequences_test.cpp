#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "muster/nn/nn.h"
#include "tests/unit/base/error_of.h"
#include "tests/unit/base/mentions.h"

namespace muster::nn {
namespace {
namespace sequences_test {

using ::testing::ElementsAre;

Value zeros_of(const Shape& shape) { return Tensor::zeros(DType::float32, shape); }

std::vector<Shape> shapes(const Values& values) {
  std::vector<Shape> found;
  for (const Value& value : values) found.push_back(value.shape());
  return found;
}

TEST(Recurrent, NamesItsWeightsByLayerAndDirection) {
  const LSTM lstm(3, 5, {.num_layers = 2, .has_bias = false, .bidirectional = true});
  std::vector<std::string> names;
  for (const ParameterPtr& parameter : lstm.parameters()) names.push_back(parameter->name());
  EXPECT_THAT(names,
              ElementsAre("weight_ih_l0", "weight_hh_l0", "weight_ih_l0_reverse", "weight_hh_l0_reverse",
                          "weight_ih_l1", "weight_hh_l1", "weight_ih_l1_reverse", "weight_hh_l1_reverse"));
  EXPECT_EQ(lstm.parameters()[4]->shape(), (Shape{20, 10}));
}

TEST(Recurrent, GivesItsOutputsThenItsStates) {
  LSTM lstm(3, 5, {.num_layers = 2, .bidirectional = true});
  EXPECT_THAT(shapes(lstm.outputs(zeros_of({7, 4, 3}))),
              ElementsAre(Shape{7, 4, 10}, Shape{4, 4, 5}, Shape{4, 4, 5}));
  GRU gru(3, 5, {.batch_first = true});
  EXPECT_THAT(shapes(gru.outputs(zeros_of({4, 7, 3}), zeros_of({1, 4, 5}))),
              ElementsAre(Shape{4, 7, 5}, Shape{1, 4, 5}));
}

TEST(Recurrent, SaysThatACallForOneOutputHasSeveral) {
  RNN rnn(3, 5);
  EXPECT_THAT(ERROR_OF(rnn(zeros_of({7, 4, 3}))), Mentions("RNN", "2", "outputs"));
}

struct Translation : Module<Translation> {
  TransformerEncoderLayer& encoder = add<TransformerEncoderLayer>("encoder", 8, 2, 16);
  TransformerDecoderLayer& decoder = add<TransformerDecoderLayer>("decoder", 8, 2, 16);
  Value forward(const Value& source, const Value& target) { return decoder(target, encoder(source)); }
};

TEST(Transformers, AnEncoderAndADecoderMakeANetwork) {
  Translation net;
  EXPECT_EQ(net(zeros_of({2, 5, 8}), zeros_of({2, 3, 8})).shape(), (Shape{2, 3, 8}));
  EXPECT_THAT(ERROR_OF(net(zeros_of({2, 5, 8}), zeros_of({2, 3, 6}))),
              Mentions("decoder", "(2, 3, 6)", "length, 8"));
}

TEST(Conv2dTranspose, DoublesAnImage) {
  Conv2dTranspose up(4, 6, 2, {.stride = 2, .has_bias = true});
  EXPECT_EQ(up(zeros_of({1, 4, 5, 7})).shape(), (Shape{1, 6, 10, 14}));
}

}  // namespace sequences_test
}  // namespace
}  // namespace muster::nn
