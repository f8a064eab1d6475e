// Log of the samples that a training has had: the proof that each row of a pass came once, whatever was
// killed and however many workers went on (MUSTER_SAMPLE_LOG, `muster verify --samples`).
//
// One file for each worker of a number of workers, samples.WORKERS.RANK.log, in lines of text:
//   begin TIME PASS ITEM             a process of this worker goes on there; what it had from there on is
//   void behind TIME WORKERS PASS ITEM    likewise of all workers of a job of that many, which this one goes
//   on with item PASS ITEM HASH ...          a hash of each row of the item, 16 hexadecimal digits
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/checkpoint/state_file.h"
#include "muster/checkpoint/storage.h"

namespace muster::checkpoint {

class SampleLog {
 public:
  // Appends to this worker's file in `folder`, which is made when it is not there.
  static Result<std::shared_ptr<SampleLog>> open(const std::string& folder, const StateOwnership& owner,
                                                 Storage& storage = real_storage());

  // Errors say that the log has ended there; the training is not concerned.
  Result<> begin(std::uint64_t pass, std::uint64_t item);
  Result<> go_on_behind(std::uint64_t workers, std::uint64_t pass, std::uint64_t item);
  // `is_batched`: axis 0 counts rows; else the item is one.
  Result<> add(std::uint64_t pass, std::uint64_t item, std::span<const Tensor> values, bool is_batched);

 private:
  explicit SampleLog(std::unique_ptr<OutputFile> file) : file_(std::move(file)) {}
  Result<> write(const std::string& line);

  std::unique_ptr<OutputFile> file_;
};

// What came in a pass, of all workers together.
struct SamplePass {
  std::uint64_t rows = 0;
  std::map<std::uint64_t, std::uint64_t> by_workers = {};  // rows by the number of workers of their job
  std::uint64_t filling = 0;               // rows that came once more at the end, to fill up a shard
  std::vector<std::string> problems = {};  // in sentences: rows that came twice, or not at all
};

// By pass. Rows are told apart by their values: one that comes more often than once is none too many where
// the other passes have it as often. Fails where there are no logs.
Result<std::map<std::uint64_t, SamplePass>> audit_samples(const std::string& folder,
                                                          const Storage& storage = real_storage());

}  // namespace muster::checkpoint
