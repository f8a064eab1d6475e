#include "muster/data/process_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

namespace muster::data {
namespace {

// A block holds no more than this, however many rows are wanted.
constexpr std::size_t block_bytes_max = 64 << 20;
constexpr int processes_max = 256;

class ProcessStream final : public Stream {
 public:
  ProcessStream(std::unique_ptr<TaskFeed> feed, ProcessStreamSettings settings, const BufferPool& pool,
                const Pass& pass)
      : feed_(std::move(feed)), settings_(std::move(settings)), pool_(pool), pass_(pass) {}

  Result<std::optional<Block>> next(std::size_t want) override {
    Block made;
    std::vector<Block> rest;
    while (made.rows < want) {
      fill();
      if (waiting_.empty()) break;
      auto values = workers().front();
      if (!values && made.rows > 0) break;  // the rows before it come first
      if (!values) return fail(values.error());
      if (made.rows == 0)
        want = begin(made, *values, want);
      else if (!is_alike(made, *values) || !alike(rest.front(), waiting_.front()))
        break;
      append(*values, made);
      rest.push_back(std::move(waiting_.front()));
      drop();
    }
    if (made.rows == 0) return end();
    for (Tensor& column : made.columns) column = rows_of(column, 0, made.rows);
    return placed(std::move(made), std::move(rest));
  }

  Result<std::size_t> skip(std::size_t rows) override {
    std::size_t done = 0;
    for (; done < rows && !waiting_.empty(); ++done) {
      MUSTER_TRY_VOID(workers().front());
      drop();
    }
    if (done == rows || failed_) return done;
    MUSTER_TRY(const std::size_t more, feed_->skip(rows - done));
    return done + more;
  }

 private:
  WorkerProcesses& workers() {
    if (!workers_) workers_.emplace(settings_.processes, settings_.job, pass_);
    return *workers_;
  }

  // Gives the workers as many rows as they may have.
  void fill() {
    while (!ended_ && !failed_ && workers().has_room()) {
      auto row = feed_->next();
      if (row && *row) {
        if (const auto given = workers().give((*row)->task); !given)
          failed_ = given.error();
        else
          waiting_.push_back(std::move((*row)->rest));
      } else if (row) {
        ended_ = true;
      } else {
        failed_ = row.error();  // the rows before it come first
      }
    }
  }

  void drop() {
    waiting_.pop_front();
    workers().pop();
  }

  // Memory for rows like these: for how many.
  std::size_t begin(Block& made, const std::vector<Tensor>& values, std::size_t want) const {
    std::size_t bytes = 1;
    for (const Tensor& value : values) bytes += value.size_bytes();
    want = std::clamp<std::size_t>(block_bytes_max / bytes, 1, want);
    for (const Tensor& value : values)
      made.columns.push_back(
          pool_.make(value.dtype(), with_leading(static_cast<std::int64_t>(want), value.shape())));
    return want;
  }

  static bool is_alike(const Block& made, const std::vector<Tensor>& values) {
    return std::equal(made.columns.begin(), made.columns.end(), values.begin(), values.end(),
                      [](const Tensor& column, const Tensor& value) {
                        return column.dtype() == value.dtype() &&
                               std::equal(column.shape().begin() + 1, column.shape().end(),
                                          value.shape().begin(), value.shape().end());
                      });
  }

  static void append(const std::vector<Tensor>& values, Block& made) {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (const std::size_t bytes = values[i].size_bytes(); bytes > 0)
        std::memcpy(made.columns[i].bytes() + made.rows * bytes, values[i].bytes(), bytes);
    ++made.rows;
  }

  Result<std::optional<Block>> placed(Block made, std::vector<Block> rest) const {
    const std::vector<Column> nameless(rest.front().columns.size());  // for errors: these rows are alike
    MUSTER_TRY(Block others, joined(std::move(rest), nameless, pool_));
    Block whole{made.rows, {}, std::move(others.keys)};
    for (const Place& place : settings_.places)
      whole.columns.push_back(place.made ? std::move(made.columns[place.index])
                                         : others.columns[place.index]);
    return whole;
  }

  Result<std::optional<Block>> end() {
    if (failed_) return fail(*failed_);
    workers_.reset();
    return std::nullopt;
  }

  const std::unique_ptr<TaskFeed> feed_;
  const ProcessStreamSettings settings_;
  const BufferPool& pool_;
  const Pass pass_;
  std::optional<WorkerProcesses> workers_;
  std::deque<Block> waiting_;  // the rest of the rows that workers have
  std::optional<Error> failed_;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<Stream> open_process_stream(std::unique_ptr<TaskFeed> feed, ProcessStreamSettings settings,
                                            const BufferPool& pool, const Pass& pass) {
  return std::make_unique<ProcessStream>(std::move(feed), std::move(settings), pool, pass);
}

Result<> check_processes(const ProcessOptions& options) {
  if (options.count < 0 || options.count > processes_max)
    return fail(Code::invalid_argument,
                fmt::format("num_parallel_workers is {}; it must be from 1 to {} processes", options.count,
                            processes_max));
  if (options.row_bytes_max > std::size_t{1} << 40)
    return fail(Code::invalid_argument, "max_rowsize is more than 1048576 MB");
  return {};
}

}  // namespace muster::data
