// class Dataset and its iterators.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/data/data.h"
#include "muster/train/train.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/data_operation.h"
#include "python/muster/bindings/exceptions.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

// A description, and how many passes were begun over it: each has a shuffle of its own.
struct PythonDataset {
  data::Dataset description;
  std::uint64_t passes = 0;
};

// What a pass gives for each item.
struct ItemForm {
  bool as_dict = false;
  bool as_numpy = false;
};

PythonDataset checked(data::Dataset description) {
  unwrap(description.status());
  return PythonDataset{std::move(description)};
}

// One pass. Its thread may be waiting for the interpreter lock to call a Python function, so nobody ends it
// while holding the lock.
class Pass {
 public:
  Pass(data::Iterator iterator, std::vector<std::string> names, ItemForm form)
      : iterator_(std::move(iterator)), names_(std::move(names)), form_(form) {
    all().insert(this);
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;
  ~Pass() {
    all().erase(this);
    close();
  }

  nb::object next() {
    Result<std::optional<data::Item>> item = std::nullopt;
    if (iterator_) {
      const nb::gil_scoped_release unlocked;
      item = iterator_->next();
    }
    if (!item) raise(item.error());
    if (!*item) throw nb::stop_iteration();
    return object_of(**item);
  }

  void close() {
    const nb::gil_scoped_release unlocked;
    iterator_.reset();
  }

  // Before the interpreter ends: threads that want its lock could not end after it.
  static void close_all() {
    for (Pass* pass : all()) pass->close();
  }

 private:
  static std::set<Pass*>& all() {
    static auto* passes = new std::set<Pass*>;
    return *passes;
  }

  nb::object value_of(const Tensor& tensor) const {
    const nb::object made = tensor_object(tensor);
    return form_.as_numpy ? made.attr("asnumpy")() : made;
  }

  nb::object object_of(const data::Item& item) const {
    if (form_.as_dict) {
      nb::dict columns;
      for (std::size_t i = 0; i < item.size(); ++i) columns[names_[i].c_str()] = value_of(item[i]);
      return columns;
    }
    return tuple_of(item, [this](const Tensor& value) { return value_of(value); });
  }

  std::optional<data::Iterator> iterator_;
  std::vector<std::string> names_;
  ItemForm form_;
};

std::vector<std::string> column_names(const PythonDataset& dataset) {
  std::vector<std::string> names;
  for (const data::Column& column : dataset.description.columns()) names.push_back(column.name);
  return names;
}

// A signal handler that raises (Ctrl-C) ends the wait for an item.
Result<> look_for_signals() {
  const nb::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() == 0) return {};
  nb::python_error raised;
  return fail(error_of(raised));
}

std::unique_ptr<Pass> begin_pass(PythonDataset& dataset, ItemForm form) {
  const data::IterateOptions options{
      .seed = train::seed(), .epoch = dataset.passes, .while_waiting = &look_for_signals};
  auto iterator = unwrap(dataset.description.iterate(options));
  ++dataset.passes;
  return std::make_unique<Pass>(std::move(iterator), column_names(dataset), form);
}

// What create_tuple_iterator and create_dict_iterator return: each `for` over it is a new pass.
struct Passes {
  nb::object dataset;
  ItemForm form;
  std::int64_t left;  // -1: without end

  std::unique_ptr<Pass> begin() {
    if (left == 0) throw nb::value_error("this iterator was made for fewer passes: see num_epochs");
    if (left > 0) --left;
    return begin_pass(nb::cast<PythonDataset&>(dataset), form);
  }
};

Passes make_passes(nb::object dataset, ItemForm form, std::int64_t num_epochs) {
  if (num_epochs == 0 || num_epochs < -1)
    throw nb::value_error("num_epochs is -1 (without end) or the number of passes, at least 1");
  return Passes{std::move(dataset), form, num_epochs};
}

std::vector<std::string> names_from(nb::handle names) {
  if (names.is_none()) return {};
  if (nb::isinstance<nb::str>(names)) return {nb::cast<std::string>(names)};
  return nb::cast<std::vector<std::string>>(names);
}

std::int64_t dataset_size(const PythonDataset& self) {
  const std::int64_t size = unwrap(self.description.size());
  if (size < 0) throw nb::type_error("a dataset that repeats without end has no size");
  return size;
}

void bind_iterators(nb::module_& core) {
  nb::class_<Pass>(core, "DatasetPass", "One pass over a dataset.")
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", &Pass::next)
      .def("close", &Pass::close, "Ends the pass and its thread.");
  nb::class_<Passes>(core, "DatasetIterator", "Passes over a dataset: each `for` loop begins a new one.")
      .def("__iter__", &Passes::begin);
  const nb::object close_all = nb::cpp_function([] { Pass::close_all(); });
  nb::module_::import_("atexit").attr("register")(close_all);
}

}  // namespace

void bind_dataset(nb::module_& core) {
  bind_iterators(core);
  nb::class_<PythonDataset>(
      core, "Dataset",
      "Rows and what is done to them. Every method returns a new dataset and leaves this one "
      "as it was. A `for` loop makes one pass and gives a tuple of Tensors for each item; "
      "each pass has a shuffle of its own.")
      .def(
          "map",
          [](const PythonDataset& self, nb::handle operations, nb::handle input_columns) {
            return checked(self.description.map(operations_from(operations), names_from(input_columns)));
          },
          nb::arg("operations"), nb::arg("input_columns") = nb::none(),
          "Applies one operation or a list of them to the named columns (default: the first). An operation "
          "is a "
          "transform of muster.dataset, or a function from numpy arrays to numpy arrays.")
      .def(
          "batch",
          [](const PythonDataset& self, std::int64_t batch_size, bool drop_remainder) {
            return checked(self.description.batch(batch_size, drop_remainder));
          },
          nb::arg("batch_size"), nb::arg("drop_remainder") = false,
          "Stacks `batch_size` rows into one item. The last batch is smaller unless it is dropped.")
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
      .def("get_dataset_size", &dataset_size, "Items in one pass.")
      .def("__len__", &dataset_size)
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
  struct Mnist : PythonDataset {};
  nb::class_<Mnist, PythonDataset>(
      core, "MnistDataset",
      "Handwritten digits from IDX files: columns image (28, 28, 1) uint8 and label () "
      "uint32.")
      .def(
          "__init__",
          [](Mnist* self, std::string dataset_dir, std::optional<std::string> usage,
             std::optional<std::int64_t> num_samples, std::optional<bool> shuffle,
             std::optional<std::int64_t> num_shards, std::optional<std::int64_t> shard_id) {
            new (self) Mnist{checked(data::mnist({.folder = std::move(dataset_dir),
                                                  .usage = usage.value_or(""),
                                                  .shuffle = shuffle,
                                                  .num_samples = num_samples,
                                                  .num_shards = num_shards,
                                                  .shard_id = shard_id}))};
          },
          nb::arg("dataset_dir"), nb::arg("usage") = nb::none(), nb::kw_only(),
          nb::arg("num_samples") = nb::none(), nb::arg("shuffle") = nb::none(),
          nb::arg("num_shards") = nb::none(), nb::arg("shard_id") = nb::none(),
          "Reads and checks the files in `dataset_dir` now. `usage` is 'train', 'test' or 'all'; by default "
          "every "
          "pair of IDX files is read. FileNotFoundError or CorruptDataError name the file.");
}

}  // namespace muster::python
