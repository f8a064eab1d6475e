// Embedding: a vector for each number of a vocabulary.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "muster/graph/served.h"
#include "muster/nn/cell.h"
#include "muster/nn/initializers.h"

namespace muster::nn {

struct EmbeddingOptions {
  std::optional<Initializer> embedding_table = {};  // default normal()
  std::optional<std::int64_t> padding_idx = {};     // a number whose vector begins with zeros
  // Whether parameter servers may keep the table's rows instead of the workers (train::put_on_servers): then
  // it is read by this cell alone.
  bool is_table = false;
  graph::OutOfRange out_of_range = graph::OutOfRange::error;
};

// Numbers (...), int32 or int64 in [0, vocab_size), to (..., embedding_size). `embedding_table` is
// (vocab_size, embedding_size). A table with the vocabulary 0 takes any number from 0 on: only parameter
// servers have such.
class Embedding : public Cell {
 public:
  Embedding(std::int64_t vocab_size, std::int64_t embedding_size, EmbeddingOptions options = {});
  Values construct(std::span<const Value> inputs) override;
  std::string settings() const override;

  const ParameterPtr& embedding_table() const { return table_; }

 private:
  ParameterPtr table_;
  graph::OutOfRange out_of_range_;
};

}  // namespace muster::nn
