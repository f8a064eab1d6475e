// Event file: what TensorBoard reads. Records one after another (TFRecord's framing), each an Event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"
#include "muster/telemetry/append_file.h"
#include "muster/telemetry/summary.h"

namespace muster::telemetry {

// Seconds since 1970, of the wall clock: for people, never for a decision.
double wall_seconds();

// One record: its length, a checksum of that, the content, a checksum of that.
void put_record(std::span<const std::byte> content, Bytes& out);
// The contents of whole and undamaged records at the begin of `bytes`, and where the last of them ends.
struct Records {
  std::vector<std::span<const std::byte>> contents;
  std::size_t end = 0;
};
Records records_in(std::span<const std::byte> bytes);

class EventFile {
 public:
  // Which step each tag was written at last.
  using LastSteps = std::map<std::string, std::int64_t, std::less<>>;

  // A new file in `folder`, which is made: events.out.tfevents.<seconds>.<host>.<process>.<name>.
  static Result<EventFile> create(const std::string& folder, std::string_view name);
  // Behind the last whole record of the newest file of that `name` in `folder`; create() where there is none.
  static Result<EventFile> go_on(const std::string& folder, std::string_view name);

  // Held until flush(). `value` is a Summary.Value (summary.h), `time` what the event is of (seconds since
  // 1970).
  void add(std::string_view tag, std::int64_t step, std::span<const std::byte> value,
           double time = wall_seconds());
  // The same of a number, made in place: a third of the work.
  void add_scalar(std::string_view tag, std::int64_t step, double value, double time = wall_seconds());
  void add_graph(std::span<const std::byte> graph_def);
  // A thousand scalars are one write.
  Result<> flush();

  std::size_t waiting_bytes() const { return waiting_.size(); }
  const std::string& path() const { return file_.path(); }
  const LastSteps& last_steps() const { return last_steps_; }

 private:
  explicit EventFile(AppendFile file) : file_(std::move(file)) {}

  void note(std::string_view tag, std::int64_t step);

  AppendFile file_;
  Bytes waiting_;
  LastSteps last_steps_;
};
}  // namespace muster::telemetry
