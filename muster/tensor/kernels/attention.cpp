#include "muster/tensor/kernels/attention.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "muster/tensor/cpu.h"
#include "muster/tensor/kernels/bfloat16_loops.h"
#include "muster/tensor/parallel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace muster::kernels {
namespace {

// One query of one head.
struct Query {
  std::int64_t sample = 0;
  std::int64_t head = 0;
  std::int64_t index = 0;
};

// Where the mask's row for a query begins.
std::int64_t mask_row(const AttentionSize& size, const Query& query) {
  const auto [sample_step, head_step, query_step, key_step] = size.mask_steps;
  return query.sample * sample_step + query.head * head_step + query.index * query_step;
}

// Whether a query sees nothing: no product is above minus infinity, and none is NaN.
template <class T>
bool is_blind(const AttentionSize& size, const T* products, std::int64_t seen) {
  return size.blind_is_zero && std::all_of(products, products + seen, [](T each) {
           return each == -std::numeric_limits<T>::infinity();
         });
}

// To the products of a query with the first `seen` keys the mask is added, or where it hides a key they
// become the fill, or minus infinity. False: no key counts.
template <class T, class Element>
bool apply_mask(const AttentionSize& size, const AttentionInputs<Element>& in, const Query& query,
                std::int64_t seen, T* products) {
  const std::int64_t at = mask_row(size, query), key_step = size.mask_steps[3];
  if (in.added != nullptr)
    for (std::int64_t j = 0; j < seen; ++j) products[j] += static_cast<T>(in.added[at + j * key_step]);
  if (in.added_float32 != nullptr)
    for (std::int64_t j = 0; j < seen; ++j)
      products[j] += static_cast<T>(in.added_float32[at + j * key_step]);
  if (in.visible == nullptr) return seen > 0;
  const T hidden = size.fill ? static_cast<T>(*size.fill) : -std::numeric_limits<T>::infinity();
  bool sees_any = false;
  for (std::int64_t j = 0; j < seen; ++j) {
    const bool sees = in.visible[at + j * key_step] != size.hides_where;
    sees_any = sees_any || sees;
    if (!sees) products[j] = hidden;
  }
  return sees_any || (size.fill && seen > 0);
}

// No gradient flows to products that the fill took the place of.
template <class T, class Element>
void clear_filled(const AttentionSize& size, const AttentionInputs<Element>& in, const Query& query,
                  std::int64_t seen, T* ds) {
  if (!size.fill || in.visible == nullptr) return;
  const std::int64_t at = mask_row(size, query), key_step = size.mask_steps[3];
  for (std::int64_t j = 0; j < seen; ++j)
    if (in.visible[at + j * key_step] == size.hides_where) ds[j] = T{0};
}

// Which of the first `seen` products the fill did not take the place of.
template <class Element>
void find_unfilled(const AttentionSize& size, const AttentionInputs<Element>& in, const Query& query,
                   std::int64_t seen, bool* unfilled) {
  const std::int64_t at = mask_row(size, query), key_step = size.mask_steps[3];
  for (std::int64_t j = 0; j < seen; ++j) unfilled[j] = in.visible[at + j * key_step] != size.hides_where;
}

template <class T>
bool has_mask(const AttentionInputs<T>& in) {
  return in.added != nullptr || in.added_float32 != nullptr || in.visible != nullptr;
}

// Which of the first `seen` keys a query keeps in dropout.
template <class T>
void draw_kept(const AttentionSize& size, const AttentionInputs<T>& in, const Query& query, std::int64_t seen,
               bool* kept) {
  const std::int64_t begin = (query.head * size.queries + query.index) * size.keys;
  const auto sample = static_cast<std::uint64_t>(query.sample);
  draw_dropout_mask(in.draw, in.draw.first_sample + sample * in.draw.sample_stride, size.keep_prob, begin,
                    begin + seen, kept);
}

// ---- The definition ---------------------------------------------------------------------------------------

// How much each key counts for one query, before and after dropout.
template <class T>
struct Weights {
  std::vector<T> p;
  std::vector<T> dropped;
  std::vector<T> growth;  // dropped = p growth
};

// As the op dropout: what is dropped is 0, also where it was no number.
template <class T>
T grown(T value, T growth) {
  return growth == T{0} ? T{0} : value * growth;
}

template <class T>
T dot(const T* a, const T* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return static_cast<T>(sum);
}

template <class T>
Weights<T> weights_of(const AttentionSize& size, const AttentionInputs<T>& in, const Query& query, const T* q,
                      const T* k) {
  const std::int64_t seen = size.seen_by(query.index);
  const auto count = static_cast<std::size_t>(seen);
  const std::int64_t key_row = size.k_steps().row;
  Weights<T> made{.p = std::vector<T>(count), .dropped = {}, .growth = std::vector<T>(count, T{1})};
  for (std::int64_t j = 0; j < seen; ++j)
    made.p[static_cast<std::size_t>(j)] = static_cast<T>(size.scale) * dot(q, k + j * key_row, size.depth);
  if (apply_mask(size, in, query, seen, made.p.data()) && !is_blind(size, made.p.data(), seen)) {
    const T top = *std::max_element(made.p.begin(), made.p.end());
    double sum = 0;
    for (T& each : made.p) sum += static_cast<double>(each = std::exp(each - top));
    for (T& each : made.p) each *= static_cast<T>(1 / sum);
  } else {
    std::fill(made.p.begin(), made.p.end(), T{0});
  }
  if (size.keep_prob < 1) {
    const auto kept = std::make_unique<bool[]>(count);
    draw_kept(size, in, query, seen, kept.get());
    for (std::size_t j = 0; j < count; ++j)
      made.growth[j] = kept[j] ? dropout_growth<T>(size.keep_prob) : T{0};
  }
  for (std::size_t j = 0; j < count; ++j) made.dropped.push_back(grown(made.p[j], made.growth[j]));
  return made;
}

// Where the parts of a query lie: its row of q and y, and the first key of its head in k and v.
struct Places {
  std::int64_t q = 0;
  std::int64_t k = 0;
  std::int64_t v = 0;
  std::int64_t y = 0;
};

Places places_of(const AttentionSize& size, const Query& query) {
  const std::int64_t key_head = query.head / (size.heads / size.key_heads);
  return {.q = size.q_steps().at(query.sample, query.head, query.index),
          .k = size.k_steps().at(query.sample, key_head, 0),
          .v = size.v_steps().at(query.sample, key_head, 0),
          .y = size.y_steps().at(query.sample, query.head, query.index)};
}

template <class Body>
void for_each_query(const AttentionSize& size, const Body& body) {
  for (std::int64_t sample = 0; sample < size.samples; ++sample)
    for (std::int64_t head = 0; head < size.heads; ++head)
      for (std::int64_t index = 0; index < size.queries; ++index) body(Query{sample, head, index});
}

}  // namespace

template <class T>
void attention_reference(const AttentionSize& size, const AttentionInputs<T>& in, T* y) {
  for_each_query(size, [&](const Query& query) {
    const Places at = places_of(size, query);
    const Weights<T> weights = weights_of(size, in, query, in.q + at.q, in.k + at.k);
    const std::int64_t value_row = size.v_steps().row;
    for (std::int64_t c = 0; c < size.value_depth; ++c) {
      double sum = 0;
      for (std::size_t j = 0; j < weights.dropped.size(); ++j)
        sum += static_cast<double>(weights.dropped[j]) *
               static_cast<double>(in.v[at.v + static_cast<std::int64_t>(j) * value_row + c]);
      y[at.y + c] = static_cast<T>(sum);
    }
  });
}

// With p = softmax(s), s = scale q k^T + mask, w = p growth and y = w v: dv = w^T dy, dp = growth (dy v^T),
// ds = p (dp - sum(dp p)), dq = scale ds k and dk = scale ds^T q.
template <class T>
void attention_grad_reference(const AttentionSize& size, const AttentionInputs<T>& in,
                              const AttentionGradients<T>& gradients) {
  const std::int64_t key_rows = size.samples * size.key_heads * size.keys;
  const std::int64_t k_row = size.k_steps().row, v_row = size.v_steps().row;
  std::fill_n(gradients.dk, key_rows * size.depth, T{0});
  std::fill_n(gradients.dv, key_rows * size.value_depth, T{0});
  for_each_query(size, [&](const Query& query) {
    const Places at = places_of(size, query);
    const T* q = in.q + at.q;
    const T* dy = gradients.dy + at.y;
    T* dq = gradients.dq + at.q;
    std::fill_n(dq, size.depth, T{0});
    const Weights<T> weights = weights_of(size, in, query, q, in.k + at.k);
    std::vector<T> dp(weights.p.size());
    double along = 0;
    for (std::size_t j = 0; j < dp.size(); ++j) {
      const std::int64_t value = at.v + static_cast<std::int64_t>(j) * v_row;
      dp[j] = grown(dot(dy, in.v + value, size.value_depth), weights.growth[j]);
      along += static_cast<double>(dp[j]) * static_cast<double>(weights.p[j]);
    }
    std::vector<T> ds(dp.size());
    for (std::size_t j = 0; j < dp.size(); ++j)
      ds[j] = static_cast<T>(size.scale) * weights.p[j] * (dp[j] - static_cast<T>(along));
    clear_filled(size, in, query, static_cast<std::int64_t>(ds.size()), ds.data());
    for (std::size_t j = 0; j < dp.size(); ++j) {
      const std::int64_t key = at.k + static_cast<std::int64_t>(j) * k_row;
      const std::int64_t value = at.v + static_cast<std::int64_t>(j) * v_row;
      for (std::int64_t c = 0; c < size.depth; ++c) {
        dq[c] += ds[j] * in.k[key + c];
        gradients.dk[key + c] += ds[j] * q[c];
      }
      for (std::int64_t c = 0; c < size.value_depth; ++c)
        gradients.dv[value + c] += weights.dropped[j] * dy[c];
    }
  });
}

template void attention_reference(const AttentionSize&, const AttentionInputs<float>&, float*);
template void attention_reference(const AttentionSize&, const AttentionInputs<double>&, double*);
template void attention_grad_reference(const AttentionSize&, const AttentionInputs<float>&,
                                       const AttentionGradients<float>&);
template void attention_grad_reference(const AttentionSize&, const AttentionInputs<double>&,
                                       const AttentionGradients<double>&);

// ---- Fast -------------------------------------------------------------------------------------------------

#if defined(__x86_64__)
namespace {

int threads_for(const AttentionSize& size, int threads) {
  return threads_for_operations(
      size.samples * size.heads * size.queries * size.keys * (size.depth + size.value_depth), threads);
}

// Memory of one thread, in pieces. Without memory it counts how much is needed.
struct Pieces {
  float* begin = nullptr;
  std::int64_t used = 0;

  float* take(std::int64_t floats) {
    float* const taken = begin == nullptr ? nullptr : begin + used;
    used += (floats + 15) / 16 * 16;
    return taken;
  }
  // Elements no larger than a float.
  template <class T>
  T* take_as(std::int64_t count) {
    static_assert(sizeof(T) <= sizeof(float));
    return reinterpret_cast<T*>(take((count * static_cast<std::int64_t>(sizeof(T)) + 3) / 4));
  }
};

// Where each row of the mask ends for the work that it makes: behind its last key that counts, or behind all
// where none does. Found once in a run, also where the mask is a tensor that the script fills.
class MaskEnds {
 public:
  template <class T>
  MaskEnds(const AttentionSize& size, const AttentionInputs<T>& in, Pieces& pieces)
      : size_(size),
        queries_(size.mask_steps[2] == 0 ? 1 : size.queries),
        heads_(size.mask_steps[1] == 0 ? 1 : size.heads),
        samples_(size.mask_steps[0] == 0 ? 1 : size.samples),
        ends_(reinterpret_cast<std::int32_t*>(pieces.take(samples_ * heads_ * queries_))),
        has_ends_(has_mask(in) && size.mask_steps[3] != 0) {}

  template <class T>
  void find(const AttentionInputs<T>& in, int threads) {
    if (!has_ends_) return;
    parallel_parts(samples_ * heads_ * queries_, 64, threads,
                   [&](std::int64_t, std::int64_t begin, std::int64_t end) {
                     for (std::int64_t row = begin; row < end; ++row)
                       ends_[row] = static_cast<std::int32_t>(
                           end_of(in, {row / queries_ / heads_, row / queries_ % heads_, row % queries_}));
                   });
  }

  // The keys that may count for `query`.
  std::int64_t seen_by(const Query& query) const {
    const std::int64_t seen = size_.seen_by(query.index);
    if (!has_ends_) return seen;
    const std::int64_t sample = samples_ == 1 ? 0 : query.sample, head = heads_ == 1 ? 0 : query.head;
    const std::int64_t index = queries_ == 1 ? 0 : query.index;
    return std::min<std::int64_t>(seen, ends_[(sample * heads_ + head) * queries_ + index]);
  }

 private:
  // What a key gets, added or filled in, whose weight is zero beside one that counts: -1e9, also rounded to
  // bfloat16. exp(-8e8) is 0 in float.
  static constexpr float hidden = -9.9e8F, counting = -1e8F;

  template <class T>
  std::int64_t end_of(const AttentionInputs<T>& in, const Query& query) const {
    const std::int64_t at = mask_row(size_, query), step = size_.mask_steps[3];
    const std::int64_t all = size_.keys;
    std::int64_t end = all;
    const auto added = [&](std::int64_t key) {
      return in.added != nullptr ? static_cast<float>(in.added[at + key * step])
                                 : in.added_float32[at + key * step];
    };
    if (in.visible == nullptr) {
      while (end > 0 && added(end - 1) <= hidden) --end;
      return end > 0 && added(end - 1) >= counting ? end : all;
    }
    if (size_.fill && !(*size_.fill <= hidden)) return all;
    while (end > 0 && in.visible[at + (end - 1) * step] == size_.hides_where) --end;
    return end > 0 ? end : all;
  }

  const AttentionSize& size_;
  std::int64_t queries_;
  std::int64_t heads_;
  std::int64_t samples_;
  std::int32_t* ends_;
  bool has_ends_;
};

namespace avx512 {
#define MUSTER_TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")))
#define MUSTER_LANES 16
#define MUSTER_ROWS 14
#define MUSTER_BFLOAT16 0
#define MUSTER_AMX 0
#include "muster/tensor/kernels/attention_simd.inc"
}  // namespace avx512

namespace avx512_bf16 {
#define MUSTER_TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512bf16,avx2,fma")))
#define MUSTER_LANES 16
#define MUSTER_ROWS 14
#define MUSTER_BFLOAT16 1
#define MUSTER_AMX 0
#include "muster/tensor/kernels/attention_simd.inc"
}  // namespace avx512_bf16

// AMX's own instructions are written out in attention_tiles.inc.
namespace amx_bf16 {
#define MUSTER_TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512bf16,avx2,fma")))
#define MUSTER_LANES 16
#define MUSTER_ROWS 16
#define MUSTER_BFLOAT16 1
#define MUSTER_AMX 1
#include "muster/tensor/kernels/attention_simd.inc"
}  // namespace amx_bf16

namespace avx2 {
#define MUSTER_TARGET __attribute__((target("avx2,fma")))
#define MUSTER_LANES 8
#define MUSTER_ROWS 6
#define MUSTER_BFLOAT16 0
#define MUSTER_AMX 0
#include "muster/tensor/kernels/attention_simd.inc"
}  // namespace avx2

constexpr std::array<AttentionKernel, 2> list{avx512::table(Isa::avx512, "avx512"),
                                              avx2::table(Isa::avx2, "avx2")};

constexpr std::array<AttentionKernelOf<bfloat16>, 2> bfloat16_list{
    amx_bf16::table(Isa::avx512, "amx_bf16"), avx512_bf16::table(Isa::avx512, "avx512_bf16")};

}  // namespace

std::span<const AttentionKernelOf<bfloat16>> bfloat16_attention_kernels() {
  if (!this_processor().avx512_bf16) return {};
  return std::span(bfloat16_list).subspan(may_use_tiles() ? 0 : 1);
}

std::span<const AttentionKernel> attention_kernels() {
  return usable_here(std::span<const AttentionKernel>(list));
}
#else
std::span<const AttentionKernelOf<bfloat16>> bfloat16_attention_kernels() { return {}; }
std::span<const AttentionKernel> attention_kernels() { return {}; }
#endif

}  // namespace muster::kernels
