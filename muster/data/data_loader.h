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
  // The next item: iterator.next(), for who looks at it.
  using Next = Result<std::optional<Item>> (*)(Iterator&);

  class Cursor {
   public:
    using value_type = Item;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    explicit Cursor(DataLoader& loader) : loader_(&loader) { ++*this; }
    const Item& operator*() const { return *item_; }
    const Item* operator->() const { return &*item_; }
    Cursor& operator++() {
      item_ = loader_->next_(loader_->items_).value();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Cursor& cursor, std::default_sentinel_t) { return !cursor.item_; }

   private:
    DataLoader* loader_;
    std::optional<Item> item_;
  };

  explicit DataLoader(
      Iterator items, Next next = [](Iterator& all) { return all.next(); })
      : items_(std::move(items)), next_(next) {}
  Cursor begin() { return Cursor(*this); }
  static std::default_sentinel_t end() { return std::default_sentinel; }

 private:
  Iterator items_;
  Next next_;
};

}  // namespace muster::data
