// Private to train: a group of processes as `graph` wants to see it, for a plan that runs within one
// collective call of all.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "muster/collective/collective.h"
#include "muster/graph/graph.h"

namespace muster::train {

collective::Reduction to_collective(graph::Reduction reduction);

// Reduces at once, in the group of the call under way. Threads: as the group's all_reduce().
class GroupCommunicator final : public graph::Communicator {
 public:
  // Memory in which the group reduces at least cost; empty: there is none such.
  using Memory = std::function<std::shared_ptr<Buffer>(std::size_t size_bytes)>;

  explicit GroupCommunicator(Memory memory) : memory_(std::move(memory)) {}
  // Borrowed for the length of a call.
  void set_group(collective::Communicator& group) { group_ = &group; }

  std::uint32_t rank() const override { return group_->rank(); }
  std::uint32_t size() const override { return group_->size(); }
  Result<> all_reduce(const void* in, void* out, std::size_t count, DType dtype,
                      graph::Reduction reduction) override {
    return group_->all_reduce(in, out, count, dtype, to_collective(reduction));
  }
  bool shares_memory() const override { return memory_ != nullptr; }
  std::shared_ptr<Buffer> shared_buffer(std::size_t size_bytes) override { return memory_(size_bytes); }

 private:
  collective::Communicator* group_ = nullptr;
  Memory memory_;
};

}  // namespace muster::train
