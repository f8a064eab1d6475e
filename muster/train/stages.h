// The workers over which one copy of a placed network is divided, as `graph` wants to see them: `graph` knows
// no collective and `collective` no tensor, this joins them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "muster/collective/collective.h"
#include "muster/graph/graph.h"

namespace muster::train {

// The ranks of `communicator` from `first` on, counted from there. They send to each other; reductions are
// not theirs. Borrows the communicator. Threads: as its send() and receive().
class Stages final : public graph::Communicator {
 public:
  // What an error of the communicator means: Session::verdict.
  using Verdict = std::function<Error(Error)>;
  struct Range {
    std::uint32_t first = 0;
    std::uint32_t size = 1;
  };

  Stages(collective::Communicator& communicator, Range range, Verdict verdict = {})
      : communicator_(communicator), range_(range), verdict_(std::move(verdict)) {}

  const Range& range() const { return range_; }
  std::uint32_t rank() const override { return communicator_.rank() - range_.first; }
  std::uint32_t size() const override { return range_.size; }
  Result<> all_reduce(const void* in, void* out, std::size_t count, DType dtype,
                      graph::Reduction reduction) override;
  Result<> send(std::uint32_t to, std::span<const std::span<const std::byte>> pieces) override;
  Result<> receive(std::uint32_t from, std::span<const std::span<std::byte>> pieces) override;

 private:
  Result<> explained(Result<> done) const;

  collective::Communicator& communicator_;
  Range range_;
  Verdict verdict_;
};

}  // namespace muster::train
