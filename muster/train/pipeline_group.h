// The workers over which one copy of a placed network is divided.
#pragma once

#include <cstdint>
#include <functional>

#include "muster/base/base.h"

namespace muster::train {

// The ranks of a group from `first` on, counted from there. They send to each other; collective calls are not
// theirs. In an aborted step nothing is sent, and zeros are received. Threads: as the group's.
class PipelineGroup final : public Communicator {
 public:
  // The group's communicator, asked for each call; borrowed for its length.
  using Source = std::function<Result<Communicator*>()>;
  // What an error of the communicator means: Session::verdict.
  using Verdict = std::function<Error(Error)>;
  struct Range {
    std::uint32_t first = 0;
    std::uint32_t size = 1;
  };

  // `rank` is this process's in the group.
  PipelineGroup(std::uint32_t rank, Range range, Source source, Verdict verdict = {})
      : rank_(rank), range_(range), source_(std::move(source)), verdict_(std::move(verdict)) {}

  const Range& range() const { return range_; }
  std::uint32_t rank() const override { return rank_ - range_.first; }
  std::uint32_t size() const override { return range_.size; }
  Result<> send(std::uint32_t to, SentPieces pieces) override;
  Result<> receive(std::uint32_t from, ReceivedPieces pieces) override;

 private:
  Result<> explained(Result<> done) const;

  std::uint32_t rank_;
  Range range_;
  Source source_;
  Verdict verdict_;
};

}  // namespace muster::train
