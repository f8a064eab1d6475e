// Products of the shapes that transformers and recurrent nets have, by our kernels and by oneDNN, in turn,
// float32: which of them the op matmul should take (docs/adr/0045-matmul.md). bench_matmul [THREADS]
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "muster/tensor/kernels.h"
#include "muster/tensor/tensor.h"

namespace {

using namespace muster;
using kernels::MatmulSize;

struct Case {
  std::string what;
  MatmulSize size;
};

// A dense layer of `rows` samples from `in` to `out`: forward, and its gradients for x and for the weight
// (out, in).
void add_layer(std::vector<Case>& cases, const std::string& what, std::int64_t rows, std::int64_t in,
               std::int64_t out) {
  cases.push_back({what, {.m = rows, .n = out, .k = in, .transpose_b = true}});
  cases.push_back({what + ", dx", {.m = rows, .n = in, .k = out}});
  cases.push_back({what + ", dweight", {.m = out, .n = in, .k = rows, .transpose_a = true}});
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  add_layer(cases, "GPT 0.8 M, qkv", 1024, 128, 384);
  add_layer(cases, "GPT 0.8 M, mlp", 1024, 128, 512);
  add_layer(cases, "GPT 10.8 M, qkv", 2048, 384, 1152);
  add_layer(cases, "GPT 10.8 M, mlp", 2048, 384, 1536);
  add_layer(cases, "GPT 10.8 M, words", 2048, 384, 65);
  add_layer(cases, "BERT, mlp", 1024, 768, 3072);
  add_layer(cases, "BERT, words", 1024, 768, 30522);
  add_layer(cases, "ViT, mlp", 788, 768, 3072);
  add_layer(cases, "LSTM, a step", 32, 512, 2048);
  add_layer(cases, "LSTM, words", 4096, 512, 10000);
  add_layer(cases, "one token, mlp", 1, 384, 1536);
  add_layer(cases, "ResNet-50, classes", 16, 2048, 1000);
  for (const std::int64_t side : {32, 64, 96, 128, 192, 256}) add_layer(cases, "square", side, side, side);
  add_layer(cases, "digits", 32, 784, 128);
  add_layer(cases, "digits, large batch", 256, 784, 10);
  return cases;
}

std::vector<float> numbers(std::int64_t count, std::uint64_t stream) {
  std::vector<float> made(static_cast<std::size_t>(count));
  const RandomStream random(7, stream);
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<float>(random.uniform(i)) - 0.5F;
  return made;
}

template <class Call>
double seconds_of(const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

void compare(const Case& one, int threads) {
  const MatmulSize& s = one.size;
  const auto a = numbers(s.m * s.k, 1), b = numbers(s.k * s.n, 2);
  std::vector<float> ours(static_cast<std::size_t>(s.m * s.n)), theirs(ours.size());
  const auto usable = kernels::matmul_kernels();
  const auto kernel =
      std::find_if(usable.begin(), usable.end(), [&](const auto& each) { return each.usable(s); });
  const PrimitivePtr primitive = primitive_library()->matmul({.threads = threads}, {.size = s});
  if (kernel == usable.end() || primitive == nullptr) return;
  const auto scratch = Buffer::allocate(
      std::max(kernel->scratch_bytes(s, threads), std::max<std::size_t>(primitive->scratch_bytes, 1)));
  const auto run_ours = [&] {
    kernel->run(
        s, {.a = a.data(), .b = b.data(), .c = ours.data(), .threads = threads, .scratch = scratch->data()});
  };
  std::byte* inputs[] = {reinterpret_cast<std::byte*>(const_cast<float*>(a.data())),
                         reinterpret_cast<std::byte*>(const_cast<float*>(b.data()))};
  std::byte* outputs[] = {reinterpret_cast<std::byte*>(theirs.data())};
  const auto run_theirs = [&] { primitive->run(inputs, outputs, scratch->data(), threads); };
  run_ours();
  run_theirs();
  for (std::size_t i = 0; i < ours.size(); ++i)
    if (std::abs(ours[i] - theirs[i]) > 1e-4 * std::sqrt(static_cast<double>(s.k))) {
      fmt::print("{}: WRONG at {}: {} and {}\n", one.what, i, ours[i], theirs[i]);
      return;
    }
  const double operations =
      2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  const int calls = static_cast<int>(std::clamp(2e8 / operations, 1.0, 2000.0));
  std::vector<double> mine, library;
  for (int round = 0; round < 15; ++round) {
    mine.push_back(seconds_of([&] {
                     for (int i = 0; i < calls; ++i) run_ours();
                   }) /
                   calls);
    library.push_back(seconds_of([&] {
                        for (int i = 0; i < calls; ++i) run_theirs();
                      }) /
                      calls);
  }
  fmt::print("| {} | {} x {} x {} | {} | {:.0f} | {:.0f} | {:.2f} |\n", one.what, s.m, s.n, s.k, kernel->name,
             operations / median(mine) / 1e9, operations / median(library) / 1e9,
             median(mine) / median(library));
}

}  // namespace

int main(int count, char** arguments) {
  const int threads = count > 1 ? std::atoi(arguments[1]) : 2;
  if (primitive_library() == nullptr) {
    fmt::print(stderr, "there is no oneDNN here\n");
    return 1;
  }
  fmt::print(
      "| product, {} threads | m x n x k | kernel | ours, GFLOP/s | oneDNN, GFLOP/s | ours / oneDNN, time |\n"
      "| --- | --- | --- | --- | --- | --- |\n",
      threads);
  for (const Case& one : all_cases()) compare(one, threads);
  return 0;
}
