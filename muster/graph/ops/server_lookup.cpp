// server_lookup: rows of a table on parameter servers; server_note: their gradients.
#include <algorithm>
#include <optional>
#include <utility>

#include "muster/graph/ops/array.h"
#include "muster/graph/ops/ops.h"
#include "muster/graph/served.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace server_lookup_rows {

Types infer_lookup(const Signature& signature) {
  const TensorType& table = signature.inputs[0];
  const TensorType& ids = signature.inputs[1];
  if (table.shape.rank() != 2 || table.shape[0] != 1)
    return bad("server_lookup: {} is not the row that stands for a table", to_string(table));
  if (!is_index(ids.dtype))
    return bad("server_lookup: the ids must be int32 or int64, not {}", muster::to_string(ids.dtype));
  Sizes sizes = ids.shape.sizes();
  sizes.push_back(table.shape[1]);
  return std::vector<TensorType>{{DType::float32, Shape(std::move(sizes))}};
}

Types infer_note(const Signature& signature) {
  const TensorType& ids = signature.inputs[0];
  const TensorType& gradients = signature.inputs[1];
  Sizes sizes = gradients.shape.sizes();
  const std::int64_t width = sizes.empty() ? 0 : sizes.back();
  if (!sizes.empty()) sizes.pop_back();
  if (!is_index(ids.dtype) || gradients.dtype != DType::float32 || Shape(std::move(sizes)) != ids.shape ||
      width == 0)
    return bad("server_note: {} are no gradients of rows for ids {}", to_string(gradients), to_string(ids));
  return std::vector<TensorType>{{DType::float32, Shape{1, width}}};
}

std::vector<Value> gradient_lookup(const GradientQuery& query) {
  return {apply("server_note", {query.inputs[1], query.output_gradients[0]}, query.attributes), Value(),
          Value()};
}

struct Settings {
  std::int64_t number = 0;
  std::string name;
  std::uint64_t rows = 0;  // 0: any id
  std::size_t width = 0;
  std::size_t ids = 0;
  bool gives_zeros = false;
};

Prepared prepare(const Attributes& attributes, const TensorType& ids) {
  const std::int64_t number = attributes.get("parameter", std::int64_t{0});
  const Shape& shape = served_parameter(number).parameter->served_rows()->shape;
  return prepared(Settings{.number = number,
                           .name = served_parameter(number).parameter->name(),
                           .rows = static_cast<std::uint64_t>(shape[0]),
                           .width = static_cast<std::size_t>(shape[1]),
                           .ids = static_cast<std::size_t>(ids.shape.elements()),
                           .gives_zeros = attributes.get("gives_zeros", false)});
}
Prepared prepare_lookup(const Signature& signature) {
  return prepare(signature.attributes, signature.inputs[1]);
}
Prepared prepare_note(const Signature& signature) {
  return prepare(signature.attributes, signature.inputs[0]);
}

// Those ids of a batch that the table has, and where in the batch they stand.
struct KnownIds {
  std::vector<std::uint64_t> ids;
  std::vector<std::size_t> places;
};

Error outside(const Settings& settings, std::int64_t id, std::size_t place) {
  const std::string has =
      settings.rows == 0
          ? "takes ids from 0 on: of a hash with a sign take id & (2**63 - 1)"
          : fmt::format("has the rows 0 to {}: out_of_range='zeros' gives zeros for it", settings.rows - 1);
  return {Code::invalid_argument,
          fmt::format("server_lookup: id {} (number {} of the ids) is not in table '{}', "
                      "which {}",
                      id, place, settings.name, has)};
}

template <class I>
std::optional<KnownIds> known_ids(const KernelCall& call, const I* ids) {
  const auto& settings = call.setting<Settings>();
  KnownIds known;
  known.ids.reserve(settings.ids);
  known.places.reserve(settings.ids);
  for (std::size_t i = 0; i < settings.ids; ++i) {
    const auto id = static_cast<std::uint64_t>(static_cast<std::int64_t>(ids[i]));
    if (ids[i] >= 0 && (settings.rows == 0 || id < settings.rows)) {
      known.ids.push_back(id);
      known.places.push_back(i);
    } else if (!settings.gives_zeros) {
      *call.failure = outside(settings, ids[i], i);
      return std::nullopt;
    }
  }
  return known;
}

template <class I>
void run_lookup(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  const auto known = known_ids(call, call.input<I>(1));
  if (!known) return;
  std::vector<float> rows(known->ids.size() * settings.width);
  const auto done = served_calls().and_then([&](const ServedCalls& calls) {
    return calls.look_up(*call.input<std::int32_t>(2),
                         {.number = settings.number, .ids = known->ids, .rows = rows});
  });
  if (!done) {
    *call.failure = done.error();
    return;
  }
  std::fill_n(call.output<float>(), settings.ids * settings.width, 0.0F);
  for (std::size_t i = 0; i < known->places.size(); ++i)
    std::copy_n(rows.data() + i * settings.width, settings.width,
                call.output<float>() + known->places[i] * settings.width);
}

template <class I>
void run_note(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  auto known = known_ids(call, call.input<I>(0));
  if (!known) return;
  std::vector<float> rows(known->ids.size() * settings.width);
  for (std::size_t i = 0; i < known->places.size(); ++i)
    std::copy_n(call.input<float>(1) + known->places[i] * settings.width, settings.width,
                rows.data() + i * settings.width);
  const auto done = served_calls().and_then([&](const ServedCalls& calls) {
    return calls.note({.number = settings.number, .ids = std::move(known->ids), .rows = std::move(rows)});
  });
  if (!done) *call.failure = done.error();
  std::fill_n(call.output<float>(), settings.width, noted_gradient);
}

template <class I, std::size_t input>
bool ids_are(const Signature& signature) {
  return signature.inputs[input].dtype == dtype_of<I>;
}

Result<> to_onnx(OnnxCall& call) {
  return call.refuse(
      "its rows are on parameter servers: a checkpoint has them all, and a process alone, which loads it, "
      "exports the network");
}

std::vector<Op> rows() {
  return {
      {.name = "server_lookup",
       .documentation = "Rows (..., width) of the table `parameter` on parameter servers, for ids (...) of "
                        "int32 or int64. Inputs: the row of zeros that stands for the table, the ids, the "
                        "steps of all optimizers of served parameters. An id that the table does not have is "
                        "an error, or with `gives_zeros` a row of zeros.",
       .inputs_min = 3,
       .inputs_max = 3,
       .infer = infer_lookup,
       .gradient = gradient_lookup,
       .kernels =
           {for_any_dtype({"reference", ids_are<std::int32_t, 1>, prepare_lookup, run_lookup<std::int32_t>}),
            for_any_dtype({"reference", ids_are<std::int64_t, 1>, prepare_lookup, run_lookup<std::int64_t>})},
       .collective = true,
       .onnx = to_onnx},
      {.name = "server_note",
       .documentation =
           "Notes the gradients (..., width) of rows, of ids (...), for the next served_update of the table. "
           "The output is the gradient of the row of zeros that stands for the table.",
       .inputs_min = 2,
       .inputs_max = 2,
       .infer = infer_note,
       .kernels =
           {for_any_dtype({"reference", ids_are<std::int32_t, 0>, prepare_note, run_note<std::int32_t>}),
            for_any_dtype({"reference", ids_are<std::int64_t, 0>, prepare_note, run_note<std::int64_t>})},
       .onnx = to_onnx}};
}

}  // namespace server_lookup_rows
}  // namespace

std::vector<const Op*> rows_of_server_lookup() {
  static const std::vector<Op> family = server_lookup_rows::rows();
  return addresses(family);
}

}  // namespace muster::graph
