// Recurrent layers over sequences: RNN, LSTM and GRU.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/nn/cell.h"

namespace muster::nn {

struct RecurrentOptions {
  std::int64_t num_layers = 1;
  bool has_bias = true;
  bool batch_first = false;    // sequences are (N, T, features) instead of (T, N, features)
  double dropout = 0;          // of what one layer gives the next, while the cell trains; in [0, 1)
  bool bidirectional = false;  // a second set of weights reads the sequence from its end
};

// Layers that go through a sequence step by step. Inputs: x (T, N, input_size); then, or zeros, the states
// before the first step, each (layers x directions, N, hidden_size); then, or T for all, the lengths (N,),
// whole numbers, of the samples: behind its length a sample's outputs are 0 and its state stays. Outputs:
// those of the last layer (T, N, directions x hidden_size), then the states behind the last step.
//
// Parameters of layer i, also with the ending `_reverse`: `weight_ih_l<i>` (gates x hidden_size, features),
// `weight_hh_l<i>` (gates x hidden_size, hidden_size), `bias_ih_l<i>` and `bias_hh_l<i>` (gates x
// hidden_size), all uniform in 1 / sqrt(hidden_size) at first.
class Recurrent : public Cell {
 public:
  Values construct(std::span<const Value> inputs) override;
  std::string settings() const override;

 protected:
  // One step: what the input gives and what the state gives, both (N, gates x hidden_size), and the states
  // before it; the states behind it, the output first.
  using Step = Values (*)(const Value& given, const Value& carried, const Values& states);
  struct Kind {
    std::int64_t gates = 1;
    std::size_t states = 1;
    Step step = nullptr;
  };
  Recurrent(std::string class_name, Kind kind, std::int64_t input_size, std::int64_t hidden_size,
            const RecurrentOptions& options);

 private:
  struct Weights {
    ParameterPtr weight_ih, weight_hh, bias_ih, bias_hh;
  };
  struct Pass {  // of one layer in one direction
    Value outputs;
    Values states;
  };
  std::int64_t directions() const { return options_.bidirectional ? 2 : 1; }
  void make_weights();
  void make(Weights& weights, std::int64_t features, const std::string& ending);
  Values begin(const Value& x, std::span<const Value> given) const;
  Pass run(const Weights& weights, const Value& x, Values states, const Value& lengths,
           bool is_reverse) const;

  Kind kind_;
  std::int64_t input_size_;
  std::int64_t hidden_size_;
  RecurrentOptions options_;
  std::vector<Weights> weights_;  // layer by layer, forwards before backwards; never resized
};

enum class RecurrentActivation { tanh, relu };

// h' = tanh(x weight_ih^T + bias_ih + h weight_hh^T + bias_hh), or relu of it. Inputs x[, h][, lengths],
// outputs y, h. Elman, Finding structure in time, Cognitive Science 1990.
class RNN : public Recurrent {
 public:
  RNN(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options = {},
      RecurrentActivation activation = RecurrentActivation::tanh);
};

// Long short-term memory; its gates are in, forget, cell and out. Inputs x[, h, c][, lengths], outputs y, h,
// c. Hochreiter and Schmidhuber, Neural Computation 1997.
class LSTM : public Recurrent {
 public:
  LSTM(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options = {});
};

// Gated recurrent unit; its gates are reset, update and new. Inputs x[, h][, lengths], outputs y, h. Cho et
// al., EMNLP 2014.
class GRU : public Recurrent {
 public:
  GRU(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options = {});
};

}  // namespace muster::nn
