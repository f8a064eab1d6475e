#include "muster/nn/attention.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "muster/nn/activations.h"
#include "muster/nn/arguments.h"
#include "muster/nn/cell_text.h"
#include "muster/nn/operators.h"
#include "muster/nn/ops.h"
#include "muster/nn/values.h"

namespace muster::nn {
namespace {

void require_share(const char* owner, double dropout) {
  if (!(dropout >= 0 && dropout < 1)) refuse_argument(owner, "dropout", "in [0, 1)", dropout).value();
}

std::int64_t checked_heads(std::int64_t embed_size, std::int64_t num_heads) {
  require_count("MultiHeadAttention", "embed_size", embed_size).value();
  require_count("MultiHeadAttention", "num_heads", num_heads).value();
  if (embed_size % num_heads != 0)
    throw Exception(
        Code::invalid_argument,
        fmt::format("MultiHeadAttention: num_heads {} must divide embed_size {}", num_heads, embed_size));
  return num_heads;
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(std::int64_t embed_size, std::int64_t num_heads,
                                       const MultiHeadAttentionOptions& options)
    : Cell("MultiHeadAttention"),
      embed_size_(embed_size),
      num_heads_(checked_heads(embed_size, num_heads)),
      options_(options),
      query_(add<Dense>("query", embed_size, embed_size, DenseOptions{.has_bias = options.has_bias})),
      key_(add<Dense>("key", options.key_size.value_or(embed_size), embed_size,
                      DenseOptions{.has_bias = options.has_bias})),
      value_(add<Dense>("value", options.value_size.value_or(embed_size), embed_size,
                        DenseOptions{.has_bias = options.has_bias})),
      out_(add<Dense>("out", embed_size, embed_size, DenseOptions{.has_bias = options.has_bias})) {
  require_share("MultiHeadAttention", options.dropout);
}

// (N, length, embed_size) as (N, num_heads, length, depth).
Value MultiHeadAttention::heads(const Value& x) const {
  const Shape& shape = x.shape();
  return transposed(ops::reshape(x, {shape[0], shape[1], num_heads_, embed_size_ / num_heads_}),
                    {0, 2, 1, 3});
}

Values MultiHeadAttention::construct(std::span<const Value> inputs) {
  const bool has_mask = inputs.size() == 2 || inputs.size() == 4;
  const bool is_to_itself = inputs.size() <= 2;
  if (inputs.empty() || inputs.size() > 4)
    throw Exception(
        Code::invalid_argument,
        fmt::format("{}: {} inputs do not fit: query, or query, key and value are needed, and a mask "
                    "may follow",
                    description(), inputs.size()));
  require_inputs(*this, inputs, inputs.size(), "query, key, value and a mask");
  const Value& query = inputs[0];
  const Value& key = is_to_itself ? query : inputs[1];
  const Value& value = is_to_itself ? query : inputs[2];
  for (const Value* x : {&query, &key, &value})
    if (x->shape().rank() != 3 || x->shape()[0] != query.shape()[0])
      throw Exception(Code::invalid_argument,
                      fmt::format("{}: input {} does not fit: (N, length, features) is needed, with one N",
                                  description(), muster::to_string(x->shape())));
  ops::AttentionOptions options{.dropout_p = training() ? options_.dropout : 0,
                                .is_causal = options_.is_causal};
  if (has_mask) options.mask = inputs.back();
  const Value attended = ops::scaled_dot_product_attention(
      heads(query_(query)), heads(key_(key)), heads(value_(value)), options, graph::default_context());
  const Value together = transposed(attended, {0, 2, 1, 3});
  return {out_(ops::reshape(together, {query.shape()[0], query.shape()[1], embed_size_}))};
}

std::string MultiHeadAttention::settings() const {
  return CellText()
      .add(embed_size_)
      .add(num_heads_)
      .add_unless("dropout", options_.dropout, 0)
      .add_unless("has_bias", options_.has_bias, true)
      .add_unless("is_causal", options_.is_causal, false)
      .add_unless("key_size", options_.key_size.value_or(embed_size_), embed_size_)
      .add_unless("value_size", options_.value_size.value_or(embed_size_), embed_size_)
      .take();
}

TransformerLayer::TransformerLayer(std::string class_name, std::int64_t embed_size, std::int64_t num_heads,
                                   std::int64_t feed_forward_size, const TransformerLayerOptions& options)
    : Cell(std::move(class_name)),
      embed_size_(embed_size),
      num_heads_(num_heads),
      feed_forward_size_(feed_forward_size),
      options_(options),
      linear1_(
          add<Dense>("linear1", embed_size, feed_forward_size,
                     DenseOptions{.activation = options.activation != nullptr ? options.activation
                                                                              : std::make_shared<ReLU>()})),
      linear2_(add<Dense>("linear2", feed_forward_size, embed_size)),
      dropout_(add<Dropout>("dropout", options.dropout)) {}

MultiHeadAttention& TransformerLayer::add_attention(const char* name, bool is_causal) {
  return add<MultiHeadAttention>(
      name, embed_size_, num_heads_,
      MultiHeadAttentionOptions{.dropout = options_.dropout, .is_causal = is_causal});
}

TransformerLayer::Residual TransformerLayer::add_residual(int number) {
  return {add<LayerNorm>(fmt::format("norm{}", number), Shape{embed_size_},
                         LayerNormOptions{.epsilon = options_.epsilon}),
          add<Dropout>(fmt::format("dropout{}", number), options_.dropout)};
}

Value TransformerLayer::added(const Value& x, const Residual& residual,
                              const std::function<Value(const Value&)>& part) const {
  if (options_.norm_first) return x + residual.dropout(part(residual.norm(x)));
  return residual.norm(x + residual.dropout(part(x)));
}

Value TransformerLayer::feed_forward(const Value& x) { return linear2_(dropout_(linear1_(x))); }

void TransformerLayer::require_features(std::span<const Value> inputs, std::size_t count,
                                        const char* names) const {
  require_inputs(*this, inputs, inputs.size() == count + 1 ? count + 1 : count, names);
  for (const Value& x : inputs.first(count))
    if (x.shape().rank() != 3 || x.shape()[2] != embed_size_)
      throw Exception(Code::invalid_argument,
                      fmt::format("{}: input {} does not fit: (N, length, {}) is needed", description(),
                                  muster::to_string(x.shape()), embed_size_));
}

std::string TransformerLayer::settings() const {
  return CellText()
      .add(embed_size_)
      .add(num_heads_)
      .add(feed_forward_size_)
      .add_unless("dropout", options_.dropout, 0.1)
      .add_unless("norm_first", options_.norm_first, false)
      .add_unless("is_causal", options_.is_causal, false)
      .take();
}

TransformerEncoderLayer::TransformerEncoderLayer(std::int64_t embed_size, std::int64_t num_heads,
                                                 std::int64_t feed_forward_size,
                                                 const TransformerLayerOptions& options)
    : TransformerLayer("TransformerEncoderLayer", embed_size, num_heads, feed_forward_size, options),
      self_attention_(add_attention("self_attention", options.is_causal)),
      residual1_(add_residual(1)),
      residual2_(add_residual(2)) {}

Values TransformerEncoderLayer::construct(std::span<const Value> inputs) {
  require_features(inputs, 1, "x, and a mask that may follow");
  const Value x = added(inputs[0], residual1_, [&](const Value& given) {
    return inputs.size() > 1 ? self_attention_(given, inputs[1]) : self_attention_(given);
  });
  return {added(x, residual2_, [&](const Value& given) { return feed_forward(given); })};
}

TransformerDecoderLayer::TransformerDecoderLayer(std::int64_t embed_size, std::int64_t num_heads,
                                                 std::int64_t feed_forward_size,
                                                 const TransformerLayerOptions& options)
    : TransformerLayer("TransformerDecoderLayer", embed_size, num_heads, feed_forward_size, options),
      self_attention_(add_attention("self_attention", true)),
      cross_attention_(add_attention("cross_attention", false)),
      residual1_(add_residual(1)),
      residual2_(add_residual(2)),
      residual3_(add_residual(3)) {}

Values TransformerDecoderLayer::construct(std::span<const Value> inputs) {
  require_features(inputs, 2, "x and memory, and a mask that may follow");
  const Value& memory = inputs[1];
  Value x = added(inputs[0], residual1_, [&](const Value& given) { return self_attention_(given); });
  x = added(x, residual2_, [&](const Value& given) {
    return inputs.size() > 2 ? cross_attention_(given, memory, memory, inputs[2])
                             : cross_attention_(given, memory, memory);
  });
  return {added(x, residual3_, [&](const Value& given) { return feed_forward(given); })};
}

}  // namespace muster::nn
