// Private: rows that processes make, asked for ahead.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "muster/data/buffer_pool.h"
#include "muster/data/node.h"
#include "muster/data/worker_processes.h"

namespace muster::data {

// What a worker needs for a row, and what stays here: one row, whose columns and keys go beside what is made.
struct GivenRow {
  WorkerTask task;
  Block rest;
};

class TaskFeed {
 public:
  virtual ~TaskFeed() = default;
  // Nothing at the end of the pass.
  virtual Result<std::optional<GivenRow>> next() = 0;
  // As Stream::skip.
  virtual Result<std::size_t> skip(std::size_t rows) = 0;
};

struct ProcessStreamSettings {
  ProcessOptions processes;
  WorkerJob job;
  std::vector<Place> places;    // of what the workers make, and of the rest
  std::vector<Column> columns;  // that come out
};

std::unique_ptr<Stream> open_process_stream(std::unique_ptr<TaskFeed> feed, ProcessStreamSettings settings,
                                            const BufferPool& pool, const Pass& pass);

Result<> check_processes(const ProcessOptions& options);

}  // namespace muster::data
