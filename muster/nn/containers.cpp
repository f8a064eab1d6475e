#include "muster/nn/containers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "muster/nn/ops.h"
#include "muster/nn/values.h"

namespace muster::nn {

namespace {

[[noreturn]] void refuse_index(const CellSequence& cells, std::string_view what, std::size_t index) {
  throw Exception(Code::invalid_argument, fmt::format("{}.{}: there is no place {} among {} cells",
                                                      cells.class_name(), what, index, cells.size()));
}

bool has_key(const CellSequence& cells, std::string_view key) {
  return std::ranges::any_of(cells.children(), [&](const auto& child) { return child.first == key; });
}

}  // namespace

// A part of a sequence has keys of later places.
void CellSequence::append(CellPtr cell) {
  std::size_t place = size();
  while (has_key(*this, std::to_string(place))) ++place;
  insert_child(std::to_string(place), std::move(cell));
}

void CellSequence::insert(std::size_t index, CellPtr cell) {
  if (index > size()) refuse_index(*this, "insert", index);
  append(std::move(cell));
  for (std::size_t last = size() - 1; last > index; --last) {
    CellPtr moved = at(last);
    replace(last, at(last - 1));
    replace(last - 1, std::move(moved));
  }
}

void CellSequence::replace(std::size_t index, CellPtr cell) {
  insert_child(children().at(index).first, std::move(cell));
}

void CellSequence::erase(std::size_t index) {
  if (index >= size()) refuse_index(*this, "erase", index);
  const Children behind(children().begin() + static_cast<std::ptrdiff_t>(index), children().end());
  for (const auto& [key, cell] : behind) remove(key);
  for (std::size_t i = 1; i < behind.size(); ++i) {
    const auto& [key, cell] = behind[i];
    const std::string before = std::to_string(index + i - 1);
    const bool was_named = key != std::to_string(index + i) || has_key(*this, before);
    insert_child(was_named ? key : before, cell);
  }
}

SequentialCell::SequentialCell(std::span<const CellPtr> cells) : SequentialCell() {
  for (const CellPtr& cell : cells) append(cell);
}

Values SequentialCell::construct(std::span<const Value> inputs) {
  Values values;
  values.assign(inputs.begin(), inputs.end());
  for (const auto& [name, child] : children()) values = child->call(values);
  return values;
}

CellList::CellList(std::span<const CellPtr> cells) : CellList() {
  for (const CellPtr& cell : cells) append(cell);
}

Values CellList::construct(std::span<const Value>) {
  throw Exception(Code::invalid_argument, description() + " computes nothing itself: call the cells in it");
}

Values Identity::construct(std::span<const Value> inputs) { return only_input(*this, inputs); }

Values Flatten::construct(std::span<const Value> inputs) {
  const Value x = only_input(*this, inputs);
  if (!x.defined() || (start_dim_ == 1 && end_dim_ == -1)) return ops::flatten(x);
  const auto rank = static_cast<std::int64_t>(x.shape().rank());
  const std::int64_t start = start_dim_ < 0 ? start_dim_ + rank : start_dim_;
  const std::int64_t end = end_dim_ < 0 ? end_dim_ + rank : end_dim_;
  if (start < 0 || end >= rank || start > end)
    throw Exception(Code::invalid_argument, fmt::format("{}: {} has no axes {} to {}", description(),
                                                        muster::to_string(x.shape()), start_dim_, end_dim_));
  std::vector<std::int64_t> sizes;
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    const std::int64_t size = x.shape()[static_cast<std::size_t>(axis)];
    if (axis > start && axis <= end)
      sizes.back() *= size;
    else
      sizes.push_back(size);
  }
  return ops::reshape(x, Shape(std::move(sizes)));
}

}  // namespace muster::nn
