#include "muster/server/table_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "muster/server/gradient_sum.h"

namespace muster::server {
namespace {

// Steps between two looks for rows that leave: each reads something of every row.
constexpr std::uint64_t evicted_every = 64;

bool looks_for_leaving(std::uint64_t step) { return (step + 1) % evicted_every == 0; }

constexpr std::size_t tables_told = 3;

// Once all rows were updated.
std::uint64_t size_here(const TableSpec& spec, Share share) {
  const bool is_elsewhere = spec.sharding == Sharding::whole && spec.home % share.servers != share.server;
  return is_elsewhere ? 0 : share_size_bytes(spec, share.servers);
}

double in_gib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

void write_slots(BatchWriter& out, const Table& from, const TablePart& part) {
  std::vector<std::uint64_t> ids;
  std::vector<float> values;
  from.list(part.ids[0], part.ids[1], ids, values, part.has_states);
  const auto places = out.add(part.table, {.ids = ids.size(), .values = values.size()}, 0, from.slots());
  std::ranges::copy(ids, places.ids.begin());
  std::ranges::copy(values, places.values.begin());
}

bool ascend(std::span<const std::uint64_t> ids) {
  return std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end();
}

}  // namespace

Result<bool> TableSet::declare(std::uint32_t index, const TableSpec& spec) {
  if (const Table* known = table(index)) {
    if (known->spec() == spec) return false;
    return fail(
        Code::invalid_argument,
        fmt::format(
            "table {} differs between workers: '{}' with {} rows of {} numbers, and '{}' with {} rows of {} "
            "numbers, or their rules or seeds differ: all workers must make the same network, behind the "
            "same set_seed",
            index, known->spec().name, known->spec().rows, known->spec().width, printable(spec.name),
            spec.rows, spec.width));
  }
  MUSTER_TRY(Table made, Table::make(spec, share_));
  tables_.resize(std::max<std::size_t>(tables_.size(), index + 1));
  tables_[index] = std::move(made);
  return true;
}

// No more than other processes can wait for.
Result<> TableSet::check_slots(const Table& table, const TablePart& part, bool has_values) {
  const std::uint64_t most = slots_at_once(table.spec());
  if (!has_values && part.ids.size() == 2 && part.ids[0] < part.ids[1] && part.ids[1] - part.ids[0] <= most)
    return {};
  return fail(Code::corrupt,
              fmt::format("table '{}': a list of rows is asked for in parts of {} slots at most",
                          table.spec().name, most));
}

Result<> TableSet::check(const Batch& batch, bool has_values) const {
  for (const TablePart& part : batch.parts) {
    const Table* const known = table(part.table);
    if (known == nullptr)
      return fail(Code::invalid_argument, fmt::format("no worker has told of table {} yet", part.table));
    const std::size_t width = part.has_states ? whole_width(known->spec()) : known->spec().width;
    const bool may_have_states = has_values ? part.has_first_values : part.is_of_slots;
    if (part.has_states && !may_have_states)
      return fail(Code::corrupt,
                  fmt::format("table '{}': states come with first values, or of slots", known->spec().name));
    if (part.values.size() != (has_values ? part.ids.size() * width : 0))
      return fail(Code::corrupt, fmt::format("table '{}': {} rows come with {} numbers", known->spec().name,
                                             part.ids.size(), part.values.size()));
    if (part.is_of_slots) {
      MUSTER_TRY_VOID(check_slots(*known, part, has_values));
      continue;
    }
    if (!ascend(part.ids))
      return fail(Code::corrupt,
                  fmt::format("table '{}': the ids of a batch do not ascend", known->spec().name));
    if (!part.ids.empty()) MUSTER_TRY_VOID(known->check_range(part.ids.front(), part.ids.back()));
  }
  return {};
}

Result<> TableSet::check_pull(const Batch& batch) const { return check(batch, false); }
Result<> TableSet::check_push(const Batch& batch) const { return check(batch, true); }

Result<std::vector<std::byte>> TableSet::read(const Batch& pull, std::uint64_t applied) const {
  BatchWriter out(pull.worker, applied);
  MUSTER_TRY_VOID(write_rows(pull, out));
  return out.take();
}

std::size_t TableSet::rows_size_bytes(const Batch& pull) const {
  std::size_t size_bytes = BatchWriter::header_bytes;
  for (const TablePart& part : pull.parts) {
    if (part.is_of_slots) return 0;
    size_bytes += BatchWriter::part_bytes({.values = part.ids.size() * table(part.table)->spec().width});
  }
  return size_bytes;
}

Result<> TableSet::write_rows(const Batch& pull, BatchWriter& out) const {
  for (const TablePart& part : pull.parts) {
    const Table& from = *table(part.table);
    if (part.is_of_slots) {
      write_slots(out, from, part);
      continue;
    }
    const auto places = out.add(part.table, {.values = part.ids.size() * from.spec().width});
    MUSTER_TRY_VOID(from.read(part.ids, places.values));
  }
  return {};
}

Result<std::vector<std::byte>> TableSet::read_changed(const Batch& pull, const ChangedRows& changed,
                                                      std::uint64_t applied) const {
  BatchWriter out(pull.worker, applied);
  for (std::size_t i = 0; i < pull.parts.size(); ++i) {
    const TablePart& part = pull.parts[i];
    std::vector<std::uint64_t> ids;
    for (std::size_t k = 0; k < part.ids.size(); ++k)
      if (changed[i][k]) ids.push_back(part.ids[k]);
    const Table& from = *table(part.table);
    const auto places = out.add(part.table, {.ids = ids.size(), .values = ids.size() * from.spec().width});
    std::ranges::copy(ids, places.ids.begin());
    MUSTER_TRY_VOID(from.read(ids, places.values));
  }
  return out.take();
}

void TableSet::note_changes(const Batch& pull, std::uint64_t step, std::span<const Batch* const> pushes,
                            ChangedRows& changed) const {
  for (std::size_t i = 0; i < pull.parts.size(); ++i) {
    const TablePart& wanted = pull.parts[i];
    const bool may_leave = table(wanted.table)->spec().eviction != Eviction{} && looks_for_leaving(step);
    if (may_leave) changed[i].assign(wanted.ids.size(), true);
    for (const Batch* push : pushes)
      for (const TablePart& part : push->parts) {
        if (part.table != wanted.table) continue;
        std::size_t at = 0;
        for (std::size_t k = 0; k < wanted.ids.size() && at < part.ids.size(); ++k) {
          while (at < part.ids.size() && part.ids[at] < wanted.ids[k]) ++at;
          if (at < part.ids.size() && part.ids[at] == wanted.ids[k]) changed[i][k] = true;
        }
      }
  }
}

Result<> TableSet::apply(std::uint64_t step, std::span<const Batch* const> pushes) {
  for (std::uint32_t index = 0; index < tables_.size(); ++index) {
    std::vector<TablePart> parts, first_values;
    for (const Batch* push : pushes)
      for (const TablePart& part : push->parts)
        if (part.table == index) (part.has_first_values ? first_values : parts).push_back(part);
    if (!first_values.empty()) MUSTER_TRY_VOID(begin_rows(*tables_[index], step, first_values, parts.size()));
    if (!parts.empty()) MUSTER_TRY_VOID(apply_to(*tables_[index], step, parts));
    if (tables_[index] && looks_for_leaving(step)) tables_[index]->evict(step + 1);
  }
  return {};
}

// Every worker sends all rows, in its first push of each generation: they count where none is kept yet.
Result<> TableSet::begin_rows(Table& table, std::uint64_t step, std::span<const TablePart> parts,
                              std::size_t updates) {
  if (table.rows() > 0) return {};
  const auto differs = [&](const TablePart& part) {
    return part.has_states != parts[0].has_states || !std::ranges::equal(part.ids, parts[0].ids) ||
           !std::ranges::equal(std::as_bytes(part.values), std::as_bytes(parts[0].values));
  };
  if (parts.size() < updates || std::ranges::any_of(parts, differs))  // some may have set or loaded none
    return fail(Code::invalid_argument,
                fmt::format("parameter '{}' begins differently in the workers: set the same seed in all, "
                            "before the network is made, or load the same checkpoint",
                            table.spec().name));
  return table.assign(
      {.ids = parts[0].ids, .values = parts[0].values, .has_states = parts[0].has_states, .steps = step + 1});
}

Result<> TableSet::apply_to(Table& table, std::uint64_t step, std::span<const TablePart> parts) {
  for (const TablePart& part : parts)
    if (part.learning_rate != parts[0].learning_rate)
      return fail(
          Code::invalid_argument,
          fmt::format("the learning rate of '{}' differs between the workers: {} and {} in step {}; a "
                      "callback that changes it by a metric (ReduceLROnPlateau) needs the same "
                      "evaluation in all of them",
                      table.spec().name, parts[0].learning_rate, part.learning_rate, step));
  const UpdateStep update{
      .learning_rate = parts[0].learning_rate, .steps = parts[0].steps, .job_steps = step};
  if (parts.size() == 1 && (worker_num_ == 1 || !takes_means_))
    return table.update(parts[0].ids, parts[0].values, update);
  GradientSum sum(parts, table.spec().width);
  if (takes_means_) sum.divide_by(static_cast<float>(worker_num_));
  return table.update(sum.ids(), sum.values(), update);
}

std::uint64_t TableSet::rows() const {
  std::uint64_t rows = 0;
  for (const auto& each : tables_) rows += each ? each->rows() : 0;
  return rows;
}

std::string TableSet::excess_of(std::uint64_t memory_bytes) const {
  std::uint64_t all = 0;
  std::vector<std::pair<std::uint64_t, const TableSpec*>> by_size;
  for (const auto& each : tables_) {
    if (!each) continue;
    by_size.emplace_back(size_here(each->spec(), share_), &each->spec());
    all += by_size.back().first;
  }
  if (all <= memory_bytes) return {};
  std::ranges::sort(by_size, std::greater<>());
  std::vector<std::string> largest;
  for (const auto& [size, spec] :
       std::span(by_size).first(std::min<std::size_t>(by_size.size(), tables_told)))
    largest.push_back(fmt::format("'{}' {:.2f} GiB ({} rows of {} bytes on {} servers)", spec->name,
                                  in_gib(size), spec->rows, row_size_bytes(*spec), share_.servers));
  return fmt::format(
      "the tables of this job can take {:.2f} GiB on parameter server {} once all of their rows were "
      "updated, and {:.2f} GiB are left for it: {}{}. Start more servers (MS_SERVER_NUM) or on more hosts, "
      "or make the tables smaller",
      in_gib(all), share_.server, in_gib(memory_bytes), fmt::join(largest, ", "),
      by_size.size() > tables_told ? ", ..." : "");
}

std::uint64_t TableSet::size_bytes() const {
  std::uint64_t size = 0;
  for (const auto& each : tables_) size += each ? each->rows() * row_size_bytes(each->spec()) : 0;
  return size;
}

Result<> TableSet::load_saved(std::uint32_t index, const RowFiles& files) {
  Result<> read = read_saved(*table(index), files);
  if (!read) tables_[index].reset();
  return read;
}

Result<> TableSet::read_saved(Table& table, const RowFiles& files) const {
  const TableSpec& spec = table.spec();
  if (spec.saved.place.empty()) return {};
  if (!files.read)
    return fail(Code::not_provided, fmt::format("table '{}' begins with the rows of a checkpoint, which this "
                                                "server cannot read",
                                                spec.name));
  const Owners owners(spec, share_.servers);
  const std::size_t width = spec.saved.has_states ? whole_width(spec) : spec.width;
  std::vector<std::uint64_t> own_ids;
  std::vector<float> own_rows;
  return files.read(spec, share_,
                    [&](std::span<const std::uint64_t> ids, std::span<const float> rows) -> Result<> {
                      own_ids.clear();
                      own_rows.clear();
                      for (std::size_t i = 0; i < ids.size(); ++i) {
                        if (spec.rows > 0 && ids[i] >= spec.rows)
                          return fail(Code::corrupt,
                                      fmt::format("the checkpoint of table '{}' has row {}, and the table {}",
                                                  spec.name, ids[i], spec.rows));
                        if (owners.of(ids[i]) != share_.server) continue;
                        const auto row = rows.subspan(i * width, width);
                        own_ids.push_back(ids[i]);
                        own_rows.insert(own_rows.end(), row.begin(), row.end());
                      }
                      return table.assign({.ids = own_ids,
                                           .values = own_rows,
                                           .has_states = spec.saved.has_states,
                                           .steps = spec.saved.steps + 1});
                    });
}

Result<> TableSet::reset() {
  for (auto& each : tables_) {
    if (!each) continue;
    MUSTER_TRY(each, Table::make(each->spec(), share_));
  }
  return {};
}

}  // namespace muster::server
