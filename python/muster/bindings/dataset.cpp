// class Dataset.
#include "python/muster/bindings/dataset.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "python/muster/bindings/data_operation.h"
#include "python/muster/bindings/dataset_pass.h"
#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/worker_host.h"

namespace muster::python {

PythonDataset& python_dataset_from(nb::handle object, const char* what) {
  const nb::object inner = nb::getattr(object, "_pipeline", nb::none());
  const nb::handle dataset = inner.is_none() ? object : nb::handle(inner);
  if (nb::isinstance<PythonDataset>(dataset)) return nb::cast<PythonDataset&>(dataset);
  const auto type = class_name(object);
  throw nb::type_error((std::string(what) + " must be a Dataset, not " + type).c_str());
}

data::Dataset dataset_from(nb::handle object, const char* what) {
  const PythonDataset& dataset = python_dataset_from(object, what);
  if (dataset.first_item > 0 || dataset.rows_before > 0)
    throw nb::value_error((std::string(what) +
                           ": load_state has set where its next pass begins, which a loop over it takes "
                           "(for ... in dataset); a Model goes on by Model.train(..., resume=PATH)")
                              .c_str());
  return dataset.description;
}

PythonDataset checked(data::Dataset description) {
  unwrap(description.status());
  return PythonDataset{std::move(description)};
}

std::vector<std::string> column_names(const PythonDataset& dataset) {
  std::vector<std::string> names;
  for (const data::Column& column : dataset.description.columns()) names.push_back(column.name);
  return names;
}

std::vector<std::string> names_from(nb::handle names) {
  if (names.is_none()) return {};
  if (nb::isinstance<nb::str>(names)) return {nb::cast<std::string>(names)};
  return nb::cast<std::vector<std::string>>(names);
}

namespace {

using Class = nb::class_<PythonDataset>;

std::vector<data::Dataset> descriptions_of(nb::handle datasets) {
  std::vector<data::Dataset> descriptions;
  for (const nb::handle dataset : nb::borrow<nb::object>(datasets))
    descriptions.push_back(nb::cast<const PythonDataset&>(dataset).description);
  return descriptions;
}

data::OperationPtr predicate_from(nb::handle predicate) {
  auto operations = operations_from(predicate);
  if (operations.size() != 1) throw nb::value_error("filter takes one function");
  return operations.front();
}

// What is done to the rows.
void bind_changes(Class& dataset) {
  dataset
      .def(
          "map",
          [](const PythonDataset& self, nb::handle operations, nb::handle input_columns,
             nb::handle output_columns, std::optional<int> num_parallel_workers, bool python_multiprocessing,
             nb::handle max_rowsize) {
            return checked(self.description.map(
                operations_from(operations),
                data::MapOptions{
                    .input_columns = names_from(input_columns),
                    .output_columns = names_from(output_columns),
                    .workers_max = num_parallel_workers.value_or(0),
                    .processes = processes_from(num_parallel_workers, python_multiprocessing, max_rowsize)}));
          },
          nb::arg("operations"), nb::arg("input_columns") = nb::none(),
          nb::arg("output_columns") = nb::none(), nb::arg("num_parallel_workers") = nb::none(),
          nb::arg("python_multiprocessing") = false, nb::arg("max_rowsize") = nb::none(),
          "Applies one operation or a list of them to the named columns (default: the first). An operation "
          "is a transform of muster.dataset, or a function from numpy arrays to numpy arrays. With "
          "`output_columns` the results get these names; as many as the input columns take their places, "
          "otherwise they come first. Transforms of the library are shared out among at most "
          "`num_parallel_workers` threads (default: all of the pass); functions run on one thread, or with "
          "`python_multiprocessing` in so many worker processes, which each pass forks: rows come in the "
          "same order, `random` and `numpy.random` are seeded for each row, an exception comes with the "
          "worker's traceback. A row takes at most `max_rowsize` MB on its way to a process and back; None "
          "or -1: as much as it needs, up to 1 GiB.")
      .def(
          "filter",
          [](const PythonDataset& self, nb::handle predicate, nb::handle input_columns) {
            return checked(self.description.filter(predicate_from(predicate), names_from(input_columns)));
          },
          nb::arg("predicate"), nb::arg("input_columns") = nb::none(),
          "The items for which `predicate`, given the named columns (default: all), is true.")
      .def(
          "batch",
          [](const PythonDataset& self, std::int64_t batch_size, bool drop_remainder) {
            return checked(self.description.batch(batch_size, drop_remainder));
          },
          nb::arg("batch_size"), nb::arg("drop_remainder") = false,
          "Stacks `batch_size` rows into one item. The last batch is smaller unless it is dropped.")
      .def(
          "project",
          [](const PythonDataset& self, nb::handle columns) {
            return checked(self.description.project(names_from(columns)));
          },
          nb::arg("columns"), "Only the named columns, in this order.")
      .def(
          "rename",
          [](const PythonDataset& self, nb::handle input_columns, nb::handle output_columns) {
            return checked(self.description.rename(names_from(input_columns), names_from(output_columns)));
          },
          nb::arg("input_columns"), nb::arg("output_columns"), "Other names for some columns.");
}

// Which items come.
void bind_choices(Class& dataset) {
  dataset
      .def(
          "shuffle",
          [](const PythonDataset& self, std::int64_t buffer_size) {
            return checked(self.description.shuffle(buffer_size));
          },
          nb::arg("buffer_size"),
          "Each item is drawn from the next `buffer_size` (at least 2) that have not come yet; the order "
          "depends on the seed and the pass only.")
      .def(
          "repeat",
          [](const PythonDataset& self, std::optional<std::int64_t> count) {
            return checked(self.description.repeat(count.value_or(-1)));
          },
          nb::arg("count") = nb::none(),
          "All items `count` times, shuffled anew each time; without end by default.")
      .def(
          "take",
          [](const PythonDataset& self, std::int64_t count) { return checked(self.description.take(count)); },
          nb::arg("count") = -1, "At most the first `count` items.")
      .def(
          "skip",
          [](const PythonDataset& self, std::int64_t count) { return checked(self.description.skip(count)); },
          nb::arg("count"), "All items but the first `count`.")
      .def(
          "mark_shard",
          [](const PythonDataset& self, std::int64_t num_shards, std::int64_t shard_id) {
            return checked(self.description.mark_shard(num_shards, shard_id));
          },
          nb::arg("num_shards"), nb::arg("shard_id"),
          "Says that these rows are one part of `num_shards` that the script has cut out itself, each row in "
          "one part; nothing is cut here. Evaluations over all workers then count each part once. Not needed "
          "where a source was given num_shards and shard_id, and a ValueError there.")
      .def(
          "concat",
          [](const PythonDataset& self, nb::handle datasets) {
            std::vector<data::Dataset> all = {self.description};
            const auto others = nb::isinstance<PythonDataset>(datasets)
                                    ? std::vector{nb::cast<const PythonDataset&>(datasets).description}
                                    : descriptions_of(datasets);
            all.insert(all.end(), others.begin(), others.end());
            return checked(data::Dataset::concat(all));
          },
          nb::arg("datasets"),
          "The items of this dataset, then those of the others, which have the same columns.")
      .def("__add__",
           [](const PythonDataset& self, const PythonDataset& other) {
             return checked(data::Dataset::concat({self.description, other.description}));
           })
      .def(
          "zip",
          [](const PythonDataset& self, nb::handle datasets) {
            std::vector<data::Dataset> all = {self.description};
            const auto others = nb::isinstance<PythonDataset>(datasets)
                                    ? std::vector{nb::cast<const PythonDataset&>(datasets).description}
                                    : descriptions_of(datasets);
            all.insert(all.end(), others.begin(), others.end());
            return checked(data::Dataset::zip(all));
          },
          nb::arg("datasets"),
          "The columns of this dataset and of the others side by side, as long as all have items.");
}

void bind_facts(Class& dataset) {
  dataset
      .def(
          "get_dataset_size", &dataset_size,
          "Items in one pass. Behind a filter or a generator without a length it makes a pass to count them.")
      .def("__len__", &dataset_size)
      .def(
          "get_batch_size", [](const PythonDataset& self) { return self.description.batch_size(); },
          "Rows in an item of the last batch(); 1 without one.")
      .def(
          "get_repeat_count", [](const PythonDataset& self) { return self.description.repeat_count(); },
          "Repetitions in the last repeat(): -1 without end, 1 without one.")
      .def("get_col_names", &column_names, "The names of the columns, in the order of an item's values.")
      .def("__iter__", [](PythonDataset& self) { return begin_pass(self, {}); })
      .def(
          "create_tuple_iterator",
          [](nb::object self, std::int64_t num_epochs, bool output_numpy) {
            return make_passes(std::move(self), {.as_dict = false, .as_numpy = output_numpy}, num_epochs);
          },
          nb::arg("num_epochs") = -1, nb::arg("output_numpy") = false,
          "Something to loop over `num_epochs` times; items are tuples of Tensors or numpy arrays.")
      .def(
          "create_dict_iterator",
          [](nb::object self, std::int64_t num_epochs, bool output_numpy) {
            return make_passes(std::move(self), {.as_dict = true, .as_numpy = output_numpy}, num_epochs);
          },
          nb::arg("num_epochs") = -1, nb::arg("output_numpy") = false,
          "Something to loop over `num_epochs` times; items are dicts from column names to Tensors or numpy "
          "arrays.");
}

}  // namespace

void bind_dataset(nb::module_& core) {
  bind_dataset_passes(core);
  bind_samplers(core);
  Class dataset(core, "Dataset",
                "Rows and what is done to them. Every method returns a new dataset and leaves this one "
                "as it was. A `for` loop makes one pass and gives a tuple of Tensors for each item; "
                "each pass has a shuffle of its own.");
  bind_changes(dataset);
  bind_choices(dataset);
  bind_facts(dataset);
  core.def(
      "zip_datasets",
      [](nb::handle datasets) { return checked(data::Dataset::zip(descriptions_of(datasets))); },
      nb::arg("datasets"), "The columns of all datasets side by side, as long as each has items.");
  bind_sources(core);
  bind_generators(core);
}

}  // namespace muster::python
