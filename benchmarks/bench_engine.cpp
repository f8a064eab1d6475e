// Whole training steps on images, forward, backward and update as one plan: ResNet-50 (224 by 224) and
// LeNet-5, in float32 or in bfloat16 over parameters and a loss in float32. Prints one line of JSON: seconds
// of each step, of tracing and compiling, and the peak of resident memory. With --workers several processes
// train together, each with a batch of its own; rank 0 prints. With --compare they also train apart, and one
// by one.
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "muster/collective/collective.h"
#include "muster/graph/plan.h"
#include "muster/nn/nn.h"
#include "ranks.h"

namespace {

using namespace muster;
using graph::ParameterPtr;
using graph::Value;
using graph::Values;
namespace ops = nn::ops;

// Parameters in the order in which the net first asks for them; the trace runs once.
class Weights {
 public:
  explicit Weights(DType dtype) : dtype_(dtype) {}

  // Of a product, in the dtype that the net computes in.
  Value he_normal(const Shape& shape) {
    double fan_in = 1;
    for (std::size_t axis = 1; axis < shape.rank(); ++axis) fan_in *= static_cast<double>(shape[axis]);
    return graph::floating_as(add(shape, nn::normal(std::sqrt(2 / fan_in)), true), dtype_);
  }
  ParameterPtr constant(std::int64_t size, double value, bool trained = true) {
    return add({size}, nn::constant(value), trained);
  }
  const std::vector<ParameterPtr>& trained() const { return trained_; }

 private:
  ParameterPtr add(const Shape& shape, graph::Initializer initializer, bool trained) {
    auto made = std::make_shared<graph::Parameter>(fmt::format("p{}", count_++),
                                                   graph::TensorType{DType::float32, shape},
                                                   std::move(initializer), trained);
    if (trained) trained_.push_back(made);
    return made;
  }
  DType dtype_;
  int count_ = 0;
  std::vector<ParameterPtr> trained_;
};

struct Layer {
  std::int64_t channels = 0;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
};

class ResNet50 {
 public:
  explicit ResNet50(Weights& weights) : weights_(weights) {}

  Value operator()(Value x) {
    x = ops::relu(conv_norm(x, {64, 7, 2}));
    x = ops::max_pool2d(x, {.kernel = {3, 3}, .strides = {2, 2}, .pads = {1, 1, 1, 1}});
    const int blocks[] = {3, 4, 6, 3};
    for (int stage = 0; stage < 4; ++stage)
      for (int block = 0; block < blocks[stage]; ++block)
        x = bottleneck(x, 64 << stage, block == 0 && stage > 0 ? 2 : 1);
    x = ops::flatten(ops::adaptive_avg_pool2d(x, {1, 1}));
    return ops::bias_add(
        graph::floating_as(ops::matmul(x, weights_.he_normal({10, 2048}), false, true), DType::float32),
        weights_.constant(10, 0));
  }

 private:
  Value conv_norm(const Value& x, const Layer& layer) {
    const std::int64_t pad = layer.kernel / 2;
    const Value y =
        ops::conv2d(x, weights_.he_normal({layer.channels, x.shape()[1], layer.kernel, layer.kernel}), {},
                    {.strides = {layer.stride, layer.stride}, .pads = {pad, pad, pad, pad}});
    return ops::batch_norm(y, weights_.constant(layer.channels, 1), weights_.constant(layer.channels, 0),
                           {.mean = weights_.constant(layer.channels, 0, false),
                            .variance = weights_.constant(layer.channels, 1, false)},
                           {.training = true});
  }
  Value bottleneck(const Value& x, std::int64_t channels, std::int64_t stride) {
    Value y = ops::relu(conv_norm(x, {channels, 1, 1}));
    y = ops::relu(conv_norm(y, {channels, 3, stride}));
    y = conv_norm(y, {channels * 4, 1, 1});
    const bool same = x.shape() == y.shape();
    return ops::relu(ops::add(y, same ? x : conv_norm(x, {channels * 4, 1, stride})));
  }

  Weights& weights_;
};

class LeNet5 {
 public:
  explicit LeNet5(Weights& weights) : weights_(weights) {}

  Value operator()(Value x) {
    for (const std::int64_t channels : {6, 16}) {
      x = ops::relu(ops::conv2d(x, weights_.he_normal({channels, x.shape()[1], 5, 5})));
      x = ops::max_pool2d(x, {.kernel = {2, 2}, .strides = {2, 2}});
    }
    x = ops::relu(dense(ops::flatten(x), 120));
    return dense(ops::relu(dense(x, 84)), 10);
  }

 private:
  Value dense(const Value& x, std::int64_t size) {
    const Value product = ops::matmul(x, weights_.he_normal({size, x.shape()[1]}), false, true);
    return ops::bias_add(product, graph::floating_as(weights_.constant(size, 0), product.dtype()));
  }

  Weights& weights_;
};

struct Settings {
  std::string net = "resnet50";
  std::string dtype = "float32";
  std::int64_t batch = 16;
  int threads = 2;
  int steps = 5;
  std::uint32_t workers = 1;
  nn::Buckets buckets;
  bool times = false;
  bool plan = false;
  bool compares = false;
};

void meet(Communicator& workers) {
  if (const auto met = workers.barrier(); !met) benchmarks::die(met.error());
}

double slowest(Communicator& workers, double taken) {
  const auto done = workers.all_reduce(&taken, &taken, 1, DType::float64, Reduction::max);
  if (!done) benchmarks::die(done.error());
  return taken;
}

// Loss of `net` on (images, labels), gradients, reduced over the workers or not, and the update, one graph.
template <class Net>
graph::Function training_step(const Settings& settings, Net& net, Weights& weights,
                              std::vector<ParameterPtr>& moments, bool reduces) {
  const DType dtype = *dtype_from_string(settings.dtype);
  return graph::Function("step", [&, dtype, reduces](std::span<const Value> inputs) -> Values {
    const Value logits = graph::floating_as(net(graph::floating_as(inputs[0], dtype)), DType::float32);
    const Value loss = graph::apply("softmax_cross_entropy", {logits, inputs[1]});
    std::vector<Value> wanted;
    for (const ParameterPtr& parameter : weights.trained()) wanted.emplace_back(parameter);
    const auto made = graph::Trace::current()->gradient({&loss, 1}, wanted);
    Values gradients(made.begin(), made.end());
    if (reduces) gradients = nn::reduce_gradients(gradients, Reduction::mean, settings.buckets);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const ParameterPtr& parameter = weights.trained()[i];
      moments.push_back(std::make_shared<graph::Parameter>("moments." + parameter->name(), parameter->type(),
                                                           nn::constant(0), false));
      graph::apply("momentum", {parameter, gradients[i], Tensor::scalar(0.001F), moments.back()},
                   {{"momentum", 0.9}});
    }
    return loss;
  });
}

std::vector<Tensor> batch_of(const Settings& settings) {
  const Shape shape =
      settings.net == "lenet" ? Shape{settings.batch, 1, 32, 32} : Shape{settings.batch, 3, 224, 224};
  Tensor images(DType::float32, shape);
  Tensor labels(DType::int32, {settings.batch});
  const RandomStream numbers(11, 3);
  for (std::int64_t i = 0; i < images.elements(); ++i)
    images.data<float>()[i] = static_cast<float>(numbers.normal(static_cast<std::uint64_t>(i)));
  for (std::int64_t i = 0; i < settings.batch; ++i)
    labels.data<std::int32_t>()[i] = static_cast<std::int32_t>(i % 10);
  return {images, labels};
}

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// Time of each kind of step.
class KindTimes : public graph::RunObserver {
 public:
  void ran(const Step&, TimePoint begin, TimePoint end, const Describe& describe) override {
    seconds_[describe().text] += seconds(end - begin);
  }
  void print(int steps) const {
    for (const auto& [what, taken] : seconds_)
      fmt::print(stderr, "{:>10.3f} ms  {}\n", taken * 1e3 / steps, what);
  }

 private:
  std::map<std::string, double> seconds_;
};

// A net that learns one batch, alone or together with the other workers.
template <class Net>
class Training {
 public:
  Training(const Settings& settings, Communicator* workers)
      : settings_(settings),
        workers_(workers),
        weights_(*dtype_from_string(settings.dtype)),
        net_(weights_),
        step_(training_step(settings, net_, weights_, moments_, workers != nullptr)),
        inputs_(batch_of(settings)) {}

  // How long the next step takes.
  double step(graph::RunObserver* observer = nullptr) {
    const TimePoint begin = real_clock().now();
    const auto outputs =
        step_.call(inputs_, {},
                   {.seed = 1, .communicator = workers_, .threads = settings_.threads, .observer = observer});
    if (!outputs) benchmarks::die(outputs.error());
    const double taken = seconds(real_clock().now() - begin);
    losses_.push_back(static_cast<double>((*outputs)[0].template data<float>()[0]));
    return taken;
  }

  // The same batch again and again: a step that does not learn it is wrong.
  bool is_right() const { return std::isfinite(losses_.back()) && losses_.back() < losses_.front(); }
  const std::vector<double>& losses() const { return losses_; }
  const graph::Function& function() const { return step_; }

 private:
  const Settings& settings_;
  Communicator* workers_;
  Weights weights_;
  std::vector<ParameterPtr> moments_;
  Net net_;
  graph::Function step_;
  std::vector<Tensor> inputs_;
  std::vector<double> losses_;
};

int warm_steps(const Settings& settings) { return settings.net == "lenet" ? 50 : 2; }

template <class Net>
int measure(const Settings& settings, Communicator* workers) {
  Training<Net> training(settings, workers);
  KindTimes times;
  std::vector<double> taken;
  for (int i = 0; i < warm_steps(settings); ++i) training.step();
  for (int i = 0; i < settings.steps; ++i) taken.push_back(training.step(settings.times ? &times : nullptr));
  if (workers != nullptr && workers->rank() > 0) return 0;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  if (settings.plan) fmt::print(stderr, "{}", training.function().plan()->to_string());
  if (settings.times) times.print(settings.steps);
  fmt::print(
      "{{\"seconds\": [{}], \"compile_seconds\": {}, \"peak_bytes\": {}, \"losses\": [{}, {}], \"right\": "
      "{}}}\n",
      fmt::join(taken, ", "), seconds(training.function().traces()[0].duration), usage.ru_maxrss * 1024,
      training.losses().front(), training.losses().back(), training.is_right());
  return training.is_right() ? 0 : 1;
}

// The same step in turn by each worker while the others wait, by all at once that do not talk, and by all
// together: what differs between the first two is the machine's, between the last two that of talking. Turns
// are short, since the speed of a shared machine drifts.
template <class Net>
int compare(const Settings& settings, Communicator& workers) {
  Training<Net> apart(settings, nullptr), together(settings, &workers);
  for (int i = 0; i < warm_steps(settings); ++i) {
    apart.step();
    together.step();
  }
  std::vector<double> alone_taken, apart_taken, together_taken;
  for (int i = 0; i < settings.steps; ++i) {
    for (std::uint32_t turn = 0; turn < workers.size(); ++turn) {
      meet(workers);
      alone_taken.push_back(slowest(workers, turn == workers.rank() ? apart.step() : 0));
    }
    meet(workers);
    apart_taken.push_back(slowest(workers, apart.step()));
    meet(workers);
    together_taken.push_back(slowest(workers, together.step()));
  }
  const bool right = apart.is_right() && together.is_right();
  if (workers.rank() > 0) return right ? 0 : 1;
  fmt::print("{{\"alone_seconds\": [{}], \"apart_seconds\": [{}], \"seconds\": [{}], \"right\": {}}}\n",
             fmt::join(alone_taken, ", "), fmt::join(apart_taken, ", "), fmt::join(together_taken, ", "),
             right);
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Training steps on images");
  app.add_option("--net", settings.net)->check(CLI::IsMember({"resnet50", "lenet"}));
  app.add_option("--dtype", settings.dtype)->check(CLI::IsMember({"float32", "bfloat16"}));
  app.add_option("--batch", settings.batch);
  app.add_option("--threads", settings.threads);
  app.add_option("--steps", settings.steps);
  app.add_option("--workers", settings.workers, "Processes that train together")->check(CLI::Range(1, 64));
  app.add_option("--bucket-bytes", settings.buckets.bytes, "Of gradients that travel together");
  app.add_flag("--times", settings.times, "Print the time of each kind of step");
  app.add_flag("--plan", settings.plan, "Print the plan");
  app.add_flag("--compare", settings.compares,
               "Steps of each worker alone, of all apart and of all together, in turn");
  CLI11_PARSE(app, argc, argv);
  const bool is_lenet = settings.net == "lenet";
  const auto measured = [&](Communicator* workers) {
    if (settings.compares)
      return is_lenet ? compare<LeNet5>(settings, *workers) : compare<ResNet50>(settings, *workers);
    return is_lenet ? measure<LeNet5>(settings, workers) : measure<ResNet50>(settings, workers);
  };
  if (settings.workers == 1 && !settings.compares) return measured(nullptr);
  const bool right = benchmarks::run_ranks({.ranks = settings.workers}, [&](Communicator& group) {
    if (measured(&group) != 0) std::_Exit(1);
  });
  return right ? 0 : 1;
}
