#include "muster/graph/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/graph/graph.h"

namespace muster::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// relu(x w + b) for x (2, 3), w (3, 4): one dense step.
class Explained : public ::testing::Test {
 protected:
  Explained() {
    MUSTER_CHECK(layer_.compile(std::vector{Tensor(DType::float32, {2, 3})}, {}, {}).has_value(),
                 "it compiles");
  }

  const ParameterPtr weight_ =
      std::make_shared<Parameter>("fc.weight", Tensor::zeros(DType::float32, {3, 4}));
  const ParameterPtr bias_ = std::make_shared<Parameter>("fc.bias", Tensor::zeros(DType::float32, {4}));
  Function layer_{"layer", [this](std::span<const Value> in) -> Values {
                    return apply("relu", {apply("bias_add", {apply("matmul", {in[0], weight_}), bias_})});
                  }};
};

TEST_F(Explained, TellsStepsParametersMemoryAndWork) {
  const Explanation explanation = layer_.explain();
  EXPECT_EQ(explanation.name, "layer");
  EXPECT_EQ(explanation.inputs, "float32 (2, 3)");
  ASSERT_THAT(explanation.steps, SizeIs(1));
  const PlanStep& step = explanation.steps[0];
  EXPECT_EQ(step.op, "dense");
  EXPECT_FALSE(step.kernel.empty());
  EXPECT_EQ(step.result, "float32 (2, 4)");
  EXPECT_EQ(step.format, "");
  EXPECT_EQ(step.flops, 2 * 2 * 3 * 4);
  EXPECT_EQ(step.bytes, 4U * (6 + 12 + 4 + 8));
  EXPECT_EQ(explanation.flops(), step.flops);
  EXPECT_EQ(explanation.inputs_bytes, 4U * 6);
  EXPECT_EQ(explanation.outputs_bytes, 4U * 8);
  EXPECT_EQ(explanation.parameters_bytes(), 4U * (12 + 4));
  EXPECT_EQ(explanation.peak_bytes(), explanation.arena_bytes + 4U * (6 + 8 + 12 + 4));
  ASSERT_THAT(explanation.traces, SizeIs(1));
  EXPECT_EQ(explanation.traces[0].reason, "first call");
}

TEST_F(Explained, IsReadableText) {
  Explanation explanation = layer_.explain();
  explanation.steps[0].kernel = "fast";
  explanation.steps[0].format = "blocked";
  explanation.traces[0].duration = std::chrono::microseconds(1500);
  const std::string text = to_string(explanation);
  EXPECT_THAT(text, HasSubstr("layer(float32 (2, 3)): a plan of 1 steps on 1 thread\n"));
  EXPECT_THAT(text,
              HasSubstr("     1  dense  fast    float32 (2, 4) in blocked       48 FLOP       120 B\n"));
  EXPECT_THAT(text, HasSubstr("parameters: 2 of 16 elements, 64 B\n  fc.weight  float32 (3, 4)\n"));
  EXPECT_THAT(text, HasSubstr("work: 48 FLOP where ops count it, 120 B read and written\n"));
  EXPECT_THAT(text, HasSubstr("traces: 1\n  1. float32 (2, 3): first call; 3 nodes, 1.5 ms\n"));
}

TEST_F(Explained, ScalesNumbersToThreeDigits) {
  Explanation explanation = layer_.explain();
  explanation.steps[0].flops = 20'460'000'000;
  explanation.steps[0].bytes = 1536;
  const std::string text = to_string(explanation);
  EXPECT_THAT(text, HasSubstr("20.5 GFLOP"));
  EXPECT_THAT(text, HasSubstr("1.5 KiB"));
  explanation.steps[0].bytes = std::size_t{150} << 40;  // no larger unit
  EXPECT_THAT(to_string(explanation), HasSubstr("153600 GiB"));
}

TEST_F(Explained, RunsNothingAndTracesOnce) {
  int traces = 0;
  Function counted("counted", [&](std::span<const Value> in) -> Values {
    ++traces;
    (void)apply("assign_add", {bias_, Tensor::from<float>(std::vector<float>{1, 1, 1, 1}, {4})});
    return apply("relu", {in[0]});
  });
  const std::vector<Tensor> inputs{Tensor::zeros(DType::float32, {2, 3})};
  ASSERT_TRUE(counted.compile(inputs, {}, {}));
  ASSERT_TRUE(counted.compile(inputs, {}, {}));
  EXPECT_EQ(bias_->storage().data<float>()[0], 0);
  ASSERT_TRUE(counted.call(inputs, {}, {}));
  EXPECT_EQ(bias_->storage().data<float>()[0], 1);
  EXPECT_EQ(traces, 1);
}

TEST(Flops, CountMultiplyAddsAsTwo) {
  const auto work = [](const char* op, std::vector<Shape> shapes, const Attributes& attributes) {
    Function function(op, [&](std::span<const Value> in) -> Values { return apply(op, in, attributes); });
    std::vector<Tensor> inputs;
    for (const Shape& shape : shapes) inputs.emplace_back(DType::float64, shape);  // no blocked formats
    MUSTER_CHECK(function.compile(inputs, {}, {}).has_value(), "it compiles");
    return function.explain().flops();
  };
  EXPECT_EQ(work("matmul", {{2, 3}, {3, 4}}, {}), 2 * 2 * 3 * 4);
  EXPECT_EQ(work("batch_matmul", {{5, 2, 3}, {3, 4}}, {}), 2 * 5 * 2 * 3 * 4);
  const Attributes in_two_groups{{"group", std::int64_t{2}}};
  // 6 channels of 4 by 4 pixels, each of 2 channels and 9 places.
  EXPECT_EQ(work("conv2d", {{1, 4, 6, 6}, {6, 2, 3, 3}}, in_two_groups), 2 * 6 * 16 * 2 * 9);
  Attributes input_size = in_two_groups;
  input_size.set("input_size", std::vector<std::int64_t>{6, 6});
  EXPECT_EQ(work("conv2d_grad_input", {{1, 6, 4, 4}, {6, 2, 3, 3}}, input_size), 2 * 6 * 16 * 2 * 9);
  Attributes kernel = in_two_groups;
  kernel.set("kernel", std::vector<std::int64_t>{3, 3});
  EXPECT_EQ(work("conv2d_grad_weight", {{1, 4, 6, 6}, {1, 6, 4, 4}}, kernel), 2 * 6 * 16 * 2 * 9);
  EXPECT_EQ(work("conv3d", {{1, 4, 3, 6, 6}, {6, 2, 3, 3, 3}}, in_two_groups), 2 * 6 * 16 * 2 * 27);
  EXPECT_EQ(work("add", {{4}, {4}}, {}), 0);
}

class Observer : public FunctionObserver {
 public:
  Observer() { observe_functions(this); }
  ~Observer() override { observe_functions(nullptr); }
  void traced(const Function& function, const TraceRecord& trace) override {
    seen.push_back(function.name() + ": " + trace.reason);
  }
  void calling(const Function& function, bool again) override {
    seen.push_back(function.name() + (again ? " again" : " first"));
  }
  std::vector<std::string> seen;
};

TEST(FunctionObserver, SeesTracesAndCalls) {
  Observer observer;
  Function twice("twice", [](std::span<const Value> in) -> Values { return apply("add", {in[0], in[0]}); });
  const std::vector<Tensor> small{Tensor::zeros(DType::float32, {2})};
  const std::vector<Tensor> large{Tensor::zeros(DType::float32, {3})};
  for (const auto* inputs : {&small, &small, &large, &small}) ASSERT_TRUE(twice.call(*inputs, {}, {}));
  EXPECT_THAT(observer.seen,
              ElementsAre("twice: first call", "twice first", "twice again",
                          "twice: input 0 is float32 (3,), was float32 (2,)", "twice first", "twice again"));
}

}  // namespace
}  // namespace muster::graph
