#include "muster/cluster/recovery_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "muster/cluster/scheduler_process.h"
#include "muster/cluster/wire.h"

namespace muster::cluster {
namespace {

using net::ByteReader;
using net::ByteWriter;
using std::chrono::milliseconds;

constexpr std::string_view magic = "MUSTERRL";
constexpr std::uint32_t format_version = 3;
constexpr std::size_t head_size_bytes = 12;    // magic, version
constexpr std::size_t prefix_size_bytes = 12;  // of a record: length, hash
constexpr std::size_t members_max = 2 * worker_num_max;
constexpr std::size_t record_size_bytes_max =
    scheduler_payload_limit_bytes + members_max * sizeof(ProcessKey) + 64;
// A scheduler that was just killed may not be gone quite yet.
constexpr milliseconds lock_patience{1000};
constexpr milliseconds lock_pause{20};

using Bytes = std::vector<std::byte>;

void append(Bytes& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// A message's payload, whose bytes the wire format documents and checks.
Bytes payload_of(MessageBody body) {
  const auto frame = encode_message({0, 0, std::move(body)});
  return {frame.begin() + net::frame_header_size_bytes, frame.end()};
}

template <class Body>
Result<Body> message_from(std::span<const std::byte> payload) {
  net::Frame frame;
  frame.header.type = static_cast<std::uint16_t>(message_type_first + MessageBody(Body{}).index());
  frame.payload.assign(payload.begin(), payload.end());
  MUSTER_TRY(Message message, decode_message(frame));
  return std::get<Body>(std::move(message.body));
}

Bytes body_of(const record::Job& job) {
  ByteWriter out;
  out.number(job.job_id);
  out.number(job.seed);
  out.number(job.worker_num);
  out.number(job.server_num);
  out.number(job.ended_job_id);
  return out.take();
}
Bytes body_of(const record::Formed& formed) {
  ByteWriter count;
  count.number(static_cast<std::uint32_t>(formed.keys.size()));
  Bytes out = count.take();
  for (const ProcessKey& key : formed.keys) append(out, key);
  append(out, payload_of(message::RosterReady{formed.roster}));
  return out;
}
Bytes body_of(const record::Left& left) {
  ByteWriter out;
  out.number(static_cast<std::uint8_t>(left.role));
  out.number(left.rank);
  return out.take();
}
Bytes body_of(const record::Finished& finished) {
  ByteWriter out;
  out.number(finished.calls);
  return out.take();
}
Bytes body_of(const record::Ended& ended) { return payload_of(message::Ended{ended.failure}); }
Bytes body_of(const record::Kept&) { return {}; }
Bytes body_of(const record::Adopted& adopted) {
  ByteWriter out;
  out.number(adopted.epoch_min);
  return out.take();
}
Bytes body_of(const record::At& at) {
  Bytes out;
  append(out, std::as_bytes(std::span(at.scheduler)));
  return out;
}

Result<record::Formed> read_formed(std::span<const std::byte> body) {
  ByteReader head(body);
  record::Formed formed;
  formed.keys.resize(head.count(members_max, sizeof(ProcessKey)));
  if (!head.ok()) return fail(Code::corrupt, "its keys are cut off");
  auto rest = body.subspan(sizeof(std::uint32_t));
  for (ProcessKey& key : formed.keys) {
    std::memcpy(key.data(), rest.data(), key.size());
    rest = rest.subspan(key.size());
  }
  MUSTER_TRY(auto ready, message_from<message::RosterReady>(rest));
  formed.roster = ready.roster;
  if (formed.keys.size() != formed.roster->workers.size() + formed.roster->servers.size())
    return fail(Code::corrupt, "it has not one key for each member");
  return formed;
}

// `number`: the record's place, which is part of its hash, so that none can stand elsewhere.
void append_record(Bytes& out, const Record& record, std::size_t number) {
  Bytes payload{static_cast<std::byte>(record.index())};
  append(payload, std::visit([](const auto& body) { return body_of(body); }, record));
  ByteWriter prefix;
  prefix.number(static_cast<std::uint32_t>(payload.size()));
  prefix.number(hash_bytes(payload.data(), payload.size(), number));
  append(out, prefix.bytes());
  append(out, payload);
}

Result<Record> read_record(std::span<const std::byte> payload) {
  const auto body = payload.subspan(1);
  ByteReader in(body);
  switch (std::to_integer<std::uint8_t>(payload[0])) {
    case 0: {
      record::Job job;
      job.job_id = in.number<std::uint64_t>();
      job.seed = in.number<std::uint64_t>();
      job.worker_num = in.number<std::uint32_t>();
      job.server_num = in.number<std::uint32_t>();
      job.ended_job_id = in.number<std::uint64_t>();
      MUSTER_TRY_VOID(in.finish("Job"));
      return job;
    }
    case 1: {
      MUSTER_TRY(auto formed, read_formed(body));
      return formed;
    }
    case 2: {
      record::Left left;
      const auto role = in.number<std::uint8_t>();
      left.rank = in.number<std::uint32_t>();
      MUSTER_TRY_VOID(in.finish("Left"));
      if (role > static_cast<std::uint8_t>(Role::server)) return fail(Code::corrupt, "no role");
      left.role = static_cast<Role>(role);
      return left;
    }
    case 3: {
      const record::Finished finished{in.number<std::uint64_t>()};
      MUSTER_TRY_VOID(in.finish("Finished"));
      return finished;
    }
    case 4: {
      MUSTER_TRY(auto ended, message_from<message::Ended>(body));
      return record::Ended{ended.failure};
    }
    case 5: {
      MUSTER_TRY_VOID(in.finish("Kept"));
      return record::Kept{};
    }
    case 6: {
      const record::Adopted adopted{in.number<std::uint64_t>()};
      MUSTER_TRY_VOID(in.finish("Adopted"));
      return adopted;
    }
    case 7:
      return record::At{std::string(reinterpret_cast<const char*>(body.data()), body.size())};
    default:
      return fail(Code::corrupt, "no such record");
  }
}

// The record at the begin of `bytes`, if it is whole.
std::optional<Record> next_record(std::span<const std::byte> bytes, std::size_t number,
                                  std::size_t& size_bytes) {
  if (bytes.size() < prefix_size_bytes) return std::nullopt;
  const std::size_t length = net::load_little<std::uint32_t>(bytes.data());
  const auto rest = bytes.subspan(prefix_size_bytes);
  if (length == 0 || length > record_size_bytes_max || length > rest.size()) return std::nullopt;
  if (hash_bytes(rest.data(), length, number) != net::load_little<std::uint64_t>(bytes.data() + 4))
    return std::nullopt;
  auto record = read_record(rest.first(length));
  if (!record) return std::nullopt;
  size_bytes = prefix_size_bytes + length;
  return *std::move(record);
}

Result<net::ProcessDescriptor> lock_folder(const std::string& folder, const Clock& clock) {
  const std::string path = folder + "/scheduler.lock";
  net::ProcessDescriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock) return fail_errno(fmt::format("cannot open '{}'", path), errno);
  const TimePoint deadline = clock.now() + lock_patience;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail_errno(fmt::format("cannot lock '{}'", path), errno);
    if (clock.now() >= deadline)
      return fail(Code::refused, fmt::format("MS_RECOVERY_PATH='{}' is in use by another scheduler: each job "
                                             "needs a folder of its own",
                                             folder));
    std::this_thread::sleep_for(lock_pause);
  }
  return lock;
}

}  // namespace

std::vector<std::byte> write_log(const std::vector<Record>& records) {
  ByteWriter head;
  for (const char c : magic) head.number(static_cast<std::uint8_t>(c));
  head.number(format_version);
  Bytes out = head.take();
  for (std::size_t i = 0; i < records.size(); ++i) append_record(out, records[i], i);
  return out;
}

Result<LogContents> read_log(std::span<const std::byte> bytes) {
  LogContents contents;
  if (bytes.empty()) return contents;
  const bool has_head = bytes.size() >= head_size_bytes && std::memcmp(bytes.data(), magic.data(), 8) == 0;
  if (!has_head) return fail(Code::corrupt, "it does not begin like a recovery log");
  if (const auto version = net::load_little<std::uint32_t>(bytes.data() + 8); version != format_version)
    return fail(Code::corrupt,
                fmt::format("it is of format version {}, and this is version {}", version, format_version));
  contents.whole_size_bytes = head_size_bytes;
  std::size_t size_bytes = 0;
  while (auto record =
             next_record(bytes.subspan(contents.whole_size_bytes), contents.record_count, size_bytes)) {
    const bool is_job = std::holds_alternative<record::Job>(*record);
    if (is_job != (contents.record_count == 0)) break;
    if (is_job) contents.job.emplace();
    contents.job->apply(*record);
    ++contents.record_count;
    contents.whole_size_bytes += size_bytes;
  }
  if (!contents.job) return fail(Code::corrupt, "its first record is damaged");
  return contents;
}

RecoveryLog::RecoveryLog(std::string path, net::ProcessDescriptor lock)
    : path_(std::move(path)), lock_(std::move(lock)) {}

Result<RecoveryLog> RecoveryLog::open(const std::string& folder, const Clock& clock) {
  MUSTER_TRY(auto lock, lock_folder(folder, clock));
  RecoveryLog log(fmt::format("{}/{}", folder, recovery_log_name), std::move(lock));
  const auto bytes = real_files().read(log.path_);
  if (!bytes && bytes.error().code == Code::not_found) return log;
  if (!bytes) return fail(bytes.error());
  auto contents = read_log(*bytes);
  if (!contents)
    return fail(Code::corrupt, fmt::format("'{}' cannot be used: {}; delete MS_RECOVERY_PATH='{}' to start "
                                           "fresh",
                                           log.path_, contents.error().message, folder));
  if (contents->whole_size_bytes < bytes->size())
    log::warning(
        fmt::format("'{}' ends with {} bytes that are no whole record: the scheduler died while it "
                    "wrote them, or they are damaged",
                    log.path_, bytes->size() - contents->whole_size_bytes));
  log.saved_ = std::move(contents->job);
  return log;
}

Result<> RecoveryLog::start(const SavedJob& job) {
  saved_ = job;
  return rewrite();
}

// The file as a whole is replaced, or stays as it was.
Result<> RecoveryLog::rewrite() {
  file_ = net::ProcessDescriptor();
  const auto records = saved_->records();
  MUSTER_TRY_VOID(real_files().write(path_, write_log(records)));
  record_count_ = records.size();
  file_ = net::ProcessDescriptor(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!file_) return fail_errno(fmt::format("cannot open '{}'", path_), errno);
  return {};
}

Result<> RecoveryLog::append(const Record& record) {
  if (!saved_) saved_.emplace();
  saved_->apply(record);
  // A Job is the first record, always.
  if (!file_ || std::holds_alternative<record::Job>(record)) return rewrite();
  Bytes bytes;
  append_record(bytes, record, record_count_++);
  if (append_bytes(bytes)) return {};
  // What is in the file now is unknown; after a failed fsync, even what was written before.
  return rewrite();
}

Result<> RecoveryLog::append_bytes(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno(fmt::format("cannot write '{}'", path_), errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  if (::fdatasync(file_.get()) != 0) return fail_errno(fmt::format("cannot sync '{}'", path_), errno);
  return {};
}

}  // namespace muster::cluster
