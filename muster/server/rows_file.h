// Rows file: the rows of a parameter server as of one moment (docs/formats/parameter-server.md). Private to
// server.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/net/net.h"
#include "muster/server/serial_thread.h"
#include "muster/server/start_progress.h"
#include "muster/server/table_copy.h"
#include "muster/server/table_set.h"

namespace muster::server {

struct RowsFileHeader {
  std::uint64_t job_id = 0;
  Share share = {};
  std::vector<std::uint64_t> next = {};  // by worker: its pushes before this step are in the rows
  std::uint64_t segment = 0;             // of the log, whose records follow
  struct Section {
    std::uint32_t table = 0;
    TableSpec spec = {};
    SlotBlocks blocks = {};
    friend bool operator==(const Section&, const Section&) = default;
  };
  std::vector<Section> sections = {};  // tables, in the order of their rows
  friend bool operator==(const RowsFileHeader&, const RowsFileHeader&) = default;
};

// The header alone. Code::not_found where there is no file.
Result<RowsFileHeader> read_rows_header(const std::string& path);
// Its rows, by several threads at once, into tables that have just been made.
Result<> read_rows(const std::string& path, TableSet& tables, StartProgress& progress);

// Writes the rows of now into a file while updates go on: the loop copies a block between two events, a
// thread brings it to the disk. Destroying it ends that, and leaves no file.
class RowsCopy {
 public:
  // What it is given is borrowed. The header's sections are filled in. `done` is called on the loop, once:
  // the whole file is on the disk.
  RowsCopy(net::Loop& loop, SerialThread& disk, TableSet& tables, std::string path, RowsFileHeader header,
           std::function<void(Result<>)> done);
  ~RowsCopy();
  RowsCopy(const RowsCopy&) = delete;
  RowsCopy& operator=(const RowsCopy&) = delete;

  const RowsFileHeader& header() const { return header_; }

 private:
  class File;
  void go_on();
  void copy_next();
  void wrote(const Result<>& result);

  net::Loop& loop_;
  SerialThread& disk_;
  TableSet& tables_;
  RowsFileHeader header_;
  std::function<void(Result<>)> done_;
  std::shared_ptr<File> file_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for what the thread posts
  std::size_t section_ = 0;
  std::uint64_t block_ = 0;
  std::size_t unwritten_ = 0;  // blocks that the thread has
  bool is_posted_ = false;
};

}  // namespace muster::server
