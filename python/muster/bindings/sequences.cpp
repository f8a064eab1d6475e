// Cells over sequences: recurrent layers, attention, the layers of Transformers.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <fmt/format.h>

#include <optional>
#include <string>

#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/cell.h"
#include "python/muster/bindings/cell_arguments.h"

namespace muster::python {
namespace {

template <class Made, class... More>
void make_recurrent(nb::pointer_and_handle<Made> self, std::int64_t input_size, std::int64_t hidden_size,
                    std::int64_t num_layers, bool has_bias, bool batch_first, double dropout,
                    bool bidirectional, const More&... more) {
  make_cell(self, input_size, hidden_size,
            nn::RecurrentOptions{.num_layers = num_layers,
                                 .has_bias = has_bias,
                                 .batch_first = batch_first,
                                 .dropout = dropout,
                                 .bidirectional = bidirectional},
            more...);
}

void init_rnn(nb::pointer_and_handle<nn::RNN> self, std::int64_t input_size, std::int64_t hidden_size,
              std::int64_t num_layers, bool has_bias, bool batch_first, double dropout, bool bidirectional,
              const std::string& activation) {
  if (activation != "tanh" && activation != "relu")
    throw nb::value_error(fmt::format("RNN: activation is 'tanh' or 'relu', not '{}'", activation).c_str());
  make_recurrent(self, input_size, hidden_size, num_layers, has_bias, batch_first, dropout, bidirectional,
                 activation == "relu" ? nn::RecurrentActivation::relu : nn::RecurrentActivation::tanh);
}

constexpr const char* recurrent_doc =
    "Called with x (T, N, input_size), or (N, T, input_size) with batch_first; then, or zeros, the states "
    "before the first step, each (num_layers x directions, N, hidden_size); then, or T for all, the lengths "
    "(N,) of the samples, whole numbers: behind its length a sample's outputs are 0 and its state stays. "
    "Gives the outputs of the last layer (T, N, directions x hidden_size), then the states behind the last "
    "step. Its parameters of layer i, also with the ending `_reverse`, are `weight_ih_l<i>` (gates x "
    "hidden_size, features), `weight_hh_l<i>` (gates x hidden_size, hidden_size), `bias_ih_l<i>` and "
    "`bias_hh_l<i>`. ";

template <class Made, class Init, class... More>
void bind_recurrent(nb::module_& core, const char* name, const char* doc, Init init, const More&... more) {
  bind_cell_class<Made>(core, name, (std::string(recurrent_doc) + doc).c_str())
      .def("__init__", init, keeps_arguments, nb::arg("input_size"), nb::arg("hidden_size"),
           nb::arg("num_layers") = 1, nb::arg("has_bias") = true, nb::arg("batch_first") = false,
           nb::arg("dropout") = 0.0, nb::arg("bidirectional") = false, more...,
           "`dropout` in [0, 1) is of what one layer gives the next, while the cell trains. With "
           "`bidirectional` a second set of weights reads the sequence from its end.");
}

void init_attention(nb::pointer_and_handle<nn::MultiHeadAttention> self, std::int64_t embed_size,
                    std::int64_t num_heads, double dropout, bool has_bias, bool is_causal,
                    std::optional<std::int64_t> key_size, std::optional<std::int64_t> value_size) {
  make_cell(self, embed_size, num_heads,
            nn::MultiHeadAttentionOptions{.dropout = dropout,
                                          .has_bias = has_bias,
                                          .is_causal = is_causal,
                                          .key_size = key_size,
                                          .value_size = value_size});
}

void init_encoder_layer(nb::pointer_and_handle<nn::TransformerEncoderLayer> self, std::int64_t embed_size,
                        std::int64_t num_heads, std::int64_t feed_forward_size, double dropout,
                        nb::handle activation, double epsilon, bool norm_first, bool is_causal) {
  make_cell(self, embed_size, num_heads, feed_forward_size,
            nn::TransformerLayerOptions{.dropout = dropout,
                                        .activation = activation_from(activation),
                                        .epsilon = epsilon,
                                        .norm_first = norm_first,
                                        .is_causal = is_causal});
}

void init_decoder_layer(nb::pointer_and_handle<nn::TransformerDecoderLayer> self, std::int64_t embed_size,
                        std::int64_t num_heads, std::int64_t feed_forward_size, double dropout,
                        nb::handle activation, double epsilon, bool norm_first) {
  make_cell(self, embed_size, num_heads, feed_forward_size,
            nn::TransformerLayerOptions{.dropout = dropout,
                                        .activation = activation_from(activation),
                                        .epsilon = epsilon,
                                        .norm_first = norm_first});
}

constexpr const char* layer_arguments_doc =
    "`dropout` in [0, 1) is of what each part adds and of the attention's weights. `activation`, between the "
    "Dense layers, is a name or a cell. With `norm_first` x + part(norm(x)) instead of norm(x + part(x)).";

}  // namespace

void bind_sequences(nb::module_& core) {
  bind_recurrent<nn::RNN>(
      core, "RNN",
      "h' = tanh(x weight_ih^T + bias_ih + h weight_hh^T + bias_hh), or relu of it: y, h = "
      "rnn(x). Elman, Cognitive Science 1990.",
      &init_rnn, nb::arg("activation") = "tanh");
  bind_recurrent<nn::LSTM>(
      core, "LSTM",
      "Long short-term memory; its gates are in, forget, cell, out: y, h, c = lstm(x) or "
      "lstm(x, h, c). Hochreiter and Schmidhuber, Neural Computation 1997.",
      &make_recurrent<nn::LSTM>);
  bind_recurrent<nn::GRU>(
      core, "GRU",
      "Gated recurrent unit; its gates are reset, update, new: y, h = gru(x). Cho et al., "
      "EMNLP 2014.",
      &make_recurrent<nn::GRU>);
  bind_cell_class<nn::MultiHeadAttention>(
      core, "MultiHeadAttention",
      "softmax(q k^T / sqrt(depth)) v for each of num_heads equal parts of the features, between Dense cells "
      "`query`, `key`, `value` and `out`. Called with query (N, L, embed_size), or with query, key (N, S, "
      "key_size) and value (N, S, value_size); then may follow a mask that broadcasts to (N, num_heads, L, "
      "S): bool, True where a query sees a key, or floats that are added to the products. Gives (N, L, "
      "embed_size). Vaswani et al., NeurIPS 2017.")
      .def("__init__", &init_attention, keeps_arguments, nb::arg("embed_size"), nb::arg("num_heads"),
           nb::arg("dropout") = 0.0, nb::arg("has_bias") = true, nb::arg("is_causal") = false,
           nb::arg("key_size") = nb::none(), nb::arg("value_size") = nb::none(),
           "`dropout` in [0, 1) is of the attention's weights, while the cell trains. With `is_causal` query "
           "i sees keys 0 to i. `key_size` and `value_size` are embed_size unless given.");
  bind_cell_class<nn::TransformerEncoderLayer>(
      core, "TransformerEncoderLayer",
      "Attention of a sequence to itself, then two Dense cells, `linear1` to feed_forward_size and `linear2` "
      "back. Called with x (N, L, embed_size), and a mask as MultiHeadAttention's may follow. Gives (N, L, "
      "embed_size). Vaswani et al., NeurIPS 2017.")
      .def("__init__", &init_encoder_layer, keeps_arguments, nb::arg("embed_size"), nb::arg("num_heads"),
           nb::arg("feed_forward_size") = 2048, nb::arg("dropout") = 0.1, nb::arg("activation") = "relu",
           nb::arg("epsilon") = 1e-5, nb::arg("norm_first") = false, nb::arg("is_causal") = false,
           layer_arguments_doc);
  bind_cell_class<nn::TransformerDecoderLayer>(
      core, "TransformerDecoderLayer",
      "Causal attention of a sequence to itself, attention to `memory`, what an encoder gave, then two Dense "
      "cells as TransformerEncoderLayer's. Called with x (N, L, embed_size) and memory (N, S, embed_size), "
      "and a mask of the memory may follow. Gives (N, L, embed_size). Vaswani et al., NeurIPS 2017.")
      .def("__init__", &init_decoder_layer, keeps_arguments, nb::arg("embed_size"), nb::arg("num_heads"),
           nb::arg("feed_forward_size") = 2048, nb::arg("dropout") = 0.1, nb::arg("activation") = "relu",
           nb::arg("epsilon") = 1e-5, nb::arg("norm_first") = false, layer_arguments_doc);
}

}  // namespace muster::python
