// The sources: files and arrays; and what mindspore.dataset.config sets.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <utility>

#include "muster/train/train.h"
#include "python/muster/bindings/convert.h"
#include "python/muster/bindings/dataset.h"
#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

struct Mnist : PythonDataset {};
struct FashionMnist : PythonDataset {};
struct Cifar10 : PythonDataset {};
struct Cifar100 : PythonDataset {};
struct NumpySlices : PythonDataset {};
struct ImageFolder : PythonDataset {};
struct TokenFile : PythonDataset {};

using Open = data::Dataset (*)(const data::SourceOptions&, const Files&);

// A source of files in a folder.
template <class Kind>
void bind_folder(nb::module_& core, const char* name, Open open, const char* doc) {
  nb::class_<Kind, PythonDataset>(core, name, doc)
      .def(
          "__init__",
          [open](Kind* self, std::string dataset_dir, std::optional<std::string> usage,
                 std::optional<std::int64_t> num_samples, std::optional<bool> shuffle, nb::handle sampler,
                 std::optional<std::int64_t> num_shards, std::optional<std::int64_t> shard_id) {
            new (self) Kind{checked(open({.folder = std::move(dataset_dir),
                                          .usage = usage.value_or(""),
                                          .shuffle = shuffle,
                                          .num_samples = num_samples,
                                          .num_shards = num_shards,
                                          .shard_id = shard_id,
                                          .sampler = sampler_from(sampler)},
                                         real_files()))};
          },
          nb::arg("dataset_dir"), nb::arg("usage") = nb::none(), nb::kw_only(),
          nb::arg("num_samples") = nb::none(), nb::arg("shuffle") = nb::none(),
          nb::arg("sampler") = nb::none(), nb::arg("num_shards") = nb::none(),
          nb::arg("shard_id") = nb::none(),
          "Reads and checks the files in `dataset_dir` now. `usage` is 'train', 'test' or 'all' (the "
          "default). FileNotFoundError or CorruptDataError name the file and the byte. Rows are shuffled "
          "unless `shuffle` is False; shard `shard_id` of `num_shards` gets as many rows as every other; a "
          "`sampler` (or a list of row numbers) chooses the rows instead.");
}

// A dict of arrays by column, a tuple of arrays, or one array, each with the rows along its first axis.
std::pair<std::vector<std::string>, std::vector<Tensor>> arrays_from(nb::handle data,
                                                                     nb::handle column_names) {
  std::vector<std::string> names = names_from(column_names);
  std::vector<Tensor> arrays;
  if (nb::isinstance<nb::dict>(data)) {
    std::vector<std::string> keys;
    for (const auto [key, value] : nb::borrow<nb::dict>(data)) {
      keys.push_back(nb::cast<std::string>(key));
      arrays.push_back(tensor_copied(value, {}));
    }
    if (names.empty()) names = std::move(keys);
  } else if (nb::isinstance<nb::tuple>(data)) {
    for (const nb::handle value : nb::borrow<nb::tuple>(data)) arrays.push_back(tensor_copied(value, {}));
  } else {
    arrays.push_back(tensor_copied(data, {}));
  }
  if (names.empty())
    for (std::size_t i = 0; i < arrays.size(); ++i) names.push_back("column_" + std::to_string(i));
  return {std::move(names), std::move(arrays)};
}

void bind_slices(nb::module_& core) {
  nb::class_<NumpySlices, PythonDataset>(core, "NumpySlicesDataset",
                                         "Rows of arrays: row i is element i of each.")
      .def(
          "__init__",
          [](NumpySlices* self, nb::handle data, nb::handle column_names,
             std::optional<std::int64_t> num_samples, std::optional<bool> shuffle, nb::handle sampler,
             std::optional<std::int64_t> num_shards, std::optional<std::int64_t> shard_id) {
            auto [names, arrays] = arrays_from(data, column_names);
            new (self) NumpySlices{checked(data::slices(std::move(names), std::move(arrays),
                                                        {.shuffle = shuffle,
                                                         .num_samples = num_samples,
                                                         .num_shards = num_shards,
                                                         .shard_id = shard_id,
                                                         .sampler = sampler_from(sampler)}))};
          },
          nb::arg("data"), nb::arg("column_names") = nb::none(), nb::kw_only(),
          nb::arg("num_samples") = nb::none(), nb::arg("shuffle") = nb::none(),
          nb::arg("sampler") = nb::none(), nb::arg("num_shards") = nb::none(),
          nb::arg("shard_id") = nb::none(),
          "Copies `data` now: an array or list, a tuple of them, or a dict of them by column name. Columns "
          "without names are column_0, column_1, …");
}

void bind_image_folder(nb::module_& core) {
  nb::class_<ImageFolder, PythonDataset>(
      core, "ImageFolderDataset",
      "Pictures (JPEG, PNG) in folders, one folder a class: columns image, uint8, and label () int32.")
      .def(
          "__init__",
          [](ImageFolder* self, std::string dataset_dir, std::optional<std::int64_t> num_samples,
             std::optional<bool> shuffle, nb::handle sampler,
             std::optional<std::vector<std::string>> extensions,
             std::optional<std::map<std::string, std::int32_t>> class_indexing, bool decode,
             std::optional<std::int64_t> num_shards, std::optional<std::int64_t> shard_id) {
            data::ImageFolderOptions options{.folder = std::move(dataset_dir)};
            if (extensions) options.extensions = *std::move(extensions);
            if (class_indexing) options.class_indexing = *std::move(class_indexing);
            options.decode = decode;
            options.rows = {.shuffle = shuffle,
                            .num_samples = num_samples,
                            .num_shards = num_shards,
                            .shard_id = shard_id,
                            .sampler = sampler_from(sampler)};
            new (self) ImageFolder{checked(data::image_folder(options))};
          },
          nb::arg("dataset_dir"), nb::kw_only(), nb::arg("num_samples") = nb::none(),
          nb::arg("shuffle") = nb::none(), nb::arg("sampler") = nb::none(),
          nb::arg("extensions") = nb::none(), nb::arg("class_indexing") = nb::none(),
          nb::arg("decode") = false, nb::arg("num_shards") = nb::none(), nb::arg("shard_id") = nb::none(),
          "Lists the files now and reads them when they are needed. Classes are numbered in the order of "
          "their names, or as `class_indexing` says. Images are the bytes of the files, or (H, W, 3) with "
          "`decode`.");
}

void bind_token_file(nb::module_& core) {
  nb::class_<TokenFile, PythonDataset>(
      core, "TokenFileDataset",
      "Windows of a file of token ids: columns input and target, each (window,) int32; a target is the token "
      "behind its input.")
      .def(
          "__init__",
          [](TokenFile* self, std::string dataset_file, std::int64_t window, nb::handle dtype,
             std::optional<std::int64_t> num_samples, std::optional<bool> shuffle, nb::handle sampler,
             std::optional<std::int64_t> num_shards, std::optional<std::int64_t> shard_id) {
            new (self) TokenFile{checked(data::token_file({.file = std::move(dataset_file),
                                                           .window = window,
                                                           .dtype = dtype_from(dtype),
                                                           .rows = {.shuffle = shuffle,
                                                                    .num_samples = num_samples,
                                                                    .num_shards = num_shards,
                                                                    .shard_id = shard_id,
                                                                    .sampler = sampler_from(sampler)}}))};
          },
          nb::arg("dataset_file"), nb::arg("window"), nb::arg("dtype") = "uint16", nb::kw_only(),
          nb::arg("num_samples") = nb::none(), nb::arg("shuffle") = nb::none(),
          nb::arg("sampler") = nb::none(), nb::arg("num_shards") = nb::none(),
          nb::arg("shard_id") = nb::none(),
          "Row i has the tokens i * window to (i + 1) * window - 1. Ids lie one after the other as `dtype` "
          "(uint8: the bytes of a text; uint16, uint32, int32), little-endian, without a header. The file is "
          "read as rows are needed, and may be larger than memory.");
}

void bind_settings(nb::module_& core) {
  core.def(
      "set_data_seed", &train::set_data_seed, nb::arg("seed").none(),
      "The seed of shuffles and random operations, instead of that of set_seed(); None: that one again.");
  core.def(
      "get_data_seed", [] { return train::data_options(0).seed; }, "The seed of passes that begin now.");
  core.def(
      "set_data_prefetch", [](std::int64_t items) { unwrap(train::set_data_prefetch(items)); },
      nb::arg("items"), "How many items a pass makes ahead at most.");
  core.def(
      "get_data_prefetch", [] { return train::data_settings().prefetch_items; }, "Items made ahead at most.");
  core.def(
      "set_data_workers", [](std::int64_t workers) { unwrap(train::set_data_workers(workers)); },
      nb::arg("workers"), "How many threads share the work of a pass.");
  core.def(
      "get_data_workers",
      [] {
        const int workers = train::data_settings().workers;
        return workers > 0 ? workers : data::workers_default();
      },
      "Threads that share the work of a pass.");
  core.def(
      "_set_column_slices",
      [](std::vector<std::vector<std::int64_t>> cuts, std::vector<std::vector<std::int64_t>> numbers) {
        std::vector<train::ColumnSlices> columns;
        for (std::size_t at = 0; at < cuts.size(); ++at)
          columns.push_back({.cuts = std::move(cuts[at]), .numbers = std::move(numbers.at(at))});
        train::set_column_slices(std::move(columns));
      },
      nb::arg("cuts"), nb::arg("numbers"),
      "How the columns of every dataset are cut, and which slice each worker reads.");
  core.def(
      "_joined_slices",
      [](std::size_t column, nb::handle piece) {
        return tensor_object(unwrap(train::joined_slices(column, elements_of(value_from(piece)))));
      },
      nb::arg("column"), nb::arg("piece"),
      "A column as all workers have it together; every worker calls it with its slice.");
  using Seconds = std::chrono::duration<double>;
  const auto duration = [](double seconds) {
    constexpr double seconds_max = 1e9;
    if (!(seconds >= 0 && seconds <= seconds_max))
      throw nb::value_error("a time for worker processes is from 0 (for ever) to 1e9 seconds");
    return std::chrono::duration_cast<Duration>(Seconds(seconds));
  };
  core.def(
      "set_data_worker_warning",
      [duration](double interval) {
        unwrap(train::set_data_worker_limits(duration(interval), train::data_settings().worker_deadline));
      },
      nb::arg("interval"),
      "After how many seconds at one row a worker process (python_multiprocessing) is named in a warning, "
      "and again after as long; 0: never. 60 unless set.");
  core.def(
      "get_data_worker_warning", [] { return Seconds(train::data_settings().worker_warning).count(); },
      "Seconds until a warning names a worker process.");
  core.def(
      "set_data_worker_deadline",
      [duration](double seconds) {
        unwrap(train::set_data_worker_limits(train::data_settings().worker_warning, duration(seconds)));
      },
      nb::arg("seconds"),
      "After how many seconds at one row of a worker process (python_multiprocessing) the pass ends with a "
      "TimeoutError that names both; 0: never. 600 unless set.");
  core.def(
      "get_data_worker_deadline", [] { return Seconds(train::data_settings().worker_deadline).count(); },
      "Seconds until a worker process at one row is an error.");
}

}  // namespace

void bind_sources(nb::module_& core) {
  bind_folder<Mnist>(
      core, "MnistDataset", &data::mnist,
      "Handwritten digits from IDX files: columns image (28, 28, 1) uint8 and label () uint32.");
  bind_folder<FashionMnist>(
      core, "FashionMnistDataset", &data::fashion_mnist,
      "Pictures of clothes from IDX files: columns image (28, 28, 1) uint8 and label () "
      "uint32.");
  bind_folder<Cifar10>(
      core, "Cifar10Dataset", &data::cifar10,
      "Photographs in ten classes, from the binary files of CIFAR-10: columns image (32, 32, 3) "
      "uint8 and label () uint32.");
  bind_folder<Cifar100>(
      core, "Cifar100Dataset", &data::cifar100,
      "Photographs in a hundred classes, from the binary files of CIFAR-100: columns image (32, "
      "32, 3) uint8, coarse_label () and fine_label () uint32.");
  bind_slices(core);
  bind_image_folder(core);
  bind_token_file(core);
  bind_settings(core);
}

}  // namespace muster::python
