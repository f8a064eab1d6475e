#include "muster/nn/embedding.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <utility>

#include "muster/nn/arguments.h"
#include "muster/nn/cell_text.h"
#include "muster/nn/values.h"

namespace muster::nn {
namespace {

// `fill`, then zeros in one row.
Initializer with_zero_row(Initializer fill, std::int64_t row) {
  return [fill = std::move(fill), row](const Tensor& out, const RandomStream& stream) {
    fill(out, stream);
    const std::size_t row_bytes = out.size_bytes() / static_cast<std::size_t>(out.shape()[0]);
    std::memset(out.bytes() + static_cast<std::size_t>(row) * row_bytes, 0, row_bytes);
  };
}

}  // namespace

Embedding::Embedding(std::int64_t vocab_size, std::int64_t embedding_size, EmbeddingOptions options)
    : Cell("Embedding"), out_of_range_(options.out_of_range) {
  if (!options.is_table || vocab_size != 0) require_count("Embedding", "vocab_size", vocab_size).value();
  require_count("Embedding", "embedding_size", embedding_size).value();
  if (options.is_table && vocab_size == 0 && options.padding_idx)
    throw Exception(Code::invalid_argument,
                    "Embedding: a table that takes any number has no padding_idx: give it a vocabulary, or "
                    "multiply what it gives by a mask");
  if (options.padding_idx && (*options.padding_idx < 0 || *options.padding_idx >= vocab_size))
    refuse_argument("Embedding", "padding_idx", fmt::format("in [0, {})", vocab_size), *options.padding_idx)
        .value();
  Initializer fill = options.embedding_table ? *options.embedding_table : normal();
  if (options.padding_idx) fill = with_zero_row(std::move(fill), *options.padding_idx);
  table_ = std::make_shared<graph::Parameter>(
      "embedding_table", graph::TensorType{DType::float32, {vocab_size, embedding_size}}, std::move(fill));
  if (options.is_table) table_->mark_table();
  keep_param("embedding_table", table_);
}

Values Embedding::construct(std::span<const Value> inputs) {
  require_inputs(*this, inputs, 1, "one tensor of numbers");
  return graph::look_up(table_, inputs[0], out_of_range_);
}

std::string Embedding::settings() const {
  const Shape& shape = table_->served_rows() ? table_->served_rows()->shape : table_->shape();
  return CellText().add(shape[0]).add(shape[1]).take();
}

}  // namespace muster::nn
