// Passes over a dataset: Python's iterators.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "python/muster/bindings/dataset.h"

namespace muster::python {

// What a pass gives for each item.
struct ItemForm {
  bool as_dict = false;
  bool as_numpy = false;
};

// One pass. Its thread may be waiting for the interpreter lock to call a Python function, so
// it is never ended while holding the lock.
class Pass {
 public:
  Pass(data::Iterator iterator, std::vector<std::string> names, ItemForm form,
       std::shared_ptr<PassProgress> progress);
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;
  ~Pass();

  nb::object next();
  void close();
  // Before the interpreter ends: threads that want its lock could not end after it.
  static void close_all();

 private:
  nb::object value_of(const Tensor& tensor) const;
  nb::object object_of(const data::Item& item) const;

  std::optional<data::Iterator> iterator_;
  std::vector<std::string> names_;
  ItemForm form_;
  std::shared_ptr<PassProgress> progress_;
  std::uint64_t number_;
};

std::unique_ptr<Pass> begin_pass(PythonDataset& dataset, ItemForm form);

// What create_tuple_iterator and create_dict_iterator return: each `for` over it is a new pass.
struct Passes {
  nb::object dataset;
  ItemForm form;
  std::int64_t left;  // -1: without end

  std::unique_ptr<Pass> begin();
};
Passes make_passes(nb::object dataset, ItemForm form, std::int64_t num_epochs);

// Items in one pass; counts them where only a pass can tell.
std::int64_t dataset_size(PythonDataset& dataset);

}  // namespace muster::python
