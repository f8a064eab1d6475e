// GeneratorDataset: rows that Python code makes, on the pass's one thread with the interpreter lock.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "python/muster/bindings/convert.h"
#include "python/muster/bindings/dataset.h"
#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/held.h"
#include "python/muster/bindings/worker_host.h"

namespace muster::python {
namespace {

using DTypes = std::vector<std::optional<DType>>;

// One row: a tuple or list of values, or one value. Interpreter lock held.
std::vector<Tensor> row_from(nb::handle object, const DTypes& dtypes) {
  std::vector<nb::object> parts;
  if (nb::isinstance<nb::tuple>(object) || (dtypes.size() > 1 && nb::isinstance<nb::list>(object)))
    for (const nb::handle part : nb::borrow<nb::object>(object)) parts.push_back(nb::borrow(part));
  else
    parts.push_back(nb::borrow(object));
  std::vector<Tensor> row;
  for (std::size_t i = 0; i < parts.size(); ++i)
    row.push_back(tensor_copied(parts[i], i < dtypes.size() ? dtypes[i] : std::nullopt));
  return row;
}

class RandomAccess final : public data::RowSource {
 public:
  RandomAccess(nb::object source, DTypes dtypes)
      : rows_(static_cast<std::int64_t>(nb::len(source))),
        source_(std::move(source)),
        dtypes_(std::move(dtypes)) {}
  std::int64_t rows() const override { return rows_; }
  Result<std::vector<Tensor>> row(std::int64_t index) const override {
    return guarded([&] {
      const nb::object row = source_.get()[nb::int_(index)];
      return row_from(row, dtypes_);
    });
  }

 private:
  const std::int64_t rows_;
  const Held source_;
  const DTypes dtypes_;
};

class Iteration final : public data::RowSequence {
 public:
  Iteration(nb::object iterator, DTypes dtypes)
      : iterator_(std::move(iterator)), dtypes_(std::move(dtypes)) {}
  Result<std::optional<std::vector<Tensor>>> next() override {
    return guarded([&]() -> std::optional<std::vector<Tensor>> {
      const auto item = nb::steal<nb::object>(PyIter_Next(iterator_.get().ptr()));
      if (item.is_valid()) return row_from(item, dtypes_);
      if (PyErr_Occurred() != nullptr) throw nb::python_error();
      return std::nullopt;
    });
  }

 private:
  const Held iterator_;
  const DTypes dtypes_;
};

// A function is called for each pass; anything else is iterated over.
data::BeginRows begin_rows(nb::object source, const DTypes& dtypes) {
  auto held = std::make_shared<const Held>(std::move(source));
  return [held, dtypes](std::uint64_t) -> Result<std::unique_ptr<data::RowSequence>> {
    return guarded([&]() -> std::unique_ptr<data::RowSequence> {
      nb::object rows = held->get();
      if (!nb::hasattr(rows, "__iter__") && PyCallable_Check(rows.ptr()) != 0) rows = rows();
      return std::make_unique<Iteration>(nb::iter(rows), dtypes);
    });
  };
}

struct GeneratorArguments {
  std::vector<std::string> names;
  DTypes dtypes;
  data::RowOptions rows;
  data::ProcessOptions processes;
};

data::Dataset dataset_from(nb::object source, GeneratorArguments arguments) {
  if (nb::hasattr(source, "__getitem__") && nb::hasattr(source, "__len__")) {
    auto rows = std::make_shared<RandomAccess>(std::move(source), std::move(arguments.dtypes));
    return data::generated(std::move(arguments.names), std::move(rows), arguments.rows,
                           std::move(arguments.processes));
  }
  if (!nb::hasattr(source, "__iter__") && !nb::hasattr(source, "__next__") &&
      PyCallable_Check(source.ptr()) == 0)
    throw nb::type_error(("a generator is a function that returns rows, an iterable, or has __getitem__ and "
                          "__len__; this is " +
                          class_name(source))
                             .c_str());
  if (arguments.processes.count > 0)
    throw nb::value_error(
        "rows that come one after the other cannot be made by several processes: give the source __getitem__ "
        "and __len__, or leave num_parallel_workers and python_multiprocessing out");
  const data::RowOptions& rows = arguments.rows;
  if (rows.shuffle.value_or(false) || rows.sampler || rows.num_shards || rows.shard_id)
    throw nb::value_error(
        "rows that come one after the other cannot be shuffled, sampled or shared out: give the "
        "source __getitem__ and __len__");
  data::SequenceOptions options{.size = std::nullopt, .num_samples = rows.num_samples};
  if (nb::hasattr(source, "__len__")) options.size = static_cast<std::int64_t>(nb::len(source));
  return data::generated(std::move(arguments.names), begin_rows(std::move(source), arguments.dtypes),
                         options);
}

// A job that recovers tells of sources that draw, or count, what no recovery point holds.
nb::object told(const nb::object& source) {
  return nb::module_::import_("muster._draws").attr("told_source")(source);
}

DTypes dtypes_from(nb::handle column_types) {
  DTypes dtypes;
  if (column_types.is_none()) return dtypes;
  for (const nb::handle type : nb::borrow<nb::object>(column_types))
    dtypes.push_back(type.is_none() ? std::nullopt : std::optional(dtype_from(type)));
  return dtypes;
}

struct Generator : PythonDataset {};

}  // namespace

void bind_generators(nb::module_& core) {
  nb::class_<Generator, PythonDataset>(core, "GeneratorDataset", "Rows that Python code makes.")
      .def(
          "__init__",
          [](Generator* self, nb::object source, nb::handle column_names, nb::handle column_types,
             std::optional<std::int64_t> num_samples, std::optional<bool> shuffle, nb::handle sampler,
             std::optional<std::int64_t> num_shards, std::optional<std::int64_t> shard_id,
             int num_parallel_workers, std::optional<bool> python_multiprocessing, nb::handle max_rowsize) {
            GeneratorArguments arguments{
                .names = names_from(column_names),
                .dtypes = dtypes_from(column_types),
                .rows = {.shuffle = shuffle,
                         .num_samples = num_samples,
                         .num_shards = num_shards,
                         .shard_id = shard_id,
                         .sampler = sampler_from(sampler)},
                .processes =
                    processes_from(num_parallel_workers,
                                   python_multiprocessing.value_or(num_parallel_workers > 1), max_rowsize)};
            new (self) Generator{checked(dataset_from(told(source), std::move(arguments)))};
          },
          nb::arg("source"), nb::arg("column_names"), nb::arg("column_types") = nb::none(), nb::kw_only(),
          nb::arg("num_samples") = nb::none(), nb::arg("shuffle") = nb::none(),
          nb::arg("sampler") = nb::none(), nb::arg("num_shards") = nb::none(),
          nb::arg("shard_id") = nb::none(), nb::arg("num_parallel_workers") = 1,
          nb::arg("python_multiprocessing") = nb::none(), nb::arg("max_rowsize") = nb::none(),
          "A `source` with __getitem__ and __len__ gives any row, and is shuffled unless `shuffle` is False; "
          "a function that returns an iterator (a generator function) or an iterable gives rows one after "
          "the other. A row is a tuple with a value for each column, or one value. The code runs on one "
          "thread, ahead of the training. Where any row can be asked for, `num_parallel_workers` above 1 (or "
          "`python_multiprocessing`) makes them in so many processes, which each pass forks: rows come in "
          "the same order, `random` and `numpy.random` are seeded for each row, an exception comes with the "
          "worker's traceback. A row takes at most `max_rowsize` MB; None or -1: as much as it needs, up to "
          "1 GiB.");
}

}  // namespace muster::python
