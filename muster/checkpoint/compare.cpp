#include "muster/checkpoint/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "muster/checkpoint/inspect.h"
#include "muster/checkpoint/ledger.h"
#include "muster/checkpoint/point_files.h"
#include "muster/checkpoint/run_folders.h"
#include "muster/checkpoint/store.h"

namespace muster::checkpoint {
namespace {

using Tensors = std::map<std::string, Tensor>;

constexpr std::string_view deciding_section = "training";

Tensors by_name(std::vector<Entry> entries) {
  Tensors tensors;
  for (Entry& entry : entries) tensors.insert_or_assign(std::move(entry.name), std::move(entry.value));
  return tensors;
}

// "(0, 3)" for the element at `index` in row-major order.
std::string place_of(std::size_t index, const Shape& shape) {
  std::vector<std::int64_t> place(shape.rank());
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    const auto size = static_cast<std::size_t>(shape[axis]);
    place[axis] = static_cast<std::int64_t>(index % size);
    index /= size;
  }
  return to_string(Shape(std::move(place)));
}

std::string element_text(const Tensor& tensor, std::size_t index) {
  switch (tensor.dtype()) {
    case DType::float32:
      return number_text(tensor.data<float>()[index]);
    case DType::float64:
      return number_text(tensor.data<double>()[index]);
    case DType::bfloat16:
      return number_text(static_cast<float>(tensor.data<bfloat16>()[index]));
    case DType::int32:
      return std::to_string(tensor.data<std::int32_t>()[index]);
    case DType::int64:
      return std::to_string(tensor.data<std::int64_t>()[index]);
    case DType::uint8:
      return std::to_string(tensor.data<std::uint8_t>()[index]);
    case DType::uint32:
      return std::to_string(tensor.data<std::uint32_t>()[index]);
    case DType::int8:
      return std::to_string(tensor.data<std::int8_t>()[index]);
    case DType::float16:
      return number_text(static_cast<float>(tensor.data<float16>()[index]));
    case DType::int16:
      return std::to_string(tensor.data<std::int16_t>()[index]);
    case DType::uint16:
      return std::to_string(tensor.data<std::uint16_t>()[index]);
    case DType::uint64:
      return std::to_string(tensor.data<std::uint64_t>()[index]);
    case DType::bool_:
      break;
  }
  return tensor.data<bool>()[index] ? "true" : "false";
}

// What is different between two tensors of one name; nothing when every bit is the same.
std::optional<std::string> difference(const Tensor& one, const Tensor& other) {
  if (one.dtype() != other.dtype() || one.shape() != other.shape())
    return fmt::format("{} {} and {} {}", to_string(one.dtype()), to_string(one.shape()),
                       to_string(other.dtype()), to_string(other.shape()));
  const std::size_t width = size_bytes(one.dtype());
  std::size_t count = 0;
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < static_cast<std::size_t>(one.elements()); ++i) {
    if (std::memcmp(one.bytes() + i * width, other.bytes() + i * width, width) == 0) continue;
    if (!first) first = i;
    ++count;
  }
  if (!first) return std::nullopt;
  return fmt::format("{} of {} elements, the first at {}: {} and {}", count, one.elements(),
                     place_of(*first, one.shape()), element_text(one, *first), element_text(other, *first));
}

// The first tensor that differs, and how many do.
std::optional<std::string> difference(const Tensors& one, const Tensors& other) {
  std::optional<std::string> first;
  std::size_t count = 0;
  const auto add = [&](const std::string& text) {
    if (++count == 1) first = text;
  };
  for (const auto& [name, tensor] : one) {
    const auto found = other.find(name);
    if (found == other.end())
      add(fmt::format("tensor '{}' is in the first alone", name));
    else if (const auto found_difference = difference(tensor, found->second))
      add(fmt::format("tensor '{}' differs in {}", name, *found_difference));
  }
  for (const auto& [name, tensor] : other)
    if (!one.contains(name)) add(fmt::format("tensor '{}' is in the second alone", name));
  if (count > 1) *first += fmt::format(" (and {} more of its tensors)", count - 1);
  return first;
}

// ---- Recovery points --------------------------------------------------------------------------------------

struct Pair {
  const FoundWorker* one;
  const FoundWorker* other;
};

class RunComparer {
 public:
  explicit RunComparer(const Storage& storage) : storage_(storage) {}

  Result<Comparison> compare(const std::vector<FoundWorker>& one, const std::vector<FoundWorker>& other);

 private:
  Result<> compare_steps(const Pair& pair);
  Result<> compare_points(const Pair& pair);
  Result<> compare_point(const Pair& pair, const FoundPoint& one, const FoundPoint& other);
  void compare_sections(const Pair& pair, const Manifest& one, const Manifest& other);

  const Storage& storage_;
  Comparison made_;
  // The earliest of all workers.
  std::optional<std::pair<std::pair<std::uint64_t, std::uint64_t>, std::string>> first_step_;
  std::optional<std::pair<PointId, std::string>> first_tensor_;
  std::optional<std::pair<PointId, std::string>> first_section_;
};

template <class Key>
void keep_first(std::optional<std::pair<Key, std::string>>& first, const Key& key, std::string text) {
  if (!first || key < first->first) first = std::pair{key, std::move(text)};
}

Result<> RunComparer::compare_steps(const Pair& pair) {
  const auto read = [&](const FoundWorker& worker) {
    return read_ledger(fmt::format("{}/{}", worker.folder, ledger_file), storage_);
  };
  MUSTER_TRY(const StepHashes one, read(*pair.one));
  MUSTER_TRY(const StepHashes other, read(*pair.other));
  for (const auto& [step, hash] : one) {
    const auto found = other.find(step);
    if (found == other.end()) continue;
    ++made_.steps;
    if (found->second == hash) continue;
    keep_first(first_step_, step,
               fmt::format("step {} of call {}, of worker {}, is the first whose hashes differ: {} and {}",
                           step.second, step.first, pair.one->rank, hex(hash), hex(found->second)));
  }
  return {};
}

Result<> RunComparer::compare_point(const Pair& pair, const FoundPoint& one, const FoundPoint& other) {
  ++made_.points;
  const PointId& id = one.manifest->id;
  compare_sections(pair, *one.manifest, *other.manifest);
  const auto same = [](const TensorRecord& a, const TensorRecord& b) {
    return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && a.hash == b.hash;
  };
  const auto& a = one.manifest->tensors;
  const auto& b = other.manifest->tensors;
  if (std::equal(a.begin(), a.end(), b.begin(), b.end(), same) ||
      (first_tensor_ && first_tensor_->first <= id))
    return {};
  MUSTER_TRY(Point loaded, read_point(one.folder, *one.manifest, storage_));
  MUSTER_TRY(Point other_loaded, read_point(other.folder, *other.manifest, storage_));
  if (const auto found =
          difference(by_name(std::move(loaded.tensors)), by_name(std::move(other_loaded.tensors))))
    keep_first(first_tensor_, id,
               fmt::format("{}, of worker {}, is the first point that differs: {}", to_string(id),
                           pair.one->rank, *found));
  return {};
}

void RunComparer::compare_sections(const Pair& pair, const Manifest& one, const Manifest& other) {
  std::map<std::string, std::uint64_t> hashes;
  for (const SectionRecord& record : other.sections) hashes[record.name] = record.hash;
  for (const SectionRecord& record : one.sections) {
    const auto found = hashes.find(record.name);
    if (found != hashes.end() && found->second == record.hash) continue;
    const std::string text = fmt::format("section '{}' differs in {}, of worker {}", record.name,
                                         to_string(one.id), pair.one->rank);
    if (record.name == deciding_section)
      keep_first(first_section_, one.id, text);
    else
      made_.notes.push_back(text);
  }
}

Result<> RunComparer::compare_points(const Pair& pair) {
  std::map<PointId, const FoundPoint*> others;
  for (const FoundPoint& point : pair.other->points)
    if (point.manifest) others[point.manifest->id] = &point;
  for (const FoundWorker* worker : {pair.one, pair.other})
    for (const FoundPoint& point : worker->points)
      if (!point.problem.empty()) made_.differences.push_back(fmt::format("damaged: {}", point.problem));
  for (const FoundPoint& point : pair.one->points) {
    const auto found = point.manifest ? others.find(point.manifest->id) : others.end();
    if (found != others.end()) MUSTER_TRY_VOID(compare_point(pair, point, *found->second));
  }
  return {};
}

Result<Comparison> RunComparer::compare(const std::vector<FoundWorker>& one,
                                        const std::vector<FoundWorker>& other) {
  if (one.front().world_size != other.front().world_size)
    made_.differences.push_back(fmt::format("the first run has {} workers, the second {}",
                                            one.front().world_size, other.front().world_size));
  std::map<std::uint64_t, const FoundWorker*> others;
  for (const FoundWorker& worker : other) others[worker.rank] = &worker;
  for (const FoundWorker& worker : one) {
    const auto found = others.find(worker.rank);
    if (found == others.end()) {
      made_.differences.push_back(fmt::format("worker {} is in the first run alone", worker.rank));
      continue;
    }
    MUSTER_TRY_VOID(compare_steps({&worker, found->second}));
    MUSTER_TRY_VOID(compare_points({&worker, found->second}));
    others.erase(found);
  }
  for (const auto& [rank, worker] : others)
    made_.differences.push_back(fmt::format("worker {} is in the second run alone", rank));
  if (first_step_) made_.differences.push_back(first_step_->second);
  if (first_tensor_) made_.differences.push_back(first_tensor_->second);
  if (first_section_) made_.differences.push_back(first_section_->second);
  return std::move(made_);
}

Result<> check_one_job(const std::vector<FoundWorker>& workers, const std::string& path) {
  for (const FoundWorker& worker : workers)
    if (worker.job != workers.front().job)
      return fail(Code::invalid_argument,
                  fmt::format("'{}' has the points of several jobs: name the folder of one, "
                              "for example '{}{}{}'",
                              path, path, path.ends_with('/') ? "" : "/",
                              fmt::format("{}{}", job_prefix, worker.job)));
  return {};
}

// ---- Files of tensors -------------------------------------------------------------------------------------

Result<std::optional<std::string>> file_difference(const std::string& one, const std::string& other,
                                                   const Storage& storage) {
  MUSTER_TRY(auto first, load(one, storage));
  MUSTER_TRY(auto second, load(other, storage));
  return difference(by_name(std::move(first)), by_name(std::move(second)));
}

Result<Comparison> compare_files(const std::string& one, const std::string& other, const Storage& storage) {
  Comparison made{.points = 1};
  MUSTER_TRY(const auto found, file_difference(one, other, storage));
  if (found) made.differences.push_back(*found);
  return made;
}

Result<Comparison> compare_folders(const std::string& one, const std::string& other, const Storage& storage) {
  Comparison made;
  const std::vector<std::string> names = find_tensor_files(other, storage);
  for (const std::string& name : find_tensor_files(one, storage)) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      made.notes.push_back(fmt::format("'{}' is in the first run alone", name));
      continue;
    }
    ++made.points;
    if (!made.differences.empty()) continue;
    MUSTER_TRY(const auto found,
               file_difference(fmt::format("{}/{}", one, name), fmt::format("{}/{}", other, name), storage));
    if (found)
      made.differences.push_back(fmt::format("'{}' is the first file that differs: {}", name, *found));
  }
  return made;
}

}  // namespace

Result<Comparison> compare_runs(const std::string& first, const std::string& second, const Storage& storage) {
  Comparison made;
  if (is_tensor_file(first) && is_tensor_file(second)) {
    MUSTER_TRY(made, compare_files(first, second, storage));
  } else {
    const auto one = find_workers(first, storage);
    const auto other = find_workers(second, storage);
    if (one && other) {
      MUSTER_TRY_VOID(check_one_job(*one, first));
      MUSTER_TRY_VOID(check_one_job(*other, second));
      MUSTER_TRY(made, RunComparer(storage).compare(*one, *other));
    } else {
      MUSTER_TRY(made, compare_folders(first, second, storage));
      if (made.points == 0) return fail(!one ? one.error() : other.error());
    }
  }
  if (made.points == 0 && made.steps == 0 && made.differences.empty())
    return fail(Code::not_found,
                fmt::format("'{}' and '{}' have no step and no point in common: there is nothing to "
                            "compare",
                            first, second));
  return made;
}

}  // namespace muster::checkpoint
