#include "muster/server/rows_save.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace muster::server {
namespace {

// So much is listed between two events: a millisecond.
constexpr std::uint64_t listed_bytes = std::uint64_t{1} << 20;
constexpr std::size_t waiting_lists_max = 8;

std::uint64_t slots_listed(const TableSpec& spec) {
  return std::max<std::uint64_t>(listed_bytes / (sizeof(float) * whole_width(spec)), 1);
}

}  // namespace

struct RowsSave::File {
  std::atomic<bool> is_cancelled = false;
  std::unique_ptr<RowsWriter> writer = {};
};

RowsSave::RowsSave(net::Loop& loop, const TableSet& tables, const RowFiles& files, Share share,
                   const SaveOrder& order, std::function<void(const SaveOutcome&)> done)
    : loop_(loop), tables_(tables), done_(std::move(done)), file_(std::make_shared<File>()) {
  std::vector<RowFiles::Table> saved;
  for (const std::uint32_t index : order.tables) {
    const Table& table = *tables_.table(index);
    parts_.push_back({.table = index, .slots = table.slots(), .rows = table.rows()});
    saved.push_back({.number = index, .spec = table.spec(), .rows = table.rows()});
    outcome_.rows += table.rows();
  }
  post(
      [file = file_, create = files.create, text = order.text, share,
       saved = std::move(saved)]() -> Result<> {
        MUSTER_TRY(file->writer, create(text, share, saved));
        return {};
      },
      false);
  go_on();
}

RowsSave::~RowsSave() {
  alive_.reset();
  file_->is_cancelled = true;
  disk_.post([file = std::move(file_)] { file->writer.reset(); });
}

void RowsSave::go_on() {
  if (is_posted_ || has_ended_ || unwritten_ >= waiting_lists_max) return;
  is_posted_ = true;
  loop_.post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    is_posted_ = false;
    list_next();
    go_on();
  });
}

void RowsSave::list_next() {
  while (part_ < parts_.size() && slot_ >= parts_[part_].slots) {
    ++part_;
    slot_ = 0;
  }
  if (part_ == parts_.size()) {
    has_ended_ = true;
    return post([file = file_] { return file->writer->finish(); }, true);
  }
  Part& part = parts_[part_];
  const Table& table = *tables_.table(part.table);
  const std::uint64_t end = std::min(slot_ + slots_listed(table.spec()), part.slots);
  auto ids = std::make_shared<std::vector<std::uint64_t>>();
  auto rows = std::make_shared<std::vector<float>>();
  table.list(slot_, end, *ids, *rows, true);
  slot_ = end;
  if (ids->size() > part.rows) {  // a slot was empty when this began
    ids->resize(part.rows);
    rows->resize(part.rows * whole_width(table.spec()));
  }
  part.rows -= ids->size();
  post([file = file_, ids, rows, place = part_] { return file->writer->write(place, *ids, *rows); }, false);
}

void RowsSave::post(std::function<Result<>()> job, bool is_last) {
  ++unwritten_;
  disk_.post([this, file = file_, job = std::move(job), is_last, alive = std::weak_ptr<bool>(alive_),
              &loop = loop_] {
    if (file->is_cancelled) return;
    const Result<> result = job();
    if (!result) file->is_cancelled = true;
    loop.post([this, alive, result, is_last] {
      if (!alive.expired()) wrote(result, is_last);
    });
  });
}

void RowsSave::wrote(const Result<>& result, bool is_last) {
  --unwritten_;
  if (!result || is_last) {
    has_ended_ = true;
    if (!result) outcome_.trouble = result.error().message;
    return done_(outcome_);
  }
  go_on();
}

}  // namespace muster::server
