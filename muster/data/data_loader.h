// One pass over a dataset as a range, for range-for.
#pragma once

#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

#include "muster/data/iterator.h"

namespace muster::data {

//   for (const data::Item& batch : dataset.loader({.seed = 1, .epoch = epoch})) ...
//
// It can be gone through once. An error of the pipeline is thrown as an Exception.
class DataLoader {
 public:
  class Cursor {
   public:
    using value_type = Item;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    explicit Cursor(Iterator& items) : items_(&items) { ++*this; }
    const Item& operator*() const { return *item_; }
    const Item* operator->() const { return &*item_; }
    Cursor& operator++() {
      item_ = items_->next().value();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Cursor& cursor, std::default_sentinel_t) { return !cursor.item_; }

   private:
    Iterator* items_;
    std::optional<Item> item_;
  };

  explicit DataLoader(Iterator items) : items_(std::move(items)) {}
  Cursor begin() { return Cursor(items_); }
  static std::default_sentinel_t end() { return std::default_sentinel; }

 private:
  Iterator items_;
};

}  // namespace muster::data
