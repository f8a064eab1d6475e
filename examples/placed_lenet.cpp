// LeNet, divided by hand over five workers, learns handwritten digits; the same program is scheduler and
// worker.
//
//   DATA_PATH=MNIST_Data/train muster run -n 5 build/examples/placed_lenet
//
// or, without the launcher, once for each process with MS_ROLE=MS_SCHED or MS_WORKER, MS_WORKER_NUM=5,
// MS_SCHED_HOST and MS_SCHED_PORT set. Without MS_ROLE it trains in one process, to the same bits.
#include <fmt/format.h>

#include <cstdlib>

#include "muster/data/data.h"
#include "muster/nn/nn.h"
#include "muster/train/train.h"

using namespace muster;

namespace {

std::shared_ptr<nn::Cell> convolution(std::int64_t in_channels, std::int64_t out_channels) {
  return std::make_shared<nn::Conv2d>(in_channels, out_channels, 5,
                                      nn::Conv2dOptions{.pad_mode = nn::PadMode::valid});
}

class LeNet final : public nn::Cell {
 public:
  LeNet() : Cell("LeNet") {
    insert_child("conv1", conv1_);
    insert_child("conv2", conv2_);
    insert_child("fc1", fc1_);
    insert_child("fc2", fc2_);
    insert_child("fc3", fc3_);
    insert_child("relu", relu_);
    insert_child("pool", pool_);
    insert_child("flatten", flatten_);
  }

  // Each layer's parameters, gradients and optimizer state live on its worker alone. What is not placed, as
  // relu and pool, runs where the fewest bytes travel.
  Result<> place_layers() {
    std::int64_t worker = 0;
    for (nn::Cell* cell : {conv1_.get(), conv2_.get(), fc1_.get(), fc2_.get(), fc3_.get()})
      MUSTER_TRY_VOID(cell->place("MS_WORKER", worker++));
    return {};
  }

  nn::Values construct(std::span<const nn::Value> inputs) override {
    nn::Value x = inputs[0];
    for (const auto& cell :
         {conv1_, relu_, pool_, conv2_, relu_, pool_, flatten_, fc1_, relu_, fc2_, relu_, fc3_})
      x = (*cell)(x)[0];
    return x;
  }

 private:
  std::shared_ptr<nn::Cell> conv1_ = convolution(1, 6);
  std::shared_ptr<nn::Cell> conv2_ = convolution(6, 16);
  std::shared_ptr<nn::Cell> fc1_ = std::make_shared<nn::Dense>(16 * 4 * 4, 120);
  std::shared_ptr<nn::Cell> fc2_ = std::make_shared<nn::Dense>(120, 84);
  std::shared_ptr<nn::Cell> fc3_ = std::make_shared<nn::Dense>(84, 10);
  std::shared_ptr<nn::Cell> relu_ = std::make_shared<nn::ReLU>();
  std::shared_ptr<nn::Cell> pool_ =
      std::make_shared<nn::MaxPool2d>(nn::MaxPool2dOptions{.kernel_size = 2, .stride = 2});
  std::shared_ptr<nn::Cell> flatten_ = std::make_shared<nn::Flatten>();
};

// The same on all workers: one of them reads it, and the others learn from it what they need.
data::Dataset digits(const std::string& folder) {
  return data::mnist({.folder = folder})
      .map({data::rescale(1.0F / 255.0F, 0.0F), data::hwc2chw()}, {"image"})
      .map({data::type_cast(DType::int32)}, {"label"})
      .shuffle(10'000)
      .batch(32, true);
}

Result<> train_network(const std::string& folder) {
  auto network = std::make_shared<LeNet>();
  MUSTER_TRY_VOID(network->place_layers());
  auto optimizer = std::make_shared<nn::Momentum>(
      network->trainable_params(), nn::MomentumOptions{.learning_rate = 0.05, .momentum = 0.9});
  MUSTER_TRY(const auto model, train::Model::create({.network = network,
                                                     .loss_fn = std::make_shared<nn::CrossEntropyLoss>(),
                                                     .optimizer = optimizer}));
  return model->train(
      {.epochs = 4, .dataset = digits(folder), .callbacks = {std::make_shared<train::LossMonitor>(20)}});
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
  const auto result = train_network(real_environment().get("DATA_PATH").value_or("MNIST_Data/train"));
  if (!result) fmt::print(stderr, "{}\n", result.error().message);
  return result ? 0 : 1;
}
