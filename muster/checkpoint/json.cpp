#include "muster/checkpoint/json.h"

#include <fmt/format.h>

#include <utility>

namespace muster::checkpoint {
namespace {

using nlohmann::json;

// Builds the value while the text is read, and stops at the first limit that is passed.
class Builder final : public nlohmann::json_sax<json> {
 public:
  bool null() override { return add(json()); }
  bool boolean(bool value) override { return add(json(value)); }
  bool number_integer(number_integer_t value) override { return add(json(value)); }
  bool number_unsigned(number_unsigned_t value) override { return add(json(value)); }
  bool number_float(number_float_t value, const string_t&) override { return add(json(value)); }
  bool string(string_t& value) override { return add(json(std::move(value))); }
  bool binary(binary_t&) override { return stop("binary values are no JSON"); }

  bool start_object(std::size_t) override { return begin(json::object()); }
  bool start_array(std::size_t) override { return begin(json::array()); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }

  bool key(string_t& name) override {
    if (open_.back()->contains(name)) return stop(fmt::format("'{}' is there twice", name));
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return stop(fmt::format("it is no JSON from byte {} on", position));
  }

  json take() { return std::move(root_); }
  const std::string& problem() const { return problem_; }

 private:
  bool stop(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return false;
  }

  bool begin(json value) {
    if (open_.size() == json_depth_max) return stop("it is nested too deeply");
    json* const place = put(std::move(value));
    if (place == nullptr) return false;
    open_.push_back(place);
    return true;
  }

  bool end() {
    open_.pop_back();
    return true;
  }

  bool add(json value) { return put(std::move(value)) != nullptr; }

  // Where the value stands now. Places of open arrays and objects stay: only the innermost grows.
  json* put(json value) {
    if (++values_ > json_values_max) {
      stop(fmt::format("it has more than {} values", json_values_max));
      return nullptr;
    }
    if (open_.empty()) return &(root_ = std::move(value));
    json& inside = *open_.back();
    if (inside.is_object()) return &(inside[key_] = std::move(value));
    inside.push_back(std::move(value));
    return &inside.back();
  }

  json root_;
  std::vector<json*> open_;
  std::string key_;
  std::size_t values_ = 0;
  std::string problem_;
};

}  // namespace

Result<json> parse_json(std::string_view text, std::string_view what) {
  if (text.size() > json_bytes_max)
    return fail(Code::corrupt,
                fmt::format("{}: {} bytes of JSON, which is more than the {} that there may be", what,
                            text.size(), json_bytes_max));
  Builder builder;
  if (!json::sax_parse(text.begin(), text.end(), &builder))
    return fail(Code::corrupt, fmt::format("{}: {}", what, builder.problem()));
  return builder.take();
}

Result<std::string> json_text(const json& value, std::string_view what) {
  try {
    return value.dump();
  } catch (const json::type_error&) {
    return fail(Code::invalid_argument, fmt::format("{} is no UTF-8", what));
  }
}

}  // namespace muster::checkpoint
