// Frames between workers and parameter servers. Byte by byte: docs/formats/parameter-server.md. Private to
// server.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/net/net.h"
#include "muster/server/kept_files.h"
#include "muster/server/protocol.h"
#include "muster/server/table_spec.h"

namespace muster::server {

enum class FrameType : std::uint16_t {
  hello = 0x0301,
  table = 0x0302,
  pull = 0x0303,
  push = 0x0304,
  taken = 0x0305,
  rows = 0x0306,
  refusal = 0x0307,
  generation = 0x0308,  // of a log alone
  common_point = 0x0309,
  rows_file = 0x030A,  // of files alone
  pull_ahead = 0x030B,
  rows_early = 0x030C,
  rows_changed = 0x030D,
  want_files = 0x030E,  // between servers, as what follows
  kept_files = 0x030F,
  want_part = 0x0310,
  file_part = 0x0311,
  memory_offer = 0x0312,  // between processes of one host, as what follows
  memory = 0x0313,
  memory_taken = 0x0314,
  save = 0x0315,
  saved = 0x0316,
  leave = 0x0317,
};
// In the type of a pull, a push or rows: the payload says where in shared memory the batch lies.
inline constexpr std::uint16_t shared_bit = 0x0080;
constexpr FrameType shared(FrameType type) {
  return static_cast<FrameType>(static_cast<std::uint16_t>(type) | shared_bit);
}

inline constexpr std::uint64_t batch_limit_bytes = std::uint64_t{1} << 30;
inline constexpr std::uint64_t unsent_batches_limit_bytes = 4 * batch_limit_bytes;
inline constexpr std::size_t tables_max = 4096;
// In the number of a part's table: its values are first ones.
inline constexpr std::uint32_t first_values_bit = std::uint32_t{1} << 31;
// In that of a pull's part: instead of ids, the slots [begin, end) whose rows are wanted, whatever their ids.
inline constexpr std::uint32_t slots_bit = std::uint32_t{1} << 30;
// Its values are whole rows: `width` numbers and those of each state of the optimizer.
inline constexpr std::uint32_t states_bit = std::uint32_t{1} << 29;

// In a header's flags, of a log: the record was carried over from the segment before. And in the upper bytes,
// of all that a server keeps, the version of its form.
inline constexpr std::uint32_t carried_flag = 1;
inline constexpr std::uint32_t kept_version = 4;
constexpr std::uint32_t with_kept_version(std::uint32_t flags) { return flags | kept_version << 8; }
// An error that names the file where a frame of it is of another version.
Result<> check_kept_version(const net::FrameHeader& header, const std::string& path);

using FramePtr = std::shared_ptr<const std::vector<std::byte>>;

// ---- Batches: what is asked of several tables, or comes of it.

struct TablePart {
  std::uint32_t table = 0;
  bool has_first_values = false;  // instead of gradients: for rows that are not kept yet
  bool is_of_slots = false;       // the ids are slots
  bool has_states = false;        // beside values, of rows as they lie at rest
  float learning_rate = 0;        // of pushes, as the next
  std::uint64_t steps = 0;        // that the optimizer has done; of rows of slots, the slots of the table
  std::span<const std::uint64_t> ids = {};
  std::span<const float> values = {};
};

// A batch that is built where it is sent from.
class BatchWriter {
 public:
  BatchWriter(std::uint32_t worker, std::uint64_t applied);
  // In shared memory, whose size is that of the batch.
  BatchWriter(std::uint32_t worker, std::uint64_t applied, std::span<std::byte> place);

  struct Places {
    std::span<std::uint64_t> ids;
    std::span<float> values;
  };
  struct Sizes {
    std::size_t ids = 0;
    std::size_t values = 0;
  };
  // A part to be filled in before the next one is added.
  Places add(std::uint32_t table, Sizes sizes, float learning_rate = 0, std::uint64_t steps = 0);
  // A whole frame but for its header.
  std::vector<std::byte> take() { return std::move(frame_); }
  // Of a batch's beginning, and of each part.
  static constexpr std::size_t header_bytes = 16;
  static std::size_t part_bytes(Sizes sizes);

 private:
  void begin(std::uint32_t worker, std::uint64_t applied);
  std::byte* payload() {
    return place_.empty() ? frame_.data() + net::frame_header_size_bytes : place_.data();
  }
  std::byte* grow(std::size_t bytes);

  std::vector<std::byte> frame_;
  std::span<std::byte> place_;
  std::size_t used_ = 0;  // of place_
};

// Writes the header in front of what BatchWriter made.
FramePtr finish_batch(std::vector<std::byte> frame, const net::FrameHeader& header);

// A batch that has come, which owns its bytes.
struct Batch {
  std::vector<std::byte> payload = {};
  std::uint32_t worker = 0;
  std::uint64_t applied = 0;
  std::vector<TablePart> parts = {};  // in payload
  // Else they lie in shared memory, which is there while this is.
  std::shared_ptr<void> lease = {};
};
Result<Batch> read_batch(std::vector<std::byte> payload);
// The parts stay where they are.
Result<Batch> read_batch_at(std::span<const std::byte> payload);

// ---- Small messages

struct TableMessage {
  std::uint32_t worker = 0;
  std::uint32_t table = 0;
  TableSpec spec = {};
};

// As a pull of a step, whose answer is an outcome: write the rows of these tables down.
struct SaveOrder {
  std::uint32_t worker = 0;
  std::vector<std::uint32_t> tables = {};
  std::string text = {};  // for RowFiles::create
};
struct SaveOutcome {
  std::uint64_t rows = 0;
  std::string trouble = {};  // empty: all of it is on the disk
};

// As it travels. `header` says what there is beside type and job.
FramePtr make_frame(std::uint64_t job_id, FrameType type, net::FrameHeader header,
                    std::span<const std::byte> payload = {});

std::vector<std::byte> encode(const Hello& hello);
std::vector<std::byte> encode(const CommonPoint& point);
std::vector<std::byte> encode(const Leave& leave);
std::vector<std::byte> encode(const TableMessage& table);
std::vector<std::byte> encode(const SaveOrder& order);
std::vector<std::byte> encode(const SaveOutcome& outcome);
std::vector<std::byte> encode(const Taken& taken);
std::vector<std::byte> encode(const Refusal& refusal);
std::vector<std::byte> encode(const std::vector<KeptFileName>& files);
std::vector<std::byte> encode(const KeptFilePart& part);
Result<Hello> decode_hello(const net::Frame& frame);
Result<CommonPoint> decode_common_point(const net::Frame& frame);
Result<Leave> decode_leave(const net::Frame& frame);
Result<TableMessage> decode_table(const net::Frame& frame);
Result<SaveOrder> decode_save_order(const net::Frame& frame);
Result<SaveOutcome> decode_save_outcome(const net::Frame& frame);
Result<Taken> decode_taken(const net::Frame& frame);
Result<Refusal> decode_refusal(const net::Frame& frame);
Result<std::vector<KeptFileName>> decode_kept_files(const net::Frame& frame);
Result<KeptFilePart> decode_kept_file_part(const net::Frame& frame);

}  // namespace muster::server
