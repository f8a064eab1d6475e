#include "muster/server/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "muster/server/first_value.h"
#include "muster/server/row_index.h"
#include "muster/server/row_layout.h"
#include "muster/server/row_memory.h"
#include "muster/server/row_threads.h"
#include "muster/server/slot_array.h"

namespace muster::server {
namespace {

// Rows lie anywhere in memory, and a look into it takes as long as some ten rows take: so many are asked for
// ahead.
constexpr std::size_t rows_ahead = 16;
// Numbers that a kernel gets at once: they and their states stay in the first-level cache.
constexpr std::size_t block_numbers = 1024;
// What a copy reads at once: short beside a pull.
constexpr std::size_t copied_bytes = std::size_t{1} << 20;

// Calls ahead(i) rows_ahead before body(i).
template <class Ahead, class Body>
void for_rows(std::size_t count, const Ahead& ahead, const Body& body) {
  for (std::size_t i = 0; i < std::min(count, rows_ahead); ++i) ahead(i);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + rows_ahead < count) ahead(i + rows_ahead);
    body(i);
  }
}

}  // namespace

// What both kinds of tables have.
class Table::Rows {
 public:
  Rows(TableSpec spec, RowRange range)
      : spec_(std::move(spec)),
        rule_(spec_.rule),
        layout_(spec_, rule_.states()),
        first_(spec_),
        memory_(layout_.size_bytes(), spec_.sharding == Sharding::hash ? rows_per_server_max : range.size()) {
  }
  virtual ~Rows() = default;

  virtual Result<> read(std::span<const std::uint64_t> ids, std::span<float> values) = 0;
  virtual Result<> update(std::span<const std::uint64_t> ids, std::span<const float> gradients,
                          const UpdateStep& step) = 0;
  virtual Result<> assign(const Assigned& rows) = 0;
  virtual Result<> check_id(std::uint64_t id) const = 0;
  virtual std::size_t evict(std::uint64_t) { return 0; }
  virtual std::vector<std::uint64_t> ids() const = 0;
  virtual void list(std::uint64_t begin, std::uint64_t end, std::vector<std::uint64_t>& ids,
                    std::vector<float>& values, bool with_states) = 0;
  virtual std::uint32_t find(std::uint64_t id) const = 0;
  virtual const SlotBlocks& begin_copy() = 0;
  virtual void copy_block(std::uint64_t block, std::span<std::byte> bytes) = 0;
  virtual Result<> begin_fill(const SlotBlocks& blocks) = 0;
  virtual BlockPlaces places(const SlotBlocks& blocks, std::uint64_t block) = 0;
  virtual Result<> filled(const SlotBlocks& blocks, std::uint64_t block) = 0;
  virtual Result<> end_fill() = 0;
  void end_copy() { copy_.reset(); }

  const TableSpec& spec() const { return spec_; }
  const RowLayout& layout() const { return layout_; }
  const RowMemory& memory() const { return memory_; }

 protected:
  // The rule's work on rows that exist. Threads: of different slots at once.
  void update_slots(std::span<const std::uint32_t> slots, std::span<const float> gradients,
                    const UpdateStep& step) const;
  void make_row(std::uint64_t id, std::uint32_t slot) const;

  TableSpec spec_;
  RowRule rule_;
  RowLayout layout_;
  FirstValues first_;
  RowMemory memory_;
  std::optional<TableCopy> copy_;
  // Of the ids of a call: their slots, and the places of those whose rows are new, ascending.
  std::vector<std::uint32_t> slots_;
  std::vector<std::uint32_t> new_places_;

 private:
  void gather(std::span<const std::uint32_t> slots, const RowBlock& block) const;
  void scatter(std::span<const std::uint32_t> slots, const RowBlock& block) const;
};

void Table::Rows::make_row(std::uint64_t id, std::uint32_t slot) const {
  std::byte* const row = memory_.row(slot);
  if (spec_.dtype == DType::float32) {
    first_.write(id, {reinterpret_cast<float*>(row), layout_.width()});
  } else {
    std::vector<float> values(layout_.width());
    first_.write(id, values);
    layout_.write_values(row, values.data());
  }
  for (std::size_t i = 0; i < layout_.states(); ++i)
    std::fill_n(layout_.state(row, i), layout_.width(), rule_.initial_state(i));
}

void Table::Rows::gather(std::span<const std::uint32_t> slots, const RowBlock& block) const {
  const std::size_t width = layout_.width();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    std::byte* const row = memory_.row(slots[i]);
    layout_.read_values(row, block.values + i * width);
    for (std::size_t s = 0; s < layout_.states(); ++s)
      std::memcpy(block.states[s] + i * width, layout_.state(row, s), width * sizeof(float));
  }
}

void Table::Rows::scatter(std::span<const std::uint32_t> slots, const RowBlock& block) const {
  const std::size_t width = layout_.width();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    std::byte* const row = memory_.row(slots[i]);
    layout_.write_values(row, block.values + i * width);
    for (std::size_t s = 0; s < layout_.states(); ++s)
      std::memcpy(layout_.state(row, s), block.states[s] + i * width, width * sizeof(float));
  }
}

void Table::Rows::update_slots(std::span<const std::uint32_t> slots, std::span<const float> gradients,
                               const UpdateStep& step) const {
  const std::size_t width = layout_.width();
  const std::size_t rows = std::max<std::size_t>(block_numbers / width, 1);
  std::vector<float> scratch(rows * width * (1 + layout_.states()));
  RowBlock block{.values = scratch.data()};
  for (std::size_t s = 0; s < layout_.states(); ++s)
    block.states[s] = scratch.data() + (s + 1) * rows * width;
  const auto prefetch = [&](std::size_t begin) {
    for (std::size_t i = begin; i < std::min(begin + rows, slots.size()); ++i)
      layout_.prefetch(memory_.row(slots[i]));
  };
  prefetch(0);
  for (std::size_t begin = 0; begin < slots.size(); begin += rows) {
    prefetch(begin + rows);
    const auto part = slots.subspan(begin, std::min(rows, slots.size() - begin));
    block.gradients = gradients.data() + begin * width;
    block.count = static_cast<std::int64_t>(part.size() * width);
    gather(part, block);
    rule_.update(block, step);
    scatter(part, block);
  }
}

template <class Index>
class Table::RowsWith final : public Table::Rows {
 public:
  static constexpr bool is_hash = std::is_same_v<Index, HashIndex>;

  RowsWith(TableSpec spec, RowRange range, Index index)
      : Rows(std::move(spec), range), range_(range), index_(std::move(index)) {}

  Result<> read(std::span<const std::uint64_t> ids, std::span<float> values) override;
  Result<> update(std::span<const std::uint64_t> ids, std::span<const float> gradients,
                  const UpdateStep& step) override;
  Result<> assign(const Assigned& rows) override;
  Result<> check_id(std::uint64_t id) const override;
  std::size_t evict(std::uint64_t steps) override;
  std::vector<std::uint64_t> ids() const override;
  void list(std::uint64_t begin, std::uint64_t end, std::vector<std::uint64_t>& ids,
            std::vector<float>& values, bool with_states) override;
  std::uint32_t find(std::uint64_t id) const override {
    return is_hash || (id >= range_.begin && id < range_.end) ? index_.find(id) : no_slot;
  }
  const SlotBlocks& begin_copy() override;
  void copy_block(std::uint64_t block, std::span<std::byte> bytes) override;
  Result<> begin_fill(const SlotBlocks& blocks) override;
  BlockPlaces places(const SlotBlocks& blocks, std::uint64_t block) override;
  Result<> filled(const SlotBlocks& blocks, std::uint64_t block) override;
  Result<> end_fill() override;

 private:
  using Key = typename Index::Key;
  void find_slots(std::span<const std::uint64_t> ids);
  // Slots of all ids, with new ones for rows that are not there yet, which are not made yet.
  Result<> make_slots(std::span<const std::uint64_t> ids);
  void note_use(std::span<const std::uint64_t> ids, std::uint64_t steps);
  void forget(std::uint32_t slot);
  // Before the slot changes.
  void set_aside(std::uint32_t slot) {
    if (copy_ && copy_->wants(slot))
      copy_->set_aside(slot, std::as_bytes(std::span(&keys_[slot], 1)),
                       {memory_.row(slot), layout_.size_bytes()});
  }
  void set_aside(std::span<const std::uint32_t> slots) {
    if (!copy_) return;
    for (const std::uint32_t slot : slots) set_aside(slot);
  }
  SlotBlocks blocks() const;

  RowRange range_;
  Index index_;
  SlotArray<Key> keys_;
};

template <class Index>
Result<> Table::RowsWith<Index>::check_id(std::uint64_t id) const {
  if (is_hash || (id >= range_.begin && id < range_.end)) return {};
  return fail(Code::invalid_argument,
              fmt::format("table '{}': row {} is not among the rows {} to {} of this server", spec_.name, id,
                          range_.begin, range_.end));
}

template <class Index>
void Table::RowsWith<Index>::find_slots(std::span<const std::uint64_t> ids) {
  slots_.resize(ids.size());
  for_rows(
      ids.size(), [&](std::size_t i) { index_.prefetch(ids[i]); },
      [&](std::size_t i) { slots_[i] = index_.find(ids[i]); });
}

template <class Index>
Result<> Table::RowsWith<Index>::read(std::span<const std::uint64_t> ids, std::span<float> values) {
  for (const std::uint64_t id : ids) MUSTER_TRY_VOID(check_id(id));
  find_slots(ids);
  const std::size_t width = layout_.width();
  const auto prefetch = [&](std::size_t i) {
    if (slots_[i] != no_slot) layout_.prefetch_values(memory_.row(slots_[i]));
  };
  for_rows(ids.size(), prefetch, [&](std::size_t i) {
    if (slots_[i] == no_slot)
      first_.write(ids[i], values.subspan(i * width, width));
    else
      layout_.read_values(memory_.row(slots_[i]), values.data() + i * width);
  });
  return {};
}

template <class Index>
Result<> Table::RowsWith<Index>::make_slots(std::span<const std::uint64_t> ids) {
  for (const std::uint64_t id : ids) MUSTER_TRY_VOID(check_id(id));
  find_slots(ids);
  new_places_.clear();
  const auto missing = static_cast<std::size_t>(std::count(slots_.begin(), slots_.end(), no_slot));
  if (missing == 0) return {};
  if (memory_.rows() + missing > rows_per_server_max)
    return fail(Code::invalid_argument,
                fmt::format("table '{}': more than {} rows on one server: use more servers", spec_.name,
                            rows_per_server_max));
  MUSTER_TRY_VOID(memory_.reserve(missing));
  MUSTER_TRY_VOID(index_.reserve(missing));
  MUSTER_TRY_VOID(keys_.reserve(memory_.slots() + missing));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (slots_[i] != no_slot) continue;
    slots_[i] = memory_.add();
    set_aside(slots_[i]);
    index_.insert(ids[i], slots_[i]);
    keys_[slots_[i]] = index_.key(ids[i], 0);
    new_places_.push_back(static_cast<std::uint32_t>(i));
  }
  return {};
}

template <class Index>
void Table::RowsWith<Index>::note_use(std::span<const std::uint64_t> ids, std::uint64_t steps) {
  if constexpr (is_hash)
    for (std::size_t i = 0; i < ids.size(); ++i) keys_[slots_[i]] = index_.key(ids[i], steps);
}

template <class Index>
Result<> Table::RowsWith<Index>::update(std::span<const std::uint64_t> ids, std::span<const float> gradients,
                                        const UpdateStep& step) {
  MUSTER_TRY_VOID(make_slots(ids));
  set_aside(slots_);
  for_row_parts(ids.size(), [&](std::size_t begin, std::size_t end) {
    const auto first_new = std::lower_bound(new_places_.begin(), new_places_.end(), begin);
    for (auto place = first_new; place != new_places_.end() && *place < end; ++place)
      make_row(ids[*place], slots_[*place]);
    update_slots(std::span(slots_).subspan(begin, end - begin), gradients.subspan(begin * layout_.width()),
                 step);
  });
  note_use(ids, step.job_steps + 1);
  return {};
}

template <class Index>
Result<> Table::RowsWith<Index>::assign(const Assigned& rows) {
  const std::size_t width = layout_.width();
  const std::size_t each = rows.has_states ? whole_width(spec_) : width;
  MUSTER_TRY_VOID(make_slots(rows.ids));
  set_aside(slots_);
  for (std::size_t i = 0; i < rows.ids.size(); ++i) {
    make_row(rows.ids[i], slots_[i]);  // the state's first values
    std::byte* const row = memory_.row(slots_[i]);
    const float* const given = rows.values.data() + i * each;
    layout_.write_values(row, given);
    for (std::size_t k = 0; rows.has_states && k < layout_.states(); ++k)
      std::copy_n(given + (k + 1) * width, width, layout_.state(row, k));
  }
  note_use(rows.ids, rows.steps);
  return {};
}

template <class Index>
void Table::RowsWith<Index>::forget(std::uint32_t slot) {
  if constexpr (is_hash) {
    set_aside(slot);
    index_.erase(keys_[slot].id);
    keys_[slot] = {};
    memory_.remove(slot);
  }
}

template <class Index>
std::size_t Table::RowsWith<Index>::evict(std::uint64_t steps) {
  const std::size_t before = memory_.rows();
  if constexpr (is_hash) {
    const Eviction& rule = spec_.eviction;
    const auto slots = static_cast<std::uint32_t>(memory_.slots());
    if (rule.age_max > 0)
      for (std::uint32_t slot = 0; slot < slots; ++slot)
        if (keys_[slot].steps > 0 && keys_[slot].steps + rule.age_max < steps) forget(slot);
    if (rule.rows_max > 0 && memory_.rows() > rule.rows_max) {
      std::vector<std::uint32_t> kept;
      for (std::uint32_t slot = 0; slot < slots; ++slot)
        if (keys_[slot].steps > 0) kept.push_back(slot);
      const auto excess = static_cast<std::ptrdiff_t>(kept.size() - rule.rows_max);
      std::nth_element(
          kept.begin(), kept.begin() + excess, kept.end(), [&](std::uint32_t a, std::uint32_t b) {
            return std::pair(keys_[a].steps, keys_[a].id) < std::pair(keys_[b].steps, keys_[b].id);
          });
      std::for_each(kept.begin(), kept.begin() + excess, [&](std::uint32_t slot) { forget(slot); });
    }
  }
  return before - memory_.rows();
}

template <class Index>
std::vector<std::uint64_t> Table::RowsWith<Index>::ids() const {
  std::vector<std::uint64_t> found;
  for (std::size_t slot = 0; slot < memory_.slots(); ++slot)
    if (index_.is_row(keys_[slot])) found.push_back(index_.id(keys_[slot]));
  std::sort(found.begin(), found.end());
  return found;
}

template <class Index>
void Table::RowsWith<Index>::list(std::uint64_t begin, std::uint64_t end, std::vector<std::uint64_t>& ids,
                                  std::vector<float>& values, bool with_states) {
  const std::size_t width = layout_.width();
  const std::size_t each = with_states ? whole_width(spec_) : width;
  for (std::uint64_t slot = begin; slot < std::min<std::uint64_t>(end, memory_.slots()); ++slot) {
    if (!index_.is_row(keys_[slot])) continue;
    ids.push_back(index_.id(keys_[slot]));
    values.resize(values.size() + each);
    std::byte* const row = memory_.row(static_cast<std::uint32_t>(slot));
    float* const taken = values.data() + values.size() - each;
    layout_.read_values(row, taken);
    for (std::size_t k = 0; with_states && k < layout_.states(); ++k)
      std::copy_n(layout_.state(row, k), width, taken + (k + 1) * width);
  }
}

// ---- Files

// Blocks lie within the pieces of memory of both rows and keys.
template <class Index>
SlotBlocks Table::RowsWith<Index>::blocks() const {
  const std::size_t together = std::min({memory_.slots_together(), SlotArray<Key>::piece,
                                         std::bit_floor(copied_bytes / layout_.size_bytes() + 1)});
  return {.slots = memory_.slots(),
          .key_size_bytes = sizeof(Key),
          .row_size_bytes = static_cast<std::uint32_t>(layout_.size_bytes()),
          .per_block = static_cast<std::uint32_t>(together)};
}

template <class Index>
const SlotBlocks& Table::RowsWith<Index>::begin_copy() {
  return copy_.emplace(blocks()).blocks();
}

template <class Index>
Table::BlockPlaces Table::RowsWith<Index>::places(const SlotBlocks& blocks, std::uint64_t block) {
  const std::uint64_t begin = blocks.begin(block);
  return {.keys = {reinterpret_cast<std::byte*>(&keys_[begin]), blocks.keys_size_bytes(block)},
          .rows = {memory_.row(static_cast<std::uint32_t>(begin)),
                   blocks.slots_of(block) * blocks.row_size_bytes}};
}

template <class Index>
void Table::RowsWith<Index>::copy_block(std::uint64_t block, std::span<std::byte> bytes) {
  const BlockPlaces now = places(copy_->blocks(), block);
  std::memcpy(bytes.data(), now.keys.data(), now.keys.size());
  std::memcpy(bytes.data() + now.keys.size(), now.rows.data(), now.rows.size());
  copy_->finish(block, bytes);
}

template <class Index>
Result<> Table::RowsWith<Index>::begin_fill(const SlotBlocks& from) {
  SlotBlocks own = blocks();
  own.slots = from.slots;
  if (from != own || from.slots > (is_hash ? rows_per_server_max : range_.size()))
    return fail(Code::corrupt, fmt::format("table '{}' has rows in another form", spec_.name));
  MUSTER_TRY_VOID(memory_.make(from.slots));
  return keys_.reserve(from.slots);
}

template <class Index>
Result<> Table::RowsWith<Index>::filled(const SlotBlocks& blocks, std::uint64_t block) {
  if constexpr (!is_hash) {
    const auto first = static_cast<std::uint32_t>(blocks.begin(block));
    for (std::uint32_t i = 0; i < blocks.slots_of(block); ++i) {
      const std::uint64_t id = index_.id(keys_[first + i]);
      MUSTER_TRY_VOID(check_id(id));
      index_.insert(id, first + i);
    }
  }
  return {};
}

// The index of a hash is no thing for several threads.
template <class Index>
Result<> Table::RowsWith<Index>::end_fill() {
  if constexpr (is_hash) {
    const auto slots = static_cast<std::uint32_t>(memory_.slots());
    MUSTER_TRY_VOID(index_.reserve(slots));
    for_rows(
        slots, [&](std::size_t slot) { index_.prefetch(keys_[slot].id); },
        [&](std::size_t slot) {
          const Key key = keys_[slot];
          if (index_.is_row(key))
            index_.insert(key.id, static_cast<std::uint32_t>(slot));
          else
            memory_.remove(static_cast<std::uint32_t>(slot));
        });
  }
  return {};
}

Table::Table(std::unique_ptr<Rows> rows) : rows_(std::move(rows)) {}
Table::Table(Table&&) noexcept = default;
Table& Table::operator=(Table&&) noexcept = default;
Table::~Table() = default;

Result<Table> Table::make(TableSpec spec, Share share) {
  MUSTER_TRY_VOID(check(spec, share.servers));
  if (spec.sharding == Sharding::hash) {
    MUSTER_TRY(HashIndex index, HashIndex::make());
    return Table(std::make_unique<RowsWith<HashIndex>>(std::move(spec), RowRange{}, std::move(index)));
  }
  const RowRange range = Owners(spec, share.servers).range(share.server);
  MUSTER_TRY(RangeIndex index, RangeIndex::make(range));
  return Table(std::make_unique<RowsWith<RangeIndex>>(std::move(spec), range, std::move(index)));
}

const TableSpec& Table::spec() const { return rows_->spec(); }
std::uint64_t Table::slots() const { return rows_->memory().slots(); }
void Table::list(std::uint64_t begin, std::uint64_t end, std::vector<std::uint64_t>& ids,
                 std::vector<float>& values, bool with_states) const {
  rows_->list(begin, end, ids, values, with_states);
}
Result<> Table::check_range(std::uint64_t first, std::uint64_t last) const {
  MUSTER_TRY_VOID(rows_->check_id(first));
  return rows_->check_id(last);
}
Result<> Table::read(std::span<const std::uint64_t> ids, std::span<float> values) const {
  MUSTER_CHECK(values.size() == ids.size() * rows_->layout().width(),
               "rows are read into a place of another size");
  return rows_->read(ids, values);
}
Result<> Table::update(std::span<const std::uint64_t> ids, std::span<const float> gradients,
                       const UpdateStep& step) {
  MUSTER_CHECK(gradients.size() == ids.size() * rows_->layout().width(),
               "rows and gradients differ in number");
  return rows_->update(ids, gradients, step);
}
Result<> Table::assign(const Assigned& rows) {
  const std::size_t each = rows.has_states ? whole_width(rows_->spec()) : rows_->layout().width();
  MUSTER_CHECK(rows.values.size() == rows.ids.size() * each, "rows and values differ in number");
  return rows_->assign(rows);
}
std::size_t Table::evict(std::uint64_t steps) { return rows_->evict(steps); }
std::size_t Table::rows() const { return rows_->memory().rows(); }
std::size_t Table::size_bytes() const { return rows_->memory().size_bytes(); }
std::vector<std::uint64_t> Table::ids() const { return rows_->ids(); }
const SlotBlocks& Table::begin_copy() { return rows_->begin_copy(); }
void Table::copy_block(std::uint64_t block, std::span<std::byte> bytes) { rows_->copy_block(block, bytes); }
void Table::end_copy() { rows_->end_copy(); }
Result<> Table::begin_fill(const SlotBlocks& blocks) { return rows_->begin_fill(blocks); }
Table::BlockPlaces Table::places(const SlotBlocks& blocks, std::uint64_t block) {
  return rows_->places(blocks, block);
}
Result<> Table::filled(const SlotBlocks& blocks, std::uint64_t block) { return rows_->filled(blocks, block); }
Result<> Table::end_fill() { return rows_->end_fill(); }
std::span<const std::byte> Table::row_bytes(std::uint64_t id) const {
  const std::uint32_t slot = rows_->find(id);
  if (slot == no_slot) return {};
  return {rows_->memory().row(slot), rows_->layout().size_bytes()};
}

}  // namespace muster::server
