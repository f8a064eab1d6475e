// The whole way: cells are traced, differentiated, compiled and run, against the same numbers by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "muster/nn/nn.h"

namespace muster::nn {
namespace {
namespace training_test {

using graph::Function;
using graph::TensorType;

class Network : public Cell {
 public:
  Network(std::int64_t features, std::int64_t classes) : Cell("Network") {
    insert_child("flatten", flatten_);
    fc_ = std::make_shared<Dense>(features, classes,
                                  DenseOptions{.weight_init = normal(), .bias_init = zeros()});
    insert_child("fc", fc_);
    insert_child("relu", relu_);
  }
  Values construct(std::span<const Value> inputs) override {
    return relu_->call(fc_->call(flatten_->call(inputs)));
  }
  const Dense& fc() const { return *fc_; }

 private:
  CellPtr flatten_ = std::make_shared<Flatten>();
  std::shared_ptr<Dense> fc_;
  CellPtr relu_ = std::make_shared<ReLU>();
};

struct Batch {
  Tensor image;
  Tensor label;
};

// Each class is a bump at its own place, under noise.
Batch make_batch(std::uint64_t step, std::int64_t samples, std::int64_t features, std::int64_t classes) {
  const RandomStream stream(7, step);
  Batch batch{Tensor(DType::float32, {samples, features, 1}), Tensor(DType::int32, {samples})};
  std::uint64_t at = 0;
  for (std::int64_t i = 0; i < samples; ++i) {
    const auto label = static_cast<std::int32_t>(stream.below(at++, static_cast<std::uint64_t>(classes)));
    batch.label.data<std::int32_t>()[i] = label;
    for (std::int64_t f = 0; f < features; ++f)
      batch.image.data<float>()[i * features + f] =
          static_cast<float>(0.3 * stream.normal(at++) + (f % classes == label ? 1.0 : 0.0));
  }
  return batch;
}

// The same net in double with plain loops.
struct ByHand {
  std::int64_t features, classes;
  std::vector<double> weight, bias;
  double rate = 0.5;

  double step(const Batch& batch) {
    const std::int64_t samples = batch.label.elements();
    std::vector<double> weight_gradient(weight.size()), bias_gradient(bias.size());
    double loss = 0;
    for (std::int64_t i = 0; i < samples; ++i) {
      const float* x = batch.image.data<float>() + i * features;
      std::vector<double> y(bias);
      double sum = 0;
      for (std::int64_t c = 0; c < classes; ++c) {
        for (std::int64_t f = 0; f < features; ++f) y[c] += weight[c * features + f] * x[f];
        y[c] = std::max(y[c], 0.0);
        sum += std::exp(y[c]);
      }
      const std::int32_t label = batch.label.data<std::int32_t>()[i];
      loss += std::log(sum) - y[label];
      for (std::int64_t c = 0; c < classes; ++c) {
        const double flow = y[c] > 0 ? (std::exp(y[c]) / sum - (c == label)) / samples : 0;
        bias_gradient[c] += flow;
        for (std::int64_t f = 0; f < features; ++f) weight_gradient[c * features + f] += flow * x[f];
      }
    }
    for (std::size_t i = 0; i < weight.size(); ++i) weight[i] -= rate * weight_gradient[i];
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i] -= rate * bias_gradient[i];
    return loss / samples;
  }
};

std::vector<double> as_doubles(const Tensor& tensor) {
  return {tensor.span<float>().begin(), tensor.span<float>().end()};
}

TEST(Training, TheDenseNetFollowsTheNumbersComputedByHandAndLearns) {
  constexpr std::int64_t features = 20, classes = 4, samples = 16;
  const RunContext context{.seed = 1};
  Network net(features, classes);
  CrossEntropyLoss loss_fn;
  SGD optimizer(net.trainable_params(), {.learning_rate = 0.5});
  const auto grad_fn =
      graph::value_and_grad("forward_fn",
                            [&](std::span<const Value> inputs) -> Values {
                              const Value logits = net(inputs[0]);
                              return {loss_fn(logits, inputs[1]), logits};
                            },
                            {.parameters = net.trainable_params(), .positions = {}, .has_aux = true});
  ByHand by_hand{features, classes, as_doubles(net.fc().weight()->materialize(1)),
                 as_doubles(net.fc().bias()->materialize(1))};
  double first = 0;
  double last = 0;
  for (std::uint64_t step = 0; step < 60; ++step) {
    const Batch batch = make_batch(step, samples, features, classes);
    const std::vector<Tensor> inputs{batch.image, batch.label};
    const auto outputs = grad_fn->call(inputs, {}, context);
    ASSERT_TRUE(outputs) << outputs.error().message;
    ASSERT_EQ(outputs->size(), 4u);
    last = (*outputs)[0].data<float>()[0];
    if (step == 0) first = last;
    EXPECT_NEAR(last, by_hand.step(batch), 1e-4) << "step " << step;
    optimizer.call(std::vector<Value>{(*outputs)[2], (*outputs)[3]}, context);
  }
  EXPECT_LT(last, 0.6 * first);
  EXPECT_EQ(grad_fn->traces().size(), 1u);
}

}  // namespace training_test
}  // namespace
}  // namespace muster::nn
