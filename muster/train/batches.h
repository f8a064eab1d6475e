// The items of a dataset, pass after pass. Where a network is divided over several workers, one of them
// reads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "muster/checkpoint/sample_log.h"
#include "muster/data/data.h"
#include "muster/graph/graph.h"

namespace muster::train {

// Where a training is in its data.
struct DataPosition {
  std::uint64_t pass = 0;   // its number, from 0
  std::uint64_t items = 0;  // of it that were taken
  // Of a pass that other workers began: rows of the list of all that came before item `items_before`
  // (data::IterateOptions::rows_before).
  std::uint32_t rows_before = 0;
  std::uint64_t items_before = 0;
  // A hash of those, where the dataset may give others when it is asked again.
  std::optional<std::uint64_t> contents = {};
};

// Alone, this reads. In a divided job the reader does, so that one worker loads each (image, label) pair,
// also where a generator draws its own random numbers; before each item it tells the others what types that
// has, or that the pass has ended. They call nothing of the dataset, and their items have no elements. All of
// them make the same calls, which are messages from the reader to the others.
//
// Threads: one.
class Batches {
 public:
  // `passes` numbers the passes; both are borrowed.
  Batches(const data::Dataset& dataset, std::uint64_t& passes) : dataset_(dataset), passes_(passes) {}

  // Begins there instead of at the beginning of the next pass. Before the first item.
  void begin_at(const DataPosition& position);
  // Where next() goes on.
  DataPosition position() const;
  const data::Dataset& dataset() const { return dataset_; }

  // From now on `reader`, a rank of `stages`, reads. Before the first item.
  void divide(Communicator& stages, std::uint32_t reader);

  // From now on each row of a sharded source comes from one shard only: data::IterateOptions::padding.
  // Before the first item.
  void leave_out_padding() { padding_ = false; }

  // From now on which samples come is written down.
  void log_samples(std::shared_ptr<checkpoint::SampleLog> log);
  // It goes on behind the items that as many workers had in that pass.
  void log_regrouping(std::uint64_t workers, const DataPosition& position);

  // The items of one pass, at least one; data::size_endless. The error, on all of them the reader's, says
  // what is wrong with the `what` dataset.
  Result<std::int64_t> count(std::string_view what);
  // Nothing at the end of the pass; then a new one begins.
  Result<std::optional<data::Item>> next();
  // The next item, from a new pass at the end of one.
  Result<data::Item> next_of_any_pass();
  // The next item, which stays the next one.
  Result<data::Item> peek();
  // The same within the pass, and only where this process reads alone: null where nothing of it follows, or
  // no caller can look.
  Result<const data::Item*> look_ahead();
  // After peek(): another one is to be the reader, of the same pass. Nothing where it is the reader already.
  void pass_on(std::uint32_t reader);

 private:
  enum class Kind : std::uint64_t { end, same_types, types, failure, count };
  struct Message {
    Kind kind = Kind::end;
    std::vector<std::int64_t> words = {};
    std::string text = {};
  };

  bool divided() const { return stages_ != nullptr && stages_->size() > 1; }
  bool reads() const { return !divided() || stages_->rank() == reader_; }
  Result<> tell(Kind kind, std::span<const std::byte> content = {});
  Result<> tell_failure(const Error& error);
  Result<Message> hear();
  Result<std::int64_t> counted_here(std::string_view what);
  Result<std::optional<data::Item>> read();
  Result<data::Item> joined(data::Item item) const;
  // Whether the items of a pass have to be looked at where it goes on.
  bool compares() const { return dataset_.item_order() != data::ItemOrder::known; }
  Result<> pass_over_items();
  void count_taken();
  void log_sample(const data::Item& item);
  void note_logged(const Result<>& written);
  Result<std::optional<data::Item>> hear_of_item();
  Result<> tell_of_item(const std::optional<data::Item>& item);

  const data::Dataset& dataset_;
  std::uint64_t& passes_;
  bool in_pass_ = false;
  bool padding_ = true;
  std::uint64_t begin_ = 0;        // the first item of the pass that next() gives
  std::uint64_t taken_ = 0;        // items of the pass before the next one
  std::uint32_t rows_before_ = 0;  // DataPosition, as the next
  std::uint64_t items_before_ = 0;
  std::uint64_t contents_ = 0;             // of them: DataPosition::contents
  std::uint64_t contents_before_ = 0;      // of all but the last one
  std::uint64_t contents_read_ = 0;        // with the one that was read last
  std::optional<std::uint64_t> expected_;  // of those before begin_
  std::optional<data::Iterator> pass_;     // of the reader
  std::optional<data::Item> ahead_;        // what peek() or look_ahead() has seen
  bool end_is_ahead_ = false;              // likewise, that nothing of the pass follows
  Communicator* stages_ = nullptr;
  std::uint32_t reader_ = 0;
  std::vector<graph::TensorType> types_;  // of the last item
  std::shared_ptr<checkpoint::SampleLog> samples_;
  bool log_begins_ = false;  // with the next item
};

// A pass of this process over the dataset, which a signal may end, from an item on.
Result<data::Iterator> begin_pass_of(const data::Dataset& dataset, const DataPosition& from,
                                     bool padding = true);

}  // namespace muster::train
