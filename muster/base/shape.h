// The shape of a tensor: its sizes, outermost first. A scalar has no dimension and one element.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace muster {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes) : sizes_(sizes) {}
  explicit Shape(std::vector<std::int64_t> sizes) : sizes_(std::move(sizes)) {}

  std::size_t rank() const { return sizes_.size(); }
  std::int64_t operator[](std::size_t axis) const { return sizes_[axis]; }
  std::int64_t& operator[](std::size_t axis) { return sizes_[axis]; }
  const std::vector<std::int64_t>& sizes() const { return sizes_; }
  auto begin() const { return sizes_.begin(); }
  auto end() const { return sizes_.end(); }

  std::int64_t elements() const {
    std::int64_t count = 1;
    for (const std::int64_t size : sizes_) count *= size;
    return count;
  }

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::vector<std::int64_t> sizes_;
};

// "(32, 10)", "(7,)", "()": as Python prints a tuple.
std::string to_string(const Shape& shape);

}  // namespace muster
