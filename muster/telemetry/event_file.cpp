#include "muster/telemetry/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "muster/base/protobuf.h"
#include "muster/telemetry/crc32c.h"

namespace muster::telemetry {
namespace {

using protobuf::Writer;

namespace event_field {
constexpr std::uint64_t wall_time = 1, step = 2, file_version = 3, graph = 4, summary = 5;
}
namespace summary_value_field {
constexpr std::uint64_t tag = 1, simple_value = 2;
}
constexpr std::string_view file_prefix = "events.out.tfevents.";
constexpr std::size_t head_bytes = 12;  // length and its checksum
constexpr std::size_t foot_bytes = 4;

template <class Number>
void put_little_endian(Number number, Bytes& out) {
  for (std::size_t i = 0; i < sizeof number; ++i) out.push_back(static_cast<std::byte>(number >> 8 * i));
}

template <class Number>
Number little_endian(std::span<const std::byte> bytes) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i)
    number |= static_cast<Number>(std::to_integer<Number>(bytes[i]) << 8 * i);
  return number;
}

Writer event_at(std::int64_t step, double time) {
  Writer event;
  event.real64(event_field::wall_time, time);
  if (step != 0) event.integer(event_field::step, step);
  return event;
}

// Where bytes are written that are there already.
class Place {
 public:
  explicit Place(std::byte* at) : at_(at) {}
  template <class Bits>
  void bits(Bits bits) {
    for (std::size_t i = 0; i < sizeof bits; ++i) *at_++ = static_cast<std::byte>(bits >> 8 * i);
  }
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) *at_++ = static_cast<std::byte>(value | 0x80);
    *at_++ = static_cast<std::byte>(value);
  }
  void key(std::uint64_t field, protobuf::WireType type) { number(field << 3 | type); }
  void text(std::string_view text) {
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  std::span<const std::byte> last(std::size_t size) const { return {at_ - size, size}; }

 private:
  std::byte* at_;
};

// ---- Reading back what an earlier process wrote -----------------------------------------------------------

struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;                  // of a varint
  std::span<const std::byte> content = {};  // of a block
};

std::optional<std::uint64_t> take_number(std::span<const std::byte>& rest) {
  std::uint64_t number = 0;
  for (int shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    const auto byte = std::to_integer<std::uint64_t>(rest.front());
    rest = rest.subspan(1);
    number |= (byte & 0x7f) << shift;
    if (byte < 0x80) return number;
  }
  return std::nullopt;
}

// Nothing at the end, and where the bytes are no message.
std::optional<Field> take_field(std::span<const std::byte>& rest) {
  const auto key = take_number(rest);
  if (!key) return std::nullopt;
  Field field{.number = *key >> 3};
  const std::uint64_t type = *key & 7;
  if (type == protobuf::varint) {
    const auto value = take_number(rest);
    if (!value) return std::nullopt;
    field.value = *value;
    return field;
  }
  std::optional<std::uint64_t> size;
  if (type == protobuf::fixed32) size = 4;
  if (type == protobuf::fixed64) size = 8;
  if (type == protobuf::delimited) size = take_number(rest);
  if (!size || *size > rest.size()) return std::nullopt;
  field.content = rest.first(static_cast<std::size_t>(*size));
  rest = rest.subspan(static_cast<std::size_t>(*size));
  return field;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void note_tags(std::span<const std::byte> summary, std::int64_t step, EventFile::LastSteps& steps) {
  while (const auto value = take_field(summary)) {
    auto rest = value->content;
    const auto tag = take_field(rest);
    if (!tag || tag->number != 1) continue;
    auto& last = steps.try_emplace(std::string(text_of(tag->content)), step).first->second;
    last = std::max(last, step);
  }
}

// EventFile writes the step before the summary.
void note_steps(std::span<const std::byte> event, EventFile::LastSteps& steps) {
  std::int64_t step = 0;
  while (const auto field = take_field(event)) {
    if (field->number == event_field::step) step = static_cast<std::int64_t>(field->value);
    if (field->number == event_field::summary) note_tags(field->content, step, steps);
  }
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

}  // namespace

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void put_record(std::span<const std::byte> content, Bytes& out) {
  const std::size_t begin = out.size();
  put_little_endian(std::uint64_t{content.size()}, out);
  put_little_endian(masked_crc32c(std::span(out).subspan(begin, sizeof(std::uint64_t))), out);
  out.insert(out.end(), content.begin(), content.end());
  put_little_endian(masked_crc32c(content), out);
}

Records records_in(std::span<const std::byte> bytes) {
  Records found;
  while (bytes.size() - found.end >= head_bytes + foot_bytes) {
    const auto rest = bytes.subspan(found.end);
    const auto size = little_endian<std::uint64_t>(rest);
    if (masked_crc32c(rest.first(8)) != little_endian<std::uint32_t>(rest.subspan(8)) ||
        size > rest.size() - head_bytes - foot_bytes)
      break;
    const auto content = rest.subspan(head_bytes, static_cast<std::size_t>(size));
    if (masked_crc32c(content) != little_endian<std::uint32_t>(rest.subspan(head_bytes + content.size())))
      break;
    found.contents.push_back(content);
    found.end += head_bytes + content.size() + foot_bytes;
  }
  return found;
}

Result<EventFile> EventFile::create(const std::string& folder, std::string_view name) {
  // Ten digits, so that names sort by age; two files of one second and process differ by a number.
  const auto seconds = static_cast<std::int64_t>(wall_seconds());
  const std::string begin =
      fmt::format("{}/{}{:010}.{}.{}", folder, file_prefix, seconds, host_name(), ::getpid());
  std::string path = fmt::format("{}.{}", begin, name);
  for (int again = 1; real_files().read(path); ++again) path = fmt::format("{}-{}.{}", begin, again, name);
  MUSTER_TRY(AppendFile file, AppendFile::open(path));
  EventFile made(std::move(file));
  Writer event = event_at(0, wall_seconds());
  event.text(event_field::file_version, "brain.Event:2");
  put_record(event.bytes(), made.waiting_);
  MUSTER_TRY_VOID(made.flush());
  return made;
}

Result<EventFile> EventFile::go_on(const std::string& folder, std::string_view name) {
  const auto names = real_files().list(folder);
  if (!names) return create(folder, name);
  const std::string end = fmt::format(".{}", name);
  const auto newest = std::find_if(names->rbegin(), names->rend(), [&](const std::string& each) {
    return each.starts_with(file_prefix) && each.ends_with(end);
  });
  if (newest == names->rend()) return create(folder, name);
  LastSteps steps;
  MUSTER_TRY(AppendFile file, AppendFile::open_behind(folder + '/' + *newest, [&](auto bytes) {
               const Records found = records_in(bytes);
               for (const auto event : found.contents) note_steps(event, steps);
               return found.end;
             }));
  EventFile made(std::move(file));
  made.last_steps_ = std::move(steps);
  return made;
}

void EventFile::add(std::string_view tag, std::int64_t step, std::span<const std::byte> value, double time) {
  Writer event = event_at(step, time);
  event.begin_block(event_field::summary, 1 + protobuf::varint_bytes(value.size()) + value.size());
  event.block(1, value);
  put_record(event.bytes(), waiting_);
  note(tag, step);
}

// The bytes of add(tag, step, scalar_summary(tag, value)), without a message for each level: each is some
// bytes, and what makes them is called for every number of every step.
void EventFile::add_scalar(std::string_view tag, std::int64_t step, double value, double time) {
  using protobuf::varint_bytes;
  const std::size_t value_bytes = 1 + varint_bytes(tag.size()) + tag.size() + 1 + sizeof(float);
  const std::size_t summary_bytes = 1 + varint_bytes(value_bytes) + value_bytes;
  const std::size_t step_bytes = step != 0 ? 1 + varint_bytes(static_cast<std::uint64_t>(step)) : 0;
  const std::size_t event_bytes =
      1 + sizeof(double) + step_bytes + 1 + varint_bytes(summary_bytes) + summary_bytes;
  const std::size_t begin = waiting_.size();
  waiting_.resize(begin + head_bytes + event_bytes + foot_bytes);
  Place at(waiting_.data() + begin);
  at.bits(std::uint64_t{event_bytes});
  at.bits(masked_crc32c(at.last(sizeof(std::uint64_t))));
  at.key(event_field::wall_time, protobuf::fixed64);
  at.bits(std::bit_cast<std::uint64_t>(time));
  if (step != 0) {
    at.key(event_field::step, protobuf::varint);
    at.number(static_cast<std::uint64_t>(step));
  }
  at.key(event_field::summary, protobuf::delimited);
  at.number(summary_bytes);
  at.key(1, protobuf::delimited);
  at.number(value_bytes);
  at.key(summary_value_field::tag, protobuf::delimited);
  at.number(tag.size());
  at.text(tag);
  at.key(summary_value_field::simple_value, protobuf::fixed32);
  at.bits(std::bit_cast<std::uint32_t>(static_cast<float>(value)));
  at.bits(masked_crc32c(at.last(event_bytes)));
  note(tag, step);
}

void EventFile::note(std::string_view tag, std::int64_t step) {
  if (const auto known = last_steps_.find(tag); known != last_steps_.end())
    known->second = std::max(known->second, step);
  else
    last_steps_.emplace(tag, step);
}

void EventFile::add_graph(std::span<const std::byte> graph_def) {
  Writer event = event_at(0, wall_seconds());
  event.block(event_field::graph, graph_def);
  put_record(event.bytes(), waiting_);
}

Result<> EventFile::flush() {
  if (waiting_.empty()) return {};
  const Result<> written = file_.append(waiting_);
  waiting_.clear();
  return written;
}

}  // namespace muster::telemetry
