// One training step of the Dense net (Flatten, Dense 784 to 10, ReLU, CrossEntropyLoss, batch 32, SGD) and
// the matrix products, on one thread: the answers are checked against the reference kernels, then timed.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "muster/graph/plan.h"
#include "muster/nn/nn.h"
#include "muster/tensor/kernels.h"

namespace {

using namespace muster;
using graph::Value;
using graph::Values;
using kernels::MatmulArguments;
using kernels::MatmulSize;

Tensor random(Shape shape, std::uint64_t stream) {
  Tensor made(DType::float32, std::move(shape));
  const RandomStream numbers(11, stream);
  for (std::int64_t i = 0; i < made.elements(); ++i)
    made.data<float>()[i] = static_cast<float>(numbers.normal(static_cast<std::uint64_t>(i)));
  return made;
}

struct Timing {
  double best_us = 1e30;
  double median_us = 0;
};

// Batches of calls, so that the clock does not count.
template <class Call>
Timing time(int calls, const Call& call) {
  std::vector<double> batches;
  for (int i = 0; i < calls; ++i) call();
  for (int batch = 0; batch < 31; ++batch) {
    const TimePoint begin = real_clock().now();
    for (int i = 0; i < calls; ++i) call();
    const std::chrono::duration<double, std::micro> passed = real_clock().now() - begin;
    batches.push_back(passed.count() / calls);
  }
  std::sort(batches.begin(), batches.end());
  return {batches.front(), batches[batches.size() / 2]};
}

bool bench_matmul(const MatmulSize& size, const char* what) {
  const Tensor a = random({size.m, size.k}, 1);
  const Tensor b = random({size.k, size.n}, 2);
  const Tensor c(DType::float32, {size.m, size.n});
  const Tensor expected(DType::float32, {size.m, size.n});
  MatmulArguments<float> arguments{.a = a.data<float>(), .b = b.data<float>(), .c = expected.data<float>()};
  kernels::matmul_reference(size, arguments);
  arguments.c = c.data<float>();
  const double operations = 2.0 * static_cast<double>(size.m * size.n * size.k);
  const int calls = static_cast<int>(std::clamp(2e7 / operations, 1.0, 1000.0));
  for (const kernels::MatmulKernel& kernel : kernels::matmul_kernels()) {
    if (!kernel.usable(size)) continue;
    const auto scratch = Buffer::allocate(kernel.scratch_bytes(size, arguments.threads));
    arguments.scratch = scratch->data();
    kernel.run(size, arguments);
    const double limit = 1e-5 * static_cast<double>(size.k) + 1e-4;
    for (std::int64_t i = 0; i < c.elements(); ++i)
      if (std::abs(c.data<float>()[i] - expected.data<float>()[i]) > limit) {
        fmt::print("{} {}: WRONG at {}\n", what, kernel.name, i);
        return false;
      }
    const Timing timing = time(calls, [&] { kernel.run(size, arguments); });
    fmt::print("{:<36} {:<14} {:>9.2f} us  {:>6.1f} GFLOP/s\n", what, kernel.name, timing.median_us,
               operations / timing.best_us / 1e3);
  }
  return true;
}

class Network : public nn::Cell {
 public:
  Network() : Cell("Network") {
    insert_child("flatten", flatten_);
    insert_child("fc", fc_);
    insert_child("relu", relu_);
  }
  Values construct(std::span<const Value> inputs) override {
    return relu_->call(fc_->call(flatten_->call(inputs)));
  }

 private:
  nn::CellPtr flatten_ = std::make_shared<nn::Flatten>();
  nn::CellPtr fc_ = std::make_shared<nn::Dense>(
      784, 10, nn::DenseOptions{.weight_init = nn::normal(), .bias_init = nn::zeros()});
  nn::CellPtr relu_ = std::make_shared<nn::ReLU>();
};

bool bench_step() {
  const graph::RunContext context{.seed = 1};
  Network net;
  nn::CrossEntropyLoss loss_fn;
  nn::SGD optimizer(net.trainable_params(), {.learning_rate = 0.01});
  const auto grad_fn =
      graph::value_and_grad("forward_fn",
                            [&](std::span<const Value> inputs) -> Values {
                              const Value logits = net(inputs[0]);
                              return {loss_fn(logits, inputs[1]), logits};
                            },
                            {.parameters = net.trainable_params(), .positions = {}, .has_aux = true});
  graph::Function update("optimizer",
                         [&](std::span<const Value> gradients) { return optimizer.call(gradients); });
  const Tensor labels(DType::int32, {32});
  for (std::int32_t i = 0; i < 32; ++i) labels.data<std::int32_t>()[i] = i % 10;
  const std::vector<Tensor> inputs{random({32, 1, 28, 28}, 3), labels};
  double first = 0, last = 0;
  bool good = true;
  const auto step = [&] {
    const auto outputs = grad_fn->call(inputs, {}, context);
    good = good && outputs && update.call(std::span(*outputs).subspan(2), {}, context);
    last = good ? (*outputs)[0].data<float>()[0] : NAN;
  };
  step();
  first = last;
  for (int i = 0; i < 50; ++i) step();
  if (!(std::abs(first - std::log(10.0)) < 0.5) || !(last < first)) {
    fmt::print("step: WRONG, the loss went from {} to {}\n", first, last);
    return false;
  }
  const Timing whole = time(1000, step);
  const Timing backward = time(1000, [&] { good = good && grad_fn->call(inputs, {}, context); });
  fmt::print("{:<36} {:<14} {:>9.2f} us (best {:.2f})\n", "forward and backward", "", backward.median_us,
             backward.best_us);
  fmt::print("{:<36} {:<14} {:>9.2f} us (best {:.2f})\n", "forward, backward and update", "", whole.median_us,
             whole.best_us);
  fmt::print("\n{}{}", grad_fn->plan()->to_string(), update.plan()->to_string());
  return good;
}

}  // namespace

int main() {
  bool good = bench_matmul({.m = 32, .n = 10, .k = 784, .transpose_b = true}, "forward (32,784)x(10,784)T");
  good =
      bench_matmul({.m = 10, .n = 784, .k = 32, .transpose_a = true}, "weights' (32,10)Tx(32,784)") && good;
  good = bench_matmul({.m = 32, .n = 784, .k = 10}, "inputs' (32,10)x(10,784)") && good;
  good = bench_matmul({.m = 32, .n = 512, .k = 784, .transpose_b = true}, "(32,784)x(512,784)T") && good;
  good = bench_matmul({.m = 32, .n = 1024, .k = 1024}, "(32,1024)x(1024,1024)") && good;
  good = bench_matmul({.m = 128, .n = 512, .k = 784, .transpose_b = true}, "(128,784)x(512,784)T") && good;
  good = bench_matmul({.m = 512, .n = 512, .k = 512}, "512 cubed") && good;
  good = bench_matmul({.m = 1000, .n = 999, .k = 1001, .transpose_b = true}, "1000 by 999 by 1001") && good;
  good = bench_step() && good;
  return good ? 0 : 1;
}
