// Helpers that the files about datasets share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/data/data.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

// Where the newest pass over a dataset is, which may outlive it.
struct PassProgress {
  std::uint64_t pass = 0;   // its number
  std::uint64_t items = 0;  // that it has given
  bool is_over = true;
  // As in train::LoopPosition.
  std::uint32_t rows_before = 0;
  std::uint64_t items_before = 0;
};

// A description, and how many passes were begun over it: each has a shuffle of its own.
struct PythonDataset {
  data::Dataset description;
  std::uint64_t passes = 0;
  std::uint64_t first_item = 0;   // of the next pass, where a state was loaded
  std::uint32_t rows_before = 0;  // likewise, as in train::LoopPosition
  std::uint64_t items_before = 0;
  std::shared_ptr<PassProgress> progress = std::make_shared<PassProgress>();
};

// The dataset behind `object`, or behind its attribute `_pipeline`, as packages with other names wrap it.
// Raises TypeError naming `what` when there is none.
PythonDataset& python_dataset_from(nb::handle object, const char* what);
// Its description, for passes from the first item on: ValueError where load_state has set another one.
data::Dataset dataset_from(nb::handle object, const char* what);

// The same; or what gives its items when it is iterated over, once for each pass: a loader of another
// library, a list, a function that returns an iterator. An item is a value for each column (a tuple, a list
// or a dict of arrays), or one array. Looks at the first item. Interpreter lock held.
data::Dataset batches_from(nb::handle object, const char* what);

// Raises the mistake in `description`, if there is one.
PythonDataset checked(data::Dataset description);

// None: no names; a name; or several.
std::vector<std::string> names_from(nb::handle names);
std::vector<std::string> column_names(const PythonDataset& dataset);

// A sampler as Python holds it.
struct PythonSampler {
  data::SamplerPtr sampler;
};
// None, a sampler, or a list of row numbers.
data::SamplerPtr sampler_from(nb::handle object);

void bind_dataset_passes(nb::module_& core);
void bind_samplers(nb::module_& core);
// The classes of sources, after class Dataset.
void bind_sources(nb::module_& core);
void bind_generators(nb::module_& core);
// The classes of the operations that rows describe, after class Transform.
void bind_data_rows(nb::module_& core);

}  // namespace muster::python
