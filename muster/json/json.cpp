#include "muster/json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace muster::json {
namespace {

using Value = nlohmann::json;

constexpr std::size_t shown_bytes_max = 64;

// Builds the value while the text is read, and stops at the first limit that is passed. The library's own
// builder with a callback looks through a list again for each object that is added to it: a file of a few
// megabytes would take minutes.
class Builder final : public nlohmann::json_sax<Value> {
 public:
  explicit Builder(const Limits& limits) : limits_(limits) {}

  bool null() override { return add(Value()); }
  bool boolean(bool value) override { return add(Value(value)); }
  bool number_integer(number_integer_t value) override { return add(Value(value)); }
  bool number_unsigned(number_unsigned_t value) override { return add(Value(value)); }
  bool number_float(number_float_t value, const string_t&) override { return add(Value(value)); }
  bool string(string_t& value) override { return add(Value(std::move(value))); }
  bool binary(binary_t&) override { return false; }  // not in texts

  bool start_object(std::size_t) override { return begin(Value::object()); }
  bool start_array(std::size_t) override { return begin(Value::array()); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }

  bool key(string_t& name) override {
    if (open_.back()->contains(name))
      return stop(fmt::format("'{}' is there twice in one object", name.substr(0, shown_bytes_max)));
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t byte, const std::string&, const nlohmann::detail::exception& error) override {
    error_byte_ = byte;
    const bool is_syntax = dynamic_cast<const Value::parse_error*>(&error) != nullptr;
    return stop(is_syntax ? "it is no JSON" : "it has a number that is too large");
  }

  Value take() { return std::move(root_); }
  const std::string& problem() const { return problem_; }
  std::size_t error_byte() const { return error_byte_; }  // counted from 1; 0: not known

 private:
  bool stop(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return false;
  }

  bool begin(Value value) {
    if (open_.size() == limits_.depth) return stop("it is nested too deeply");
    Value* const place = put(std::move(value));
    if (place == nullptr) return false;
    open_.push_back(place);
    return true;
  }

  bool end() {
    open_.pop_back();
    return true;
  }

  bool add(Value value) { return put(std::move(value)) != nullptr; }

  // Where the value stands now. Places of open lists and objects stay: only the innermost grows.
  Value* put(Value value) {
    if (++values_ > limits_.values) {
      stop(fmt::format("it has more than {} values", limits_.values));
      return nullptr;
    }
    if (open_.empty()) return &(root_ = std::move(value));
    Value& inside = *open_.back();
    if (inside.is_object()) return &(inside[key_] = std::move(value));
    inside.push_back(std::move(value));
    return &inside.back();
  }

  const Limits& limits_;
  Value root_;
  std::vector<Value*> open_;
  std::string key_;
  std::size_t values_ = 0;
  std::string problem_;
  std::size_t error_byte_ = 0;
};

std::string place_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte - 1);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = before.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1;
  return fmt::format(": line {}, column {}", line, column);
}

}  // namespace

Result<Value> parse(std::string_view text, std::string_view name, const Limits& limits) {
  if (text.size() > limits.bytes)
    return fail(limits.code,
                fmt::format("{}: it has {} bytes, and may have {} at most", name, text.size(), limits.bytes));
  Builder builder(limits);
  if (Value::sax_parse(text.begin(), text.end(), &builder)) return builder.take();
  return fail(limits.code, fmt::format("{}: {}{}", name, builder.problem(),
                                       builder.error_byte() > 0 ? place_of(text, builder.error_byte()) : ""));
}

Result<std::string> to_text(const Value& value, std::string_view name) {
  try {
    return value.dump();
  } catch (const Value::type_error&) {
    return fail(Code::invalid_argument, fmt::format("{} is no UTF-8", name));
  }
}

}  // namespace muster::json
