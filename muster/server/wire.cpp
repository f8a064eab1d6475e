#include "muster/server/wire.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>

namespace muster::server {
namespace {

static_assert(std::endian::native == std::endian::little, "batches are read where they lie");

constexpr std::size_t batch_header_bytes = BatchWriter::header_bytes;
constexpr std::size_t part_header_bytes = 24;
constexpr std::size_t reason_limit_bytes = 4096;
constexpr std::size_t order_limit_bytes = std::size_t{4} << 20;
constexpr std::size_t suffix_limit_bytes = 32;

std::size_t rounded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

tl::unexpected<Error> bad_batch(std::string_view what) {
  return fail(Code::corrupt, fmt::format("a batch of a parameter server: {}", what));
}

void write_real(net::ByteWriter& out, double value) { out.number(std::bit_cast<std::uint64_t>(value)); }
double read_real(net::ByteReader& in) { return std::bit_cast<double>(in.number<std::uint64_t>()); }

// A number of an enumeration; one that there is not makes the message corrupt.
template <class Enum>
Enum read_choice(net::ByteReader& in, Enum last, bool& is_known) {
  const auto value = in.number<std::uint8_t>();
  is_known = is_known && value <= static_cast<std::uint8_t>(last);
  return static_cast<Enum>(value);
}

template <class Settings, class Each>
void for_reals(Settings& rule, const Each& each) {
  for (auto* real : {&rule.weight_decay, &rule.loss_scale, &rule.momentum, &rule.dampening, &rule.beta1,
                     &rule.beta2, &rule.eps, &rule.initial, &rule.power, &rule.l1, &rule.l2})
    each(*real);
}

void write_rule(net::ByteWriter& out, const RuleSettings& rule) {
  out.number(static_cast<std::uint8_t>(rule.kind));
  out.number(static_cast<std::uint8_t>(rule.nesterov | rule.amsgrad << 1 | rule.accumulate << 2));
  for_reals(rule, [&](const double& real) { write_real(out, real); });
}

RuleSettings read_rule(net::ByteReader& in, bool& is_known) {
  RuleSettings rule;
  rule.kind = read_choice(in, last_rule_kind, is_known);
  const auto flags = in.number<std::uint8_t>();
  rule.nesterov = (flags & 1) != 0;
  rule.amsgrad = (flags & 2) != 0;
  rule.accumulate = (flags & 4) != 0;
  for_reals(rule, [&](double& real) { real = read_real(in); });
  return rule;
}

}  // namespace

BatchWriter::BatchWriter(std::uint32_t worker, std::uint64_t applied)
    : frame_(net::frame_header_size_bytes + batch_header_bytes) {
  begin(worker, applied);
}

BatchWriter::BatchWriter(std::uint32_t worker, std::uint64_t applied, std::span<std::byte> place)
    : place_(place), used_(batch_header_bytes) {
  MUSTER_CHECK(used_ <= place_.size(), "a batch is written into a place that is too small");
  begin(worker, applied);
}

void BatchWriter::begin(std::uint32_t worker, std::uint64_t applied) {
  net::store_little(payload(), worker);
  net::store_little(payload() + 4, std::uint32_t{0});
  net::store_little(payload() + 8, applied);
}

std::size_t BatchWriter::part_bytes(Sizes sizes) {
  return part_header_bytes + sizes.ids * sizeof(std::uint64_t) + rounded(sizes.values * sizeof(float));
}

std::byte* BatchWriter::grow(std::size_t bytes) {
  if (place_.empty()) {
    const std::size_t at = frame_.size();
    frame_.resize(at + bytes);
    return frame_.data() + at;
  }
  MUSTER_CHECK(bytes <= place_.size() - used_, "a batch is written into a place that is too small");
  return place_.data() + std::exchange(used_, used_ + bytes);
}

BatchWriter::Places BatchWriter::add(std::uint32_t table, Sizes sizes, float learning_rate,
                                     std::uint64_t steps) {
  const std::size_t ids_bytes = sizes.ids * sizeof(std::uint64_t);
  std::byte* const part = grow(part_bytes(sizes));
  net::store_little(part, table);
  net::store_little(part + 4, std::bit_cast<std::uint32_t>(learning_rate));
  net::store_little(part + 8, steps);
  net::store_little(part + 16, static_cast<std::uint32_t>(sizes.ids));
  net::store_little(part + 20, static_cast<std::uint32_t>(sizes.values));
  std::byte* const parts = payload() + 4;
  net::store_little(parts, net::load_little<std::uint32_t>(parts) + 1);
  std::byte* const ids = part + part_header_bytes;
  return {.ids = {reinterpret_cast<std::uint64_t*>(ids), sizes.ids},
          .values = {reinterpret_cast<float*>(ids + ids_bytes), sizes.values}};
}

FramePtr finish_batch(std::vector<std::byte> frame, const net::FrameHeader& header) {
  net::FrameHeader whole = header;
  const auto payload = std::span(frame).subspan(net::frame_header_size_bytes);
  whole.payload_size_bytes = payload.size();
  whole.payload_checksum = net::payload_checksum(payload);
  const net::FrameHeaderBytes bytes = net::encode_header(whole);
  std::memcpy(frame.data(), bytes.data(), bytes.size());
  return std::make_shared<const std::vector<std::byte>>(std::move(frame));
}

constexpr std::uint64_t no_origin = ~std::uint64_t{0};

Result<Batch> read_batch(std::vector<std::byte> payload) {
  MUSTER_TRY(Batch batch, read_batch_at(payload));
  batch.payload = std::move(payload);  // its bytes stay where they are
  return batch;
}

Result<Batch> read_batch_at(std::span<const std::byte> payload) {
  Batch batch;
  std::span<const std::byte> rest = payload;
  if (rest.size() < batch_header_bytes) return bad_batch("it has no header");
  batch.worker = net::load_little<std::uint32_t>(rest.data());
  const auto parts = net::load_little<std::uint32_t>(rest.data() + 4);
  batch.applied = net::load_little<std::uint64_t>(rest.data() + 8);
  if (parts > tables_max) return bad_batch("it has too many parts");
  rest = rest.subspan(batch_header_bytes);
  for (std::uint32_t i = 0; i < parts; ++i) {
    if (rest.size() < part_header_bytes) return bad_batch("it ends within a part");
    const auto table = net::load_little<std::uint32_t>(rest.data());
    TablePart part{.table = table & ~(first_values_bit | slots_bit | states_bit),
                   .has_first_values = (table & first_values_bit) != 0,
                   .is_of_slots = (table & slots_bit) != 0,
                   .has_states = (table & states_bit) != 0,
                   .learning_rate = std::bit_cast<float>(net::load_little<std::uint32_t>(rest.data() + 4)),
                   .steps = net::load_little<std::uint64_t>(rest.data() + 8)};
    const std::size_t ids = net::load_little<std::uint32_t>(rest.data() + 16);
    const std::size_t values = net::load_little<std::uint32_t>(rest.data() + 20);
    rest = rest.subspan(part_header_bytes);
    const std::size_t ids_bytes = ids * sizeof(std::uint64_t), values_bytes = rounded(values * sizeof(float));
    if (rest.size() < ids_bytes + values_bytes) return bad_batch("it ends within a part");
    part.ids = {reinterpret_cast<const std::uint64_t*>(rest.data()), ids};
    part.values = {reinterpret_cast<const float*>(rest.data() + ids_bytes), values};
    rest = rest.subspan(ids_bytes + values_bytes);
    batch.parts.push_back(part);
  }
  if (!rest.empty()) return bad_batch("bytes follow its last part");
  return batch;
}

Result<> check_kept_version(const net::FrameHeader& header, const std::string& path) {
  const std::uint32_t version = header.flags >> 8;
  if (version == kept_version) return {};
  return fail(
      Code::refused,
      fmt::format("'{}' was written by {} version of Muster (its form is {}, and this one reads {}): let "
                  "that one end the job, or begin anew with MUSTER_FRESH=1",
                  path, version < kept_version ? "an older" : "a newer", version, kept_version));
}

FramePtr make_frame(std::uint64_t job_id, FrameType type, net::FrameHeader header,
                    std::span<const std::byte> payload) {
  header.type = static_cast<std::uint16_t>(type);
  header.job_id = job_id;
  return std::make_shared<const std::vector<std::byte>>(net::encode_frame(header, payload));
}

std::vector<std::byte> encode(const Hello& hello) {
  net::ByteWriter out;
  out.number(hello.worker);
  out.number(hello.generation);
  out.number(hello.begin);
  out.number(hello.origin.value_or(no_origin));
  return out.take();
}

Result<Hello> decode_hello(const net::Frame& frame) {
  net::ByteReader in(frame.payload);
  Hello hello;
  hello.worker = in.number<std::uint32_t>();
  hello.generation = in.number<std::uint64_t>();
  hello.begin = in.number<std::uint64_t>();
  if (const auto origin = in.number<std::uint64_t>(); origin != no_origin) hello.origin = origin;
  MUSTER_TRY_VOID(in.finish("a hello to a parameter server"));
  return hello;
}

std::vector<std::byte> encode(const CommonPoint& point) {
  net::ByteWriter out;
  out.number(point.worker);
  out.number(point.step);
  return out.take();
}

Result<CommonPoint> decode_common_point(const net::Frame& frame) {
  net::ByteReader in(frame.payload);
  CommonPoint point{.generation = frame.header.epoch};
  point.worker = in.number<std::uint32_t>();
  point.step = in.number<std::uint64_t>();
  MUSTER_TRY_VOID(in.finish("a common point for a parameter server"));
  return point;
}

std::vector<std::byte> encode(const Leave& leave) {
  net::ByteWriter out;
  out.number(leave.worker);
  out.number(leave.step);
  return out.take();
}

Result<Leave> decode_leave(const net::Frame& frame) {
  net::ByteReader in(frame.payload);
  Leave leave{.generation = frame.header.epoch};
  leave.worker = in.number<std::uint32_t>();
  leave.step = in.number<std::uint64_t>();
  MUSTER_TRY_VOID(in.finish("the end of a worker, for a parameter server"));
  return leave;
}

std::vector<std::byte> encode(const TableMessage& table) {
  const TableSpec& spec = table.spec;
  net::ByteWriter out;
  out.number(table.worker);
  out.number(table.table);
  out.text(spec.name);
  out.number(static_cast<std::uint8_t>(spec.sharding));
  out.number(spec.home);
  out.number(spec.rows);
  out.number(spec.width);
  out.number(spec.seed);
  out.number(static_cast<std::uint8_t>(spec.dtype));
  out.number(static_cast<std::uint8_t>(spec.first_value.kind));
  write_real(out, spec.first_value.scale);
  write_real(out, spec.first_value.mean);
  write_rule(out, spec.rule);
  out.number(spec.eviction.age_max);
  out.number(spec.eviction.rows_max);
  out.text(spec.saved.place);
  out.number(static_cast<std::uint8_t>(spec.saved.has_states));
  out.number(spec.saved.steps);
  return out.take();
}

Result<TableMessage> decode_table(const net::Frame& frame) {
  net::ByteReader in(frame.payload);
  TableMessage table;
  TableSpec& spec = table.spec;
  bool is_known = true;
  table.worker = in.number<std::uint32_t>();
  table.table = in.number<std::uint32_t>();
  spec.name = in.text(table_name_max);
  spec.sharding = read_choice(in, last_sharding, is_known);
  spec.home = in.number<std::uint32_t>();
  spec.rows = in.number<std::uint64_t>();
  spec.width = in.number<std::uint32_t>();
  spec.seed = in.number<std::uint64_t>();
  spec.dtype = read_choice(in, DType::uint64, is_known);
  spec.first_value.kind = read_choice(in, last_first_value, is_known);
  spec.first_value.scale = read_real(in);
  spec.first_value.mean = read_real(in);
  spec.rule = read_rule(in, is_known);
  spec.eviction.age_max = in.number<std::uint64_t>();
  spec.eviction.rows_max = in.number<std::uint64_t>();
  spec.saved.place = in.text(place_name_max);
  spec.saved.has_states = in.number<std::uint8_t>() != 0;
  spec.saved.steps = in.number<std::uint64_t>();
  MUSTER_TRY_VOID(in.finish("a table of a parameter server"));
  if (!is_known || table.table >= tables_max)
    return fail(Code::corrupt, fmt::format("table '{}' of a parameter server has a setting that there is not",
                                           printable(spec.name)));
  return table;
}

std::vector<std::byte> encode(const SaveOrder& order) {
  net::ByteWriter out;
  out.number(order.worker);
  out.number(static_cast<std::uint32_t>(order.tables.size()));
  for (const std::uint32_t table : order.tables) out.number(table);
  out.text(order.text);
  return out.take();
}

Result<SaveOrder> decode_save_order(const net::Frame& frame) {
  net::ByteReader in(frame.payload);
  SaveOrder order{.worker = in.number<std::uint32_t>()};
  order.tables.resize(in.count(tables_max, sizeof(std::uint32_t)));
  for (std::uint32_t& table : order.tables) table = in.number<std::uint32_t>();
  order.text = in.text(order_limit_bytes);
  MUSTER_TRY_VOID(in.finish("an order to save rows"));
  return order;
}

std::vector<std::byte> encode(const SaveOutcome& outcome) {
  net::ByteWriter out;
  out.number(outcome.rows);
  out.text(outcome.trouble.substr(0, reason_limit_bytes));
  return out.take();
}

Result<SaveOutcome> decode_save_outcome(const net::Frame& frame) {
  net::ByteReader in(frame.payload);
  SaveOutcome outcome{.rows = in.number<std::uint64_t>()};
  outcome.trouble = in.text(reason_limit_bytes);
  MUSTER_TRY_VOID(in.finish("a parameter server's word on saved rows"));
  return outcome;
}

std::vector<std::byte> encode(const Taken& taken) {
  net::ByteWriter out;
  out.number(taken.next);
  out.number(taken.kept);
  out.number(taken.origin);
  out.number(static_cast<std::uint8_t>(taken.is_welcome));
  return out.take();
}

Result<Taken> decode_taken(const net::Frame& frame) {
  net::ByteReader in(frame.payload);
  Taken taken{.generation = frame.header.epoch};
  taken.next = in.number<std::uint64_t>();
  taken.kept = in.number<std::uint64_t>();
  taken.origin = in.number<std::uint64_t>();
  taken.is_welcome = in.number<std::uint8_t>() != 0;
  MUSTER_TRY_VOID(in.finish("an answer of a parameter server"));
  return taken;
}

std::vector<std::byte> encode(const Refusal& refusal) {
  net::ByteWriter out;
  out.text(refusal.reason.substr(0, reason_limit_bytes));
  return out.take();
}

Result<Refusal> decode_refusal(const net::Frame& frame) {
  net::ByteReader in(frame.payload);
  Refusal refusal{.generation = frame.header.epoch, .reason = in.text(reason_limit_bytes)};
  MUSTER_TRY_VOID(in.finish("a refusal of a parameter server"));
  return refusal;
}

std::vector<std::byte> encode(const std::vector<KeptFileName>& files) {
  net::ByteWriter out;
  out.number(static_cast<std::uint32_t>(files.size()));
  for (const KeptFileName& file : files) {
    out.text(file.suffix);
    out.number(file.size_bytes);
  }
  return out.take();
}

// Nothing but the names of a base and of a log's files: they become paths.
Result<std::vector<KeptFileName>> decode_kept_files(const net::Frame& frame) {
  net::ByteReader in(frame.payload);
  std::vector<KeptFileName> files(in.count(kept_files_max, sizeof(std::uint32_t) + sizeof(std::uint64_t)));
  bool are_known = true;
  for (KeptFileName& file : files) {
    file.suffix = in.text(suffix_limit_bytes);
    file.size_bytes = in.number<std::uint64_t>();
    are_known = are_known &&
                (file.suffix == "base" ||
                 (!file.suffix.empty() && file.suffix.find_first_not_of("0123456789") == std::string::npos));
  }
  MUSTER_TRY_VOID(in.finish("the files of a parameter server"));
  if (!are_known)
    return fail(Code::corrupt, "a parameter server has sent a file of another name than its own");
  return files;
}

std::vector<std::byte> encode(const KeptFilePart& part) {
  net::ByteWriter out;
  out.number(part.file);
  out.number(part.offset);
  out.number(part.size_bytes);
  return out.take();
}

Result<KeptFilePart> decode_kept_file_part(const net::Frame& frame) {
  net::ByteReader in(frame.payload);
  KeptFilePart part;
  part.file = in.number<std::uint32_t>();
  part.offset = in.number<std::uint64_t>();
  part.size_bytes = in.number<std::uint32_t>();
  MUSTER_TRY_VOID(in.finish("what a parameter server asks of a file"));
  return part;
}

}  // namespace muster::server
