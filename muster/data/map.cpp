// map: checks what is asked for; operations that are not built in run here, row by row.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "muster/data/buffer_pool.h"
#include "muster/data/chain.h"
#include "muster/data/map_transforms.h"
#include "muster/data/node.h"
#include "muster/data/process_stream.h"

namespace muster::data {
namespace {

struct OperationSettings {
  std::vector<OperationPtr> operations;
  std::vector<std::size_t> inputs;  // columns of the child
  std::size_t outputs = 0;          // values that the last operation makes
  std::vector<Place> places;
  std::vector<Column> columns;
  ProcessOptions processes;

  // What the operations make of the input columns of one row; `operation` is the first one's Draw::operation.
  Result<std::vector<Tensor>> apply(std::vector<Tensor> values, Draw draw) const {
    for (const OperationPtr& each : operations) {
      MUSTER_TRY(values, each->apply(values, draw));
      ++draw.operation;
      for (const Tensor& value : values)
        if (!value.defined())
          return fail(Code::invalid_argument,
                      fmt::format("map: '{}' gave a value that is empty", each->name()));
    }
    if (values.size() != outputs)
      return fail(Code::invalid_argument, fmt::format("map: '{}' gave {} values for {} columns",
                                                      operations.back()->name(), values.size(), outputs));
    return values;
  }

  // Views of the block's memory: nothing is copied.
  std::vector<Tensor> inputs_of(const Block& block, std::size_t row) const {
    std::vector<Tensor> values;
    for (const std::size_t column : inputs) {
      const Tensor value = rows_of(block.columns[column], row, 1);
      values.push_back(value.reshaped(without_leading(value.shape())));
    }
    return values;
  }
};

// Any operations, on one or several columns, row by row.
class OperationStream final : public Stream {
 public:
  OperationStream(std::unique_ptr<Stream> child, const OperationSettings& settings, std::uint64_t operation,
                  const BufferPool& pool)
      : child_(std::move(child)), settings_(settings), operation_(operation), pool_(pool) {}

  Result<std::optional<Block>> next(std::size_t want) override {
    MUSTER_TRY(auto block, child_->next(want));
    if (!block) return block;
    std::vector<std::vector<Tensor>> made;  // for each row, its new values
    for (std::size_t row = 0; row < block->rows; ++row) {
      MUSTER_TRY(auto values, settings_.apply(settings_.inputs_of(*block, row),
                                              {.row = block->keys.empty() ? 0 : block->keys[row],
                                               .operation = operation_}));
      made.push_back(std::move(values));
    }
    Block changed{block->rows, {}, std::move(block->keys)};
    for (const Place& place : settings_.places) {
      if (place.made) {
        MUSTER_TRY(auto values, stack(made, place.index));
        changed.columns.push_back(std::move(values));
      } else {
        changed.columns.push_back(block->columns[place.index]);
      }
    }
    return changed;
  }

  // The operations do not see the rows.
  Result<std::size_t> skip(std::size_t rows) override { return child_->skip(rows); }

 private:
  Result<Tensor> stack(const std::vector<std::vector<Tensor>>& rows, std::size_t i) const {
    const Tensor& first = rows.front()[i];
    const Shape shape = with_leading(static_cast<std::int64_t>(rows.size()), first.shape());
    if (rows.size() == 1) return first.reshaped(shape);
    Tensor stacked = pool_.make(first.dtype(), shape);
    std::byte* end = stacked.bytes();
    for (const auto& row : rows) {
      if (row[i].dtype() != first.dtype() || row[i].shape() != first.shape())
        return fail(
            Code::invalid_argument,
            fmt::format("map: '{}' gave {} {} for one row and {} {} for another of the same batch",
                        settings_.operations.back()->name(), to_string(first.dtype()),
                        to_string(first.shape()), to_string(row[i].dtype()), to_string(row[i].shape())));
      if (row[i].size_bytes() > 0) std::memcpy(end, row[i].bytes(), row[i].size_bytes());
      end += row[i].size_bytes();
    }
    return stacked;
  }

  const std::unique_ptr<Stream> child_;
  const OperationSettings& settings_;
  const std::uint64_t operation_;
  const BufferPool& pool_;
};

std::string names_of(const std::vector<OperationPtr>& operations) {
  std::string names;
  for (const OperationPtr& operation : operations) names += (names.empty() ? "" : ", ") + operation->name();
  return names;
}

// The rows of the child, for processes. The columns that are not mapped stay here.
class MapTasks final : public TaskFeed {
 public:
  MapTasks(std::unique_ptr<Stream> child, const OperationSettings& settings, std::uint64_t operation)
      : child_(std::move(child)), settings_(settings), operation_(operation) {}

  // Where the columns are, of which this feed keeps only those that are not mapped.
  static std::vector<Place> places(const OperationSettings& settings) {
    std::vector<Place> places = settings.places;
    std::size_t kept = 0;
    for (Place& place : places)
      if (!place.made) place.index = kept++;
    return places;
  }

  Result<std::optional<GivenRow>> next() override {
    if (position_ == block_.rows) {
      constexpr std::size_t rows_at_a_time = 16;
      MUSTER_TRY(auto block, child_->next(rows_at_a_time));
      if (!block) return std::nullopt;
      block_ = *std::move(block);
      position_ = 0;
    }
    const std::size_t at = position_++;
    const std::uint64_t key = block_.keys.empty() ? 0 : block_.keys[at];
    Block rest{.rows = 1, .columns = {}, .keys = {key}};
    for (const Place& place : settings_.places)
      if (!place.made) rest.columns.push_back(rows_of(block_.columns[place.index], at, 1));
    const std::uint64_t seed[] = {key, operation_};
    return GivenRow{.task = {.row = row_++,
                             .key = key,
                             .seed = hash_bytes(seed, sizeof seed),
                             .inputs = settings_.inputs_of(block_, at)},
                    .rest = std::move(rest)};
  }

  Result<std::size_t> skip(std::size_t rows) override {
    const std::size_t here = std::min(rows, block_.rows - position_);
    position_ += here;
    MUSTER_TRY(const std::size_t more, here < rows ? child_->skip(rows - here) : Result<std::size_t>(0));
    row_ += static_cast<std::int64_t>(here + more);
    return here + more;
  }

 private:
  const std::unique_ptr<Stream> child_;
  const OperationSettings& settings_;
  const std::uint64_t operation_;
  Block block_;  // its rows before `position_` were given
  std::size_t position_ = 0;
  std::int64_t row_ = 0;
};

class OperationNode final : public OneByOneNode {
 public:
  OperationNode(NodePtr child, OperationSettings settings)
      : OneByOneNode(std::move(child)), settings_(std::move(settings)) {}
  const std::vector<Column>& columns() const override { return settings_.columns; }
  bool foreign() const override { return true; }
  std::uint64_t draws() const override { return child()->draws() + settings_.operations.size(); }
  std::unique_ptr<Stream> open(Pass pass) const override {
    if (settings_.processes.count == 0)
      return std::make_unique<OperationStream>(child()->open(pass), settings_, child()->draws(), pool_);
    return open_process_stream(
        std::make_unique<MapTasks>(child()->open(pass), settings_, child()->draws()),
        {.processes = settings_.processes,
         .job = {.make =
                     [this](const WorkerTask& task) {
                       return settings_.apply(task.inputs, {.row = task.key, .operation = child()->draws()});
                     },
                 .what = fmt::format("of the pass, in map '{}'", names_of(settings_.operations))},
         .places = MapTasks::places(settings_),
         .columns = columns()},
        pool_, pass);
  }

 private:
  const OperationSettings settings_;
  const BufferPool pool_;
};

// The operations as transforms, if all of them are.
std::vector<TransformPtr> as_transforms(const std::vector<OperationPtr>& operations) {
  std::vector<TransformPtr> transforms;
  for (const OperationPtr& operation : operations)
    if (auto transform = std::dynamic_pointer_cast<const Transform>(operation))
      transforms.push_back(std::move(transform));
  if (transforms.size() != operations.size()) transforms.clear();
  return transforms;
}

// As many output columns as input columns take their places; otherwise they come first.
std::vector<Place> places_of(std::size_t columns, const std::vector<std::size_t>& inputs,
                             std::size_t outputs) {
  std::vector<Place> places;
  const bool in_place = outputs == inputs.size();
  if (!in_place)
    for (std::size_t k = 0; k < outputs; ++k) places.push_back({.made = true, .index = k});
  for (std::size_t i = 0; i < columns; ++i) {
    const auto input = std::find(inputs.begin(), inputs.end(), i);
    if (input == inputs.end())
      places.push_back({.made = false, .index = i});
    else if (in_place)
      places.push_back({.made = true, .index = static_cast<std::size_t>(input - inputs.begin())});
  }
  return places;
}

Result<> check_names(const std::vector<Column>& columns) {
  for (auto column = columns.begin(); column != columns.end(); ++column)
    if (std::any_of(columns.begin(), column, [&](const Column& c) { return c.name == column->name; }))
      return fail(Code::invalid_argument, fmt::format("map: two columns would be named '{}'", column->name));
  return {};
}

Result<NodePtr> map_transforms(NodePtr child, std::vector<TransformPtr> transforms,
                               const std::vector<std::size_t>& inputs, const MapOptions& options) {
  if (inputs.size() != 1)
    return fail(Code::invalid_argument,
                fmt::format("map: {} takes one column, not {}", transforms.front()->name(), inputs.size()));
  if (options.output_columns.size() > 1)
    return fail(Code::invalid_argument,
                fmt::format("map: {} makes one column, not {}", transforms.back()->name(),
                            options.output_columns.size()));
  TransformSettings settings{.transforms = std::move(transforms),
                             .column = inputs.front(),
                             .columns = child->columns(),
                             .workers_max = options.workers_max};
  Column& column = settings.columns[settings.column];
  if (column.dtype && column.shape) {
    auto type = infer(settings.transforms, {*column.dtype, *column.shape});
    if (!type)
      return fail(type.error().code,
                  fmt::format("map of column '{}': {}", column.name, type.error().message));
    column = {column.name, type->dtype, type->shape};
  }
  if (!options.output_columns.empty()) column.name = options.output_columns.front();
  MUSTER_TRY_VOID(check_names(settings.columns));
  return make_transform_node(std::move(child), std::move(settings));
}

}  // namespace

Result<NodePtr> make_map(NodePtr child, std::vector<OperationPtr> operations, MapOptions options) {
  if (operations.empty()) return fail(Code::invalid_argument, "map: there is no operation");
  if (std::find(operations.begin(), operations.end(), nullptr) != operations.end())
    return fail(Code::invalid_argument, "map: an operation is empty");
  if (options.workers_max < 0)
    return fail(Code::invalid_argument,
                fmt::format("map: num_parallel_workers is {}; it must be at least 1", options.workers_max));
  MUSTER_TRY(auto inputs, find_columns(child->columns(), options.input_columns, "map"));
  if (inputs.empty()) inputs = {0};

  auto transforms = as_transforms(operations);
  if (!transforms.empty()) return map_transforms(std::move(child), std::move(transforms), inputs, options);

  MUSTER_TRY_VOID(check_processes(options.processes));
  OperationSettings settings;
  settings.operations = std::move(operations);
  settings.inputs = inputs;
  settings.processes = std::move(options.processes);
  const auto& names = options.output_columns;
  settings.outputs = names.empty() ? inputs.size() : names.size();
  settings.places = places_of(child->columns().size(), inputs, settings.outputs);
  for (const Place& place : settings.places)
    if (place.made)
      settings.columns.push_back(
          {names.empty() ? child->columns()[inputs[place.index]].name : names[place.index], {}, {}});
    else
      settings.columns.push_back(child->columns()[place.index]);
  MUSTER_TRY_VOID(check_names(settings.columns));
  return std::make_shared<OperationNode>(std::move(child), std::move(settings));
}

}  // namespace muster::data
