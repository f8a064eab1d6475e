// ResNet-50 learns CIFAR-10 on all workers of a cluster; the same program is scheduler and worker.
//
//   muster data synthetic-cifar10 cifar-10-batches-bin     # pictures to try it with, or the real files
//   muster run -n 2 build/examples/resnet50_cifar10
//
// Variables: DATA_PATH (default: cifar-10-batches-bin), IMAGE_SIZE (224), EPOCHS (10), BATCH (32, of each
// worker). Without MS_ROLE it trains alone.
#include <cstdlib>

#include "muster/muster.h"

using namespace muster;

namespace {

std::int64_t setting(const char* name, std::int64_t otherwise) {
  const auto value = real_environment().get(name);
  return value ? std::atoll(value->c_str()) : otherwise;
}

nn::Conv2dOptions strided(std::int64_t stride) { return {.stride = stride, .weight_init = nn::he_uniform()}; }

// Three convolutions beside a shortcut. He et al., CVPR 2016.
struct Bottleneck : nn::Module<Bottleneck> {
  nn::SequentialCell& branch = add<nn::SequentialCell>("branch");
  nn::SequentialCell* shortcut = nullptr;  // none: the input as it is

  Bottleneck(std::int64_t in, std::int64_t out, std::int64_t stride) {
    const std::int64_t channels = out / 4;
    branch.append<nn::Conv2d>(in, channels, 1, strided(1));
    branch.append<nn::BatchNorm2d>(channels);
    branch.append<nn::ReLU>();
    branch.append<nn::Conv2d>(channels, channels, 3, strided(stride));
    branch.append<nn::BatchNorm2d>(channels);
    branch.append<nn::ReLU>();
    branch.append<nn::Conv2d>(channels, out, 1, strided(1));
    branch.append<nn::BatchNorm2d>(
        out, nn::BatchNormOptions{.gamma_init = nn::zeros()});  // begins as its shortcut
    if (stride == 1 && in == out) return;
    shortcut = &add<nn::SequentialCell>("shortcut");
    shortcut->append<nn::Conv2d>(in, out, 1, strided(stride));
    shortcut->append<nn::BatchNorm2d>(out);
  }
  Value forward(const Value& x) { return ops::relu(branch(x) + (shortcut == nullptr ? x : (*shortcut)(x))); }
};

struct Stage {
  std::int64_t channels;
  int blocks;
  std::int64_t stride;  // of the first block
};

std::shared_ptr<nn::Cell> resnet50(std::int64_t num_classes) {
  auto net = std::make_shared<nn::SequentialCell>();
  net->append<nn::Conv2d>(3, 64, 7, strided(2));
  net->append<nn::BatchNorm2d>(64);
  net->append<nn::ReLU>();
  net->append<nn::MaxPool2d>(
      nn::MaxPool2dOptions{.kernel_size = 3, .stride = 2, .pad_mode = nn::PadMode::same});
  std::int64_t channels = 64;
  for (const Stage& stage : {Stage{256, 3, 1}, Stage{512, 4, 2}, Stage{1024, 6, 2}, Stage{2048, 3, 2}})
    for (int block = 0; block < stage.blocks; ++block) {
      net->append<Bottleneck>(channels, stage.channels, block == 0 ? stage.stride : 1);
      channels = stage.channels;
    }
  net->append<nn::AdaptiveAvgPool2d>(1);
  net->append<nn::Flatten>();
  net->append<nn::Dense>(channels, num_classes);
  return net;
}

void train_network() {
  train::set_seed(1);
  train::set_parallel_mode(train::ParallelMode::data_parallel);
  train::set_gradients_mean(true);
  const auto size = setting("IMAGE_SIZE", 224);
  const auto dataset =
      data::cifar10({.folder = real_environment().get("DATA_PATH").value_or("cifar-10-batches-bin"),
                     .usage = "train",
                     .num_shards = train::world_size(),
                     .shard_id = train::rank()})
          .map(
              {data::random_crop({.size = {32, 32}, .padding = {4, 4, 4, 4}}), data::random_horizontal_flip(),
               data::resize({size, size}), data::rescale(1.0F / 255.0F, 0.0F),
               data::normalize({.mean = {0.4914F, 0.4822F, 0.4465F}, .std = {0.2023F, 0.1994F, 0.2010F}}),
               data::hwc2chw()},
              {"image"})
          .map({data::type_cast(DType::int32)}, {"label"})
          .batch(setting("BATCH", 32), true);
  const auto network = resnet50(10);
  auto optimizer =
      std::make_shared<nn::Momentum>(*network, nn::MomentumOptions{.learning_rate = 0.01, .momentum = 0.9});
  const auto model =
      train::Model::create(
          {.network = network, .loss_fn = std::make_shared<nn::CrossEntropyLoss>(), .optimizer = optimizer})
          .value();
  model
      ->train({.epochs = setting("EPOCHS", 10),
               .dataset = dataset,
               .callbacks = {std::make_shared<train::LossMonitor>(), std::make_shared<train::TimeMonitor>(),
                             std::make_shared<train::ProgressBar>()}})
      .value();
}

}  // namespace

int main() { return train::run(train_network); }
