// Attention: softmax(scale q k^T + mask) v, in memory that is linear in the number of keys.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "muster/tensor/cpu.h"
#include "muster/tensor/kernels/dropout.h"

namespace muster::kernels {

// The order of axes: (samples, heads, rows, depth), or (samples, rows, heads, depth), as a projection leaves
// them.
enum class AttentionLayout { heads_first, rows_first };

// How far it is from one sample, head and row to the next.
struct AttentionSteps {
  std::int64_t sample = 0;
  std::int64_t head = 0;
  std::int64_t row = 0;

  std::int64_t at(std::int64_t sample_index, std::int64_t head_index, std::int64_t row_index) const {
    return sample_index * sample + head_index * head + row_index * row;
  }
};

// q (samples, heads, queries, depth), k (samples, key_heads, keys, depth), v (samples, key_heads, keys,
// value_depth) and y (samples, heads, queries, value_depth), or with rows before heads. heads / key_heads
// heads in a row share their keys and values.
struct AttentionSize {
  std::int64_t samples = 0;
  std::int64_t heads = 0;
  std::int64_t key_heads = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t depth = 0;
  std::int64_t value_depth = 0;
  double scale = 1;
  bool is_causal = false;  // query i sees keys 0 to i
  double keep_prob = 1;    // of dropout, between the softmax and v
  std::array<std::int64_t, 4>
      mask_steps{};  // from sample, head, query and key to the next; 0: it is repeated
  AttentionLayout layout = AttentionLayout::heads_first;
  bool hides_where = false;         // the truth value of a bool mask where a query does not see a key
  std::optional<double> fill = {};  // what a product is there; without it the key does not count at all
  bool blind_is_zero = false;  // a query whose masked products are all minus infinity gets zeros, not NaN

  // The keys that query `i` may see, which are the first ones.
  std::int64_t seen_by(std::int64_t i) const { return is_causal && i < keys ? i + 1 : keys; }

  AttentionSteps q_steps() const { return steps(heads, queries, depth); }
  AttentionSteps k_steps() const { return steps(key_heads, keys, depth); }
  AttentionSteps v_steps() const { return steps(key_heads, keys, value_depth); }
  AttentionSteps y_steps() const { return steps(heads, queries, value_depth); }

 private:
  AttentionSteps steps(std::int64_t of_heads, std::int64_t rows, std::int64_t width) const {
    if (layout == AttentionLayout::rows_first) return {rows * of_heads * width, width, of_heads * width};
    return {of_heads * rows * width, rows * width, width};
  }
};

template <class T>
struct AttentionInputs {
  const T* q = nullptr;
  const T* k = nullptr;
  const T* v = nullptr;
  const T* added = nullptr;              // the mask, added to the scaled products
  const float* added_float32 = nullptr;  // likewise, of a narrower T
  const bool* visible = nullptr;         // the mask, `hides_where` where a query does not see a key
  DropoutDraw draw = {};                 // element (head, query, key) of each sample
};

template <class T>
struct AttentionGradients {
  const T* dy = nullptr;
  T* dq = nullptr;
  T* dk = nullptr;
  T* dv = nullptr;
};

// The definition; float or double. A query that `visible` lets see no key gets zeros; where `added` or `fill`
// is minus infinity for all keys, NaN, as softmax gives, or zeros with `blind_is_zero`.
template <class T>
void attention_reference(const AttentionSize& size, const AttentionInputs<T>& in, T* y);
template <class T>
void attention_grad_reference(const AttentionSize& size, const AttentionInputs<T>& in,
                              const AttentionGradients<T>& gradients);

// Products of some queries with all keys at a time, so that they stay in the cache: for the gradient they are
// computed again (Dao et al., FlashAttention, arXiv 2205.14135, without its running softmax: rows are whole).
// Keys at the end of a row of the mask that cannot count are left out, such as the future: those that a bool
// mask hides, or that get -9.9e8 or less where another one gets -1e8 or more. Threads never change a bit.
template <class T>
struct AttentionKernelOf {
  Isa isa = Isa::none;
  std::string_view name;
  std::size_t (*scratch_bytes)(const AttentionSize& size, int threads);
  void (*run)(const AttentionSize& size, const AttentionInputs<T>& in, T* y, std::byte* scratch, int threads);
  std::size_t (*grad_scratch_bytes)(const AttentionSize& size, int threads);
  void (*run_grad)(const AttentionSize& size, const AttentionInputs<T>& in,
                   const AttentionGradients<T>& gradients, std::byte* scratch, int threads);
};
using AttentionKernel = AttentionKernelOf<float>;

// Fast ones, best first; empty where the processor has none. The reference is not among them.
std::span<const AttentionKernel> attention_kernels();
// Of bfloat16: weights and their gradients are rounded to it before products, which are summed in float32, as
// is the softmax. Empty without AVX512_BF16; then callers widen.
std::span<const AttentionKernelOf<bfloat16>> bfloat16_attention_kernels();

}  // namespace muster::kernels
