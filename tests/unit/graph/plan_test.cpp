#include "muster/graph/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "muster/graph/graph.h"
#include "muster/graph/kernel.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/base/mirror_group.h"

namespace muster::graph {
namespace {
namespace plan_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Tensor vector_of(std::vector<float> values) {
  return Tensor::from<float>(values, {static_cast<std::int64_t>(values.size())});
}

std::vector<float> elements(const Tensor& tensor) {
  return {tensor.span<float>().begin(), tensor.span<float>().end()};
}

// The plan of `body` for inputs of these types.
template <class Body>
std::unique_ptr<Plan> plan_of(std::vector<TensorType> types, const Body& body) {
  const auto trace = Trace::begin("test");
  std::vector<Value> inputs;
  for (TensorType& type : types) inputs.push_back(trace->input(std::move(type)));
  Values outputs;
  {
    const Trace::Scope scope(*trace);
    outputs = body(inputs);
  }
  const Graph graph = trace->finish(outputs);
  auto plan = Plan::compile(graph);
  MUSTER_CHECK(plan.has_value(), plan.error().message);
  return std::move(*plan);
}

const TensorType floats{DType::float32, {4}};

TEST(Plan, FusesMatmulBiasAndActivation) {
  const auto plan =
      plan_of({{DType::float32, {2, 3}}, {DType::float32, {3, 4}}, floats},
              [](const std::vector<Value>& in) -> Values {
                return apply("tanh", {apply("bias_add", {apply("matmul", {in[0], in[1]}), in[2]})});
              });
  EXPECT_THAT(plan->to_string(), HasSubstr("dense"));
  EXPECT_THAT(plan->to_string(), Not(HasSubstr("tanh")));
}

TEST(Plan, SumsBfloat16WithoutACopyOfItInFloat32) {
  const auto plan = plan_of({{DType::bfloat16, {64, 96}}}, [](const std::vector<Value>& in) -> Values {
    return {apply("sum_to", {in[0]}, {{"shape", std::vector<std::int64_t>{96}}}),
            apply("reduce_mean", {in[0]}, {{"axes", std::vector<std::int64_t>{1}}})};
  });
  EXPECT_THAT(plan->to_string(), Not(HasSubstr("wider")));
}

TEST(Plan, DoesNotFuseAwayWhatOthersUse) {
  const auto plan = plan_of({{DType::float32, {1, 1}}, {DType::float32, {1, 1}}, {DType::float32, {1}}},
                            [](const std::vector<Value>& in) -> Values {
                              const Value product = apply("matmul", {in[0], in[1]});
                              return {apply("relu", {apply("bias_add", {product, in[2]})}), product};
                            });
  EXPECT_THAT(plan->to_string(), Not(HasSubstr("dense")));
  const std::vector<Tensor> inputs{vector_of({2}).reshaped({1, 1}), vector_of({3}).reshaped({1, 1}),
                                   vector_of({-10})};
  const auto outputs = plan->run(inputs, {});
  EXPECT_EQ((*outputs)[0].data<float>()[0], 0);
  EXPECT_EQ((*outputs)[1].data<float>()[0], 6);
}

// y in a tensor of (2, 6) at `begin` of axis 1.
Value padded(const Value& y, std::int64_t begin) {
  return apply("pad", {y},
               {{"shape", std::vector<std::int64_t>{2, 6}}, {"begin", std::vector<std::int64_t>{0, begin}}});
}

TEST(Plan, JoinsGradientsOfSlicesThatCoverAValueOnce) {
  const std::vector<TensorType> types{
      {DType::float32, {2, 3}}, {DType::float32, {2, 1}}, {DType::float32, {2, 2}}};
  const auto plan = plan_of(types, [](const std::vector<Value>& in) -> Values {
    return apply("add", {apply("add", {padded(in[2], 1), padded(in[0], 3)}), padded(in[1], 0)});
  });
  EXPECT_THAT(plan->to_string(), HasSubstr("concat"));
  EXPECT_THAT(plan->to_string(), AllOf(Not(HasSubstr("pad")), Not(HasSubstr("add"))));
  const std::vector<Tensor> inputs{Tensor::from<float>(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3}),
                                   Tensor::from<float>(std::vector<float>{7, 8}, {2, 1}),
                                   Tensor::from<float>(std::vector<float>{9, 10, 11, 12}, {2, 2})};
  const auto outputs = plan->run(inputs, {});
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_THAT(elements((*outputs)[0]), ElementsAre(7, 9, 10, 1, 2, 3, 8, 11, 12, 4, 5, 6));
}

TEST(Plan, AddsGradientsOfSlicesThatOverlapOrLeaveAGap) {
  const std::vector<TensorType> types{{DType::float32, {2, 3}}, {DType::float32, {2, 3}}};
  for (const std::int64_t begin : {0, 2}) {
    const auto plan = plan_of(types, [begin](const std::vector<Value>& in) -> Values {
      return apply("add", {padded(in[0], begin), padded(in[1], 3)});
    });
    EXPECT_EQ(plan->to_string().find("concat") != std::string::npos, begin == 0);
  }
}

TEST(Plan, DropsWhatNobodyNeedsButKeepsUpdates) {
  const auto weight = std::make_shared<Parameter>("weight", vector_of({1, 1, 1, 1}));
  const auto plan = plan_of({floats}, [&](const std::vector<Value>& in) -> Values {
    (void)apply("relu", {in[0]});
    (void)apply("sgd", {weight, in[0], Tensor::scalar(1.0f)});
    return {};
  });
  EXPECT_THAT(plan->to_string(), Not(HasSubstr("relu")));
  const std::byte* address = weight->storage().bytes();
  const std::vector<Tensor> inputs{vector_of({1, 2, 3, 4})};
  ASSERT_TRUE(plan->run(inputs, {}));
  EXPECT_THAT(elements(weight->storage()), ElementsAre(0, -1, -2, -3));
  EXPECT_EQ(weight->storage().bytes(), address);
}

TEST(Plan, ReadsAParameterBeforeAndAfterItsUpdateInProgramOrder) {
  const auto weight = std::make_shared<Parameter>("weight", vector_of({1, 1, 1, 1}));
  const auto plan = plan_of({floats}, [&](const std::vector<Value>& in) -> Values {
    const Value before = apply("add", {weight, in[0]});
    (void)apply("sgd", {weight, in[0], Tensor::scalar(1.0f)});
    return {before, apply("add", {weight, in[0]})};
  });
  const std::vector<Tensor> inputs{vector_of({1, 2, 3, 4})};
  const auto outputs = plan->run(inputs, {});
  EXPECT_THAT(elements((*outputs)[0]), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(elements((*outputs)[1]), ElementsAre(1, 1, 1, 1));
}

TEST(Plan, ValuesShareMemoryWhenTheirLivesDoNotMeet) {
  constexpr std::int64_t count = 1 << 16;
  const auto plan = plan_of({{DType::float32, {count}}}, [](const std::vector<Value>& in) -> Values {
    Value x = in[0];
    for (int i = 0; i < 20; ++i) x = apply("relu", {apply("add", {x, in[0]})});
    return x;
  });
  EXPECT_LE(plan->arena_bytes(), 2 * count * sizeof(float));
}

TEST(Plan, GivesTheSameBitsAsTheOpsOneByOneOnRandomGraphs) {
  const std::uint64_t seed = entropy();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  constexpr std::int64_t side = 5;
  for (std::uint64_t number = 0; number < 100; ++number) {
    const RandomStream random(seed, number);
    const auto build = [&](const std::vector<Value>& in) -> Values {
      std::vector<Value> pool = in;
      const auto pick = [&](std::uint64_t index) { return pool[random.below(index, pool.size())]; };
      for (std::uint64_t step = 0; step < 25; ++step) {
        const std::uint64_t at = step * 4;
        switch (random.below(at, 6)) {
          case 0:
            pool.push_back(apply("add", {pick(at + 1), pick(at + 2)}));
            break;
          case 1:
            pool.push_back(apply("mul", {pick(at + 1), pick(at + 2)}));
            break;
          case 2:
            pool.push_back(apply("relu", {pick(at + 1)}));
            break;
          case 3:
            pool.push_back(apply("tanh", {apply("matmul", {pick(at + 1), pick(at + 2)})}));
            break;
          case 4:
            pool.push_back(
                apply("reshape", {pick(at + 1)}, {{"shape", std::vector<std::int64_t>{side, side}}}));
            break;
          default:
            pool.push_back(
                apply("bias_add", {pick(at + 1), apply("reduce_mean", {pick(at + 2)},
                                                       {{"axes", std::vector<std::int64_t>{0}}})}));
        }
      }
      Values outputs;
      for (std::uint64_t i = 0; i < 4; ++i)
        outputs.push_back(pool[pool.size() - 1 - random.below(200 + i, 15)]);
      return outputs;
    };
    std::vector<Tensor> tensors;
    std::vector<Value> values;
    for (std::uint64_t input = 0; input < 3; ++input) {
      Tensor tensor(DType::float32, {side, side});
      for (std::uint64_t i = 0; i < side * side; ++i)
        tensor.data<float>()[i] = static_cast<float>(random.normal(1000 * (input + 1) + i));
      tensors.push_back(tensor);
      values.emplace_back(tensor);
    }
    const Values eager = build(values);
    const auto plan = plan_of(std::vector<TensorType>(3, {DType::float32, {side, side}}), build);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto outputs = plan->run(tensors, {});
      for (std::size_t i = 0; i < eager.size(); ++i)
        ASSERT_EQ(
            std::memcmp((*outputs)[i].bytes(), eager[i].tensor().bytes(), eager[i].tensor().size_bytes()), 0)
            << "graph " << number << " output " << i << "\n"
            << plan->to_string();
    }
  }
}

TEST(Plan, RefusesOtherInputs) {
  const auto plan =
      plan_of({floats}, [](const std::vector<Value>& in) -> Values { return apply("relu", {in[0]}); });
  EXPECT_THAT(plan->run({}, {}).error().message, HasSubstr("takes 1 tensors, 0 were given"));
  const std::vector<Tensor> longer{vector_of({1, 2, 3, 4, 5})};
  EXPECT_THAT(plan->run(longer, {}).error().message, Mentions("input 0", "float32 (4,)", "float32 (5,)"));
}

TEST(Plan, AFailingKernelEndsTheRunAndTheNextOneWorks) {
  const auto plan = plan_of(
      {{DType::float32, {1, 2}}, {DType::int32, {1}}},
      [](const std::vector<Value>& in) -> Values { return graph::apply("softmax_cross_entropy", in); });
  const Tensor label = Tensor::zeros(DType::int32, {1});
  const std::vector<Tensor> inputs{vector_of({1, 2}).reshaped({1, 2}), label};
  label.data<std::int32_t>()[0] = 2;
  EXPECT_THAT(plan->run(inputs, {}).error().message, HasSubstr("the label 2 of sample 0"));
  label.data<std::int32_t>()[0] = 1;
  EXPECT_TRUE(plan->run(inputs, {}));
}

TEST(AllReduce, IsOneCollectiveForAllInputsWhereverTheyLie) {
  MirrorGroup pair;
  const auto plan = plan_of({floats, {DType::float32, {2}}}, [](const std::vector<Value>& in) -> Values {
    return apply_all("all_reduce", in);
  });
  const std::vector<Tensor> inputs{vector_of({1, 2, 3, 4}), vector_of({5, 6})};
  const auto outputs = plan->run(inputs, {.seed = 0, .communicator = &pair, .threads = 1});
  ASSERT_TRUE(outputs);
  EXPECT_EQ(pair.calls.size(), 1u);
  EXPECT_THAT(elements((*outputs)[0]), ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(elements((*outputs)[1]), ElementsAre(10, 12));
}

TEST(AllReduce, RunsEvenWhenNobodyNeedsItsResultAndTellsWhatFailed) {
  MirrorGroup pair;
  const auto plan = plan_of({floats}, [](const std::vector<Value>& in) -> Values {
    (void)apply_all("all_reduce", in);
    return {};
  });
  const std::vector<Tensor> inputs{vector_of({1, 2, 3, 4})};
  const RunContext context{.seed = 0, .communicator = &pair, .threads = 1};
  EXPECT_TRUE(plan->run(inputs, context));
  pair.failing = pair.calls.size();
  EXPECT_EQ(plan->run(inputs, context).error().message, "rank 1 is gone");
  EXPECT_EQ(pair.calls.size(), 2u);
}

TEST(Graph, PrintsItsNodes) {
  const auto trace = Trace::begin("net");
  const Value x = trace->input(floats);
  Value y;
  {
    const Trace::Scope scope(*trace);
    y = apply("relu", {x});
  }
  EXPECT_EQ(to_string(trace->finish(std::span(&y, 1))),
            "graph net\n  %0 float32 (4,) = input\n  %1 float32 (4,) = relu(%0)\n  return %1\n");
}

TEST(Kernels, FastOnesAgreeWithTheReferenceOnRandomShapes) {
  const std::uint64_t seed = entropy();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  for (std::uint64_t number = 0; number < 200; ++number) {
    const RandomStream random(seed, number);
    const Shape shape{1 + static_cast<std::int64_t>(random.below(0, 9)),
                      1 + static_cast<std::int64_t>(random.below(1, 40))};
    Tensor x(DType::float32, shape);
    for (std::int64_t i = 0; i < x.elements(); ++i)
      x.data<float>()[i] = static_cast<float>(random.normal(static_cast<std::uint64_t>(i) + 10));
    const auto check = [&](std::string_view name, std::vector<Tensor> inputs, const Attributes& attributes) {
      const Op* op = find_op(name);
      std::vector<TensorType> types;
      std::vector<std::byte*> addresses;
      for (const Tensor& input : inputs) types.push_back({input.dtype(), input.shape()});
      const auto outputs = *op->infer({types, {}, attributes});
      std::vector<float> first;
      for (const Kernel& kernel : op->kernels) {
        const Signature signature{types, outputs, attributes};
        if (!kernel.usable(signature)) continue;
        const Tensor out(outputs[0].dtype, outputs[0].shape);
        addresses.clear();
        for (const Tensor& input : inputs) addresses.push_back(input.bytes());
        addresses.push_back(out.bytes());
        const Prepared prepared = kernel.prepare(signature);
        std::optional<Error> failure;
        kernel.run({.inputs = addresses.data(),
                    .outputs = addresses.data() + inputs.size(),
                    .settings = prepared.settings.get(),
                    .failure = &failure});
        if (first.empty()) first = elements(out);
        for (std::size_t i = 0; i < first.size(); ++i)
          ASSERT_NEAR(first[i], out.data<float>()[i], 1e-4) << name << " " << kernel.name;
      }
    };
    check("add", {x, x}, {});
    check("mul", {x, x}, {});
    check("reduce_sum", {x}, {});
    check("reduce_mean", {x}, {});
    check("sum_to", {x}, {{"shape", std::vector<std::int64_t>{shape[1]}}});
    check("sum_to", {x}, {{"shape", std::vector<std::int64_t>{shape[0], 1}}});
  }
}

// Its kernels have scratch memory for as many threads as it was compiled for.
TEST(Plan, RunsWithMoreThreadsThanItWasCompiledFor) {
  const auto random = [](Shape shape) {
    const Tensor made(DType::float32, std::move(shape));
    for (std::int64_t i = 0; i < made.elements(); ++i)
      made.data<float>()[i] = static_cast<float>(RandomStream(1, 2).normal(static_cast<std::uint64_t>(i)));
    return made;
  };
  const std::vector<Tensor> inputs{random({500, 300}), random({300, 400}), random({6, 70, 300}),
                                   random({6, 300, 90}), random({2, 3, 150, 20})};
  std::vector<TensorType> types;
  for (const Tensor& input : inputs) types.push_back({input.dtype(), input.shape()});
  const auto plan = plan_of(types, [](std::span<const Value> x) {
    const Value y = apply("scaled_dot_product_attention", {x[4], x[4], x[4]});
    const Values gradients =
        apply_all("scaled_dot_product_attention_grad", std::vector<Value>{y, x[4], x[4], x[4]});
    return Values{apply("matmul", {x[0], x[1]}),
                  apply("batch_matmul", {x[2], x[3]}),
                  y,
                  gradients[0],
                  gradients[1],
                  gradients[2]};
  });
  const auto once = plan->run(inputs, {.threads = 1});
  const auto many = plan->run(inputs, {.threads = 4});
  ASSERT_TRUE(once && many);
  // oneDNN's product, which has other bits on other numbers of threads below AVX-512 (ADR 45)
  EXPECT_THAT(elements((*many)[0]), ::testing::Pointwise(::testing::FloatNear(1e-4F), elements((*once)[0])));
  for (std::size_t i = 1; i < once->size(); ++i)
    EXPECT_THAT(elements((*many)[i]), ::testing::ContainerEq(elements((*once)[i])));
}

}  // namespace plan_test
}  // namespace
}  // namespace muster::graph
