// A GPT learns a text on all workers of a cluster, byte by byte, and writes on; the same program is scheduler
// and worker.
//
//   muster data tiny-text text.txt            # a text to try it with, or one of yours
//   muster run -n 2 build/examples/gpt        # worker 0 writes some of what it has learnt at the end
//
// Variables: DATA_PATH (default: text.txt), EPOCHS (1), BATCH (16, of each worker), BLOCK (128), LAYERS (4),
// WIDTH (256), BFLOAT16 (0). Without MS_* variables it trains alone. examples/gpt.py has words of several
// bytes, a cache of keys and values, and commands.
#include <muster/muster.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace muster;

namespace {

constexpr std::int64_t bytes = 256;  // the words

std::int64_t setting(const char* name, std::int64_t otherwise) {
  const auto value = real_environment().get(name);
  return value ? std::atoll(value->c_str()) : otherwise;
}

struct Attention : nn::Module<Attention> {
  std::int64_t width, heads = 4;
  nn::Dense &q = add<nn::Dense>("q", width, width), &k = add<nn::Dense>("k", width, width),
            &v = add<nn::Dense>("v", width, width), &out = add<nn::Dense>("out", width, width);
  explicit Attention(std::int64_t width_) : width(width_) {}

  // (samples, tokens, width) to (samples, heads, tokens, depth).
  Value split(const Value& x) const {
    return ops::transpose(ops::reshape(x, {x.shape()[0], x.shape()[1], heads, width / heads}),
                          std::vector<std::int64_t>{0, 2, 1, 3});
  }
  Value forward(const Value& x) {
    const Value y =
        ops::scaled_dot_product_attention(split(q(x)), split(k(x)), split(v(x)), {.is_causal = true});
    return out(ops::reshape(ops::transpose(y, std::vector<std::int64_t>{0, 2, 1, 3}), x.shape()));
  }
};

struct Block : nn::Module<Block> {
  std::int64_t width;
  nn::LayerNorm &norm1 = add<nn::LayerNorm>("norm1", Shape{width}),
                &norm2 = add<nn::LayerNorm>("norm2", Shape{width});
  Attention& attention = add<Attention>("attention", width);
  nn::Dense &wide = add<nn::Dense>("wide", width, 4 * width),
            &narrow = add<nn::Dense>("narrow", 4 * width, width);
  nn::Dropout& drop = add<nn::Dropout>("drop", 0.1);
  explicit Block(std::int64_t width_) : width(width_) {}

  Value forward(const Value& x) {
    const Value y = x + drop(attention(norm1(x)));
    return y + drop(narrow(ops::gelu(wide(norm2(y)))));
  }
};

// Scores (samples, tokens, bytes) for the byte behind each of `ids` (samples, tokens).
struct Gpt : nn::Module<Gpt> {
  std::int64_t block, width;
  nn::Embedding &words = add<nn::Embedding>("words", bytes, width),
                &places = add<nn::Embedding>("places", block, width);
  nn::SequentialCell& blocks = add<nn::SequentialCell>("blocks");
  nn::LayerNorm& norm = add<nn::LayerNorm>("norm", Shape{width});
  nn::Dense& head = add<nn::Dense>("head", width, bytes);
  Gpt(std::int64_t block_, std::int64_t width_, std::int64_t layers) : block(block_), width(width_) {
    for (std::int64_t i = 0; i < layers; ++i) blocks.append<Block>(width);
  }

  Value forward(const Value& ids) {
    const Value place = ops::arange({.end = static_cast<double>(ids.shape()[1])});
    return head(norm(blocks(words(ids) + places(place))));
  }
};

struct Loss : nn::Module<Loss> {
  nn::CrossEntropyLoss& entropy = add<nn::CrossEntropyLoss>("entropy");
  Value forward(const Value& scores, const Value& targets) {
    return entropy(ops::reshape(scores, {-1, bytes}), ops::reshape(targets, {-1}));
  }
};

// The likeliest bytes behind `text`, one after another.
std::string continued(Gpt& net, std::string text, std::size_t count) {
  net.set_train(false);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t seen = std::min(text.size(), static_cast<std::size_t>(net.block));
    Tensor ids(DType::int32, {1, static_cast<std::int64_t>(seen)});
    std::transform(text.end() - static_cast<std::ptrdiff_t>(seen), text.end(), ids.data<std::int32_t>(),
                   [](char c) { return static_cast<unsigned char>(c); });
    const Tensor scores = net(Value(ids)).tensor();
    const float* const last = scores.data<float>() + static_cast<std::int64_t>(seen - 1) * bytes;
    text += static_cast<char>(std::max_element(last, last + bytes) - last);
  }
  return text;
}

void train_network() {
  train::set_seed(1);
  train::set_parallel_mode(train::ParallelMode::data_parallel);
  train::set_gradients_mean(true);
  const std::int64_t block = setting("BLOCK", 128);
  const auto windows =
      data::token_file({.file = real_environment().get("DATA_PATH").value_or("text.txt"),
                        .window = block,
                        .dtype = DType::uint8,
                        .rows = {.num_shards = train::world_size(), .shard_id = train::rank()}})
          .batch(setting("BATCH", 16), true);
  const auto net = std::make_shared<Gpt>(block, setting("WIDTH", 256), setting("LAYERS", 4));
  const auto model = train::Model::create({.network = net,
                                           .loss_fn = std::make_shared<Loss>(),
                                           .optimizer = std::make_shared<nn::AdamWeightDecay>(
                                               *net, nn::AdamWeightDecayOptions{.learning_rate = 1e-3}),
                                           .amp_level = setting("BFLOAT16", 0) != 0 ? "auto" : "O0"})
                         .value();
  const train::ModelCheckpointOptions files{
      .prefix = "gpt",
      .directory = "checkpoints",
      .config = {.save_checkpoint_steps = 100, .keep_checkpoint_max = 2}};
  model
      ->train({.epochs = setting("EPOCHS", 1),
               .dataset = windows,
               .callbacks = {std::make_shared<train::ModelCheckpoint>(files),
                             std::make_shared<train::LossMonitor>(), std::make_shared<train::ProgressBar>()},
               .resume = "last"})
      .value();
  if (train::rank() == 0) std::printf("%s\n", continued(*net, "The ", 200).c_str());
}

}  // namespace

int main() { return train::run(train_network); }
