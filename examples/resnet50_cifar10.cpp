// ResNet-50 learns CIFAR-10 on all workers of a cluster; the same program is scheduler and worker.
//
//   muster data synthetic-cifar10 cifar-10-batches-bin     # pictures to try it with, or the real files
//   muster run -n 2 build/examples/resnet50_cifar10
//
// Variables: DATA_PATH (default: cifar-10-batches-bin), IMAGE_SIZE (224), EPOCHS (10), BATCH (32, of each
// worker). Without MS_ROLE it trains alone.
#include <fmt/format.h>

#include <cstdlib>

#include "muster/data/data.h"
#include "muster/nn/nn.h"
#include "muster/train/train.h"

using namespace muster;

namespace {

std::int64_t setting(const char* name, std::int64_t otherwise) {
  const auto value = real_environment().get(name);
  return value ? std::atoll(value->c_str()) : otherwise;
}

nn::CellPtr conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
  return std::make_shared<nn::Conv2d>(in, out, kernel,
                                      nn::Conv2dOptions{.stride = stride, .weight_init = nn::he_uniform()});
}

nn::CellPtr batch_norm(std::int64_t channels, nn::BatchNormOptions options = {}) {
  return std::make_shared<nn::BatchNorm2d>(channels, options);
}

// Three convolutions beside a shortcut. He et al., CVPR 2016.
class Bottleneck final : public nn::Cell {
 public:
  Bottleneck(std::int64_t in, std::int64_t out, std::int64_t stride) : Cell("Bottleneck") {
    const std::int64_t channels = out / 4;
    branch_ = std::make_shared<nn::SequentialCell>(std::initializer_list<nn::CellPtr>{
        conv(in, channels, 1), batch_norm(channels), std::make_shared<nn::ReLU>(),
        conv(channels, channels, 3, stride), batch_norm(channels), std::make_shared<nn::ReLU>(),
        conv(channels, out, 1), batch_norm(out, {.gamma_init = nn::zeros()})});  // begins as its shortcut
    insert_child("branch", branch_);
    if (stride == 1 && in == out) return;
    shortcut_ = std::make_shared<nn::SequentialCell>(
        std::initializer_list<nn::CellPtr>{conv(in, out, 1, stride), batch_norm(out)});
    insert_child("shortcut", shortcut_);
  }
  nn::Values construct(std::span<const nn::Value> inputs) override {
    const nn::Value shortcut = shortcut_ == nullptr ? inputs[0] : shortcut_->call(inputs)[0];
    return nn::ops::relu(nn::ops::add(branch_->call(inputs)[0], shortcut));
  }

 private:
  nn::CellPtr branch_;
  nn::CellPtr shortcut_;
};

struct Stage {
  std::int64_t channels;
  int blocks;
  std::int64_t stride;  // of the first block
};

std::shared_ptr<nn::Cell> resnet50(std::int64_t num_classes) {
  auto net = std::make_shared<nn::SequentialCell>();
  net->append(conv(3, 64, 7, 2));
  net->append(batch_norm(64));
  net->append(std::make_shared<nn::ReLU>());
  net->append(std::make_shared<nn::MaxPool2d>(
      nn::MaxPool2dOptions{.kernel_size = 3, .stride = 2, .pad_mode = nn::PadMode::same}));
  std::int64_t channels = 64;
  for (const Stage& stage : {Stage{256, 3, 1}, Stage{512, 4, 2}, Stage{1024, 6, 2}, Stage{2048, 3, 2}})
    for (int block = 0; block < stage.blocks; ++block) {
      net->append(std::make_shared<Bottleneck>(channels, stage.channels, block == 0 ? stage.stride : 1));
      channels = stage.channels;
    }
  net->append(std::make_shared<nn::AdaptiveAvgPool2d>(1));
  net->append(std::make_shared<nn::Flatten>());
  net->append(std::make_shared<nn::Dense>(channels, num_classes));
  return net;
}

Result<> train_network() {
  const bool alone = train::Session::current() == nullptr;
  const auto size = setting("IMAGE_SIZE", 224);
  const auto dataset =
      data::cifar10({.folder = real_environment().get("DATA_PATH").value_or("cifar-10-batches-bin"),
                     .usage = "train",
                     .num_shards = alone ? 1 : *train::get_group_size(),
                     .shard_id = alone ? 0 : *train::get_rank()})
          .map(
              {data::random_crop({.size = {32, 32}, .padding = {4, 4, 4, 4}}), data::random_horizontal_flip(),
               data::resize({size, size}), data::rescale(1.0F / 255.0F, 0.0F),
               data::normalize({.mean = {0.4914F, 0.4822F, 0.4465F}, .std = {0.2023F, 0.1994F, 0.2010F}}),
               data::hwc2chw()},
              {"image"})
          .map({data::type_cast(DType::int32)}, {"label"})
          .batch(setting("BATCH", 32), true);
  const auto network = resnet50(10);
  MUSTER_TRY(const auto model,
             train::Model::create({.network = network,
                                   .loss_fn = std::make_shared<nn::CrossEntropyLoss>(),
                                   .optimizer = std::make_shared<nn::Momentum>(
                                       network->trainable_params(),
                                       nn::MomentumOptions{.learning_rate = 0.01, .momentum = 0.9})}));
  return model->train(
      {.epochs = setting("EPOCHS", 10),
       .dataset = dataset,
       .callbacks = {std::make_shared<train::LossMonitor>(), std::make_shared<train::TimeMonitor>(),
                     std::make_shared<train::ProgressBar>()}});
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
  train::set_parallel_mode(train::ParallelMode::data_parallel);
  train::set_gradients_mean(true);
  const auto result = train_network();
  if (!result) fmt::print(stderr, "{}\n", result.error().message);
  return result ? 0 : 1;
}
