#include "muster/server/rows_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "muster/base/cores.h"
#include "muster/server/file_io.h"
#include "muster/server/wire.h"

namespace muster::server {
namespace {

constexpr std::uint64_t header_limit_bytes = std::uint64_t{16} << 20;
constexpr std::uint32_t workers_max = 1 << 16;
constexpr std::size_t checksum_bytes = sizeof(std::uint64_t);
// Blocks that wait for the disk.
constexpr std::size_t unwritten_max = 8;
// So much is on its way to the disk at most, so that no other write of this process waits long for its turn.
constexpr std::uint64_t dirty_bytes = std::uint64_t{16} << 20;
constexpr unsigned readers_max = 8;

// Of one block: bytes at another block's place do not match either.
std::uint64_t checksum_of(std::span<const std::byte> keys, std::span<const std::byte> rows,
                          std::uint64_t offset) {
  return hash_bytes(rows.data(), rows.size(), hash_bytes(keys.data(), keys.size(), offset));
}

std::vector<std::byte> encode(const RowsFileHeader& header) {
  net::ByteWriter out;
  out.number(header.share.server);
  out.number(header.share.servers);
  out.number(header.segment);
  out.number(static_cast<std::uint32_t>(header.next.size()));
  for (const std::uint64_t next : header.next) out.number(next);
  out.number(static_cast<std::uint32_t>(header.sections.size()));
  for (const auto& section : header.sections) {
    const auto table = encode(TableMessage{.table = section.table, .spec = section.spec});
    out.text({reinterpret_cast<const char*>(table.data()), table.size()});
    out.number(section.blocks.slots);
    out.number(section.blocks.key_size_bytes);
    out.number(section.blocks.row_size_bytes);
    out.number(section.blocks.per_block);
  }
  return net::encode_frame({.type = static_cast<std::uint16_t>(FrameType::rows_file),
                            .flags = with_kept_version(0),
                            .job_id = header.job_id},
                           out.take());
}

Result<RowsFileHeader> decode(const net::Frame& frame) {
  net::ByteReader in(frame.payload);
  RowsFileHeader header{.job_id = frame.header.job_id};
  header.share.server = in.number<std::uint32_t>();
  header.share.servers = in.number<std::uint32_t>();
  header.segment = in.number<std::uint64_t>();
  header.next.resize(in.count(workers_max, sizeof(std::uint64_t)));
  for (std::uint64_t& next : header.next) next = in.number<std::uint64_t>();
  header.sections.resize(in.count(tables_max, 1));
  for (auto& section : header.sections) {
    const std::string text = in.text(header_limit_bytes);
    const auto bytes = std::as_bytes(std::span(text));
    MUSTER_TRY(const TableMessage table,
               decode_table({.header = {}, .payload = {bytes.begin(), bytes.end()}}));
    section.table = table.table;
    section.spec = table.spec;
    section.blocks.slots = in.number<std::uint64_t>();
    section.blocks.key_size_bytes = in.number<std::uint32_t>();
    section.blocks.row_size_bytes = in.number<std::uint32_t>();
    section.blocks.per_block = in.number<std::uint32_t>();
    if (section.blocks.per_block == 0) return fail(Code::corrupt, "a block of rows has none");
  }
  MUSTER_TRY_VOID(in.finish("the head of a file of rows"));
  return header;
}

tl::unexpected<Error> damaged(const std::string& path, const std::string& what) {
  return fail(Code::corrupt,
              fmt::format("the rows in '{}' are damaged ({}): put a copy of that folder there, or remove the "
                          "folder and begin anew with MUSTER_FRESH=1",
                          path, what));
}

Result<net::ProcessDescriptor> open_rows(const std::string& path) {
  net::ProcessDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file) return file;
  if (errno == ENOENT) return fail(Code::not_found, fmt::format("there is no file '{}'", path));
  return fail_errno(fmt::format("cannot open the rows '{}'", path), errno);
}

struct FoundHeader {
  RowsFileHeader header;
  std::uint64_t size_bytes = 0;
};

Result<FoundHeader> read_header(int file, const std::string& path) {
  net::FrameHeaderBytes bytes;
  MUSTER_TRY(const std::size_t got, read_at(file, 0, bytes, path));
  if (got < bytes.size()) return damaged(path, "it ends within its head");
  const auto head = net::decode_header(bytes, header_limit_bytes);
  if (!head) return damaged(path, head.error().message);
  net::Frame frame{.header = *head, .payload = std::vector<std::byte>(head->payload_size_bytes)};
  MUSTER_TRY([[maybe_unused]] const std::size_t size, read_at(file, bytes.size(), frame.payload, path));
  if (static_cast<FrameType>(head->type) != FrameType::rows_file || !net::check_payload(*head, frame.payload))
    return damaged(path, "its head does not match its checksum");
  MUSTER_TRY_VOID(check_kept_version(*head, path));
  auto header = decode(frame);
  if (!header) return damaged(path, header.error().message);
  return FoundHeader{*std::move(header), bytes.size() + frame.payload.size()};
}

// A block on its way into a table.
struct PlacedBlock {
  const RowsFileHeader::Section* section = nullptr;
  Table* table = nullptr;
  std::uint64_t block = 0;
  std::uint64_t offset = 0;
};

Result<> read_block(int file, const std::string& path, const PlacedBlock& at) {
  const Table::BlockPlaces places = at.table->places(at.section->blocks, at.block);
  std::array<std::byte, checksum_bytes> checksum;
  std::uint64_t offset = at.offset;
  for (const std::span<std::byte> bytes : {std::span<std::byte>(checksum), places.keys, places.rows}) {
    MUSTER_TRY(const std::size_t got, read_at(file, offset, bytes, path));
    if (got < bytes.size()) return damaged(path, fmt::format("it ends at byte {}", offset + got));
    offset += bytes.size();
  }
  if (net::load_little<std::uint64_t>(checksum.data()) != checksum_of(places.keys, places.rows, at.offset))
    return damaged(path, fmt::format("table '{}', bytes {} to {}", at.section->spec.name, at.offset, offset));
  const auto filled = at.table->filled(at.section->blocks, at.block);
  return filled ? Result<>{} : damaged(path, filled.error().message);
}

Result<> read_blocks(int file, const std::string& path, const std::vector<PlacedBlock>& blocks,
                     StartProgress& progress) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::optional<Error> failure;
  const auto read_some = [&] {
    for (std::size_t i = next++; i < blocks.size(); i = next++) {
      const Result<> read = read_block(file, path, blocks[i]);
      if (read) {
        progress.add(blocks[i].section->blocks.size_bytes(blocks[i].block));
        continue;
      }
      const std::lock_guard lock(mutex);
      failure = read.error();
      next = blocks.size();
    }
  };
  const std::size_t readers =
      std::min<std::size_t>({blocks.size(), readers_max, static_cast<std::size_t>(host_cores())});
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < readers; ++i) others.emplace_back(read_some);
  read_some();
  for (std::thread& other : others) other.join();
  return failure ? Result<>(fail(*failure)) : Result<>{};
}

}  // namespace

Result<RowsFileHeader> read_rows_header(const std::string& path) {
  MUSTER_TRY(const net::ProcessDescriptor file, open_rows(path));
  MUSTER_TRY(FoundHeader found, read_header(file.get(), path));
  return std::move(found.header);
}

Result<> read_rows(const std::string& path, TableSet& tables, StartProgress& progress) {
  MUSTER_TRY(const net::ProcessDescriptor file, open_rows(path));
  MUSTER_TRY(const FoundHeader found, read_header(file.get(), path));
  std::vector<PlacedBlock> blocks;
  std::uint64_t offset = found.size_bytes;
  // All of them first: tables move when another one comes.
  for (const auto& section : found.header.sections) {
    MUSTER_TRY([[maybe_unused]] const bool is_new, tables.declare(section.table, section.spec));
  }
  for (const auto& section : found.header.sections) {
    Table& table = *tables.table(section.table);
    if (const auto begun = table.begin_fill(section.blocks); !begun)
      return damaged(path, begun.error().message);
    for (std::uint64_t block = 0; block < section.blocks.count(); ++block) {
      blocks.push_back({.section = &section, .table = &table, .block = block, .offset = offset});
      offset += checksum_bytes + section.blocks.size_bytes(block);
    }
  }
  MUSTER_TRY_VOID(read_blocks(file.get(), path, blocks, progress));
  for (const auto& section : found.header.sections) MUSTER_TRY_VOID(tables.table(section.table)->end_fill());
  return {};
}

// ---- Writing. All of it but `open` runs on the thread.

class RowsCopy::File {
 public:
  explicit File(std::string path) : path_(std::move(path)), part_(path_ + ".part") {}
  ~File() {
    if (file_ && !is_whole_) ::unlink(part_.c_str());
  }

  void cancel() { is_cancelled_ = true; }
  bool is_cancelled() const { return is_cancelled_; }
  Result<> open();
  Result<> write(std::span<const std::byte> bytes);
  // The block's first bytes are room for its checksum.
  Result<> write_block(std::span<std::byte> block, std::size_t keys_size_bytes);
  Result<> end();

 private:
  tl::unexpected<Error> failure() const { return fail_errno(fmt::format("cannot write '{}'", part_), errno); }

  std::string path_;
  std::string part_;
  std::atomic<bool> is_cancelled_ = false;
  bool is_whole_ = false;
  net::ProcessDescriptor file_;
  std::uint64_t end_ = 0;
  std::uint64_t synced_ = 0;
};

Result<> RowsCopy::File::open() {
  file_ = net::ProcessDescriptor(::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  return file_ ? Result<>{} : Result<>(failure());
}

Result<> RowsCopy::File::write(std::span<const std::byte> bytes) {
  MUSTER_TRY_VOID(write_at(file_.get(), end_, bytes, part_));
  end_ += bytes.size();
  if (end_ - synced_ < dirty_bytes) return {};
  if (::fdatasync(file_.get()) != 0) return failure();
  synced_ = end_;
  return {};
}

Result<> RowsCopy::File::write_block(std::span<std::byte> block, std::size_t keys_size_bytes) {
  const auto bytes = block.subspan(checksum_bytes);
  net::store_little(block.data(),
                    checksum_of(bytes.first(keys_size_bytes), bytes.subspan(keys_size_bytes), end_));
  return write(block);
}

Result<> RowsCopy::File::end() {
  if (::fdatasync(file_.get()) != 0) return failure();
  if (::rename(part_.c_str(), path_.c_str()) != 0) return failure();
  is_whole_ = true;
  return sync_folder_of(path_);
}

RowsCopy::RowsCopy(net::Loop& loop, SerialThread& disk, TableSet& tables, std::string path,
                   RowsFileHeader header, std::function<void(Result<>)> done)
    : loop_(loop),
      disk_(disk),
      tables_(tables),
      header_(std::move(header)),
      done_(std::move(done)),
      file_(std::make_shared<File>(std::move(path))) {
  for (std::uint32_t index = 0; index < tables_.size(); ++index)
    if (Table* const table = tables_.table(index))
      header_.sections.push_back({.table = index, .spec = table->spec(), .blocks = table->begin_copy()});
  ++unwritten_;
  disk_.post([this, file = file_, head = encode(header_), alive = std::weak_ptr<bool>(alive_), &loop] {
    Result<> result = file->open();
    if (result) result = file->write(head);
    loop.post([this, alive, result] {
      if (!alive.expired()) wrote(result);
    });
  });
  go_on();
}

RowsCopy::~RowsCopy() {
  file_->cancel();
  for (const auto& section : header_.sections)
    if (Table* const table = tables_.table(section.table)) table->end_copy();
  disk_.post([file = std::move(file_)] {});  // it goes where it was made
}

void RowsCopy::go_on() {
  if (is_posted_ || unwritten_ >= unwritten_max || section_ > header_.sections.size()) return;
  is_posted_ = true;
  loop_.post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    is_posted_ = false;
    copy_next();
    go_on();
  });
}

void RowsCopy::copy_next() {
  while (section_ < header_.sections.size() && block_ == header_.sections[section_].blocks.count()) {
    tables_.table(header_.sections[section_].table)->end_copy();
    ++section_;
    block_ = 0;
  }
  std::function<Result<>()> job = [file = file_] { return file->end(); };
  const bool is_last = section_ == header_.sections.size();
  if (is_last) {
    ++section_;
  } else {
    const auto& section = header_.sections[section_];
    auto bytes = std::make_shared<std::vector<std::byte>>(checksum_bytes + section.blocks.size_bytes(block_));
    tables_.table(section.table)->copy_block(block_, std::span(*bytes).subspan(checksum_bytes));
    job = [file = file_, bytes, keys = section.blocks.keys_size_bytes(block_)] {
      return file->write_block(*bytes, keys);
    };
    ++block_;
  }
  ++unwritten_;
  disk_.post([this, file = file_, job = std::move(job), is_last, alive = std::weak_ptr<bool>(alive_),
              &loop = loop_] {
    if (file->is_cancelled()) return;
    const Result<> result = job();
    loop.post([this, alive, result, is_last] {
      if (alive.expired()) return;
      if (is_last && result) return done_({});
      wrote(result);
    });
  });
}

void RowsCopy::wrote(const Result<>& result) {
  if (!result) {
    section_ = header_.sections.size() + 1;  // no more
    return done_(result);
  }
  --unwritten_;
  go_on();
}

}  // namespace muster::server
