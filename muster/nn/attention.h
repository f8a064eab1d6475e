// Attention, and the layers of Transformers. Vaswani et al., Attention is all you need, NeurIPS 2017.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "muster/nn/cell.h"
#include "muster/nn/dense.h"
#include "muster/nn/dropout.h"
#include "muster/nn/normalization.h"

namespace muster::nn {

struct MultiHeadAttentionOptions {
  double dropout = 0;                         // of the attention's weights, while the cell trains; in [0, 1)
  bool has_bias = true;                       // of the four projections
  bool is_causal = false;                     // query i sees keys 0 to i
  std::optional<std::int64_t> key_size = {};  // features of keys; embed_size unless given
  std::optional<std::int64_t> value_size = {};  // and of values
};

// softmax(q k^T / sqrt(depth)) v for each of num_heads equal parts of the features, as one op that does not
// keep the products (ops::scaled_dot_product_attention), between Dense layers `query`, `key`, `value` and
// `out`. Inputs: query (N, L, embed_size), and key (N, S, key_size) and value (N, S, value_size), or these
// are query as well; then a mask that broadcasts to (N, num_heads, L, S): bool, true where a query sees a
// key, or floats that are added to the products. Output (N, L, embed_size).
class MultiHeadAttention : public Cell {
 public:
  MultiHeadAttention(std::int64_t embed_size, std::int64_t num_heads,
                     const MultiHeadAttentionOptions& options = {});
  Values construct(std::span<const Value> inputs) override;
  std::string settings() const override;

 private:
  Value heads(const Value& x) const;

  std::int64_t embed_size_;
  std::int64_t num_heads_;
  MultiHeadAttentionOptions options_;
  Dense& query_;
  Dense& key_;
  Dense& value_;
  Dense& out_;
};

struct TransformerLayerOptions {
  double dropout = 0.1;     // of what each part adds, and of the attention's weights; in [0, 1)
  CellPtr activation = {};  // between the Dense layers; default ReLU
  double epsilon = 1e-5;    // of the LayerNorms
  bool norm_first = false;  // x + part(norm(x)) instead of norm(x + part(x))
  bool is_causal = false;   // of an encoder's layer; a decoder's attention to itself always is
};

// What the layers of an encoder and of a decoder share: parts whose results are added to what they are given,
// with a LayerNorm each.
class TransformerLayer : public Cell {
 public:
  std::string settings() const override;

 protected:
  // What is around a part of the layer.
  struct Residual {
    LayerNorm& norm;
    Dropout& dropout;
  };
  TransformerLayer(std::string class_name, std::int64_t embed_size, std::int64_t num_heads,
                   std::int64_t feed_forward_size, const TransformerLayerOptions& options);
  MultiHeadAttention& add_attention(const char* name, bool is_causal);
  Residual add_residual(int number);
  void require_features(std::span<const Value> inputs, std::size_t count, const char* names) const;
  Value feed_forward(const Value& x);
  // x plus what the part makes of it.
  Value added(const Value& x, const Residual& residual, const std::function<Value(const Value&)>& part) const;

 private:
  std::int64_t embed_size_;
  std::int64_t num_heads_;
  std::int64_t feed_forward_size_;
  TransformerLayerOptions options_;
  Dense& linear1_;
  Dense& linear2_;
  Dropout& dropout_;
};

// Attention of a sequence to itself, then two Dense layers, `linear1` to feed_forward_size and `linear2`
// back. Inputs: x (N, L, embed_size)[, a mask as MultiHeadAttention takes it]. Output (N, L, embed_size).
class TransformerEncoderLayer : public TransformerLayer {
 public:
  TransformerEncoderLayer(std::int64_t embed_size, std::int64_t num_heads,
                          std::int64_t feed_forward_size = 2048, const TransformerLayerOptions& options = {});
  Values construct(std::span<const Value> inputs) override;

 private:
  MultiHeadAttention& self_attention_;
  Residual residual1_, residual2_;
};

// Causal attention of a sequence to itself, attention to `memory`, what an encoder gave, then two Dense
// layers. Inputs: x (N, L, embed_size), memory (N, S, embed_size)[, a mask of the memory]. Output (N, L,
// embed_size).
class TransformerDecoderLayer : public TransformerLayer {
 public:
  TransformerDecoderLayer(std::int64_t embed_size, std::int64_t num_heads,
                          std::int64_t feed_forward_size = 2048, const TransformerLayerOptions& options = {});
  Values construct(std::span<const Value> inputs) override;

 private:
  MultiHeadAttention& self_attention_;
  MultiHeadAttention& cross_attention_;
  Residual residual1_, residual2_, residual3_;
};

}  // namespace muster::nn
