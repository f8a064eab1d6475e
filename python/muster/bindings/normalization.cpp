// Normalization, dropout, embedding.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/train/train.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/cell.h"
#include "python/muster/bindings/cell_arguments.h"
#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/initializer.h"
#include "python/muster/bindings/parameter.h"

namespace muster::python {
namespace {

template <class Made>
void init_batch_norm(nb::pointer_and_handle<Made> self, std::int64_t num_features, double eps,
                     double momentum, bool affine, nb::handle gamma_init, nb::handle beta_init,
                     nb::handle moving_mean_init, nb::handle moving_var_init,
                     std::optional<bool> use_batch_statistics, const std::string& data_format,
                     nb::handle dtype) {
  const std::string name = class_name(self.h);
  require_nchw(data_format, name);
  require_float32(dtype, name);
  nn::BatchNormOptions options{
      .eps = eps, .momentum = momentum, .affine = affine, .use_batch_statistics = use_batch_statistics};
  if (num_features > 0) {
    const Shape shape{num_features};
    options.gamma_init = initializer_from(gamma_init, shape, "gamma_init");
    options.beta_init = initializer_from(beta_init, shape, "beta_init");
    options.moving_mean_init = initializer_from(moving_mean_init, shape, "moving_mean_init");
    options.moving_var_init = initializer_from(moving_var_init, shape, "moving_var_init");
  }
  make_cell(self, num_features, options);
}

template <class Made>
void bind_batch_norm(nb::module_& core, const char* name, const char* doc) {
  bind_cell_class<Made>(core, name, doc)
      .def("__init__", &init_batch_norm<Made>, keeps_arguments, nb::arg("num_features"),
           nb::arg("eps") = 1e-5, nb::arg("momentum") = 0.9, nb::arg("affine") = true,
           nb::arg("gamma_init") = "ones", nb::arg("beta_init") = "zeros",
           nb::arg("moving_mean_init") = "zeros", nb::arg("moving_var_init") = "ones",
           nb::arg("use_batch_statistics") = nb::none(), nb::arg("data_format") = "NCHW",
           nb::arg("dtype") = nb::none(),
           "`momentum` is that of the moving statistics: moving = momentum * moving + (1 - momentum) * "
           "batch. With `affine` gamma and beta are trained. `use_batch_statistics` None means while the "
           "cell trains.");
}

void init_layer_norm(nb::pointer_and_handle<nn::LayerNorm> self, std::vector<std::int64_t> normalized_shape,
                     std::int64_t begin_norm_axis, std::int64_t begin_params_axis, nb::handle gamma_init,
                     nb::handle beta_init, double epsilon, nb::handle dtype) {
  require_float32(dtype, "LayerNorm");
  const Shape shape(std::move(normalized_shape));
  make_cell(self, shape,
            nn::LayerNormOptions{.begin_norm_axis = begin_norm_axis,
                                 .begin_params_axis = begin_params_axis,
                                 .gamma_init = initializer_from(gamma_init, shape, "gamma_init"),
                                 .beta_init = initializer_from(beta_init, shape, "beta_init"),
                                 .epsilon = epsilon});
}

void init_group_norm(nb::pointer_and_handle<nn::GroupNorm> self, std::int64_t num_groups,
                     std::int64_t num_channels, double eps, bool affine, nb::handle gamma_init,
                     nb::handle beta_init) {
  nn::GroupNormOptions options{.eps = eps, .affine = affine};
  if (num_channels > 0) {  // else the cell refuses it
    options.gamma_init = initializer_from(gamma_init, {num_channels}, "gamma_init");
    options.beta_init = initializer_from(beta_init, {num_channels}, "beta_init");
  }
  make_cell(self, num_groups, num_channels, options);
}

void init_rms_norm(nb::pointer_and_handle<nn::RMSNorm> self, std::vector<std::int64_t> normalized_shape,
                   double epsilon, nb::handle gamma_init) {
  const Shape shape(std::move(normalized_shape));
  make_cell(self, shape,
            nn::RMSNormOptions{.epsilon = epsilon,
                               .gamma_init = initializer_from(gamma_init, shape, "gamma_init")});
}

void init_dropout(nb::pointer_and_handle<nn::Dropout> self, double keep_prob, std::optional<double> p,
                  nb::handle dtype) {
  require_float32(dtype, "Dropout");
  if (!p && !(keep_prob > 0 && keep_prob <= 1))
    throw nb::value_error(("Dropout: keep_prob must be in (0, 1], not " + std::to_string(keep_prob)).c_str());
  make_cell(self, p ? *p : 1 - keep_prob);
}

// Whether `value` is the second of two words.
bool is_second(const std::string& value, const char* argument, const char* first, const char* second) {
  if (value == first || value == second) return value == second;
  throw nb::value_error(
      fmt::format("Embedding: {} is '{}' or '{}', not '{}'", argument, first, second, value).c_str());
}

void init_embedding(nb::pointer_and_handle<nn::Embedding> self, std::optional<std::int64_t> vocab_size,
                    std::int64_t embedding_size, bool /*use_one_hot*/, nb::handle embedding_table,
                    nb::handle dtype, std::optional<std::int64_t> padding_idx, const std::string& where,
                    const std::string& out_of_range, std::int64_t cached_rows, std::int64_t age_max,
                    std::int64_t rows_max, nb::handle row_dtype) {
  require_float32(dtype, "Embedding");
  if (vocab_size == 0) throw nb::value_error("Embedding: vocab_size must be at least 1, not 0");
  const bool on_servers = is_second(where, "where", "workers", "servers");
  if (!vocab_size && !on_servers)
    throw nb::value_error(
        "Embedding: a table without a vocabulary lives on parameter servers: where='servers'");
  const bool grows = out_of_range == "grow";
  const train::TableOptions table{.cached_rows = cached_rows,
                                  .age_max = age_max,
                                  .rows_max = rows_max,
                                  .row_dtype = row_dtype.is_none() ? DType::float32 : dtype_from(row_dtype)};
  if ((grows || table != train::TableOptions{}) && !on_servers)
    throw nb::value_error(
        "Embedding: out_of_range='grow', cached_rows, age_max, rows_max and row_dtype are of tables on "
        "parameter servers: where='servers'");
  nn::EmbeddingOptions options{.padding_idx = padding_idx, .is_table = on_servers};
  if (!grows && is_second(out_of_range, "out_of_range", "error", "zeros"))
    options.out_of_range = graph::OutOfRange::zeros;
  const std::int64_t rows = grows ? 0 : vocab_size.value_or(0);  // any number has a row then
  if (rows >= 0 && embedding_size > 0)
    options.embedding_table = initializer_from(embedding_table, {rows, embedding_size}, "embedding_table");
  const nn::Embedding& made = make_cell(self, rows, embedding_size, std::move(options));
  if (on_servers) put_on_servers(made.embedding_table(), false, table);
}

constexpr const char* batch_norm_doc =
    "(x - mean) / sqrt(variance + eps) * gamma + beta for each channel; in training with the batch's "
    "statistics, else with the moving ones. Its parameters, all (num_features,), are `moving_mean` and "
    "`moving_variance`, which get no gradient, `gamma` and `beta`. Ioffe and Szegedy, ICML 2015. ";

}  // namespace

void bind_normalization(nb::module_& core) {
  bind_batch_norm<nn::BatchNorm1d>(core, "BatchNorm1d",
                                   (std::string(batch_norm_doc) + "Of (N, C) or (N, C, L).").c_str());
  bind_batch_norm<nn::BatchNorm2d>(core, "BatchNorm2d",
                                   (std::string(batch_norm_doc) + "Of (N, C, H, W).").c_str());
  bind_cell_class<nn::LayerNorm>(
      core, "LayerNorm",
      "(x - mean) / sqrt(variance + epsilon) * gamma + beta, mean and variance over the axes from "
      "begin_norm_axis on. Its parameters `gamma` and `beta` have the shape normalized_shape, that of the "
      "axes from begin_params_axis on. Ba et al., 2016.")
      .def("__init__", &init_layer_norm, keeps_arguments, nb::arg("normalized_shape"),
           nb::arg("begin_norm_axis") = -1, nb::arg("begin_params_axis") = -1, nb::arg("gamma_init") = "ones",
           nb::arg("beta_init") = "zeros", nb::arg("epsilon") = 1e-7, nb::arg("dtype") = nb::none());
  bind_cell_class<nn::GroupNorm>(
      core, "GroupNorm",
      "(x - mean) / sqrt(variance + eps) * gamma + beta, mean and variance over each of num_groups equal "
      "groups of the channels of each sample of x (N, num_channels, ...). Its parameters are `gamma` and "
      "`beta` (num_channels,). With as many groups as channels it is instance normalization. Wu and He, ECCV "
      "2018.")
      .def("__init__", &init_group_norm, keeps_arguments, nb::arg("num_groups"), nb::arg("num_channels"),
           nb::arg("eps") = 1e-5, nb::arg("affine") = true, nb::arg("gamma_init") = "ones",
           nb::arg("beta_init") = "zeros", "With `affine` gamma and beta are trained.");
  bind_cell_class<nn::RMSNorm>(
      core, "RMSNorm",
      "x / sqrt(mean(x^2) + epsilon) * gamma, the mean over the last axes, which have "
      "the shape normalized_shape, that of its parameter `gamma`. Zhang and Sennrich, "
      "NeurIPS 2019.")
      .def("__init__", &init_rms_norm, keeps_arguments, nb::arg("normalized_shape"),
           nb::arg("epsilon") = 1e-6, nb::arg("gamma_init") = "ones");
  bind_cell_class<nn::Dropout>(core, "Dropout",
                               "While it trains each element becomes 0 with probability p and the others are "
                               "divided by 1 - p; else x as it is. Which ones depends on seed, step, cell "
                               "and place in the global batch, never on the rank. Srivastava et al., JMLR "
                               "2014.")
      .def("__init__", &init_dropout, keeps_arguments, nb::arg("keep_prob") = 0.5, nb::arg("p") = nb::none(),
           nb::arg("dtype") = nb::none(), "`p` in [0, 1); without, 1 - keep_prob, the old way to say it.");
  bind_cell_class<nn::Embedding>(core, "Embedding",
                                 "Numbers (...), int32 or int64 in [0, vocab_size), to their vectors (..., "
                                 "embedding_size), the rows of its parameter `embedding_table` (vocab_size, "
                                 "embedding_size).")
      .def(
          "__init__", &init_embedding, keeps_arguments, nb::arg("vocab_size"), nb::arg("embedding_size"),
          nb::arg("use_one_hot") = false, nb::arg("embedding_table") = "normal",
          nb::arg("dtype") = nb::none(), nb::arg("padding_idx") = nb::none(), nb::arg("where") = "workers",
          nb::arg("out_of_range") = "error", nb::arg("cached_rows") = 0, nb::arg("age_max") = 0,
          nb::arg("rows_max") = 0, nb::arg("row_dtype") = nb::none(),
          "The row of `padding_idx` begins with zeros. `use_one_hot` changes nothing: the result is the "
          "same. `where`: 'servers' leaves the rows to the job's parameter servers "
          "(docs/guide/parameter-servers.md), of which a worker pulls those that it needs; then vocab_size "
          "may be None: any number from 0 on has a row. `out_of_range`: what numbers outside of the "
          "vocabulary are, an 'error', 'zeros', or (on servers) 'grow': they get rows. `cached_rows`: so "
          "many rows this process keeps of those that it has looked up on servers, for as long as "
          "set_ps_context(staleness=...) allows. Rows leave a table without vocabulary, and begin anew, "
          "`age_max` steps after their last update, and those updated longest ago where a server has more "
          "than `rows_max`; 0: never. With `row_dtype` bfloat16 servers have the rows in half of the memory, "
          "rounded after each update; what an optimizer keeps for them stays float32.")
      .def(
          "prefetch",
          [](nn::Embedding& self, nb::handle ids) {
            unwrap(train::look_up_ahead(self.embedding_table(), value_from(ids, nullptr).read().value()));
          },
          nb::arg("ids"),
          "The next training step looks these rows up: servers send them while this one computes. Call it "
          "before this step's optimizers. It changes no number, and does nothing where the table is here; "
          "Model.train does it by itself for ids that are a column of the data.");
}

}  // namespace muster::python
