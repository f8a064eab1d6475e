#include "muster/train/batches.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

#include "muster/train/data_settings.h"
#include "muster/train/front_end.h"

namespace muster::train {
namespace {

using graph::TensorType;
using Numbers = std::vector<std::int64_t>;

// More than any description or error has.
constexpr std::uint64_t content_bytes_max = 1 << 20;

// What goes before the content of a message.
struct BatchHeader {
  std::uint64_t kind = 0;
  std::uint64_t content_bytes = 0;
};

std::vector<TensorType> types_of(const data::Item& item) {
  std::vector<TensorType> types;
  for (const Tensor& tensor : item) types.push_back({tensor.dtype(), tensor.shape()});
  return types;
}

// dtype, rank and sizes of each.
Numbers words_of(std::span<const TensorType> types) {
  Numbers words;
  for (const TensorType& type : types) {
    words.push_back(static_cast<std::int64_t>(type.dtype));
    words.push_back(static_cast<std::int64_t>(type.shape.rank()));
    for (std::size_t axis = 0; axis < type.shape.rank(); ++axis) words.push_back(type.shape[axis]);
  }
  return words;
}

std::vector<TensorType> types_from(std::span<const std::int64_t> words) {
  std::vector<TensorType> types;
  while (words.size() >= 2) {
    const auto rank = static_cast<std::size_t>(words[1]);
    MUSTER_CHECK(rank <= words.size() - 2, "a description of tensors is cut off");
    const auto sizes = words.subspan(2, rank);
    types.push_back(
        {static_cast<DType>(words[0]), Shape(std::vector<std::int64_t>(sizes.begin(), sizes.end()))});
    words = words.subspan(2 + rank);
  }
  return types;
}

// A sample of each value is enough: items that differ do so nearly everywhere.
std::uint64_t contents_with(std::uint64_t before, const data::Item& item) {
  constexpr std::size_t whole_bytes = 4096, piece_bytes = 64, pieces = 64;
  std::vector<std::uint64_t> parts = {before};
  for (const Tensor& value : item) {
    parts.push_back(static_cast<std::uint64_t>(value.dtype()));
    for (const std::int64_t size : value.shape()) parts.push_back(static_cast<std::uint64_t>(size));
    const std::size_t bytes = value.size_bytes();
    if (bytes <= whole_bytes) {
      parts.push_back(hash_bytes(value.bytes(), bytes));
      continue;
    }
    for (std::size_t piece = 0; piece < pieces; ++piece)
      parts.push_back(hash_bytes(value.bytes() + piece * (bytes - piece_bytes) / (pieces - 1), piece_bytes));
  }
  return hash_bytes(parts.data(), parts.size() * sizeof parts.front());
}

// Items of a dataset that only a pass can count: behind a filter, or from a generator.
Result<std::int64_t> counted(const data::Dataset& dataset) {
  MUSTER_TRY(data::Iterator pass, begin_pass_of(dataset, {}));
  std::int64_t items = 0;
  while (true) {
    MUSTER_TRY(const std::optional<data::Item> item, pass.next());
    if (!item) return items;
    ++items;
  }
}

}  // namespace

Result<data::Iterator> begin_pass_of(const data::Dataset& dataset, const DataPosition& from, bool padding) {
  data::IterateOptions options = data_options(from.pass);
  options.skip_items = from.items - from.items_before;
  options.rows_before = from.rows_before;
  options.padding = padding;
  options.while_waiting = &look_for_interruption;
  return dataset.iterate(std::move(options));
}

void Batches::begin_at(const DataPosition& position) {
  MUSTER_CHECK(!in_pass_ && !ahead_, "where to begin is said before the first item");
  passes_ = position.pass;
  begin_ = taken_ = position.items;
  rows_before_ = position.rows_before;
  items_before_ = position.items_before;
  expected_ = position.contents;
  contents_ = expected_.value_or(0);
}

DataPosition Batches::position() const {
  DataPosition position{.pass = in_pass_ ? passes_ - 1 : passes_,
                        .items = taken_,
                        .rows_before = rows_before_,
                        .items_before = items_before_};
  if (compares() && reads()) position.contents = contents_;
  return position;
}

void Batches::divide(Communicator& stages, std::uint32_t reader) {
  MUSTER_CHECK(!in_pass_ && !ahead_, "who reads is chosen before the first item");
  MUSTER_CHECK(reader < stages.size(), "the reader is one of the stages");
  stages_ = &stages;
  reader_ = reader;
}

// ---- Which samples come -----------------------------------------------------------------------------------

void Batches::log_samples(std::shared_ptr<checkpoint::SampleLog> log) {
  samples_ = std::move(log);
  log_begins_ = true;
}

void Batches::log_regrouping(std::uint64_t workers, const DataPosition& position) {
  if (samples_) note_logged(samples_->go_on_behind(workers, position.pass, position.items));
}

void Batches::log_sample(const data::Item& item) {
  if (samples_ && reads() && std::exchange(log_begins_, false))
    note_logged(samples_->begin(passes_ - 1, taken_ - 1));
  if (samples_ && reads()) note_logged(samples_->add(passes_ - 1, taken_ - 1, item, dataset_.is_batched()));
}

// Training goes on without it.
void Batches::note_logged(const Result<>& written) {
  if (written) return;
  log::error(fmt::format("the log of samples ends here: {}", written.error().message));
  samples_.reset();
}

// ---- Messages ---------------------------------------------------------------------------------------------

Result<> Batches::tell(Kind kind, std::span<const std::byte> content) {
  const BatchHeader header{.kind = static_cast<std::uint64_t>(kind), .content_bytes = content.size()};
  const auto bytes = std::as_bytes(std::span(&header, 1));
  for (std::uint32_t rank = 0; rank < stages_->size(); ++rank) {
    if (rank == reader_) continue;
    const auto explain = [&](Error error) {
      error.message =
          fmt::format("while sending what the next batch is to worker {}: {}", rank, error.message);
      return error;
    };
    MUSTER_TRY_VOID(stages_->send(rank, {{bytes}}).map_error(explain));
    if (!content.empty()) MUSTER_TRY_VOID(stages_->send(rank, {{content}}).map_error(explain));
  }
  return {};
}

Result<> Batches::tell_failure(const Error& error) {
  const std::string text = error.message.substr(0, content_bytes_max);
  return tell(Kind::failure, std::as_bytes(std::span(text)));
}

// An error of the reader is the error here.
Result<Batches::Message> Batches::hear() {
  BatchHeader header;
  const std::array into_header{std::as_writable_bytes(std::span(&header, 1))};
  const auto explain = [this](Error error) {
    error.message =
        fmt::format("while waiting for what the next batch is from worker {}: {}", reader_, error.message);
    return error;
  };
  MUSTER_TRY_VOID(stages_->receive(reader_, into_header).map_error(explain));
  MUSTER_CHECK(header.kind <= static_cast<std::uint64_t>(Kind::count),
               "the reader sends a header of an unknown kind");
  MUSTER_CHECK(header.content_bytes <= content_bytes_max,
               "the reader sends a header that announces too many bytes");
  std::vector<std::byte> content(header.content_bytes);
  if (!content.empty()) {
    const std::array into_content{std::span(content)};
    MUSTER_TRY_VOID(stages_->receive(reader_, into_content).map_error(explain));
  }
  Message message{.kind = static_cast<Kind>(header.kind)};
  if (message.kind == Kind::failure)
    return fail(Code::invalid_argument,
                fmt::format("worker {}, which reads the data: {}", reader_,
                            std::string_view(reinterpret_cast<const char*>(content.data()), content.size())));
  message.words.resize(content.size() / sizeof(std::int64_t));
  if (!content.empty())
    std::memcpy(message.words.data(), content.data(), message.words.size() * sizeof(std::int64_t));
  return message;
}

// ---- Counting ---------------------------------------------------------------------------------------------

Result<std::int64_t> Batches::counted_here(std::string_view what) {
  MUSTER_TRY_VOID(dataset_.status());
  MUSTER_TRY(std::int64_t size, dataset_.size());
  if (size == data::size_unknown) {
    MUSTER_TRY(size, counted(dataset_));
  }
  if (size == 0)
    return fail(
        Code::invalid_argument,
        fmt::format("the {} dataset has no items: fewer rows than a batch, with drop_remainder?", what));
  return size;
}

Result<std::int64_t> Batches::count(std::string_view what) {
  if (!reads()) {
    MUSTER_TRY(const Message message, hear());
    MUSTER_CHECK(message.kind == Kind::count && message.words.size() == 1, "the reader counts the items");
    return message.words.front();
  }
  const Result<std::int64_t> counted = counted_here(what);
  if (!divided()) return counted;
  if (!counted) {
    MUSTER_TRY_VOID(tell_failure(counted.error()));
  } else {
    MUSTER_TRY_VOID(tell(Kind::count, std::as_bytes(std::span(&*counted, 1))));
  }
  return counted;
}

// ---- Items ------------------------------------------------------------------------------------------------

Result<std::optional<data::Item>> Batches::read() {
  if (!pass_) {
    const bool again = compares() && begin_ > 0;
    MUSTER_TRY(data::Iterator begun, begin_pass_of(dataset_,
                                                   {.pass = passes_ - 1,
                                                    .items = again ? 0 : begin_,
                                                    .rows_before = rows_before_,
                                                    .items_before = items_before_},
                                                   padding_));
    pass_.emplace(std::move(begun));
    if (again) MUSTER_TRY_VOID(pass_over_items());
  }
  MUSTER_TRY(std::optional<data::Item> item, pass_->next());
  if (!item) return item;
  if (compares()) contents_read_ = contents_with(contents_, *item);
  MUSTER_TRY(item, joined(*std::move(item)));
  return item;
}

// Of what this worker and the others have read, where columns come in slices.
Result<data::Item> Batches::joined(data::Item item) const {
  if (data_settings().slices.empty()) return item;
  if (divided())
    return fail(Code::invalid_argument,
                "a dataset_strategy that cuts along more than rows does not go with stages, where one worker "
                "reads for all: let it read the whole batch (dataset_strategy='full_batch')");
  for (std::size_t column = 0; column < item.size(); ++column) {
    MUSTER_TRY(item[column], joined_slices(column, item[column]));
  }
  return item;
}

// A training goes on in the middle of a pass over items that the library does not order: they have to be
// those that it had, or some would be trained on twice and others never.
Result<> Batches::pass_over_items() {
  std::uint64_t contents = 0;
  for (std::uint64_t done = 0; done < begin_; ++done) {
    MUSTER_TRY(const std::optional<data::Item> item, pass_->next());
    if (!item)
      return fail(
          Code::refused,
          fmt::format("the training goes on behind item {} of pass {} over its data, which gives only {} now",
                      begin_, passes_ - 1, done));
    contents = contents_with(contents, *item);
  }
  contents_ = contents;
  constexpr std::string_view way_out =
      "Give the data (or its sampler) a method set_epoch(pass), and let the order and every random number "
      "depend on that alone; or begin anew with MUSTER_FRESH=1";
  if (expected_ && contents != *expected_)
    return fail(Code::refused,
                fmt::format("the training cannot go on in the middle of pass {} over its data: the first {} "
                            "items are others than before. {}",
                            passes_ - 1, begin_, way_out));
  if (expected_) return {};
  const std::string lost = fmt::format(
      "in the middle of pass {} over its data, behind item {}, whose record this worker has "
      "lost: whether the items are those of before cannot be told",
      passes_ - 1, begin_);
  if (dataset_.item_order() == data::ItemOrder::unknown)
    return fail(Code::refused, fmt::format("the training cannot go on {}. {}", lost, way_out));
  log::warning(fmt::format("the training goes on {}, and set_epoch is trusted", lost));
  return {};
}

void Batches::count_taken() {
  ++taken_;
  contents_before_ = contents_;
  if (compares() && reads()) contents_ = contents_read_;
}

Result<> Batches::tell_of_item(const std::optional<data::Item>& item) {
  if (!item) return tell(Kind::end);
  std::vector<TensorType> types = types_of(*item);
  if (types == types_) return tell(Kind::same_types);
  types_ = std::move(types);
  const Numbers words = words_of(types_);
  return tell(Kind::types, std::as_bytes(std::span(words)));
}

Result<std::optional<data::Item>> Batches::hear_of_item() {
  MUSTER_TRY(const Message message, hear());
  if (message.kind == Kind::end) return std::optional<data::Item>();
  MUSTER_CHECK(message.kind == Kind::types || message.kind == Kind::same_types,
               "the reader tells of an item or of the end");
  if (message.kind == Kind::types) types_ = types_from(message.words);
  std::optional<data::Item> item(std::in_place);
  for (const TensorType& type : types_)
    item->push_back(Tensor::absent(
        type.dtype, type.shape, fmt::format("worker {} reads the data, and only it has the batch", reader_)));
  return item;
}

Result<std::optional<data::Item>> Batches::next() {
  if (ahead_) {
    count_taken();
    log_sample(*ahead_);
    return std::exchange(ahead_, std::nullopt);
  }
  if (!std::exchange(in_pass_, true)) ++passes_;
  std::optional<data::Item> item;
  if (std::exchange(end_is_ahead_, false)) {
    // It was seen.
  } else if (reads()) {
    Result<std::optional<data::Item>> made = read();
    if (!made) {
      if (divided()) MUSTER_TRY_VOID(tell_failure(made.error()));
      return made;
    }
    item = *std::move(made);
    if (divided()) MUSTER_TRY_VOID(tell_of_item(item));
  } else {
    MUSTER_TRY(item, hear_of_item());
  }
  if (item) {
    count_taken();
    log_sample(*item);
  } else {
    pass_.reset();
    in_pass_ = false;
    begin_ = taken_ = items_before_ = 0;
    rows_before_ = 0;
    contents_ = 0;
  }
  return item;
}

Result<data::Item> Batches::next_of_any_pass() {
  for (int attempt = 0; attempt < 2; ++attempt) {
    MUSTER_TRY(std::optional<data::Item> item, next());
    if (item) return *std::move(item);
  }
  return fail(Code::invalid_argument, "the dataset gave no items in a whole pass");
}

Result<data::Item> Batches::peek() {
  MUSTER_TRY(ahead_, next_of_any_pass());
  contents_ = contents_before_;
  --taken_;
  return *ahead_;
}

Result<const data::Item*> Batches::look_ahead() {
  if (divided()) return nullptr;
  if (in_pass_ && !ahead_ && !end_is_ahead_) {
    MUSTER_TRY(ahead_, read());
    end_is_ahead_ = !ahead_;
  }
  return ahead_ ? &*ahead_ : nullptr;
}

void Batches::pass_on(std::uint32_t reader) {
  if (reader == reader_) return;
  MUSTER_CHECK(divided() && reader < stages_->size(), "the reader is one of the stages");
  MUSTER_CHECK(ahead_.has_value(), "who reads is changed before the first item is used");
  ahead_.reset();
  pass_.reset();
  types_.clear();
  in_pass_ = false;
  --passes_;
  reader_ = reader;
}

}  // namespace muster::train
