#include "muster/checkpoint/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "muster/checkpoint/json_limits.h"

namespace muster::checkpoint {
namespace {

using nlohmann::json;

// The hash of what follows its digits comes first, so that it covers every other byte of the file.
constexpr std::string_view opening = "{\"hash\": \"";
constexpr std::size_t hex_digits = 16;
constexpr std::string_view format_name = "muster recovery point";
constexpr std::uint64_t version = 1;
constexpr std::size_t axes_max = 64;

std::optional<std::uint64_t> number_of_hex(std::string_view text) {
  if (!is_job(text)) return {};
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

// One record a line, for people who look.
std::string lines(const std::vector<std::string>& records) {
  return records.empty() ? "[]" : fmt::format("[\n  {}]", fmt::join(records, ",\n  "));
}

// Reads fields of one object; what is missing or of another kind is an error that names it.
class Fields {
 public:
  Fields(const json& object, const std::string& path) : object_(object), path_(path) {}

  tl::unexpected<Error> bad(std::string_view name) const {
    return fail(Code::corrupt, fmt::format("'{}': '{}' is missing or is not what it can be", path_, name));
  }
  const json* find(const char* name) const {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  Result<std::uint64_t> number(const char* name) const {
    const json* value = find(name);
    if (value == nullptr || !value->is_number_unsigned()) return bad(name);
    return value->get<std::uint64_t>();
  }
  Result<std::string> text(const char* name) const {
    const json* value = find(name);
    if (value == nullptr || !value->is_string()) return bad(name);
    return value->get<std::string>();
  }
  // What may be absent.
  Result<std::string> text_or_nothing(const char* name) const {
    return find(name) == nullptr ? Result<std::string>() : text(name);
  }
  Result<bool> is_set(const char* name) const {
    const json* value = find(name);
    if (value == nullptr) return false;
    if (!value->is_boolean()) return bad(name);
    return value->get<bool>();
  }
  Result<std::uint64_t> hash(const char* name) const {
    MUSTER_TRY(const std::string digits, text(name));
    const auto value = number_of_hex(digits);
    if (!value) return bad(name);
    return *value;
  }
  Result<const json*> list(const char* name) const {
    const json* value = find(name);
    if (value == nullptr || !value->is_array()) return bad(name);
    return value;
  }

 private:
  const json& object_;
  const std::string& path_;
};

Result<Shape> read_shape(const Fields& fields) {
  MUSTER_TRY(const json* list, fields.list("shape"));
  if (list->size() > axes_max) return fields.bad("shape");
  std::vector<std::int64_t> sizes;
  std::uint64_t elements = 8;  // the greatest element has as many bytes
  for (const json& size : *list) {
    if (!size.is_number_unsigned()) return fields.bad("shape");
    const auto value = size.get<std::uint64_t>();
    if (value > std::uint64_t{1} << 62 ||
        __builtin_mul_overflow(elements, std::max<std::uint64_t>(value, 1), &elements) ||
        elements > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return fields.bad("shape");
    sizes.push_back(static_cast<std::int64_t>(value));
  }
  return Shape(std::move(sizes));
}

Result<TensorRecord> read_tensor_record(const json& value, const std::string& path) {
  const Fields fields(value, path);
  TensorRecord record;
  MUSTER_TRY(record.name, fields.text("name"));
  MUSTER_TRY(const std::string dtype, fields.text("dtype"));
  const auto known = dtype_from_string(dtype);
  if (!known) return fields.bad("dtype");
  record.dtype = *known;
  MUSTER_TRY(record.shape, read_shape(fields));
  MUSTER_TRY(record.hash, fields.hash("hash"));
  return record;
}

Result<SectionRecord> read_section_record(const json& value, const std::string& path) {
  const Fields fields(value, path);
  SectionRecord record;
  MUSTER_TRY(record.name, fields.text("name"));
  MUSTER_TRY(record.size_bytes, fields.number("size"));
  MUSTER_TRY(record.hash, fields.hash("hash"));
  return record;
}

Result<PointId> read_id(const Fields& fields) {
  PointId id;
  MUSTER_TRY(id.call, fields.number("call"));
  MUSTER_TRY(const std::string moment, fields.text("moment"));
  MUSTER_TRY(id.step, fields.number("step"));
  for (const auto known : {PointId::Moment::start, PointId::Moment::step, PointId::Moment::end}) {
    if (moment != to_string(known)) continue;
    id.moment = known;
    return id;
  }
  return fields.bad("moment");
}

template <class Record>
Result<> check_names(const std::vector<Record>& records, const std::string& path) {
  std::set<std::string_view> names;
  for (const Record& record : records)
    if (!names.insert(record.name).second)
      return fail(Code::corrupt, fmt::format("'{}': '{}' is there twice", path, record.name));
  return {};
}

Result<> check_totals(const Manifest& manifest, const std::string& path) {
  std::uint64_t total = manifest.header_bytes;
  for (const TensorRecord& record : manifest.tensors)
    if (__builtin_add_overflow(total, record.size_bytes(), &total))
      return fail(Code::corrupt, fmt::format("'{}': its tensors have more bytes than can be", path));
  total = 0;
  for (const SectionRecord& record : manifest.sections)
    if (__builtin_add_overflow(total, record.size_bytes, &total))
      return fail(Code::corrupt, fmt::format("'{}': its sections have more bytes than can be", path));
  return {};
}

Result<> check_hash(std::string_view text, const std::string& path) {
  const std::size_t covered = opening.size() + hex_digits;
  const auto hash = text.size() < covered || !text.starts_with(opening)
                        ? std::nullopt
                        : number_of_hex(text.substr(opening.size(), hex_digits));
  if (!hash) return fail(Code::corrupt, fmt::format("'{}' is no manifest of a recovery point", path));
  if (hash_text(text.substr(covered)) != *hash)
    return fail(Code::corrupt, fmt::format("'{}' is damaged: its bytes do not fit their hash", path));
  return {};
}

}  // namespace

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

bool is_job(std::string_view text) {
  return text.size() == hex_digits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::uint64_t Manifest::tensors_bytes() const {
  std::uint64_t total = header_bytes;
  for (const TensorRecord& record : tensors) total += record.size_bytes();
  return total;
}

std::uint64_t Manifest::sections_bytes() const {
  std::uint64_t total = 0;
  for (const SectionRecord& record : sections) total += record.size_bytes;
  return total;
}

std::uint64_t Manifest::signature() const {
  std::uint64_t hash = 0;
  for (const TensorRecord& record : tensors) {
    hash = hash_text(record.name, hash);
    hash = hash_text(fmt::format("{} {}", to_string(record.dtype), to_string(record.shape)), hash);
  }
  return hash;
}

namespace {

// Whose it is, where that is said at all.
Result<std::string> sharing_line(const Manifest& manifest) {
  std::string line;
  if (manifest.is_shared) line += " \"shared\": true,\n";
  if (manifest.own.empty()) return line;
  MUSTER_TRY(const std::string own, muster::json::to_text(manifest.own, "what is a worker's own"));
  return line + fmt::format(" \"own\": {},\n", own);
}

}  // namespace

Result<std::string> encode_manifest(const Manifest& manifest) {
  MUSTER_TRY(const std::string sharing, sharing_line(manifest));
  std::vector<std::string> tensors, sections;
  for (const TensorRecord& record : manifest.tensors) {
    MUSTER_TRY(std::string line, muster::json::to_text({{"name", record.name},
                                                        {"dtype", to_string(record.dtype)},
                                                        {"shape", record.shape.sizes()},
                                                        {"hash", hex(record.hash)}},
                                                       "the name of a tensor to save"));
    tensors.push_back(std::move(line));
  }
  for (const SectionRecord& record : manifest.sections) {
    MUSTER_TRY(std::string line,
               muster::json::to_text(
                   {{"name", record.name}, {"size", record.size_bytes}, {"hash", hex(record.hash)}},
                   "the name of a section to save"));
    sections.push_back(std::move(line));
  }
  const std::string rest = fmt::format(
      "\",\n \"format\": \"{}\", \"version\": {},\n \"job\": \"{}\", \"world\": {}, \"rank\": {},\n"
      " \"call\": {}, \"moment\": \"{}\", \"step\": {},\n{} \"header\": {{\"size\": {}, \"hash\": \"{}\"}},\n"
      " \"tensors\": {},\n \"sections\": {}}}\n",
      format_name, version, manifest.job, manifest.world_size, manifest.rank, manifest.id.call,
      to_string(manifest.id.moment), manifest.id.step, sharing, manifest.header_bytes,
      hex(manifest.header_hash), lines(tensors), lines(sections));
  std::string text = fmt::format("{}{}{}", opening, hex(hash_text(rest)), rest);
  if (text.size() > json_limits.bytes)
    return fail(Code::not_provided,
                fmt::format("the manifest of {} tensors takes {} bytes, more than the {} that it "
                            "may have",
                            tensors.size(), text.size(), json_limits.bytes));
  return text;
}

Result<Manifest> decode_manifest(std::string_view text, const std::string& path) {
  MUSTER_TRY_VOID(check_hash(text, path));
  MUSTER_TRY(const json parsed, muster::json::parse(text, fmt::format("'{}'", path), json_limits));
  const Fields fields(parsed, path);
  MUSTER_TRY(const std::string format, fields.text("format"));
  if (format != format_name) return fields.bad("format");
  MUSTER_TRY(const std::uint64_t found_version, fields.number("version"));
  if (found_version != version)
    return fail(Code::not_provided, fmt::format("'{}' is of version {}, and this Muster reads version {}",
                                                path, found_version, version));
  Manifest manifest;
  MUSTER_TRY(manifest.job, fields.text("job"));
  if (!is_job(manifest.job)) return fields.bad("job");
  MUSTER_TRY(manifest.world_size, fields.number("world"));
  MUSTER_TRY(manifest.rank, fields.number("rank"));
  MUSTER_TRY(manifest.id, read_id(fields));
  MUSTER_TRY(manifest.is_shared, fields.is_set("shared"));
  MUSTER_TRY(manifest.own, fields.text_or_nothing("own"));
  const json* header = fields.find("header");
  if (header == nullptr) return fields.bad("header");
  MUSTER_TRY(manifest.header_bytes, Fields(*header, path).number("size"));
  MUSTER_TRY(manifest.header_hash, Fields(*header, path).hash("hash"));
  MUSTER_TRY(const json* tensors, fields.list("tensors"));
  for (const json& value : *tensors) {
    MUSTER_TRY(TensorRecord record, read_tensor_record(value, path));
    manifest.tensors.push_back(std::move(record));
  }
  MUSTER_TRY(const json* sections, fields.list("sections"));
  for (const json& value : *sections) {
    MUSTER_TRY(SectionRecord record, read_section_record(value, path));
    manifest.sections.push_back(std::move(record));
  }
  MUSTER_TRY_VOID(check_names(manifest.tensors, path));
  MUSTER_TRY_VOID(check_names(manifest.sections, path));
  MUSTER_TRY_VOID(check_totals(manifest, path));
  return manifest;
}

Result<Manifest> read_manifest(const std::string& folder, const Storage& storage) {
  const std::string path = fmt::format("{}/{}", folder, manifest_file);
  MUSTER_TRY(const auto file, storage.open(path));
  if (file->size_bytes() > json_limits.bytes)
    return fail(Code::corrupt,
                fmt::format("'{}' has {} bytes, more than a manifest may have", path, file->size_bytes()));
  std::string text(file->size_bytes(), '\0');
  MUSTER_TRY_VOID(file->read_at(0, std::as_writable_bytes(std::span(text))));
  MUSTER_TRY(Manifest manifest, decode_manifest(text, path));
  for (const auto& [name, size] : {std::pair{tensors_file, manifest.tensors_bytes()},
                                   std::pair{sections_file, manifest.sections_bytes()}}) {
    const std::string part = fmt::format("{}/{}", folder, name);
    MUSTER_TRY(const auto opened, storage.open(part));
    if (opened->size_bytes() != size)
      return fail(Code::corrupt,
                  fmt::format("'{}' is damaged: it has {} bytes, not {}", part, opened->size_bytes(), size));
  }
  return manifest;
}

}  // namespace muster::checkpoint
