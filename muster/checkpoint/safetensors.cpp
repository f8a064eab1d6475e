#include "muster/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "muster/checkpoint/bytes.h"
#include "muster/checkpoint/direct_writer.h"
#include "muster/checkpoint/json_limits.h"

namespace muster::checkpoint::safetensors {
namespace {

using nlohmann::json;

constexpr std::size_t length_bytes = number_bytes;                // of the header's length, which comes first
constexpr std::size_t alignment = DirectWriter::alignment_bytes;  // of the first element
constexpr std::size_t axes_max = 64;
constexpr std::string_view metadata_name = "__metadata__";

constexpr std::pair<DType, std::string_view> type_names[] = {
    {DType::float32, "F32"},   {DType::float64, "F64"}, {DType::int32, "I32"}, {DType::int64, "I64"},
    {DType::uint8, "U8"},      {DType::uint32, "U32"},  {DType::int8, "I8"},   {DType::bool_, "BOOL"},
    {DType::bfloat16, "BF16"}, {DType::float16, "F16"}, {DType::int16, "I16"}, {DType::uint16, "U16"},
    {DType::uint64, "U64"},
};
// Of other programs.
constexpr std::string_view foreign_types[] = {"F8_E4M3", "F8_E5M2"};

std::string_view type_name(DType dtype) {
  for (const auto& [known, name] : type_names)
    if (known == dtype) return name;
  MUSTER_CHECK(false, "a dtype has no name in safetensors");
  return {};
}

std::optional<DType> type_named(std::string_view text) {
  for (const auto& [dtype, name] : type_names)
    if (name == text) return dtype;
  return std::nullopt;
}

Result<> check_names(std::span<const Place> places) {
  std::set<std::string_view> names;
  for (const Place& place : places) {
    if (place.name.empty()) return fail(Code::invalid_argument, "a tensor to save has no name");
    if (place.name == metadata_name || !names.insert(place.name).second)
      return fail(Code::invalid_argument, fmt::format("two tensors to save are named '{}'", place.name));
  }
  return {};
}

Result<> check_elements(const Entry& entry) {
  if (!entry.value.defined())
    return fail(Code::invalid_argument,
                fmt::format("'{}', which is to be saved, has no elements", entry.name));
  if (const std::string* absence = entry.value.absence())
    return fail(Code::invalid_argument, fmt::format("'{}' cannot be saved here: {}", entry.name, *absence));
  return {};
}

Result<std::string> header_bytes(std::span<const Place> places, const Metadata& metadata) {
  json header = json::object();
  if (!metadata.empty()) header[std::string(metadata_name)] = metadata;
  for (const Place& place : places)
    header[place.name] = {{"dtype", type_name(place.dtype)},
                          {"shape", place.shape.sizes()},
                          {"data_offsets", {place.begin, place.end}}};
  MUSTER_TRY(std::string text, muster::json::to_text(header, "the name of a tensor to save"));
  const std::size_t unpadded = length_bytes + text.size();
  text.append((alignment - unpadded % alignment) % alignment, ' ');
  if (text.size() > json_limits.bytes)
    return fail(Code::not_provided,
                fmt::format("the names and shapes of {} tensors take {} bytes, more than the {} "
                            "that a file may have",
                            places.size(), text.size(), json_limits.bytes));
  std::vector<std::byte> bytes;
  put(bytes, text.size());
  put(bytes, text);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// ---- Reading ----------------------------------------------------------------------------------------------

class Checker {
 public:
  Checker(const std::string& path, std::uint64_t data_bytes) : path_(path), data_bytes_(data_bytes) {}

  tl::unexpected<Error> bad(const std::string& name, std::string_view what) const {
    return fail(Code::corrupt, fmt::format("'{}': tensor '{}': {}", path_, name, what));
  }

  // Offsets from the first element on.
  Result<Place> place(const std::string& name, const json& value) const {
    if (name.empty()) return bad(name, "it has no name");
    if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
        !value.contains("data_offsets"))
      return bad(name, "it is not described by dtype, shape and data_offsets");
    Place made{.name = name};
    MUSTER_TRY(made.dtype, dtype(name, value["dtype"]));
    MUSTER_TRY(made.shape, shape(name, value["shape"]));
    const json& offsets = value["data_offsets"];
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned())
      return bad(name, "its offsets are no two numbers");
    made.begin = offsets[0].get<std::uint64_t>();
    made.end = offsets[1].get<std::uint64_t>();
    if (made.begin > made.end || made.end > data_bytes_)
      return bad(name, fmt::format("its bytes {} to {} are not in the file, which has {}", made.begin,
                                   made.end, data_bytes_));
    MUSTER_TRY_VOID(check_size(made));
    return made;
  }

 private:
  Result<DType> dtype(const std::string& name, const json& value) const {
    const std::string text = value.is_string() ? value.get<std::string>() : std::string();
    if (const auto known = type_named(text)) return *known;
    if (std::find(std::begin(foreign_types), std::end(foreign_types), text) != std::end(foreign_types))
      return fail(Code::not_provided,
                  fmt::format("'{}': tensor '{}' holds elements of type {}, which Muster has "
                              "not; leave it out when writing",
                              path_, name, text));
    return bad(name, "its dtype is none that there is");
  }

  Result<Shape> shape(const std::string& name, const json& value) const {
    if (!value.is_array() || value.size() > axes_max) return bad(name, "its shape is none");
    std::vector<std::int64_t> sizes;
    for (const json& size : value) {
      if (!size.is_number_unsigned() ||
          size.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return bad(name, "its shape has sizes that no axis can have");
      sizes.push_back(size.get<std::int64_t>());
    }
    return Shape(std::move(sizes));
  }

  Result<> check_size(const Place& place) const {
    std::uint64_t announced = size_bytes(place.dtype);
    bool is_empty = false;
    for (const std::int64_t size : place.shape) is_empty = is_empty || size == 0;
    // The other sizes are bounded too: code that multiplies them must not overflow.
    for (const std::int64_t size : place.shape)
      if (size != 0 && __builtin_mul_overflow(announced, static_cast<std::uint64_t>(size), &announced))
        return bad(place.name, "its shape has more elements than can be");
    if (announced > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return bad(place.name, "its shape has more elements than can be");
    if (is_empty) announced = 0;
    if (announced != place.end - place.begin)
      return bad(place.name, fmt::format("{} has {} bytes of elements, not {}", to_string(place.shape),
                                         place.end - place.begin, announced));
    return {};
  }

  const std::string& path_;
  std::uint64_t data_bytes_;
};

Result<> read_metadata(Header& header, const json& value, const std::string& path) {
  if (!value.is_object()) return fail(Code::corrupt, fmt::format("'{}': its metadata are no texts", path));
  for (const auto& [name, text] : value.items()) {
    if (!text.is_string()) return fail(Code::corrupt, fmt::format("'{}': its metadata are no texts", path));
    header.metadata[name] = text.get<std::string>();
  }
  return {};
}

// Each begins where the one before ends, and the last ends with the file.
Result<> check_order(Header& header, const std::string& path, std::uint64_t data_bytes) {
  std::sort(header.places.begin(), header.places.end(), [](const Place& a, const Place& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t at = 0;
  for (const Place& place : header.places) {
    if (place.begin != at)
      return fail(Code::corrupt,
                  fmt::format("'{}': tensor '{}' begins at byte {} of the elements, not at {}: there is {}",
                              path, place.name, place.begin, at, place.begin < at ? "an overlap" : "a hole"));
    at = place.end;
  }
  if (at != data_bytes)
    return fail(Code::corrupt,
                fmt::format("'{}': its tensors have {} bytes, and the file {}", path, at, data_bytes));
  return {};
}

// Of names that are known to fit.
Result<Header> planned(std::vector<Place> places, const Metadata& metadata) {
  Header header{.places = std::move(places)};
  std::stable_sort(header.places.begin(), header.places.end(),
                   [](const Place& a, const Place& b) { return size_bytes(a.dtype) > size_bytes(b.dtype); });
  std::uint64_t at = 0;
  for (Place& place : header.places) {
    place.begin = at;
    at += static_cast<std::uint64_t>(place.shape.elements()) * size_bytes(place.dtype);
    place.end = at;
  }
  MUSTER_TRY(header.bytes, header_bytes(header.places, metadata));
  for (Place& place : header.places) {
    place.begin += header.bytes.size();
    place.end += header.bytes.size();
  }
  return header;
}

}  // namespace

Result<Header> plan(std::span<const Entry> entries, const Metadata& metadata) {
  std::vector<Place> places;
  for (const Entry& entry : entries)
    places.push_back({.name = entry.name, .dtype = entry.value.dtype(), .shape = entry.value.shape()});
  MUSTER_TRY_VOID(check_names(places));
  for (const Entry& entry : entries) MUSTER_TRY_VOID(check_elements(entry));
  return planned(std::move(places), metadata);
}

Result<Header> plan(std::vector<Place> places, const Metadata& metadata) {
  MUSTER_TRY_VOID(check_names(places));
  return planned(std::move(places), metadata);
}

Result<Header> read_header(const InputFile& file, const std::string& path) {
  const std::uint64_t file_bytes = file.size_bytes();
  if (file_bytes < length_bytes)
    return fail(Code::corrupt, fmt::format("'{}': {} bytes are no safetensors file", path, file_bytes));
  std::array<std::byte, length_bytes> length{};
  MUSTER_TRY_VOID(file.read_at(0, length));
  const std::uint64_t size = get(length, 0);
  if (size > file_bytes - length_bytes || size > json_limits.bytes)
    return fail(Code::corrupt,
                fmt::format("'{}': its header would have {} bytes; the file has {}, and a header may "
                            "have {}",
                            path, size, file_bytes, json_limits.bytes));
  Header header;
  header.bytes.resize(length_bytes + size);
  MUSTER_TRY_VOID(file.read_at(0, std::as_writable_bytes(std::span(header.bytes))));
  const std::string_view text = std::string_view(header.bytes).substr(length_bytes);
  if (!text.starts_with('{'))
    return fail(Code::corrupt, fmt::format("'{}': its header does not begin with '{{'", path));
  MUSTER_TRY(const json parsed,
             muster::json::parse(text, fmt::format("the header of '{}'", path), json_limits));
  const std::uint64_t data_bytes = file_bytes - header.bytes.size();
  const Checker checker(path, data_bytes);
  for (const auto& [name, value] : parsed.items()) {
    if (name == metadata_name) {
      MUSTER_TRY_VOID(read_metadata(header, value, path));
      continue;
    }
    MUSTER_TRY(Place place, checker.place(name, value));
    header.places.push_back(std::move(place));
  }
  MUSTER_TRY_VOID(check_order(header, path, data_bytes));
  for (Place& place : header.places) {
    place.begin += header.bytes.size();
    place.end += header.bytes.size();
  }
  return header;
}

Result<Tensor> read_tensor(const InputFile& file, const Place& place) {
  Tensor tensor(place.dtype, place.shape);
  MUSTER_TRY_VOID(file.read_at(place.begin, {tensor.bytes(), tensor.size_bytes()}));
  return tensor;
}

Result<> save(const std::string& path, std::span<const Entry> entries, Files& files,
              const Metadata& metadata) {
  MUSTER_TRY(const Header header, plan(entries, metadata));
  std::map<std::string_view, const Tensor*> tensors;
  for (const Entry& entry : entries) tensors[entry.name] = &entry.value;
  std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(header.bytes))};
  for (const Place& place : header.places) {
    const Tensor& tensor = *tensors.at(place.name);
    pieces.emplace_back(tensor.bytes(), tensor.size_bytes());
  }
  return files.write_pieces(path, pieces);
}

}  // namespace muster::checkpoint::safetensors
