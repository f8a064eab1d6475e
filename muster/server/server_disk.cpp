#include "muster/server/server_disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "muster/server/file_io.h"

namespace muster::server {
namespace {

// A generation as the log has it.
Hello hello_of(const GenerationRecord& begun) {
  return {.generation = begun.generation, .begin = begun.begin, .origin = begun.origin};
}

// A log that is longer than such a part of the rows takes longer to apply than they take to read.
constexpr std::uint64_t rows_per_log = 8;

Result<> replace_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return sync_folder_of(to);
  return fail_errno(fmt::format("cannot rename '{}' to '{}'", from, to), errno);
}

std::string marker_of(const std::string& path) { return path + ".fetching"; }
std::string base_of(const std::string& path) { return path + ".base"; }

Result<> remove_all(const std::string& path) {
  MUSTER_TRY(const auto segments, PushLog::find_segments(path));
  std::vector<std::string> files{base_of(path)};
  for (const std::uint64_t segment : segments) files.push_back(PushLog::path_of(path, segment));
  for (const std::string& file : files)
    if (::unlink(file.c_str()) != 0 && errno != ENOENT)
      return fail_errno(fmt::format("cannot remove '{}'", file), errno);
  return {};
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace

Result<bool> ServerDisk::is_empty(const std::string& path) {
  if (exists(marker_of(path))) MUSTER_TRY_VOID(remove_all(path));
  if (exists(base_of(path))) return false;
  MUSTER_TRY(const auto segments, PushLog::find_segments(path));
  for (const std::uint64_t segment : segments) {
    std::error_code ignored;
    if (std::filesystem::file_size(PushLog::path_of(path, segment), ignored) > 0) return false;
  }
  return true;
}

Result<> ServerDisk::begin_fetch(const std::string& path) {
  MUSTER_TRY_VOID(remove_all(path));
  const net::ProcessDescriptor marker(::open(marker_of(path).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!marker) return fail_errno(fmt::format("cannot make '{}'", marker_of(path)), errno);
  return sync_folder_of(path);
}

Result<> ServerDisk::cancel_fetch(const std::string& path) {
  MUSTER_TRY_VOID(remove_all(path));
  if (::unlink(marker_of(path).c_str()) == 0 || errno == ENOENT) return {};
  return fail_errno(fmt::format("cannot remove '{}'", marker_of(path)), errno);
}

ServerDisk::ServerDisk(net::Loop& loop, Options options, ServerMachine& machine, TableSet& tables,
                       Events events)
    : loop_(loop),
      options_(std::move(options)),
      machine_(machine),
      tables_(tables),
      events_(std::move(events)) {}

ServerDisk::~ServerDisk() { alive_.reset(); }

// ---- What is there when it starts

Result<Restored> ServerDisk::open(bool was_fetched) {
  if (!was_fetched && exists(marker_of(options_.path)))
    return fail(Code::corrupt,
                fmt::format("'{}' says that the rows beside it were being fetched from another "
                            "server: start this one with MUSTER_SERVER_COPIES=2, as before",
                            marker_of(options_.path)));
  for (const std::string& left : {next_path(), next_path() + ".part"}) ::unlink(left.c_str());
  Restored restored{.is_kept = !was_fetched};
  is_restored_kept_ = restored.is_kept;
  MUSTER_TRY(const std::uint64_t size_bytes, size_to_read());
  StartProgress progress(fmt::format("of its rows in '{}' this parameter server has read", options_.path),
                         size_bytes);
  std::uint64_t segment = 0;
  const auto header = read_rows_header(base_path());
  if (!header && header.error().code != Code::not_found) return fail(header.error());
  if (header) {
    segment = header->segment;
    MUSTER_TRY_VOID(restore_base(restored, progress));
  }
  MUSTER_TRY(log_, PushLog::open(options_.path, segment, [&](net::Frame frame, const PushLog::Place& place) {
               progress.add(place.size_bytes);
               return read_record(std::move(frame), place, restored);
             }));
  if (was_fetched)
    keep_fetched();
  else
    MUSTER_TRY_VOID(log_->sync());
  sync_ = std::make_unique<LogSync>(
      *log_, [this, alive = std::weak_ptr<bool>(alive_), &loop = loop_](Result<std::uint64_t> kept) {
        loop.post([this, alive, kept = std::move(kept)] {
          if (alive.expired()) return;
          kept ? tell_kept(*kept) : events_.failed(kept.error());
        });
      });
  return restored;
}

void ServerDisk::tell_kept(std::uint64_t records) {
  kept_ = records;
  if (is_restored_kept_) events_.kept(records);
}

void ServerDisk::keep_fetched() {
  disk_.post(
      [this, alive = std::weak_ptr<bool>(alive_), &loop = loop_, log = log_.get(), path = options_.path] {
        Result<> kept = log->sync();
        if (kept && exists(base_of(path))) kept = sync_file(base_of(path));
        if (kept) ::unlink(marker_of(path).c_str());
        loop.post([this, alive, kept] {
          if (alive.expired()) return;
          if (!kept) return events_.failed(kept.error());
          is_restored_kept_ = true;
          events_.restored_kept();
          if (kept_ > 0) events_.kept(kept_);
        });
      });
}

Result<std::uint64_t> ServerDisk::size_to_read() const {
  MUSTER_TRY(const auto segments, PushLog::find_segments(options_.path));
  std::vector<std::string> files{base_path()};
  for (const std::uint64_t segment : segments) files.push_back(PushLog::path_of(options_.path, segment));
  std::uint64_t size_bytes = 0;
  for (const std::string& file : files) {
    std::error_code failure;
    const std::uintmax_t size = std::filesystem::file_size(file, failure);
    if (!failure) size_bytes += size;
  }
  return size_bytes;
}

Result<> ServerDisk::restore_base(Restored& restored, StartProgress& progress) {
  MUSTER_TRY(const RowsFileHeader header, read_rows_header(base_path()));
  if (header.job_id != options_.job_id)
    return fail(Code::refused, fmt::format("the rows in '{}' are of another job: remove that folder, or give "
                                           "another one",
                                           base_path()));
  if (header.share.server != options_.share.server || header.share.servers != options_.share.servers)
    return fail(Code::refused,
                fmt::format("the rows in '{}' are those of server {} of {}, and this is server {} "
                            "of {}: start as many servers as before",
                            base_path(), header.share.server, header.share.servers, options_.share.server,
                            options_.share.servers));
  restored.base = header.next;
  return read_rows(base_path(), tables_, progress);
}

Result<> ServerDisk::read_record(net::Frame frame, const PushLog::Place& place, Restored& restored) {
  if (frame.header.job_id != options_.job_id)
    return fail(Code::refused,
                fmt::format("the log of pushes '{}' is of another job: remove it, or give another path",
                            options_.path));
  switch (static_cast<FrameType>(frame.header.type)) {
    case FrameType::table: {
      MUSTER_TRY(const TableMessage table, decode_table(frame));
      MUSTER_TRY(const bool is_new, tables_.declare(table.table, table.spec));
      if (!is_new) return {};
      wants_base_ = wants_base_ || !table.spec.saved.place.empty();
      return tables_.load_saved(table.table, options_.files);
    }
    case FrameType::generation: {
      MUSTER_TRY(const Hello begun, decode_hello(frame));
      restored.log.emplace_back(GenerationRecord{
          .generation = begun.generation, .begin = begun.begin, .origin = begun.origin.value_or(0)});
      return {};
    }
    case FrameType::push: {
      MUSTER_TRY(const Batch batch, read_batch(std::move(frame.payload)));
      restored.log.emplace_back(PushRecord{
          .worker = batch.worker,
          .step = frame.header.sequence,
          .body = std::make_shared<HeldPush>(HeldPush{.batch = {}, .header = frame.header, .place = place})});
      return {};
    }
    default:
      return fail(Code::corrupt, fmt::format("the log of pushes '{}' has a record of type {:#06x}",
                                             options_.path, frame.header.type));
  }
}

// ---- The log

Result<PushLog::Place> ServerDisk::write_frame(net::FrameHeader header, std::span<const std::byte> payload) {
  header.payload_size_bytes = payload.size();
  header.payload_checksum = net::payload_checksum(payload);
  header.job_id = options_.job_id;
  return log_->append(header, payload);
}

Result<PushLog::Place> ServerDisk::write_push(const HeldPush& push, std::uint32_t flags) {
  MUSTER_TRY_VOID(load(push));
  net::FrameHeader header = push.header;
  header.flags = flags;
  return log_->append(header, push.batch->payload);
}

Result<> ServerDisk::write(const LogRecord& record) {
  if (const auto* begun = std::get_if<GenerationRecord>(&record)) {
    // Rows of later steps than those that the workers go back to are no base for them.
    const auto is_later = [&](std::uint64_t next) { return next > begun->begin; };
    if (copy_ != nullptr && std::any_of(copy_->header().next.begin(), copy_->header().next.end(), is_later))
      drop_copy();
    MUSTER_TRY(
        [[maybe_unused]] const auto place,
        write_frame({.type = static_cast<std::uint16_t>(FrameType::generation)}, encode(hello_of(*begun))));
    return {};
  }
  const auto& push = *static_cast<const HeldPush*>(std::get<PushRecord>(record).body.get());
  MUSTER_TRY(push.place, write_push(push, 0));
  return {};
}

Result<> ServerDisk::write_table(const net::FrameHeader& header, std::span<const std::byte> payload) {
  MUSTER_TRY([[maybe_unused]] const auto place, write_frame(header, payload));
  return {};
}

Result<> ServerDisk::load(const HeldPush& push) const {
  if (push.batch) return {};
  MUSTER_TRY(auto payload, log_->read(push.place));
  MUSTER_TRY(push.batch, read_batch(std::move(payload)));
  return {};
}

// A segment begins with everything that its base's file does not say.
Result<> ServerDisk::begin_segment() {
  MUSTER_TRY_VOID(log_->begin_segment());
  for (const LogRecord& record : machine_.carried()) {
    if (const auto* begun = std::get_if<GenerationRecord>(&record)) {
      MUSTER_TRY(
          [[maybe_unused]] const auto place,
          write_frame({.type = static_cast<std::uint16_t>(FrameType::generation), .flags = carried_flag},
                      encode(hello_of(*begun))));
      continue;
    }
    const auto& push = *static_cast<const HeldPush*>(std::get<PushRecord>(record).body.get());
    MUSTER_TRY(push.place, write_push(push, carried_flag));
  }
  return {};
}

// ---- The base

Result<> ServerDisk::reset_rows() {
  if (copy_ != nullptr && !is_copied_) drop_copy();
  disk_.finish();  // a base that is being renamed
  MUSTER_TRY_VOID(tables_.reset());
  MUSTER_TRY(const std::uint64_t size_bytes, size_to_read());
  StartProgress progress(fmt::format("to go back, of '{}' this parameter server has read", options_.path),
                         size_bytes);
  const auto read = read_rows(base_path(), tables_, progress);
  if (read || read.error().code != Code::not_found) return read;
  for (std::uint32_t table = 0; table < tables_.size(); ++table)
    if (tables_.table(table) != nullptr) MUSTER_TRY_VOID(tables_.load_saved(table, options_.files));
  return {};
}

void ServerDisk::look() {
  if (is_moving_) return;
  if (copy_ == nullptr) {
    const std::uint64_t limit = std::max(options_.log_limit_bytes, tables_.size_bytes() / rows_per_log);
    if (machine_.common_point() > machine_.base() && (wants_base_ || log_->size_bytes() >= limit))
      begin_copy();
    return;
  }
  const Position& position = copy_->header().next;
  if (is_copied_ && *std::max_element(position.begin(), position.end()) <= machine_.common_point())
    make_base();
}

void ServerDisk::begin_copy() {
  if (const auto begun = begin_segment(); !begun) return events_.failed(begun.error());
  is_copied_ = false;
  copy_ = std::make_unique<RowsCopy>(loop_, disk_, tables_, next_path(),
                                     RowsFileHeader{.job_id = options_.job_id,
                                                    .share = options_.share,
                                                    .next = machine_.position(),
                                                    .segment = log_->segment()},
                                     [this](const Result<>& done) {
                                       if (!done) return events_.failed(done.error());
                                       is_copied_ = true;
                                       loop_.post([this, alive = std::weak_ptr<bool>(alive_)] {
                                         if (!alive.expired()) look();
                                       });
                                     });
}

void ServerDisk::make_base() {
  const std::uint64_t segment = copy_->header().segment;
  wants_base_ = false;
  machine_.base_moved(copy_->header().next);
  copy_.reset();
  is_moving_ = true;
  disk_.post([this, segment, alive = std::weak_ptr<bool>(alive_), &loop = loop_, log = log_.get(),
              from = next_path(), to = base_path()] {
    Result<> moved = log->sync();
    if (moved) moved = replace_file(from, to);
    loop.post([this, alive, moved, segment] {
      if (alive.expired()) return;
      is_moving_ = false;
      if (!moved) return events_.failed(moved.error());
      for (const std::string& path : log_->drop_before(segment))
        disk_.post([path] { ::unlink(path.c_str()); });
    });
  });
}

void ServerDisk::drop_copy() {
  copy_.reset();
  if (is_copied_) disk_.post([path = next_path()] { ::unlink(path.c_str()); });
  is_copied_ = false;
}

}  // namespace muster::server
