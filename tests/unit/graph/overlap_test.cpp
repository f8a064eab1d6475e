// Collective calls beside the computation: buckets, their memory, what waits for what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "gate.h"
#include "muster/graph/graph.h"
#include "muster/graph/kernel.h"
#include "muster/graph/plan.h"
#include "step_times.h"
#include "tests/unit/base/mirror_group.h"

namespace muster::graph {
namespace {
namespace overlap_test {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// relu, and what a test wants to happen when it runs.
std::function<void()> at_step = [] {};
const Op& step_op() {
  static const Op op{
      .name = "step",
      .documentation = "Its input, and whatever at_step does.",
      .infer = [](const Signature& signature) -> Result<std::vector<TensorType>> {
        return std::vector<TensorType>{signature.inputs[0]};
      },
      .kernels = {{"test", [](const Signature&) { return true; },
                   [](const Signature& signature) -> Prepared {
                     return {std::make_shared<const std::size_t>(signature.inputs[0].size_bytes())};
                   },
                   [](const KernelCall& call) {
                     at_step();
                     std::memcpy(call.outputs[0], call.inputs[0], call.setting<std::size_t>());
                   }}},
  };
  return op;
}

Tensor filled(std::int64_t count, float value) {
  Tensor made(DType::float32, {count});
  std::fill_n(made.data<float>(), count, value);
  return made;
}

std::vector<float> elements(const Tensor& tensor) {
  return {tensor.span<float>().begin(), tensor.span<float>().end()};
}

template <class Body>
std::unique_ptr<Plan> plan_of(std::vector<TensorType> types, const Body& body) {
  const auto trace = Trace::begin("test");
  std::vector<Value> inputs;
  for (TensorType& type : types) inputs.push_back(trace->input(std::move(type)));
  Values outputs;
  {
    const Trace::Scope scope(*trace);
    outputs = body(*trace, inputs);
  }
  const Graph graph = trace->finish(outputs);
  auto plan = Plan::compile(graph);
  MUSTER_CHECK(plan.has_value(), plan.error().message);
  return std::move(*plan);
}

Value next(Trace& trace, const Value& x) { return trace.add(step_op(), {&x, 1}, {})[0]; }

Attributes in_buckets_of(std::int64_t bytes) { return {{"bucket_bytes", bytes}}; }

// Three results of 4, 8 and 16 floats, made one after another and reduced in buckets of at most 48 bytes: the
// first two together. The parameter changes by the first result.
struct Steps {
  ParameterPtr weight = std::make_shared<Parameter>("weight", filled(4, 0));
  std::vector<Tensor> inputs{filled(4, 1), filled(8, 2), filled(16, 3)};
  std::unique_ptr<Plan> plan;

  explicit Steps(Attributes attributes = in_buckets_of(48)) {
    std::vector<TensorType> types;
    for (const Tensor& input : inputs) types.push_back({input.dtype(), input.shape()});
    plan = plan_of(std::move(types), [&](Trace& trace, const std::vector<Value>& in) -> Values {
      std::vector<Value> made;
      for (const Value& each : in) made.push_back(next(trace, each));
      const Values reduced = apply_all("all_reduce", made, attributes);
      (void)apply("sgd", {weight, reduced[0], Tensor::scalar(1.0f)});
      return {apply("relu", {reduced[1]}), apply("relu", {reduced[2]})};
    });
  }
  Result<std::vector<Tensor>> run(MirrorGroup& pair) {
    return plan->run(inputs, {.seed = 0, .communicator = &pair, .threads = 1});
  }
};

TEST(Buckets, CarryWhatFitsInTheOrderInWhichItIsMade) {
  MirrorGroup pair;
  Steps steps;
  const auto outputs = steps.run(pair);
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_THAT(pair.counts(), ElementsAre(12, 16));
  EXPECT_EQ(elements((*outputs)[0]), std::vector<float>(8, 4));
  EXPECT_EQ(elements((*outputs)[1]), std::vector<float>(16, 6));
  EXPECT_THAT(elements(steps.weight->storage()), ElementsAre(-2, -2, -2, -2));
}

TEST(Buckets, MayBeCutAtPositions) {
  MirrorGroup pair;
  Steps steps({{"bucket_splits", std::vector<std::int64_t>{1}}});
  ASSERT_TRUE(steps.run(pair));
  EXPECT_THAT(pair.counts(), ElementsAre(4, 24));
}

TEST(Buckets, FollowTheOrderOfMakingAndNotThatOfTheList) {
  MirrorGroup pair;
  const auto plan =
      plan_of({{DType::float32, {2}}}, [](Trace& trace, const std::vector<Value>& in) -> Values {
        const Value first = next(trace, in[0]);
        const Value second = apply("concat", {next(trace, first), first}, {{"axis", std::int64_t{0}}});
        return apply_all("all_reduce", std::vector<Value>{second, first}, in_buckets_of(1));
      });
  const auto outputs = plan->run(std::vector{filled(2, 1)}, {.communicator = &pair});
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_THAT(pair.counts(), ElementsAre(2, 4));
  EXPECT_EQ((*outputs)[0].shape(), Shape({4}));
}

TEST(Buckets, GoOnWhileLaterStepsRun) {
  MirrorGroup pair;
  Gate second_step(seconds(20));
  int runs = 0;
  at_step = [&] {
    if (++runs == 3) second_step.open();
  };
  bool overlapped = true;
  pair.during = [&](const MirrorGroup::Call& call) {
    if (call.count == 12) overlapped = second_step.wait();
  };
  Steps steps;
  EXPECT_TRUE(steps.run(pair));
  EXPECT_TRUE(overlapped) << "the third result is made only after the first two are reduced";
  EXPECT_NE(pair.calls[0].thread, std::this_thread::get_id());
  EXPECT_EQ(pair.calls[0].thread, pair.calls[1].thread);
  at_step = [] {};
}

TEST(Buckets, RunInTheirTurnWhereNothingCouldGoOn) {
  MirrorGroup pair;
  Steps steps(in_buckets_of(1 << 20));
  ASSERT_TRUE(steps.run(pair));
  EXPECT_THAT(pair.counts(), ElementsAre(28));
  EXPECT_EQ(pair.calls[0].thread, std::this_thread::get_id());
}

TEST(Buckets, LieInMemoryThatTheGroupSharesAndNeedNoCopies) {
  MirrorGroup pair;
  pair.shares = true;
  Steps steps;
  ASSERT_TRUE(steps.run(pair));
  ASSERT_TRUE(steps.run(pair));
  ASSERT_EQ(pair.shared.size(), 1u) << "one piece for all, kept from run to run";
  const std::byte* begin = pair.shared[0].data.get();
  for (const MirrorGroup::Call& call : pair.calls) {
    EXPECT_EQ(call.in, call.out);
    EXPECT_TRUE(call.in >= begin && call.in < begin + pair.shared[0].size_bytes);
  }
  pair.shares = false;
  const auto outputs = steps.run(pair);
  EXPECT_EQ(elements((*outputs)[1]), std::vector<float>(16, 6)) << "and other memory when it does not";
  EXPECT_FALSE(pair.calls.back().in >= begin && pair.calls.back().in < begin + 28 * 4);
}

TEST(Buckets, KeepWhatOthersStillNeed) {
  MirrorGroup pair;
  const auto plan =
      plan_of({{DType::float32, {4}}}, [](Trace& trace, const std::vector<Value>& in) -> Values {
        const Value raw = next(trace, in[0]);
        const Value other = next(trace, raw);
        const Values reduced =
            apply_all("all_reduce", std::vector<Value>{raw, raw, other, in[0]}, in_buckets_of(64));
        return {apply("add", {reduced[0], reduced[1]}), apply("add", {reduced[2], reduced[3]}), raw,
                reduced[1]};
      });
  const auto outputs = plan->run(std::vector{filled(4, 1)}, {.communicator = &pair});
  ASSERT_TRUE(outputs) << outputs.error().message;
  for (const std::size_t each : {0, 1}) EXPECT_EQ(elements((*outputs)[each]), std::vector<float>(4, 4));
  EXPECT_EQ(elements((*outputs)[2]), std::vector<float>(4, 1));
  EXPECT_EQ(elements((*outputs)[3]), std::vector<float>(4, 2));
}

TEST(Buckets, MayHoldTheSameTwice) {
  MirrorGroup pair;
  const auto plan =
      plan_of({{DType::float32, {4}}}, [](Trace& trace, const std::vector<Value>& in) -> Values {
        const Value made = next(trace, in[0]);
        const Values reduced =
            apply_all("all_reduce", std::vector<Value>{made, in[0], made}, in_buckets_of(64));
        return {apply("relu", {reduced[0]}), apply("relu", {reduced[1]}), apply("relu", {reduced[2]})};
      });
  const auto outputs = plan->run(std::vector{filled(4, 1)}, {.communicator = &pair});
  ASSERT_TRUE(outputs) << outputs.error().message;
  for (const Tensor& output : *outputs) EXPECT_EQ(elements(output), std::vector<float>(4, 2));
}

TEST(Buckets, OfAParameterAreReadWhereTheProgramReadsThem) {
  for (const Attributes& attributes : {Attributes{}, in_buckets_of(1)}) {
    MirrorGroup pair;
    const auto weight = std::make_shared<Parameter>("weight", filled(4, 1));
    const auto plan =
        plan_of({{DType::float32, {4}}}, [&](Trace& trace, const std::vector<Value>& in) -> Values {
          const Value made = next(trace, in[0]);
          const Value view = apply("reshape", {weight}, {{"shape", std::vector<std::int64_t>{2, 2}}});
          (void)apply("sgd", {weight, in[0], Tensor::scalar(1.0f)});
          return apply_all("all_reduce", std::vector<Value>{weight, made, view}, attributes);
        });
    const auto outputs = plan->run(std::vector{filled(4, 3)}, {.communicator = &pair});
    ASSERT_TRUE(outputs) << outputs.error().message;
    EXPECT_EQ(elements((*outputs)[0]), std::vector<float>(4, -4)) << "after the update";
    EXPECT_EQ(elements((*outputs)[1]), std::vector<float>(4, 6));
    EXPECT_EQ(elements((*outputs)[2]), std::vector<float>(4, -4)) << "a view of it likewise";
  }
}

TEST(Buckets, AFailedOneIsTheErrorOfTheStepAndNoParameterChanges) {
  for (const std::size_t failing : {0, 1}) {
    MirrorGroup pair;
    pair.failing = failing;
    Steps steps;
    const auto outputs = steps.run(pair);
    ASSERT_FALSE(outputs);
    EXPECT_EQ(outputs.error().message, "rank 1 is gone");
    EXPECT_EQ(pair.calls.size(), failing + 1) << "the calls after it are not made";
    EXPECT_THAT(elements(steps.weight->storage()), ElementsAre(0, 0, 0, 0));
    pair.failing = SIZE_MAX;
    EXPECT_TRUE(steps.run(pair));
    EXPECT_EQ(pair.calls.size(), failing + 3) << "the next run knows nothing of it";
    EXPECT_THAT(elements(steps.weight->storage()), ElementsAre(-2, -2, -2, -2));
  }
}

TEST(Buckets, AreDoneBeforeAStepThatFailsElsewhereReturns) {
  MirrorGroup pair;
  Gate failed(seconds(20));
  std::atomic<bool> done = false;
  pair.during = [&](const MirrorGroup::Call&) {
    (void)failed.wait();
    done = true;
  };
  int runs = 0;
  at_step = [&] {
    if (++runs == 2) failed.open();
  };
  const auto plan =
      plan_of({{DType::float32, {1, 2}}, {DType::int32, {1}}},
              [](Trace& trace, const std::vector<Value>& in) -> Values {
                const Value first = next(trace, in[0]);
                const Values reduced = apply_all("all_reduce", std::vector<Value>{first}, in_buckets_of(1));
                const Value wrong =
                    apply_all("softmax_cross_entropy", std::vector<Value>{next(trace, in[0]), in[1]})[0];
                return {apply("relu", {reduced[0]}), wrong};
              });
  Tensor label(DType::int32, {1});
  label.data<std::int32_t>()[0] = 7;
  const auto outputs =
      plan->run(std::vector{filled(2, 1).reshaped({1, 2}), label}, {.communicator = &pair, .threads = 1});
  ASSERT_FALSE(outputs);
  EXPECT_THAT(outputs.error().message, HasSubstr("the label 7"));
  EXPECT_TRUE(done);
  at_step = [] {};
}

TEST(Buckets, DoNotHangAForkedChild) {
  MirrorGroup pair;
  auto steps = std::make_unique<Steps>();
  ASSERT_TRUE(steps->run(pair));
  ASSERT_NE(pair.calls[0].thread, std::this_thread::get_id());
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    const bool ran = steps->run(pair).has_value();
    steps.reset();
    std::_Exit(ran ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Long chains of elementwise ops write over each other's memory as early as they may: never over what a call
// still reads (MirrorGroup looks), never over what it has made.
TEST(Buckets, ChangeNoBitOfRandomGraphs) {
  const std::uint64_t seed = entropy();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  for (std::uint64_t number = 0; number < 60; ++number) {
    const RandomStream random(seed, number);
    const auto compute = [&](std::int64_t bucket_bytes) {
      MirrorGroup pair;
      pair.during = [](const MirrorGroup::Call&) { std::this_thread::yield(); };
      const auto weight = std::make_shared<Parameter>("weight", filled(8, 1));
      const auto plan =
          plan_of({{DType::float32, {8}}}, [&](Trace& trace, const std::vector<Value>& in) -> Values {
            std::vector<Value> pool{in[0], next(trace, in[0])};
            std::vector<Value> gradients;
            for (std::uint64_t step = 0; step < 30; ++step) {
              const auto pick = [&](std::uint64_t i) {
                const std::uint64_t back =
                    random.below(10 * step + i, std::min<std::uint64_t>(3, pool.size()));
                return pool[pool.size() - 1 - back];
              };
              switch (random.below(10 * step, 4)) {
                case 0:
                  pool.push_back(apply("tanh", {pick(1)}));
                  break;
                case 1:
                  pool.push_back(apply("add", {pick(1), pick(2)}));
                  break;
                case 2:
                  pool.push_back(apply("mul", {pick(1), pick(2)}));
                  break;
                default:
                  gradients.push_back(apply("relu", {pick(1)}));
                  if (random.below(10 * step + 3, 3) == 0) pool.push_back(gradients.back());
              }
            }
            gradients.push_back(pool.back());
            const Values reduced = apply_all("all_reduce", gradients, in_buckets_of(bucket_bytes));
            Values outputs;
            for (const Value& each : reduced) {
              (void)apply("sgd", {weight, each, Tensor::scalar(0.5f)});
              if (random.below(1000 + outputs.size(), 2) == 0) outputs.push_back(each);
            }
            outputs.push_back(apply("add", {weight, pool.back()}));
            return outputs;
          });
      Tensor x(DType::float32, {8});
      for (std::int64_t i = 0; i < 8; ++i)
        x.data<float>()[i] = static_cast<float>(random.normal(5000 + static_cast<std::uint64_t>(i)));
      const auto outputs = plan->run(std::vector{x}, {.communicator = &pair, .threads = 1});
      MUSTER_CHECK(outputs.has_value(), outputs.error().message);
      std::vector<float> all;
      for (const Tensor& output : *outputs)
        all.insert(all.end(), output.span<float>().begin(), output.span<float>().end());
      return all;
    };
    const std::vector<float> whole = compute(1 << 20);
    for (const std::int64_t bucket_bytes : {1, 32, 96, 200}) {
      const std::vector<float> split = compute(bucket_bytes);
      ASSERT_EQ(split.size(), whole.size());
      ASSERT_EQ(std::memcmp(split.data(), whole.data(), whole.size() * sizeof(float)), 0)
          << "graph " << number << ", buckets of " << bucket_bytes << " bytes";
    }
  }
}

TEST(Explanation, CountsTheMemoryOfBuckets) {
  const Steps steps;
  const Explanation explanation = steps.plan->explain();
  EXPECT_EQ(explanation.buckets_bytes, 64u + 16 * 4) << "12 floats up to the next line, and 16";
  EXPECT_THAT(to_string(explanation), HasSubstr("buckets 128"));
}

TEST(RunObserver, IsToldWhatIsWaitedForACall) {
  MirrorGroup pair;
  Steps steps;
  StepTimes times;
  ASSERT_TRUE(steps.plan->run(steps.inputs, {.communicator = &pair, .observer = &times}));
  EXPECT_EQ(std::count_if(times.all.begin(), times.all.end(),
                          [](const StepTime& time) { return time.what == "all_reduce [reference]"; }),
            2);
}

}  // namespace overlap_test
}  // namespace
}  // namespace muster::graph
