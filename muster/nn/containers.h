// Cells made of cells, and cells that only move or keep values.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "muster/nn/cell.h"

namespace muster::nn {

// A list of cells: its children are named by their places, "0", "1", ...; the names of parameters stay those
// of the first place that their cell had.
class CellSequence : public Cell {
 public:
  std::size_t size() const { return children().size(); }
  const CellPtr& at(std::size_t index) const { return children().at(index).second; }
  void append(CellPtr cell);
  // Makes the cell: `net.append<nn::Dense>(784, 10)`.
  template <std::derived_from<Cell> Child, class... Arguments>
  Child& append(Arguments&&... arguments) {
    auto cell = std::make_shared<Child>(std::forward<Arguments>(arguments)...);
    append(cell);
    return *cell;
  }
  // Before the cell at `index`; at the end when index is size().
  void insert(std::size_t index, CellPtr cell);
  void replace(std::size_t index, CellPtr cell);
  // Cells behind it move up, and so do keys that are their places; those of a dict stay.
  void erase(std::size_t index);

 protected:
  using Cell::Cell;
};

// One after another: each gets what the one before returned.
class SequentialCell : public CellSequence {
 public:
  SequentialCell() : CellSequence("SequentialCell") {}
  explicit SequentialCell(std::span<const CellPtr> cells);
  SequentialCell(std::initializer_list<CellPtr> cells)
      : SequentialCell(std::span<const CellPtr>(cells.begin(), cells.size())) {}
  Values construct(std::span<const Value> inputs) override;
};

// Cells that another cell calls.
class CellList : public CellSequence {
 public:
  CellList() : CellSequence("CellList") {}
  explicit CellList(std::span<const CellPtr> cells);
  CellList(std::initializer_list<CellPtr> cells)
      : CellList(std::span<const CellPtr>(cells.begin(), cells.size())) {}
  // An error: a list computes nothing.
  Values construct(std::span<const Value> inputs) override;
};

// x as it is.
class Identity : public Cell {
 public:
  Identity() : Cell("Identity") {}
  Values construct(std::span<const Value> inputs) override;
};

// (N, ...) to (N, all the rest), or the axes from start_dim to end_dim as one; both may count from the end.
class Flatten : public Cell {
 public:
  explicit Flatten(std::int64_t start_dim = 1, std::int64_t end_dim = -1)
      : Cell("Flatten"), start_dim_(start_dim), end_dim_(end_dim) {}
  Values construct(std::span<const Value> inputs) override;

 private:
  std::int64_t start_dim_;
  std::int64_t end_dim_;
};

}  // namespace muster::nn
