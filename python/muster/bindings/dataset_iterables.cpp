// What Model takes beside datasets: anything that gives batches when it is iterated over.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/muster/bindings/convert.h"
#include "python/muster/bindings/dataset.h"
#include "python/muster/bindings/held.h"

namespace muster::python {
namespace {

// What the items look like, as the first one does.
struct ItemKind {
  std::string what;  // the argument that has them: "train_dataset"
  std::vector<std::string> columns;
  bool is_dict = false;
};

bool has_columns(nb::handle item) {
  return nb::isinstance<nb::tuple>(item) || nb::isinstance<nb::list>(item);
}

ItemKind item_kind(nb::handle item, const char* what) {
  ItemKind kind{.what = what, .columns = {}, .is_dict = nb::isinstance<nb::dict>(item)};
  if (kind.is_dict) {
    for (const auto [key, value] : nb::borrow<nb::dict>(item))
      kind.columns.push_back(nb::cast<std::string>(nb::str(key)));
  } else {
    const std::size_t columns = has_columns(item) ? nb::len(item) : 1;
    for (std::size_t i = 0; i < columns; ++i) kind.columns.push_back("column_" + std::to_string(i));
  }
  if (kind.columns.empty()) throw nb::value_error((kind.what + ": its first item is empty").c_str());
  return kind;
}

// The exception that is set, as the cause of a ValueError.
[[noreturn]] void raise_from(nb::python_error& cause, const std::string& message) {
  nb::raise_from(cause, PyExc_ValueError, "%s", message.c_str());
  throw nb::python_error();
}

class IterableItems final : public data::RowSequence {
 public:
  IterableItems(nb::object iterator, nb::object first, std::shared_ptr<const ItemKind> kind)
      : iterator_(std::move(iterator)), first_(std::move(first)), kind_(std::move(kind)) {}

  Result<std::optional<std::vector<Tensor>>> next() override {
    return guarded([&]() -> std::optional<std::vector<Tensor>> {
      nb::object item = first_.take();
      if (!item.is_valid()) item = nb::steal<nb::object>(PyIter_Next(iterator_.get().ptr()));
      if (item.is_valid()) return values_of(item);
      if (PyErr_Occurred() != nullptr) throw nb::python_error();
      return std::nullopt;
    });
  }

 private:
  std::vector<Tensor> values_of(nb::handle item) {
    const std::string where = kind_->what + ": item " + std::to_string(number_++);
    std::vector<Tensor> values;
    if (kind_->is_dict != nb::isinstance<nb::dict>(item))
      throw nb::value_error((where + (kind_->is_dict ? " is no dict, as the first one is"
                                                     : " is a dict, and the first one is none"))
                                .c_str());
    if (kind_->is_dict) {
      const auto dict = nb::borrow<nb::dict>(item);
      if (dict.size() != kind_->columns.size()) throw_count(where, dict.size());
      for (const std::string& name : kind_->columns) {
        if (!dict.contains(name.c_str()))
          throw nb::value_error((where + " has no '" + name + "', as the first one has").c_str());
        values.push_back(value_of(dict[name.c_str()], where, name));
      }
    } else if (has_columns(item)) {
      if (nb::len(item) != kind_->columns.size()) throw_count(where, nb::len(item));
      std::size_t column = 0;
      for (const nb::handle value : nb::borrow<nb::object>(item))
        values.push_back(value_of(value, where, kind_->columns[column++]));
    } else {
      if (kind_->columns.size() != 1) throw_count(where, 1);
      values.push_back(value_of(item, where, kind_->columns.front()));
    }
    return values;
  }

  void throw_count(const std::string& where, std::size_t count) const {
    throw nb::value_error((where + " has " + std::to_string(count) + " values, and the first one had " +
                           std::to_string(kind_->columns.size()))
                              .c_str());
  }

  static Tensor value_of(nb::handle value, const std::string& where, const std::string& column) {
    const std::string message =
        where + ", " + column + " (" + class_name(value) + ") cannot be made a tensor";
    try {
      return tensor_copied(value, {});
    } catch (nb::python_error& error) {
      raise_from(error, message + ": " + nb::cast<std::string>(nb::str(error.value())));
    } catch (const std::exception& error) {
      throw nb::value_error((message + ": " + error.what()).c_str());
    }
  }

  const Held iterator_;
  Held first_;
  const std::shared_ptr<const ItemKind> kind_;
  std::int64_t number_ = 0;
};

// Begins each pass.
class IterablePasses {
 public:
  IterablePasses(nb::handle object, const char* what) : object_(nb::borrow(object)) {
    begin(0);
    first_ = Held(nb::steal<nb::object>(PyIter_Next(iterator_.get().ptr())));
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    if (!first_.get().is_valid()) throw nb::value_error((std::string(what) + " gives no items").c_str());
    kind_ = std::make_shared<const ItemKind>(item_kind(first_.get(), what));
  }
  const ItemKind& kind() const { return *kind_; }
  // Whether it hears which pass begins, so that the order can depend on that alone.
  bool takes_epoch() const { return takes_epoch_; }

  // The first pass goes on with what was looked at, unless its number makes it another one.
  std::unique_ptr<data::RowSequence> rows(std::uint64_t pass) {
    if (!first_.get().is_valid() || (pass != begun_ && takes_epoch_)) {
      first_ = Held(nb::object());
      begin(pass);
    }
    return std::make_unique<IterableItems>(iterator_.take(), first_.take(), kind_);
  }

 private:
  void begin(std::uint64_t pass) {
    begun_ = pass;
    takes_epoch_ = set_epoch(pass);
    nb::object made = object_.get();
    if (!nb::hasattr(made, "__iter__")) made = made();
    iterator_ = Held(nb::iter(made));
  }

  // Whoever orders the items by the number of the pass, as samplers of PyTorch do, hears it.
  bool set_epoch(std::uint64_t pass) const {
    const nb::object none = nb::none();
    const nb::object sampler = nb::getattr(object_.get(), "sampler", none);
    const nb::object batch_sampler = nb::getattr(object_.get(), "batch_sampler", none);
    bool any = false;
    for (const nb::object& part : {object_.get(), nb::getattr(object_.get(), "dataset", none), sampler,
                                   batch_sampler, nb::getattr(batch_sampler, "sampler", none)}) {
      const nb::object method = nb::getattr(part, "set_epoch", none);
      if (method.is_none()) continue;
      method(pass);
      any = true;
    }
    return any;
  }

  const Held object_;
  Held iterator_{nb::object()};
  Held first_{nb::object()};
  std::shared_ptr<const ItemKind> kind_;
  std::uint64_t begun_ = 0;
  bool takes_epoch_ = false;
};

std::optional<std::int64_t> iterable_size(nb::handle object) {
  const Py_ssize_t size = PyObject_Size(object.ptr());
  if (size >= 0) return size;
  // A DataLoader over a stream has a __len__ that says that it has none.
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0 && PyErr_ExceptionMatches(PyExc_NotImplementedError) == 0)
    throw nb::python_error();
  PyErr_Clear();
  return std::nullopt;
}

// Whether `object` counted a pass for its __len__, and the next one may have more or less: batches whose size
// a function says, rows that a filter keeps.
bool size_varies(nb::handle object) {
  return nb::cast<bool>(nb::bool_(nb::getattr(object, "_size_varies", nb::bool_(false))));
}

[[noreturn]] void refuse_batches(const std::string& text) { throw nb::type_error(text.c_str()); }

void check_iterable(nb::handle object, const std::string& what) {
  const std::string type = class_name(object);
  const bool is_callable = PyCallable_Check(object.ptr()) != 0;
  if (nb::hasattr(object, "__next__"))
    throw nb::value_error(
        (what + " is a " + type +
         ", which can be gone through once, and each pass begins anew: give what makes it, such as "
         "the function of a generator, a list, or an object with __iter__")
            .c_str());
  if (nb::isinstance<nb::str>(object) || nb::isinstance<nb::bytes>(object) ||
      nb::isinstance<nb::dict>(object) || PyObject_CheckBuffer(object.ptr()) ||
      nb::hasattr(object, "__array__"))
    refuse_batches(what + " is a " + type +
                   ": give a Dataset (NumpySlicesDataset(...).batch(...) of arrays), or something that gives "
                   "one batch after the other, such as a DataLoader");
  if (!nb::hasattr(object, "__iter__") && !is_callable)
    refuse_batches(what +
                   " must be a Dataset, or something to iterate over that gives batches (a DataLoader, a "
                   "list, a function that returns an iterator), not " +
                   type);
}

}  // namespace

data::Dataset batches_from(nb::handle object, const char* what) {
  if (nb::isinstance<PythonDataset>(object) || !nb::getattr(object, "_pipeline", nb::none()).is_none())
    return dataset_from(object, what);
  check_iterable(object, what);
  const auto batches = std::make_shared<IterablePasses>(object, what);
  data::SequenceOptions options{
      .size = iterable_size(object), .num_samples = {}, .external = what, .size_varies = size_varies(object)};
  if (!nb::isinstance<nb::list>(object) && !nb::isinstance<nb::tuple>(object))
    options.order = batches->takes_epoch() ? data::ItemOrder::promised : data::ItemOrder::unknown;
  return data::generated(
      batches->kind().columns,
      [batches](std::uint64_t pass) { return guarded([&] { return batches->rows(pass); }); }, options);
}

}  // namespace muster::python
