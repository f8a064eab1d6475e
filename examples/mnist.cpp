// A Dense net learns handwritten digits on all workers of a cluster; the same program is scheduler and
// worker.
//
//   DATA_PATH=MNIST_Data/train muster run -n 4 build/examples/mnist
//
// or, without the launcher, once for each process with MS_ROLE=MS_SCHED or MS_WORKER, MS_WORKER_NUM,
// MS_SCHED_HOST and MS_SCHED_PORT set. Without MS_ROLE it trains alone.
#include <fmt/format.h>

#include <cstdlib>

#include "muster/muster.h"

using namespace muster;

namespace {

class Network final : public nn::Cell {
 public:
  Network() : Cell("Network") {
    insert_child("flatten", flatten_);
    insert_child("fc", fc_);
    insert_child("relu", relu_);
  }
  nn::Values construct(std::span<const nn::Value> inputs) override {
    const nn::Value flat = (*flatten_)(inputs[0])[0];
    const nn::Value logits = (*fc_)(flat)[0];
    return (*relu_)(logits);
  }

 private:
  std::shared_ptr<nn::Cell> flatten_ = std::make_shared<nn::Flatten>();
  std::shared_ptr<nn::Cell> fc_ = std::make_shared<nn::Dense>(
      28 * 28, 10, nn::DenseOptions{.weight_init = nn::normal(), .bias_init = nn::zeros()});
  std::shared_ptr<nn::Cell> relu_ = std::make_shared<nn::ReLU>();
};

struct Shard {
  std::uint32_t rank = 0;
  std::uint32_t count = 1;
};

data::Dataset digits(const std::string& folder, Shard shard) {
  return data::mnist({.folder = folder, .num_shards = shard.count, .shard_id = shard.rank})
      .map({data::rescale(1.0F / 255.0F, 0.0F), data::normalize({.mean = {0.1307F}, .std = {0.3081F}}),
            data::hwc2chw()},
           {"image"})
      .map({data::type_cast(DType::int32)}, {"label"})
      .batch(32);
}

Result<> train_network(const std::string& folder, int epochs) {
  const bool alone = train::Session::current() == nullptr;
  const Shard shard{.rank = alone ? 0 : *train::get_rank(), .count = alone ? 1 : *train::get_group_size()};
  const auto dataset = digits(folder, shard);
  auto network = std::make_shared<Network>();
  nn::CrossEntropyLoss loss_fn;
  nn::SGD optimizer(network->trainable_params(), {.learning_rate = 0.01});
  const auto step = graph::value_and_grad(
      "forward",
      [&](std::span<const nn::Value> inputs) { return loss_fn((*network)(inputs[0])[0], inputs[1]); },
      {.parameters = network->trainable_params()});
  train::DistributedReducer reducer(network->trainable_params(), true);

  for (int epoch = 0; epoch < epochs; ++epoch) {
    MUSTER_TRY(auto batches,
               dataset.iterate({.seed = train::seed(), .epoch = static_cast<std::uint64_t>(epoch)}));
    for (int i = 0;; ++i) {
      MUSTER_TRY(const auto batch, batches.next());
      if (!batch) break;
      MUSTER_TRY(const auto context, train::run_context());
      MUSTER_TRY(const auto outputs, step->call(*batch, "", context));
      MUSTER_TRY(const auto gradients, reducer.reduce(std::span(outputs).subspan(1)));
      optimizer.call(nn::Values(gradients.begin(), gradients.end()), context);
      if (i % 10 == 0) fmt::print("epoch: {}, step: {}, loss is {}\n", epoch, i, *outputs[0].data<float>());
    }
  }
  return {};
}

}  // namespace

int main() {
  if (real_environment().get("MS_ROLE")) {
    const auto role = train::init();
    if (!role) {
      fmt::print(stderr, "{}\n", role.error().message);
      return role.error().exit_code;
    }
    if (*role != train::Role::worker) return 0;
  }
  train::set_seed(1);
  try {
    train_network(real_environment().get("DATA_PATH").value_or("MNIST_Data/train"), 10).value();
  } catch (const Exception& exception) {
    fmt::print(stderr, "{}\n", exception.what());
    return 1;
  }
}
