// Flight recorder: the last 2,000 collective calls and messages of a process, in a file that its memory is
// mapped to. It is as new as the process was when that ends in any way, kill -9 included, and may be read at
// any time by another one. docs/formats/flight.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/base.h"

namespace muster::telemetry {

inline constexpr std::size_t flight_records = 2000;
inline constexpr std::size_t flight_groups = 64;
inline constexpr const char* flight_folder = "flight";  // in that of a run
inline constexpr const char* flight_extension = ".flight";
inline constexpr const char* stacks_extension = ".stacks";  // beside it

enum class FlightState : std::uint8_t { started = 1, completed = 2, failed = 3 };

struct FlightRecord {
  std::uint64_t serial = 0;   // 1 is the first of the process
  std::uint64_t group = 0;    // an id that all of its ranks have for it
  std::uint64_t number = 0;   // of a collective call, in its group; of a message, among those of this pair
  std::uint64_t count = 0;    // elements of what reduces, bytes of the others
  std::int64_t begin_ns = 0;  // since 1970
  std::int64_t end_ns = 0;    // 0: not ended
  std::uint32_t peer = 0;     // the root, or the other rank of a message, in the group
  CallKind kind = CallKind::none;
  DType dtype = DType::uint8;
  Reduction reduction = Reduction::sum;
  FlightState state = FlightState::started;
  Code code = Code::internal;  // why it failed
  friend bool operator==(const FlightRecord&, const FlightRecord&) = default;
};

struct FlightGroup {
  std::uint64_t id = 0;
  std::uint64_t epoch = 0;  // of the cluster
  std::int64_t formed_ns = 0;
  std::uint32_t rank = 0;  // of this process in it
  std::uint32_t size = 0;
  friend bool operator==(const FlightGroup&, const FlightGroup&) = default;
};

struct FlightProcess {
  std::uint64_t job_id = 0;
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
  std::int32_t pid = 0;
  std::string host = {};
  friend bool operator==(const FlightProcess&, const FlightProcess&) = default;
};

class FlightRecorder {
 public:
  // A new file; the folder is made. All of its place on the disk is taken now, so that nothing fails later.
  static Result<std::shared_ptr<FlightRecorder>> open(const std::string& path, const FlightProcess& process);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  // All of these from any thread, without a lock or a system call.
  void add_group(const FlightGroup& group);
  // Its serial, for end(). `serial`, `begin_ns` and `state` of `record` are written here.
  std::uint64_t begin(FlightRecord record);
  void end(std::uint64_t serial, const std::optional<Code>& failure);
  // The process leaves its job with this exit status.
  void note_leave(std::int32_t status);
  // The stacks of the process as they are now, in a file beside this one, instead of those before.
  Result<> keep_stacks(const std::string& text) const;

 private:
  FlightRecorder(std::byte* memory, std::string path) : memory_(memory), path_(std::move(path)) {}
  std::byte* const memory_;
  const std::string path_;
};

struct FlightStacks {
  std::int64_t taken_ns = 0;  // since 1970
  std::string text = {};
  friend bool operator==(const FlightStacks&, const FlightStacks&) = default;
};

// What a file tells, and the one beside it.
struct Flight {
  FlightProcess process = {};
  std::int64_t began_ns = 0;
  std::optional<std::int32_t> left = {};   // with this exit status
  std::vector<FlightGroup> groups = {};    // in the order in which they were formed
  std::vector<FlightRecord> records = {};  // by serial
  std::optional<FlightStacks> stacks = {};
};
// Fails where it is no such file. Whatever it holds, reading it is safe; a record that is just being written
// is left out.
Result<Flight> read_flight(const std::string& path);

// Nanoseconds since 1970.
std::int64_t wall_ns();

}  // namespace muster::telemetry
