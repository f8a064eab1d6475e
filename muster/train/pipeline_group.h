// The workers over which one copy of a placed network is divided, as `graph` wants to see them: `graph` knows
// no collective and `collective` no tensor, this joins them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "muster/collective/collective.h"
#include "muster/graph/graph.h"

namespace muster::train {

// The ranks of a group from `first` on, counted from there. They send to each other; reductions are not
// theirs. Threads: as the group's send() and receive().
class PipelineGroup final : public graph::Communicator {
 public:
  // The group's communicator, asked for each call; borrowed for its length.
  using Source = std::function<Result<collective::Communicator*>()>;
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
  Result<> all_reduce(const void* in, void* out, std::size_t count, DType dtype,
                      graph::Reduction reduction) override;
  Result<> send(std::uint32_t to, std::span<const std::span<const std::byte>> pieces) override;
  Result<> receive(std::uint32_t from, std::span<const std::span<std::byte>> pieces) override;

 private:
  Result<> explained(Result<> done) const;

  std::uint32_t rank_;
  Range range_;
  Source source_;
  Verdict verdict_;
};

}  // namespace muster::train
