// Placed networks over several workers: what each of them has and does, and what cannot be.
#include "muster/graph/partition/partition.h"
#include "muster/graph/plan.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/base/mirror_group.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>

#include "gate.h"
#include "muster/graph/kernel.h"
#include "placed_nets.h"

namespace muster::graph {
namespace {
namespace partition_test {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// ---- What each worker has and does ------------------------------------------------------------------------

std::vector<Seen> train_lenet(Loop loop) {
  return on_workers<Seen>(5, [&](const RunContext& context) {
    return Training(std::make_unique<LeNet>(), "momentum", loop).run(context);
  });
}

TEST(ALeNetOnFiveWorkers, KeepsEachParameterWithItsStateOnOneOnly) {
  const std::vector<Seen> seen = train_lenet(Loop::by_hand);
  const auto names = [&](std::size_t rank) {
    std::vector<std::string> found;
    for (const auto& [name, values] : seen[rank].parameters) found.push_back(name);
    return found;
  };
  EXPECT_THAT(names(0), ElementsAre("fc1.bias", "fc1.weight", "moments.fc1.bias", "moments.fc1.weight"));
  EXPECT_THAT(names(3), ElementsAre("conv1.weight", "moments.conv1.weight"));
  for (const Seen& worker : seen) EXPECT_EQ(worker.parameters.size() + worker.elsewhere.size(), 16u);
}

TEST(ALeNetOnFiveWorkers, SendsActivationsForwardAndTheirGradientsBack) {
  const std::vector<Seen> seen = train_lenet(Loop::by_hand);
  const Partition& partition = *seen[0].partition;
  EXPECT_EQ(partition.reader, 3u);
  std::vector<std::string> value_transfers;
  for (const ValueTransfer& value_transfer : partition.value_transfers)
    value_transfers.push_back(
        fmt::format("{} to {}: {}", value_transfer.from, value_transfer.to, to_string(value_transfer.type)));
  EXPECT_THAT(value_transfers,
              ElementsAre("3 to 2: int32 (8,)", "3 to 4: float32 (8, 6, 14, 14)", "4 to 0: float32 (8, 400)",
                          "0 to 1: float32 (8, 120)", "1 to 2: float32 (8, 84)", "2 to 1: float32 (8, 84)",
                          "1 to 0: float32 (8, 120)", "0 to 4: float32 (8, 16, 5, 5)",
                          "4 to 3: float32 (8, 6, 14, 14)", "2 to 0: float32 ()", "2 to 1: float32 ()",
                          "2 to 3: float32 ()", "2 to 4: float32 ()"));
  EXPECT_THAT(partition.stages[3].placed, ElementsAre("LeNet 'conv1', lenet.py:31"));
  EXPECT_THAT(partition.stages[1].parameters, ElementsAre("fc2.weight", "fc2.bias"));
  EXPECT_GT(partition.stages[4].flops, partition.stages[2].flops);
}

TEST(AnExplanation, OfAPlacedNetTellsEachWorkersPartWithoutACluster) {
  LeNet net;
  const auto function =
      value_and_grad("lenet", [&](std::span<const Value> inputs) { return net.loss(inputs); },
                     {.parameters = net.parameters()});
  ASSERT_TRUE(function->compile(net.batch(0), {}, {}));
  const Explanation explanation = function->explain();
  EXPECT_EQ(explanation.partition.stages.size(), 5u);
  const std::string text = to_string(explanation);
  EXPECT_THAT(text, Mentions("workers: 5", "worker 3", "inputs"));
  EXPECT_THAT(text, HasSubstr("LeNet 'conv2', lenet.py:32"));
  EXPECT_EQ(net.parameters()[0]->home(), std::nullopt);
  const std::string svg = to_svg(explanation.partition);
  EXPECT_THAT(svg, HasSubstr("worker 3 to worker 4: "));
  if (const char* file = std::getenv("MUSTER_TEST_SVG"))
    std::ofstream(file) << svg << "<!--" << text << "-->";
}

// By rank.
std::vector<std::string> reasons(const std::function<std::string(const RunContext&)>& work,
                                 std::uint32_t size = 2) {
  return on_workers<std::string>(size, work);
}

TEST(AnOutputOfAnotherWorker, SaysWhoHasIt) {
  const auto found = reasons([](const RunContext& context) {
    const auto weight = std::make_shared<Parameter>("fc.weight", numbers({3, 3}, 1));
    const auto function = value_and_grad("net",
                                         [&](std::span<const Value> inputs) -> Values {
                                           const PlaceScope place(on(1, "Net 'fc', net.py:9"));
                                           const Value y = apply("matmul", {inputs[0], weight});
                                           return {apply("reduce_sum", {y}), y};
                                         },
                                         {.parameters = {weight}, .has_aux = true});
    const auto outputs = function->call(std::vector{numbers({3, 3}, 2)}, {}, context);
    if (!outputs) return outputs.error().message;
    std::string text;
    for (const Tensor& output : *outputs) text += Value(output).read() ? "here; " : *output.absence() + "; ";
    return text + (Value(weight).read() ? "here" : Value(weight).read().error().message);
  });
  EXPECT_EQ(found[1], "here; here; here; here");
  EXPECT_THAT(found[0], Mentions("output 1", "'net'", "worker 1", "'fc', net.py:9", "worker 0", "optimizer",
                                 "'fc.weight'", "gather_parameters()"));
}

TEST(AnOutputOfAnotherWorker, IsWhereItIsNeededWhenItIsHandedOn) {
  const auto found = reasons([](const RunContext& context) {
    Function first("first", [](std::span<const Value> inputs) -> Values {
      const PlaceScope place(on(1));
      return apply("add", {inputs[0], inputs[0]});
    });
    Function second("second", [](std::span<const Value> inputs) -> Values {
      return apply("reduce_sum", {inputs[0]});  // placed by its input alone
    });
    second.replicate_outputs();
    const auto made = first.call(std::vector{numbers({4}, 1)}, {}, context);
    if (!made) return made.error().message;
    const auto sum = second.call(*made, {}, context);
    if (!sum) return sum.error().message;
    return fmt::format("{}, {} on worker {}", (*made)[0].absence() == nullptr, elements((*sum)[0])[0],
                       second.plan()->partition()->value_transfers[0].from);
  });
  const float sum = [] {
    float made = 0;
    for (const float x : elements(numbers({4}, 1))) made += 2 * x;
    return made;
  }();
  EXPECT_THAT(found, ElementsAre(HasSubstr("false, "), fmt::format("true, {} on worker 1", sum)));
}

TEST(APlanForOneWorker, ServesNoOther) {
  Function function("f", [](std::span<const Value> inputs) -> Values {
    const PlaceScope place(on(0));
    return apply("relu", {inputs[0]});
  });
  Post post(3);
  Worker first(post, 0), third(post, 2);
  const std::vector<Tensor> inputs{numbers({4}, 1)};
  EXPECT_EQ((*function.call(inputs, {}, {.stages = &first}))[0].absence(), nullptr);
  EXPECT_NE((*function.call(inputs, {}, {.stages = &third}))[0].absence(), nullptr);
  EXPECT_EQ((*function.call(inputs, {}, {}))[0].absence(), nullptr);
  ASSERT_EQ(function.trace_count(), 3u);
  EXPECT_EQ(function.traces()[1].reason, "worker 2 of 3, was 0 of 3");
}

TEST(AGroupOfOne, RunsAPlacedGraphAsIfItWereNot) {
  const auto text = [](bool places) {
    LeNet net;
    const auto trace = Trace::begin("net");
    std::vector<Value> inputs;
    for (const Tensor& tensor : net.batch(0))
      inputs.push_back(trace->input({tensor.dtype(), tensor.shape()}));
    Values outputs;
    {
      const Trace::Scope scope(*trace);
      outputs = net.loss(inputs);
    }
    Graph graph = trace->finish(std::array{outputs[0]});
    if (!places)
      for (Node& node : graph.nodes) node.placement = nullptr;
    const auto plan = *Plan::compile(graph, {.stage_index = {.rank = 0, .size = 1}});
    EXPECT_EQ(plan->partition() != nullptr, places);
    EXPECT_EQ(places ? plan->partition()->stages.size() : 5u, 5u);
    return plan->to_string();
  };
  EXPECT_EQ(text(true), text(false));
}

// ---- What cannot be
// ----------------------------------------------------------------------------------------

std::string problem_of(const Body& body, std::uint32_t size = 2) {
  Function function("net", body);
  Post post(size);
  Worker worker(post, 0);
  const auto made = function.compile(std::vector{numbers({4, 4}, 1)}, {}, {.stages = &worker});
  return made ? "none" : made.error().message;
}

TEST(APlacement, OutsideTheWorkersIsAnErrorThatNamesIt) {
  const auto body = [](std::span<const Value> inputs) -> Values {
    const PlaceScope place(on(7, "LeNet 'conv1', lenet.py:31"));
    return apply("relu", {inputs[0]});
  };
  EXPECT_THAT(problem_of(body, 5),
              Mentions("LeNet 'conv1', lenet.py:31", "worker 7", "workers 0", "4 only", "these"));
}

TEST(APlacement, OfWritesToOneParameterMustBeOne) {
  const auto mean = std::make_shared<Parameter>("norm.mean", Tensor::zeros(DType::float32, {4}), false);
  const auto variance =
      std::make_shared<Parameter>("norm.variance", Tensor::zeros(DType::float32, {4}), false);
  const Value ones = numbers({4}, 3);
  const auto body = [&](std::span<const Value> inputs) -> Values {
    Value x = inputs[0];
    for (const std::uint32_t rank : {0, 1}) {
      const PlaceScope place(on(rank, fmt::format("Net 'norm{}', net.py:{}", rank, rank)));
      x = apply("batch_norm", {x, ones, ones, mean, variance}, {{"training", true}});
    }
    return x;
  };
  EXPECT_THAT(problem_of(body), Mentions("batch_norm", "worker 1", "'norm1', net.py:1", "writes",
                                         "'norm.mean'", "worker 0", "'norm0', net.py:0"));
}

TEST(APlacement, InsideOfACondIsThatOfTheWhole) {
  const auto body = [](std::uint32_t yes, std::uint32_t no) {
    return [yes, no](std::span<const Value> inputs) -> Values {
      const Value pred = apply("reduce_sum", {inputs[0]});
      const auto branch = [&](std::uint32_t rank, std::string op) {
        return [&inputs, rank, op]() -> Values {
          const PlaceScope place(on(rank, "Net '" + op + "', net.py:5"));
          return apply(op, {inputs[0]});
        };
      };
      return cond(pred, branch(yes, "relu"), branch(no, "tanh"));
    };
  };
  EXPECT_EQ(problem_of(body(1, 1)), "none");
  EXPECT_THAT(problem_of(body(1, 0)),
              Mentions("worker 1", "'relu', net.py:5", "worker 0", "'tanh', net.py:5", "computes"));
}

TEST(APlacement, OfControlFlowRunsItThere) {
  const auto found = reasons([](const RunContext& context) {
    Function function("f", [](std::span<const Value> inputs) -> Values {
      Value x = inputs[0];
      {
        const PlaceScope place(on(0));
        x = apply("add", {x, x});
      }
      const Value grown = while_loop(
          [](std::span<const Value> state) -> Values {
            return apply("less", {apply("reduce_sum", {state[0]}), Tensor::scalar(100.F)});
          },
          [](std::span<const Value> state) -> Values {
            const PlaceScope place(on(1));
            return apply("add", {state[0], state[0]});
          },
          std::array{x})[0];
      return cond(
          apply("reduce_sum", {x}),
          [&]() -> Values {
            const PlaceScope place(on(0));
            return apply("relu", {grown});
          },
          [&]() -> Values { return x; });
    });
    function.replicate_outputs();
    const auto made = function.call(std::vector{Tensor::from<float>(std::array{1.F, 2.F}, {2})}, {}, context);
    if (!made) return made.error().message;
    return fmt::format("{} {}", elements((*made)[0])[0], elements((*made)[0])[1]);
  });
  EXPECT_THAT(found, Each("64 128"));
}

// ---- Values that change
// ------------------------------------------------------------------------------------

TEST(AParameterThatChanges, IsSentAsItIsWhenItIsUsed) {
  const auto run = [](const RunContext& context) {
    const auto weight =
        std::make_shared<Parameter>("w", Tensor::from<float>(std::array{1.F, 2.F}, {2}), false);
    Function function("f", [&](std::span<const Value> inputs) -> Values {
      Value owned, before, after;
      {
        const PlaceScope place(on(0));
        owned = apply("mul", {inputs[0], weight});
      }
      {
        const PlaceScope place(on(1));
        before = apply("add", {owned, weight});
      }
      apply("assign", {weight, before});
      {
        const PlaceScope place(on(1));
        after = apply("add", {before, weight});
      }
      return {before, after, weight};
    });
    function.replicate_outputs();
    const auto made = function.call(std::vector{Tensor::from<float>(std::array{3.F, 4.F}, {2})}, {}, context);
    if (!made) return made.error().message;
    std::string text;
    for (const Tensor& output : *made)
      text += fmt::format("{} {}; ", elements(output)[0], elements(output)[1]);
    return text;
  };
  EXPECT_EQ(run({}), "4 10; 8 20; 4 10; ");
  EXPECT_THAT(reasons(run), Each("4 10; 8 20; 4 10; "));
}

// Both are needed by the same node; a third value, needed by another, is on its way already.
TEST(WhatIsNeededTogether, TravelsTogether) {
  struct Made {
    std::vector<std::size_t> messages;
    std::vector<float> sum;
  };
  const std::vector<Made> made = on_workers<Made>(2, [](const RunContext& context) {
    Function function("f", [](std::span<const Value> inputs) -> Values {
      Value first, second, third;
      {
        const PlaceScope place(on(0));
        third = apply("exp", {inputs[0]});
        first = apply("relu", {inputs[0]});
        second = apply("tanh", {first});
      }
      const PlaceScope place(on(1));
      return apply("add", {apply("add", {first, second}), apply("exp", {third})});
    });
    function.replicate_outputs();
    Made result;
    const auto outputs = function.call(std::vector{numbers({3}, 1)}, {}, context);
    if (!outputs) return result;
    result.sum = elements((*outputs)[0]);
    for (const ValueTransfer& value_transfer : function.plan()->partition()->value_transfers)
      result.messages.push_back(value_transfer.message);
    return result;
  });
  EXPECT_THAT(made[0].messages, ElementsAre(0, 0, 1, 2));
  EXPECT_EQ(made[0].sum, made[1].sum);
  EXPECT_EQ(made[0].sum.size(), 3u);
}

// Until a placed network is found to change it, every worker may have its own: all are equal.
TEST(AParameterThatGetsAHome, IsReadThereByFunctionsThatWereTracedBefore) {
  const auto found = reasons([](const RunContext& context) {
    const auto mean =
        std::make_shared<Parameter>("mean", Tensor::from<float>(std::array{1.F, 2.F}, {2}), false);
    Function look("look", [&](std::span<const Value>) -> Values { return apply("add", {mean, mean}); });
    look.replicate_outputs();
    Function change("change", [&](std::span<const Value> inputs) -> Values {
      const PlaceScope place(on(1));
      return apply("assign", {mean, inputs[0]});
    });
    std::string text;
    const std::vector<Tensor> values{Tensor::from<float>(std::array{3.F, 4.F}, {2})};
    for (int i = 0; i < 2; ++i) {
      const auto looked = look.call({}, {}, context);
      if (!looked) return looked.error().message;
      text += fmt::format("{} {}; ", elements((*looked)[0])[0], elements((*looked)[0])[1]);
      if (const auto changed = change.call(values, {}, context); !changed) return changed.error().message;
    }
    return text + (mean->absence() == nullptr ? "here" : "elsewhere") + "; " + look.traces().back().reason;
  });
  EXPECT_THAT(found, ElementsAre("2 4; 6 8; elsewhere; other workers have its inputs or parameters",
                                 "2 4; 6 8; here; other workers have its inputs or parameters"));
}

TEST(CountersAndRates, AreEverywhereAndCrossNowhere) {
  const std::vector<Seen> seen = train_lenet(Loop::one_graph);
  for (const ValueTransfer& value_transfer : seen[0].partition->value_transfers)
    EXPECT_THAT(value_transfer.what, Not(AnyOf(HasSubstr("global_step"), HasSubstr("learning_rate"))));
}

// ---- At the same time
// --------------------------------------------------------------------------------------

// Copies its input, and calls what the test wants to happen meanwhile.
thread_local std::function<void()> meanwhile = [] {};
const Op& busy_op() {
  static const Op op{
      .name = "busy",
      .documentation = "Its input.",
      .infer = [](const Signature& signature) -> Result<std::vector<TensorType>> {
        return std::vector<TensorType>{signature.inputs[0]};
      },
      .kernels = {{"test", [](const Signature&) { return true; },
                   [](const Signature& signature) -> Prepared {
                     return {std::make_shared<const std::size_t>(signature.inputs[0].size_bytes())};
                   },
                   [](const KernelCall& call) {
                     meanwhile();
                     std::memcpy(call.outputs[0], call.inputs[0], call.setting<std::size_t>());
                   }}},
  };
  return op;
}

// Nodes of `count` elements, on workers 0 and 1 as `order` says; then worker `joins` adds all up. Worker 1 is
// busy until worker 0 is.
std::vector<std::string> busy_workers(const std::vector<std::uint32_t>& order, std::uint32_t joins,
                                      std::int64_t count) {
  Gate gate(std::chrono::seconds(10));
  return reasons([&](const RunContext& context) {
    std::string problem;
    Function function("f", [&](std::span<const Value> inputs) -> Values {
      Value sum = inputs[0];
      std::vector<Value> made;
      for (const std::uint32_t rank : order) {
        const PlaceScope place(on(rank));
        const bool waits = rank == 1 || made.size() + 1 == order.size();
        made.push_back(waits ? Trace::current()->add(busy_op(), inputs.first(1), {})[0]
                             : apply("tanh", {inputs[0]}));
      }
      const PlaceScope place(on(joins));
      for (const Value& value : made) sum = apply("add", {sum, value});
      return sum;
    });
    function.replicate_outputs();
    meanwhile = [&] {
      if (context.stages->rank() == 0)
        gate.open();
      else if (!gate.wait())
        problem = "worker 0 was not busy at the same time";
    };
    const auto made = function.call(std::vector{numbers({count}, 1)}, {}, context);
    return made ? problem : made.error().message;
  });
}

TEST(AWorker, ComputesWhileAnotherMakesWhatItNeedsLater) {
  EXPECT_THAT(busy_workers({1, 0}, 0, 16), Each(""));
}

TEST(AWorker, ComputesWhileALargeValueWaitsForItsReceiver) {
  EXPECT_THAT(busy_workers({1, 0, 0}, 1, 100'000), Each(""));
}

// Of two; the other one takes what it is sent only when it is asked for something itself.
class Exchanging final : public Communicator {
 public:
  std::uint32_t rank() const override { return 0; }
  std::uint32_t size() const override { return 2; }
  Result<> send(std::uint32_t, std::span<const std::span<const std::byte>>) override {
    if (receives_.wait()) return {};
    return fail(Code::timeout, "nothing was received while a send waited");
  }
  Result<> receive(std::uint32_t, std::span<const std::span<std::byte>> pieces) override {
    for (const auto piece : pieces) std::fill(piece.begin(), piece.end(), std::byte{0});
    receives_.open();
    return {};
  }

 private:
  Gate receives_{std::chrono::seconds(10)};
};

TEST(AWorker, ReceivesWhileALargeValueWaitsForItsReceiver) {
  Function function("f", [](std::span<const Value> inputs) -> Values {
    const auto chain = [](std::uint32_t rank, Value x, int length) {
      const PlaceScope place(on(rank));
      for (int i = 0; i < length; ++i) x = apply("tanh", {x});
      return x;
    };
    const Value first = chain(0, inputs[0], 1), there = chain(1, first, 1), here = chain(0, first, 8);
    const PlaceScope place(on(0));
    return apply("add", {here, there});
  });
  Exchanging other;
  const auto made = function.call(std::vector{numbers({100'000}, 1)}, {}, {.stages = &other});
  EXPECT_TRUE(made) << made.error().message;
}

// ---- Together with data parallelism
// ------------------------------------------------------------------------

TEST(AnAllReduce, IsOneForEachWorkerOfWhatIsThere) {
  struct Made {
    std::vector<std::size_t> counts;
    std::vector<std::vector<float>> values;
    std::string problem;
  };
  const auto run = [](const Attributes& attributes) {
    return on_workers<Made>(2, [&](const RunContext& given) {
      Made made;
      MirrorGroup replicas;
      RunContext context = given;
      context.communicator = &replicas;
      Function function("f", [&](std::span<const Value> inputs) -> Values {
        Values gradients;
        for (std::size_t i = 0; i < 6; ++i) {
          const PlaceScope place(on(i % 2));
          gradients.push_back(apply("add", {inputs[i], inputs[i]}));
        }
        return apply_all("all_reduce", gradients, attributes);
      });
      function.replicate_outputs();
      std::vector<Tensor> inputs;
      for (std::int64_t i = 0; i < 6; ++i) inputs.push_back(numbers({i + 1}, 1));
      const auto outputs = function.call(inputs, {}, context);
      if (!outputs) made.problem = outputs.error().message;
      if (outputs)
        for (const Tensor& output : *outputs) made.values.push_back(elements(output));
      made.counts = replicas.counts();
      return made;
    });
  };
  std::vector<std::vector<float>> expected;
  for (std::int64_t i = 0; i < 6; ++i) {
    expected.push_back(elements(numbers({i + 1}, 1)));
    for (float& x : expected.back()) x *= 4;
  }
  const auto expect = [&](const Attributes& attributes, const std::vector<std::size_t>& first,
                          const std::vector<std::size_t>& second) {
    const std::vector<Made> made = run(attributes);
    for (const Made& worker : made) {
      EXPECT_EQ(worker.problem, "");
      EXPECT_EQ(worker.values, expected);
    }
    EXPECT_EQ(made[0].counts, first);
    EXPECT_EQ(made[1].counts, second);
  };
  expect({{"reduction", std::string("sum")}}, {1 + 3 + 5}, {2 + 4 + 6});
  expect({{"reduction", std::string("sum")}, {"bucket_bytes", std::int64_t{16}}}, {4, 5}, {2, 4, 6});
  // Cut before the fourth of all: two of the first worker come before it, and one of the second.
  expect({{"reduction", std::string("sum")}, {"bucket_splits", Ints{3}}}, {4, 5}, {2, 10});
}

}  // namespace partition_test
}  // namespace
}  // namespace muster::graph
