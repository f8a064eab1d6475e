// Wide&Deep learns who clicks, with its embeddings on parameter servers; the same program is scheduler,
// server and worker. examples/wide_and_deep.py is the same in Python.
//
//   muster data synthetic-clicks clicks
//   muster run -n 2 --servers 2 build/examples/wide_and_deep
//
// Variables: DATA_PATH (default: clicks), EPOCHS (3), BATCH (512, of all workers together). Without MS_*
// variables it trains alone, and the tables are its own.
#include <muster/muster.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

using namespace muster;

namespace {

constexpr std::int64_t width = 8;  // of an embedding
constexpr std::int64_t hidden = 64;

std::int64_t setting(const char* name, std::int64_t otherwise) {
  const auto value = real_environment().get(name);
  return value ? std::atoll(value->c_str()) : otherwise;
}

// An array of NumPy: magic, version, length of the header, a header that ends with "'shape': (8000, 26), }",
// elements.
Tensor load(const std::string& path, DType dtype) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> head(10);
  if (!file.read(head.data(), 10))
    throw std::runtime_error(path + " is missing: muster data synthetic-clicks");
  std::string text(static_cast<unsigned char>(head[8]) + 256 * static_cast<unsigned char>(head[9]), ' ');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  std::vector<std::int64_t> sizes;
  for (const char* at = text.c_str() + text.find("'shape': (") + 10; *at != ')';) {
    char* end = nullptr;
    sizes.push_back(std::strtoll(at, &end, 10));
    for (at = end; *at == ',' || *at == ' ';) ++at;
  }
  Tensor made(dtype, Shape(sizes));
  file.read(reinterpret_cast<char*>(made.bytes()), static_cast<std::streamsize>(made.size_bytes()));
  return made;
}

struct Clicks {
  Tensor ids, numbers, labels;
  Clicks(const std::string& folder, const std::string& part)
      : ids(load(folder + "/" + part + "_ids.npy", DType::int32)),
        numbers(load(folder + "/" + part + "_numbers.npy", DType::float32)),
        labels(load(folder + "/" + part + "_labels.npy", DType::float32)) {}
  std::int64_t size() const { return labels.elements(); }
};

// Rows of a tensor, in the order of `rows`.
Tensor gathered(const Tensor& from, std::span<const std::int64_t> rows) {
  std::vector<std::int64_t> sizes = from.shape().sizes();
  sizes[0] = static_cast<std::int64_t>(rows.size());
  Tensor made(from.dtype(), Shape(sizes));
  const std::size_t row_bytes = from.size_bytes() / static_cast<std::size_t>(from.shape()[0]);
  std::byte* to = made.bytes();
  for (const std::int64_t row : rows) {
    std::copy_n(from.bytes() + static_cast<std::size_t>(row) * row_bytes, row_bytes, to);
    to += row_bytes;
  }
  return made;
}

nn::EmbeddingOptions table(nn::Initializer first) {
  // Ids that training has not seen are zeros.
  return {.embedding_table = std::move(first), .is_table = true, .out_of_range = graph::OutOfRange::zeros};
}

// The log odds of a click (batch,) of ids (batch, fields) and numbers (batch, count).
struct WideAndDeep : nn::Module<WideAndDeep> {
  std::int64_t vocabulary, fields, count;
  nn::Embedding& wide = add<nn::Embedding>("wide", vocabulary, 1, table(nn::zeros()));
  nn::Embedding& deep = add<nn::Embedding>("deep", vocabulary, width, table(nn::normal(0.3)));
  nn::Dense& of_numbers = add<nn::Dense>("of_numbers", count, 1);
  nn::Dense &first = add<nn::Dense>("first", fields*width + count, hidden),
            &second = add<nn::Dense>("second", hidden, hidden), &out = add<nn::Dense>("out", hidden, 1);

  WideAndDeep(std::int64_t vocabulary_, std::int64_t fields_, std::int64_t count_)
      : vocabulary(vocabulary_), fields(fields_), count(count_) {
    for (const nn::Embedding* each : {&wide, &deep}) train::put_on_servers(each->embedding_table()).value();
  }
  Value forward(const Value& ids, const Value& numbers) {
    const Value linear = ops::reduce_sum(wide(ids), {1}) + of_numbers(numbers);
    const Value embedded = ops::reshape(deep(ids), {ids.shape()[0], fields * width});
    const Value joined[] = {embedded, numbers};
    const Value y = ops::relu(second(ops::relu(first(ops::concat(joined, 1)))));
    return ops::reshape(linear + out(y), {-1});
  }
};

// How often a click has a higher score than what is none.
double auc(const std::vector<float>& scores, const float* labels) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return scores[i]; });
  double hits = 0, ranks = 0;
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    double equal_hits = 0;
    for (end = begin; end < order.size() && scores[order[end]] == scores[order[begin]]; ++end)
      equal_hits += labels[order[end]];
    hits += equal_hits;
    ranks += equal_hits * static_cast<double>(begin + end + 1) / 2;
  }
  return (ranks - hits * (hits + 1) / 2) / (hits * (static_cast<double>(order.size()) - hits));
}

void learn(WideAndDeep& net, const Clicks& clicks) {
  const auto deep = [&] {
    std::vector<graph::ParameterPtr> all = net.trainable_params();
    std::erase(all, net.wide.embedding_table());
    return all;
  }();
  nn::FTRL of_wide({net.wide.embedding_table()}, {.learning_rate = 0.3, .l1 = 1e-6, .l2 = 1e-6});
  nn::Adam of_deep(deep, {.learning_rate = 5e-3});
  nn::BCEWithLogitsLoss loss_fn;
  const train::TrainStep::Forward loss_of = [&](std::span<const Value> batch) {
    return loss_fn(net(batch[0], batch[1]), batch[2]);
  };
  train::TrainStep step(loss_of, {&of_wide, &of_deep});
  const std::int64_t epochs = setting("EPOCHS", 3), workers = train::world_size();
  const std::int64_t batch = setting("BATCH", 512) / workers;
  std::vector<std::int64_t> order(static_cast<std::size_t>(clicks.size()));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) {
    const RandomStream random(1, static_cast<std::uint64_t>(epoch));  // the same order in all workers
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i, i)]);
    float loss = 0;
    for (std::int64_t at = train::rank() * batch; at + batch <= clicks.size(); at += workers * batch) {
      if (at - train::rank() * batch + workers * batch > clicks.size())
        break;  // not all workers have one more
      const auto rows =
          std::span(order).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(batch));
      const Tensor columns[] = {gathered(clicks.ids, rows), gathered(clicks.numbers, rows),
                                gathered(clicks.labels, rows)};
      loss = step(columns).item<float>();
    }
    if (train::rank() == 0)
      std::printf("epoch %lld of %lld: loss %.3f\n", static_cast<long long>(epoch),
                  static_cast<long long>(epochs), loss);
  }
}

void train_network() {
  train::set_seed(1);
  const std::string folder = real_environment().get("DATA_PATH").value_or("clicks");
  const Clicks seen(folder, "train"), test(folder, "test");
  const std::int32_t* const ids = seen.ids.data<std::int32_t>();
  WideAndDeep net(*std::max_element(ids, ids + seen.ids.elements()) + 1, seen.ids.shape()[1],
                  seen.numbers.shape()[1]);
  learn(net, seen);

  net.set_train(false);
  std::vector<float> scores;
  std::vector<std::int64_t> rows(512);
  for (std::int64_t at = 0; at < test.size(); at += static_cast<std::int64_t>(rows.size())) {
    rows.resize(static_cast<std::size_t>(std::min<std::int64_t>(512, test.size() - at)));
    std::iota(rows.begin(), rows.end(), at);
    const Tensor part = net(Value(gathered(test.ids, rows)), Value(gathered(test.numbers, rows))).tensor();
    scores.insert(scores.end(), part.data<float>(), part.data<float>() + part.elements());
  }
  double limit = 0;
  std::ifstream(folder + "/auc_limit.txt") >> limit;
  const double reached = auc(scores, test.labels.data<float>());
  if (train::rank() == 0) std::printf("AUC %.4f, %.4f of the limit %.4f\n", reached, reached / limit, limit);
}

}  // namespace

int main() {
  train::set_parameter_servers({.enabled = true}).value();
  return train::run(train_network);
}
