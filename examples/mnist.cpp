// A Dense net learns handwritten digits on all workers of a cluster; the same program is scheduler and
// worker.
//
//   DATA_PATH=MNIST_Data/train muster run -n 4 build/examples/mnist
//
// or, without the launcher, once for each process with MS_ROLE=MS_SCHED or MS_WORKER, MS_WORKER_NUM,
// MS_SCHED_HOST and MS_SCHED_PORT set. Without MS_* variables it trains alone. docs/guide/cpp.md tells about
// it line by line.
#include <muster/muster.h>

#include <cstdio>
#include <cstdlib>

using namespace muster;

struct Network : nn::Module<Network> {
  nn::Dense& fc = add<nn::Dense>("fc", 28 * 28, 10);
  Value forward(const Value& image) { return ops::relu(fc(ops::flatten(image))); }
};

data::Dataset digits(const char* folder) {
  return data::mnist({.folder = folder, .num_shards = train::world_size(), .shard_id = train::rank()})
      .map({data::rescale(1 / 255.0F, 0), data::normalize({.mean = {0.1307F}, .std = {0.3081F}})}, {"image"})
      .map({data::type_cast(DType::int32)}, {"label"})
      .batch(32);
}

void train_network() {
  train::set_seed(1);
  const char* const folder = std::getenv("DATA_PATH");
  const data::Dataset images = digits(folder != nullptr ? folder : "MNIST_Data/train");
  Network network;
  nn::CrossEntropyLoss loss_fn;
  nn::SGD optimizer(network, {.learning_rate = 0.01});
  train::TrainStep step(network, loss_fn, optimizer);
  for (int epoch = 0; epoch < 10; ++epoch)
    for (int i = 0; const data::Item& batch : train::batches(images, epoch)) {
      const float loss = step(batch).item<float>();
      if (i++ % 10 == 0) std::printf("epoch: %d, step: %d, loss is %f\n", epoch, i - 1, loss);
    }
}

int main() { return train::run(train_network); }
