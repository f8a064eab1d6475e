// LeNet, divided by hand over five workers, learns handwritten digits; the same program is scheduler and
// worker.
//
//   DATA_PATH=MNIST_Data/train muster run -n 5 build/examples/placed_lenet
//
// or, without the launcher, once for each process with MS_ROLE=MS_SCHED or MS_WORKER, MS_WORKER_NUM=5,
// MS_SCHED_HOST and MS_SCHED_PORT set. Without MS_* variables it trains in one process, to the same bits.
#include "muster/muster.h"

using namespace muster;

namespace {

struct LeNet : nn::Module<LeNet> {
  static inline const nn::Conv2dOptions valid{.pad_mode = nn::PadMode::valid};
  nn::Conv2d& conv1 = add<nn::Conv2d>("conv1", 1, 6, 5, valid);
  nn::Conv2d& conv2 = add<nn::Conv2d>("conv2", 6, 16, 5, valid);
  nn::Dense& fc1 = add<nn::Dense>("fc1", 16 * 4 * 4, 120);
  nn::Dense& fc2 = add<nn::Dense>("fc2", 120, 84);
  nn::Dense& fc3 = add<nn::Dense>("fc3", 84, 10);
  nn::ReLU& relu = add<nn::ReLU>("relu");
  nn::MaxPool2d& pool = add<nn::MaxPool2d>("pool", nn::MaxPool2dOptions{.kernel_size = 2, .stride = 2});
  nn::Flatten& flatten = add<nn::Flatten>("flatten");

  // Each layer's parameters, gradients and optimizer state live on its worker alone. What is not placed, as
  // relu and pool, is assigned to the workers that minimise communication.
  void place_layers() {
    std::int64_t worker = 0;
    for (nn::Cell* cell : std::initializer_list<nn::Cell*>{&conv1, &conv2, &fc1, &fc2, &fc3})
      cell->place("MS_WORKER", worker++).value();
  }

  Value forward(const Value& image) {
    const Value x = pool(relu(conv2(pool(relu(conv1(image))))));
    return fc3(relu(fc2(relu(fc1(flatten(x))))));
  }
};

// The same on all workers: one of them reads it, and the others learn from it what they need.
data::Dataset digits(const std::string& folder) {
  return data::mnist({.folder = folder})
      .map({data::rescale(1.0F / 255.0F, 0.0F), data::hwc2chw()}, {"image"})
      .map({data::type_cast(DType::int32)}, {"label"})
      .shuffle(10'000)
      .batch(32, true);
}

void train_network() {
  train::set_seed(1);
  auto network = std::make_shared<LeNet>();
  network->place_layers();
  auto optimizer =
      std::make_shared<nn::Momentum>(*network, nn::MomentumOptions{.learning_rate = 0.05, .momentum = 0.9});
  const auto model =
      train::Model::create(
          {.network = network, .loss_fn = std::make_shared<nn::CrossEntropyLoss>(), .optimizer = optimizer})
          .value();
  const auto folder = real_environment().get("DATA_PATH").value_or("MNIST_Data/train");
  model
      ->train(
          {.epochs = 4, .dataset = digits(folder), .callbacks = {std::make_shared<train::LossMonitor>(20)}})
      .value();
}

}  // namespace

int main() { return train::run(train_network); }
