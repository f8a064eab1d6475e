#include "python/muster/bindings/dataset_pass.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <utility>

#include "muster/train/train.h"
#include "python/muster/bindings/exceptions.h"
#include "python/muster/bindings/process.h"
#include "python/muster/bindings/value.h"

namespace muster::python {

Pass::Pass(data::Iterator iterator, std::vector<std::string> names, ItemForm form,
           std::shared_ptr<PassProgress> progress)
    : iterator_(std::move(iterator)),
      names_(std::move(names)),
      form_(form),
      progress_(std::move(progress)),
      number_(progress_->pass) {
  process().passes.insert(this);
}

Pass::~Pass() {
  process().passes.erase(this);
  close();
}

nb::object Pass::next() {
  Result<std::optional<data::Item>> item = std::nullopt;
  if (iterator_) {
    const nb::gil_scoped_release unlocked;
    const train::ActivityScope reading(cluster::WorkPhase::reading_data);
    item = iterator_->next();
    train::note_finished();
  }
  if (!item) raise(item.error());
  const bool is_newest = progress_->pass == number_;
  if (!*item) {
    if (is_newest) progress_->is_over = true;
    throw nb::stop_iteration();
  }
  if (is_newest) ++progress_->items;
  return object_of(**item);
}

void Pass::close() {
  const nb::gil_scoped_release unlocked;
  iterator_.reset();
}

void Pass::close_all() {
  for (Pass* pass : process().passes) pass->close();
}

nb::object Pass::value_of(const Tensor& tensor) const {
  const nb::object made = tensor_object(tensor);
  return form_.as_numpy ? made.attr("asnumpy")() : made;
}

nb::object Pass::object_of(const data::Item& item) const {
  if (form_.as_dict) {
    nb::dict columns;
    for (std::size_t i = 0; i < item.size(); ++i) columns[names_[i].c_str()] = value_of(item[i]);
    return columns;
  }
  return tuple_of(item, [this](const Tensor& value) { return value_of(value); });
}

namespace {

// A signal handler that raises (Ctrl-C) ends the wait for an item.
Result<> look_for_signals() {
  const nb::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() == 0) return {};
  nb::python_error raised;
  return fail(error_of(raised));
}

data::IterateOptions options_of(const PythonDataset& dataset) {
  auto options = train::data_options(dataset.passes);
  options.while_waiting = &look_for_signals;
  return options;
}

}  // namespace

std::unique_ptr<Pass> begin_pass(PythonDataset& dataset, ItemForm form) {
  auto options = options_of(dataset);
  const std::uint64_t first = std::exchange(dataset.first_item, 0);
  *dataset.progress = {.pass = dataset.passes,
                       .items = first,
                       .is_over = false,
                       .rows_before = std::exchange(dataset.rows_before, 0),
                       .items_before = std::exchange(dataset.items_before, 0)};
  options.skip_items = first - dataset.progress->items_before;
  options.rows_before = dataset.progress->rows_before;
  auto iterator = unwrap(dataset.description.iterate(std::move(options)));
  ++dataset.passes;
  return std::make_unique<Pass>(std::move(iterator), column_names(dataset), form, dataset.progress);
}

std::unique_ptr<Pass> Passes::begin() {
  if (left == 0) throw nb::value_error("this iterator was made for fewer passes: see num_epochs");
  if (left > 0) --left;
  return begin_pass(nb::cast<PythonDataset&>(dataset), form);
}

Passes make_passes(nb::object dataset, ItemForm form, std::int64_t num_epochs) {
  if (num_epochs == 0 || num_epochs < -1)
    throw nb::value_error("num_epochs is -1 (without end) or the number of passes, at least 1");
  return Passes{std::move(dataset), form, num_epochs};
}

std::int64_t dataset_size(PythonDataset& dataset) {
  const auto counted = [&] {
    const nb::gil_scoped_release unlocked;  // the pass may call Python functions
    return dataset.description.count_items(options_of(dataset));
  }();
  const std::int64_t size = unwrap(counted);
  if (size < 0) throw nb::type_error("a dataset that repeats without end has no size");
  return size;
}

void bind_dataset_passes(nb::module_& core) {
  nb::class_<Pass>(core, "DatasetPass", "One pass over a dataset.")
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", &Pass::next)
      .def("close", &Pass::close, "Ends the pass and its thread.");
  nb::class_<Passes>(core, "DatasetIterator", "Passes over a dataset: each `for` loop begins a new one.")
      .def("__iter__", &Passes::begin);
  const nb::object close_all = nb::cpp_function([] { Pass::close_all(); });
  nb::module_::import_("atexit").attr("register")(close_all);
}

}  // namespace muster::python
