#include "muster/launch/read_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace muster::launch {
namespace {

using nlohmann::json;

constexpr std::size_t shown_bytes_max = 64;

// Builds the value while it is read. The library's own builder with a callback looks through a list again for
// each object that is added to it: a file of a few megabytes would take minutes.
class Builder final : public nlohmann::json_sax<json> {
 public:
  bool null() override { return put(json()) != nullptr; }
  bool boolean(bool value) override { return put(json(value)) != nullptr; }
  bool number_integer(number_integer_t value) override { return put(json(value)) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return put(json(value)) != nullptr; }
  bool number_float(number_float_t value, const string_t&) override { return put(json(value)) != nullptr; }
  bool string(string_t& value) override { return put(json(std::move(value))) != nullptr; }
  bool binary(binary_t&) override { return false; }  // not in texts

  bool start_object(std::size_t) override { return begin(json::object()); }
  bool start_array(std::size_t) override { return begin(json::array()); }
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
    const bool is_syntax = dynamic_cast<const json::parse_error*>(&error) != nullptr;
    return stop(is_syntax ? "it is no JSON" : "it has a number that is too large");
  }

  json take() { return std::move(root_); }
  const std::string& problem() const { return problem_; }
  std::size_t error_byte() const { return error_byte_; }  // counted from 1; 0: not known

 private:
  bool stop(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return false;
  }

  bool begin(json value) {
    if (open_.size() == json_depth_max) return stop("it is nested too deeply");
    open_.push_back(put(std::move(value)));
    return true;
  }

  bool end() {
    open_.pop_back();
    return true;
  }

  // Where the value stands now. Places of open lists and objects stay: only the innermost grows.
  json* put(json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    json& inside = *open_.back();
    if (inside.is_object()) return &(inside[key_] = std::move(value));
    inside.push_back(std::move(value));
    return &inside.back();
  }

  json root_;
  std::vector<json*> open_;
  std::string key_;
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

Result<json> read_json(std::string_view text, std::string_view name) {
  Builder builder;
  if (json::sax_parse(text.begin(), text.end(), &builder)) return builder.take();
  return fail(Code::invalid_argument,
              fmt::format("{}: {}{}", name, builder.problem(),
                          builder.error_byte() > 0 ? place_of(text, builder.error_byte()) : ""));
}

}  // namespace muster::launch
