// The arguments of a cell as Python writes them, for people: "3, 16, kernel_size=3, pad_mode='same'".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "muster/base/base.h"
#include "muster/nn/windows.h"

namespace muster::nn {

class CellText {
 public:
  template <class Value>
  CellText& add(const Value& value) {
    return append(text_of(value));
  }
  template <class Value>
  CellText& add(std::string_view name, const Value& value) {
    return append(std::string(name) + '=' + text_of(value));
  }
  // Only where it is not what everybody expects.
  template <class Value, class Default>
  CellText& add_unless(std::string_view name, const Value& value, const Default& expected) {
    return text_of(value) == text_of(Value(expected)) ? *this : add(name, value);
  }
  std::string take() { return std::move(text_); }

  static std::string text_of(std::int64_t value);
  static std::string text_of(double value);
  static std::string text_of(bool value);
  static std::string text_of(std::string_view value);
  static std::string text_of(const std::string& value) { return text_of(std::string_view(value)); }
  static std::string text_of(const std::optional<std::int64_t>& value);
  static std::string text_of(const Size2d& value);
  static std::string text_of(const Padding& value);
  static std::string text_of(PadMode value);
  static std::string text_of(const Shape& value);

 private:
  CellText& append(const std::string& text);

  std::string text_;
};

}  // namespace muster::nn
