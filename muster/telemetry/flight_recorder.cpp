#include "muster/telemetry/flight_recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <type_traits>

namespace muster::telemetry {
namespace {

constexpr std::array<char, 8> flight_magic = {'M', 'U', 'S', 'T', 'F', 'L', 'T', '1'};

// As the file has them: docs/formats/flight.md. What other processes look at is atomic.
struct Head {
  std::array<char, 8> magic;
  std::uint32_t record_bytes;
  std::uint32_t record_count;
  std::uint64_t serials;  // that were given
  std::uint64_t job_id;
  std::int64_t began_ns;
  std::uint32_t rank;
  std::uint32_t world_size;
  std::int32_t pid;
  std::uint32_t group_count;  // that were added
  std::int32_t left_status;
  std::uint32_t has_left;
  std::array<char, 64> host;
};
struct GroupSlot {
  std::uint64_t id;  // written last
  std::uint64_t epoch;
  std::int64_t formed_ns;
  std::uint32_t rank;
  std::uint32_t size;
  std::array<std::byte, 32> reserved;
};
struct RecordSlot {
  std::uint64_t serial;  // 0 while the rest is written
  std::uint64_t group;
  std::uint64_t number;
  std::uint64_t count;
  std::int64_t begin_ns;
  std::int64_t end_ns;
  std::uint32_t peer;
  std::uint8_t kind, dtype, reduction, state, code;
  std::array<std::byte, 7> reserved;
};
static_assert(sizeof(GroupSlot) == 64 && sizeof(RecordSlot) == 64);
static_assert(std::is_trivially_copyable_v<Head> && sizeof(Head) <= 4096);

constexpr std::size_t groups_at = 4096;
constexpr std::size_t records_at = groups_at + flight_groups * sizeof(GroupSlot);
constexpr std::size_t file_bytes = records_at + flight_records * sizeof(RecordSlot);

Head& head_of(std::byte* memory) { return *reinterpret_cast<Head*>(memory); }
GroupSlot& group_slot(std::byte* memory, std::size_t index) {
  return reinterpret_cast<GroupSlot*>(memory + groups_at)[index % flight_groups];
}
RecordSlot& record_slot(std::byte* memory, std::uint64_t serial) {
  return reinterpret_cast<RecordSlot*>(memory + records_at)[(serial - 1) % flight_records];
}
template <class T>
std::atomic_ref<T> shared(T& value) {
  return std::atomic_ref<T>(value);
}

tl::unexpected<Error> no_file(const char* what, const std::string& path, int number) {
  return fail(Code::io, fmt::format("cannot {} '{}': {}", what, path, std::strerror(number)));
}

// Nothing is known of who wrote the file.
template <class Enum>
Enum within(std::uint8_t value, Enum last) {
  return value <= static_cast<std::uint8_t>(last) ? static_cast<Enum>(value) : Enum{};
}

FlightRecord record_from(const RecordSlot& slot) {
  return {.serial = slot.serial,
          .group = slot.group,
          .number = slot.number,
          .count = slot.count,
          .begin_ns = slot.begin_ns,
          .end_ns = slot.end_ns,
          .peer = slot.peer,
          .kind = within(slot.kind, last_call_kind),
          .dtype = within(slot.dtype, all_dtypes.back()),
          .reduction = within(slot.reduction, last_reduction),
          .state = slot.state >= 1 && slot.state <= 3 ? static_cast<FlightState>(slot.state)
                                                      : FlightState::started,
          .code = within(slot.code, Code::internal)};
}

}  // namespace

std::int64_t wall_ns() {
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

Result<std::shared_ptr<FlightRecorder>> FlightRecorder::open(const std::string& path,
                                                             const FlightProcess& process) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file < 0) return no_file("make", path, errno);
  // Else a full disk would end the process where it writes to its memory.
  const int reserved = ::posix_fallocate(file, 0, file_bytes);
  void* const memory =
      reserved == 0 ? ::mmap(nullptr, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  const int number = reserved != 0 ? reserved : errno;
  ::close(file);
  if (memory == MAP_FAILED) {
    ::unlink(path.c_str());
    return no_file("take the place of", path, number);
  }
  auto* const bytes = static_cast<std::byte*>(memory);
  Head& head = head_of(bytes);
  head.record_bytes = sizeof(RecordSlot);
  head.record_count = flight_records;
  head.job_id = process.job_id;
  head.began_ns = wall_ns();
  head.rank = process.rank;
  head.world_size = process.world_size;
  head.pid = process.pid;
  process.host.copy(head.host.data(), head.host.size() - 1);
  head.magic = flight_magic;
  return std::shared_ptr<FlightRecorder>(new FlightRecorder(bytes, path));
}

FlightRecorder::~FlightRecorder() { ::munmap(memory_, file_bytes); }

void FlightRecorder::add_group(const FlightGroup& group) {
  const std::uint32_t index = shared(head_of(memory_).group_count).fetch_add(1, std::memory_order_relaxed);
  GroupSlot& slot = group_slot(memory_, index);
  shared(slot.id).store(0, std::memory_order_relaxed);
  slot.epoch = group.epoch;
  slot.formed_ns = wall_ns();
  slot.rank = group.rank;
  slot.size = group.size;
  shared(slot.id).store(group.id, std::memory_order_release);
}

std::uint64_t FlightRecorder::begin(FlightRecord record) {
  const std::uint64_t serial = shared(head_of(memory_).serials).fetch_add(1, std::memory_order_relaxed) + 1;
  RecordSlot& slot = record_slot(memory_, serial);
  shared(slot.serial).store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  slot.group = record.group;
  slot.number = record.number;
  slot.count = record.count;
  slot.begin_ns = wall_ns();
  slot.end_ns = 0;
  slot.peer = record.peer;
  slot.kind = static_cast<std::uint8_t>(record.kind);
  slot.dtype = static_cast<std::uint8_t>(record.dtype);
  slot.reduction = static_cast<std::uint8_t>(record.reduction);
  slot.state = static_cast<std::uint8_t>(FlightState::started);
  slot.code = 0;
  shared(slot.serial).store(serial, std::memory_order_release);
  return serial;
}

// Of a record that others have overwritten meanwhile nothing is left.
void FlightRecorder::end(std::uint64_t serial, const std::optional<Code>& failure) {
  RecordSlot& slot = record_slot(memory_, serial);
  if (shared(slot.serial).load(std::memory_order_acquire) != serial) return;
  slot.end_ns = wall_ns();
  slot.code = failure ? static_cast<std::uint8_t>(*failure) : std::uint8_t{0};
  shared(slot.state)
      .store(static_cast<std::uint8_t>(failure ? FlightState::failed : FlightState::completed),
             std::memory_order_release);
}

void FlightRecorder::note_leave(std::int32_t status) {
  head_of(memory_).left_status = status;
  shared(head_of(memory_).has_left).store(1, std::memory_order_release);
}

namespace {

constexpr std::string_view stacks_begin =
    "Muster stacks 1, taken at ";  // then nanoseconds since 1970 and a new line
constexpr std::size_t stacks_file_bytes_max = 1 << 20;

std::string stacks_path(const std::string& flight_path) {
  return std::filesystem::path(flight_path).replace_extension(stacks_extension).string();
}

// Nothing: there are none, or the file is another one.
std::optional<FlightStacks> read_stacks(const std::string& path) {
  std::error_code ignored;
  const bool is_small = std::filesystem::is_regular_file(path, ignored) &&
                        std::filesystem::file_size(path, ignored) <= stacks_file_bytes_max;
  const auto bytes = is_small ? real_files().read(path) : fail(Code::not_found, path);
  if (!bytes) return std::nullopt;
  std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  const auto line_end = text.find('\n');
  if (!text.starts_with(stacks_begin) || line_end == std::string_view::npos) return std::nullopt;
  FlightStacks stacks;
  const char* const end = text.data() + line_end;
  const auto number = std::from_chars(text.data() + stacks_begin.size(), end, stacks.taken_ns);
  if (number.ec != std::errc() || number.ptr != end) return std::nullopt;
  stacks.text = printable(text.substr(line_end + 1), LineBreaks::kept);
  return stacks;
}

}  // namespace

Result<> FlightRecorder::keep_stacks(const std::string& text) const {
  const std::string all = fmt::format("{}{}\n{}", stacks_begin, wall_ns(), text);
  return real_files().write(stacks_path(path_), std::as_bytes(std::span(all)));
}

Result<Flight> read_flight(const std::string& path) {
  std::error_code ignored;
  const bool has_size = std::filesystem::is_regular_file(path, ignored) &&
                        std::filesystem::file_size(path, ignored) == file_bytes;
  if (!has_size)
    return fail(Code::corrupt, fmt::format("'{}' has not the size of a flight recorder's file", path));
  MUSTER_TRY(std::vector<std::byte> bytes, real_files().read(path));
  const auto damaged = [&] {
    return fail(Code::corrupt, fmt::format("'{}' is no flight recorder's file of this version", path));
  };
  if (bytes.size() != file_bytes) return damaged();
  Head head;
  std::memcpy(&head, bytes.data(), sizeof head);
  const bool is_ours = head.magic == flight_magic && head.record_bytes == sizeof(RecordSlot) &&
                       head.record_count == flight_records;
  if (!is_ours) return damaged();
  head.host.back() = '\0';
  Flight flight{.process = {.job_id = head.job_id,
                            .rank = head.rank,
                            .world_size = head.world_size,
                            .pid = head.pid,
                            .host = printable(head.host.data())},
                .began_ns = head.began_ns};
  if (head.has_left != 0) flight.left = head.left_status;
  flight.stacks = read_stacks(stacks_path(path));
  for (std::size_t i = 0; i < flight_groups; ++i) {
    const GroupSlot& slot = group_slot(bytes.data(), i);
    if (slot.id == 0) continue;
    flight.groups.push_back({.id = slot.id,
                             .epoch = slot.epoch,
                             .formed_ns = slot.formed_ns,
                             .rank = slot.rank,
                             .size = slot.size});
  }
  for (std::size_t i = 0; i < flight_records; ++i) {
    const RecordSlot& slot = record_slot(bytes.data(), i + 1);
    const bool is_whole = slot.serial != 0 && (slot.serial - 1) % flight_records == i && slot.kind != 0 &&
                          slot.kind <= static_cast<std::uint8_t>(last_call_kind);
    if (is_whole) flight.records.push_back(record_from(slot));
  }
  std::ranges::sort(flight.groups, {}, &FlightGroup::formed_ns);
  std::ranges::sort(flight.records, {}, &FlightRecord::serial);
  return flight;
}

}  // namespace muster::telemetry
