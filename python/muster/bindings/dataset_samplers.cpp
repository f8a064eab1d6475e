// Samplers: which rows of a source come.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "python/muster/bindings/dataset.h"

namespace muster::python {
namespace {

struct Sequential : PythonSampler {};
struct Random : PythonSampler {};
struct Distributed : PythonSampler {};
struct Subset : PythonSampler {};
struct SubsetRandom : PythonSampler {};
struct Pk : PythonSampler {};
struct WeightedRandom : PythonSampler {};

using Count = std::optional<std::int64_t>;

template <class Kind>
nb::class_<Kind, PythonSampler> sampler_class(nb::module_& core, const char* name, const char* doc) {
  return nb::class_<Kind, PythonSampler>(core, name, doc);
}

void bind_simple(nb::module_& core) {
  sampler_class<Sequential>(core, "SequentialSampler", "Rows in their order.")
      .def(
          "__init__",
          [](Sequential* self, Count start_index, Count num_samples) {
            new (self) Sequential{data::sequential_sampler(start_index.value_or(0), num_samples)};
          },
          nb::arg("start_index") = nb::none(), nb::arg("num_samples") = nb::none());
  sampler_class<Random>(core, "RandomSampler",
                        "Rows in random order; with `replacement` a row may come again.")
      .def(
          "__init__",
          [](Random* self, bool replacement, Count num_samples) {
            new (self) Random{data::random_sampler({.replacement = replacement, .num_samples = num_samples})};
          },
          nb::arg("replacement") = false, nb::arg("num_samples") = nb::none());
  sampler_class<Distributed>(
      core, "DistributedSampler",
      "One of `num_shards` shards of equal length of all rows, which all shuffle alike.")
      .def(
          "__init__",
          [](Distributed* self, std::int64_t num_shards, std::int64_t shard_id, bool shuffle,
             Count num_samples, std::int64_t offset) {
            if (offset != -1) throw nb::value_error("DistributedSampler: only offset=-1 is provided");
            new (self) Distributed{data::distributed_sampler({.num_shards = num_shards,
                                                              .shard_id = shard_id,
                                                              .shuffle = shuffle,
                                                              .num_samples = num_samples})};
          },
          nb::arg("num_shards"), nb::arg("shard_id"), nb::arg("shuffle") = true,
          nb::arg("num_samples") = nb::none(), nb::arg("offset") = -1);
}

void bind_choosing(nb::module_& core) {
  sampler_class<Subset>(core, "SubsetSampler", "The rows of these numbers, in this order.")
      .def(
          "__init__",
          [](Subset* self, std::vector<std::int64_t> indices, Count num_samples) {
            new (self) Subset{data::subset_sampler(std::move(indices), num_samples)};
          },
          nb::arg("indices"), nb::arg("num_samples") = nb::none());
  sampler_class<SubsetRandom>(core, "SubsetRandomSampler", "The rows of these numbers, in random order.")
      .def(
          "__init__",
          [](SubsetRandom* self, std::vector<std::int64_t> indices, Count num_samples) {
            new (self) SubsetRandom{data::subset_random_sampler(std::move(indices), num_samples)};
          },
          nb::arg("indices"), nb::arg("num_samples") = nb::none());
  sampler_class<Pk>(
      core, "PKSampler",
      "`num_val` rows of each class (or of the first `num_class` classes), drawn anew for each pass, with "
      "replacement; `shuffle`: the order of the classes.")
      .def(
          "__init__",
          [](Pk* self, std::int64_t num_val, Count num_class, bool shuffle, const std::string& class_column,
             Count num_samples) {
            if (class_column != "label" && class_column != "fine_label")
              throw nb::value_error("PKSampler goes by the source's own classes: class_column is 'label'");
            new (self) Pk{data::pk_sampler({.num_val = num_val,
                                            .num_class = num_class,
                                            .shuffle = shuffle,
                                            .num_samples = num_samples})};
          },
          nb::arg("num_val"), nb::arg("num_class") = nb::none(), nb::arg("shuffle") = false,
          nb::arg("class_column") = "label", nb::arg("num_samples") = nb::none());
  sampler_class<WeightedRandom>(core, "WeightedRandomSampler", "Rows drawn with a probability for each.")
      .def(
          "__init__",
          [](WeightedRandom* self, std::vector<double> weights, Count num_samples, bool replacement) {
            new (self) WeightedRandom{data::weighted_random_sampler(
                {.weights = std::move(weights), .num_samples = num_samples, .replacement = replacement})};
          },
          nb::arg("weights"), nb::arg("num_samples") = nb::none(), nb::arg("replacement") = true);
}

}  // namespace

data::SamplerPtr sampler_from(nb::handle object) {
  if (object.is_none()) return nullptr;
  if (nb::isinstance<PythonSampler>(object)) return nb::cast<const PythonSampler&>(object).sampler;
  std::vector<std::int64_t> rows;
  if (nb::try_cast(object, rows)) return data::subset_sampler(std::move(rows));
  throw nb::type_error(
      ("a sampler is one of muster.dataset's or a list of row numbers, not " + class_name(object)).c_str());
}

void bind_samplers(nb::module_& core) {
  nb::class_<PythonSampler>(core, "Sampler", "Chooses the rows of a source and their order.");
  bind_simple(core);
  bind_choosing(core);
}

}  // namespace muster::python
