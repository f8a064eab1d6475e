// Predictions of a step: what is timed, what is sent, and that nothing of it changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "muster/graph/cost/pipeline.h"
#include "muster/graph/cost/prediction.h"
#include "muster/graph/graph.h"

namespace muster::graph {
namespace {
namespace cost_test {

using namespace std::chrono_literals;

const CallTimes calls{
    .workers = 4,
    .measured_at_s = 1,
    .entries = {{CallKind::all_reduce, 2, 1000, 1ms}, {CallKind::all_reduce, 2, 2000, 1ms}}};

Tensor filled(const Shape& shape, float value) {
  Tensor made = Tensor::zeros(DType::float32, shape);
  std::ranges::fill(made.span<float>(), value);
  return made;
}

struct Step {
  ParameterPtr weight;
  Graph graph;
  std::vector<Tensor> inputs;
};

// A product whose sum is cut over two ranks, and an update of its weight.
Step step_over(const std::string& mesh, const std::string& cut) {
  Step made;
  made.weight = std::make_shared<Parameter>("w", filled(Shape{8, 6}, 0.5F));
  made.inputs = {filled(Shape{4, 8}, 1.0F)};
  const auto trace = Trace::begin("step");
  const Value x = trace->input({DType::float32, Shape{4, 8}});
  const Trace::Scope scope(*trace);
  Value given = x;
  if (!mesh.empty())
    given = apply("shard", {x}, {{"mesh", mesh}, {"layout", cut}, {"rank", std::int64_t{0}}});
  const Value loss = apply("reduce_sum", {apply("relu", {apply("matmul", {given, Value(made.weight)})})});
  const Value weight(made.weight);
  const std::vector<Value> gradients = trace->gradient({&loss, 1}, {&weight, 1});
  const Value rate(Tensor::scalar(0.1F));
  (void)apply("assign", {weight, apply("sub", {weight, apply("mul", {gradients[0], rate})})});
  made.graph = trace->finish(Values{loss});
  return made;
}

const OpGroup* group(const Prediction& made, const std::string& name) {
  const auto found = std::ranges::find(made.groups, name, &OpGroup::name);
  return found == made.groups.end() ? nullptr : &*found;
}

TEST(Prediction, HasEveryOpOfThePlanAndTheirSums) {
  const Step step = step_over("", "");
  const auto made = predict(step.graph, {.threads = 1}, step.inputs, {.workers = 1, .cores = 2});
  ASSERT_TRUE(made) << made.error().message;
  const auto plan = Plan::compile(step.graph, {.threads = 1}).value();
  std::size_t steps = 0;
  double seconds = 0;
  for (const OpGroup& each : made->groups) {
    steps += each.steps;
    seconds += each.seconds;
    EXPECT_EQ(each.not_timed, 0u) << each.name;
    EXPECT_GT(each.seconds, 0) << each.name;
  }
  EXPECT_EQ(steps, plan->explain().steps.size());
  EXPECT_DOUBLE_EQ(made->step_s(), seconds);
  EXPECT_EQ(made->calls_s, 0);
  EXPECT_GE(made->runs, 3u);
  EXPECT_EQ(made->peak_bytes, plan->explain().peak_bytes());
}

TEST(Prediction, LeavesTheParametersAsTheyAre) {
  const Step step = step_over("", "");
  ASSERT_TRUE(predict(step.graph, {.threads = 1}, step.inputs, {.workers = 4, .cores = 4}));
  for (const float each : step.weight->storage().span<float>()) EXPECT_EQ(each, 0.5F);
}

TEST(Prediction, CountsCallsByTheTableAndWhatTheySend) {
  const Step step = step_over("data=1,model=2", ";model");
  const auto made =
      predict(step.graph, {.threads = 1}, step.inputs, {.workers = 2, .cores = 2, .calls = &calls});
  ASSERT_TRUE(made) << made.error().message;
  const OpGroup* reduces = group(*made, "all_reduce of 2 workers");
  ASSERT_NE(reduces, nullptr) << to_string(*made);
  EXPECT_TRUE(reduces->is_call);
  EXPECT_EQ(reduces->not_timed, 0u);
  EXPECT_DOUBLE_EQ(reduces->seconds, 1e-3 * static_cast<double>(reduces->steps));
  EXPECT_GE(reduces->sent_bytes, 4u * 6 * sizeof(float));  // of two ranks each sends a half, twice
  double sums = 0;
  for (const OpGroup& each : made->groups) sums += each.is_call ? each.seconds : 0;
  EXPECT_DOUBLE_EQ(made->calls_s, sums);
}

TEST(Prediction, SaysWhichCallsWereNotTimed) {
  const Step step = step_over("data=1,model=2", ";model");
  const auto made = predict(step.graph, {.threads = 1}, step.inputs, {.workers = 2, .cores = 2});
  ASSERT_TRUE(made) << made.error().message;
  const OpGroup* reduces = group(*made, "all_reduce of 2 workers");
  ASSERT_NE(reduces, nullptr);
  EXPECT_EQ(reduces->not_timed, reduces->steps);
  EXPECT_NE(to_string(*made).find("not timed"), std::string::npos);
}

TEST(Prediction, OfWorkersThatShareCoresIsLonger) {
  Prediction made{.workers = 8, .cores = 2, .threads = 1};
  EXPECT_EQ(made.sharing(), 4);
  made.workers = 2;
  EXPECT_EQ(made.sharing(), 1);
}

TEST(Prediction, CountsReadingWhereNoCoreIsFreeForItOrItTakesLonger) {
  Prediction made{.workers = 2, .cores = 2, .computing_s = 3, .threads = 1, .reading_s = 1};
  EXPECT_DOUBLE_EQ(made.step_s(), 4);  // each core has a worker, and its reading
  made.cores = 4;
  EXPECT_DOUBLE_EQ(made.step_s(), 3);
  made.reading_s = 5;
  EXPECT_DOUBLE_EQ(made.step_s(), 5);  // one thread makes the batch
  made.workers = 4;
  made.cores = 2;
  made.computing_s = 6;  // as two workers share a core: 3 alone
  made.reading_s = 1;
  EXPECT_DOUBLE_EQ(made.step_s(), 8);
  made.reading_s = 0;
  EXPECT_DOUBLE_EQ(made.step_s(), 6);
}

TEST(Prediction, OfKnownKernelsRunsNothing) {
  const Step step = step_over("", "");
  const auto known = make_known_times();
  const PredictionOptions settings{.workers = 1, .cores = 1, .known = known.get()};
  const auto first = predict(step.graph, {.threads = 1}, step.inputs, settings);
  const auto second = predict(step.graph, {.threads = 1}, step.inputs, settings);
  ASSERT_TRUE(first && second);
  EXPECT_GT(first->runs, 0u);
  EXPECT_EQ(second->runs, 0u);
  EXPECT_NEAR(second->computing_s, first->computing_s, 1e-12);
}

TEST(Prediction, OfSeveralGraphsAddsUpAndKeepsTheHigherPeak) {
  const Step step = step_over("", "");
  const auto one = predict(step.graph, {.threads = 1}, step.inputs, {.workers = 1, .cores = 1});
  ASSERT_TRUE(one);
  const Prediction both = joined(*one, *one);
  EXPECT_EQ(both.groups.size(), one->groups.size());
  EXPECT_DOUBLE_EQ(both.step_s(), 2 * one->step_s());
  EXPECT_EQ(both.peak_bytes, one->peak_bytes);
}

// ---- Stages ----

using Kind = PipelineStep::Kind;
const auto compute = [](double seconds) { return PipelineStep{.kind = Kind::compute, .seconds = seconds}; };
const auto send_to = [](std::uint32_t peer) { return PipelineStep{.kind = Kind::send, .peer = peer}; };
const auto receive_from = [](std::uint32_t peer) {
  return PipelineStep{.kind = Kind::receive, .peer = peer};
};

TEST(Pipeline, OfOneBatchRunsOneStageAfterTheOther) {
  const auto made = run_beside(
      {{compute(2), send_to(1), receive_from(1), compute(1)}, {receive_from(0), compute(4), send_to(0)}},
      {.cores = 2});
  EXPECT_DOUBLE_EQ(made.step_s, 7);
  EXPECT_DOUBLE_EQ(made.stages[0].computing_s, 3);
  EXPECT_DOUBLE_EQ(made.stages[0].waiting_s, 4);
  EXPECT_DOUBLE_EQ(made.stages[1].waiting_s, 3) << "the end, too";
}

TEST(Pipeline, OfSeveralPartsRunsThemBesideEachOtherWhereThereAreCores) {
  const std::vector<std::vector<PipelineStep>> parts = {
      {compute(1), send_to(1), compute(1), send_to(1), compute(1), send_to(1)},
      {receive_from(0), compute(1), receive_from(0), compute(1), receive_from(0), compute(1)}};
  EXPECT_DOUBLE_EQ(run_beside(parts, {.cores = 2}).step_s, 4);  // m + s - 1
  EXPECT_DOUBLE_EQ(run_beside(parts, {.cores = 1}).step_s, 6);
  EXPECT_DOUBLE_EQ(run_beside(parts, {.workers_of_stage = 2, .cores = 2}).step_s, 6 + 0.0)
      << "each stage twice";
}

TEST(Pipeline, CountsWhatAMessageTakesAndEndsWhereNoneComes) {
  PipelineStep slow = send_to(1);
  slow.seconds = 0.5;
  EXPECT_DOUBLE_EQ(run_beside({{compute(1), slow}, {receive_from(0), compute(1)}}, {.cores = 2}).step_s, 2.5);
  EXPECT_DOUBLE_EQ(run_beside({{compute(1)}, {receive_from(0), compute(1)}}, {.cores = 2}).step_s, 1);
}

}  // namespace cost_test
}  // namespace
}  // namespace muster::graph
