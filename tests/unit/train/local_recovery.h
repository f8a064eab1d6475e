// A process alone that recovers: its points are in a storage, and a loss is whatever the test calls one.
#pragma once

#include <utility>

#include "muster/train/recovery.h"

namespace muster::train::testing {

class LocalRecovery final : public Recovery {
 public:
  explicit LocalRecovery(checkpoint::Storage& storage)
      : store_(checkpoint::RunStore::open(
                   {.folder = "/recovery", .job = "0123456789abcdef", .storage = &storage})
                   .value()) {}

  Result<checkpoint::RunStore*> store() override { return &store_; }
  const Clock& clock() const override { return real_clock(); }
  std::uint32_t local_size() const override { return 1; }
  std::uint32_t rank() const override { return 0; }
  std::uint32_t size() const override { return 1; }
  Result<std::vector<Words>> gather(const Words& mine) override { return std::vector<Words>{mine}; }
  Result<> send(std::uint32_t, Pieces) override { return fail(Code::internal, "there is nobody else"); }
  Result<> receive(std::uint32_t, WritablePieces) override {
    return fail(Code::internal, "there is nobody else");
  }
  bool lost_epoch(const Error& error) override { return error.code == Code::peer_lost; }
  Result<> next_epoch() override {
    ++epochs;
    return {};
  }
  std::uint64_t finished_calls() const override { return finished; }
  void report_finished_calls(std::uint64_t calls) override { finished = calls; }
  void mark_step(const checkpoint::StepPlace& place) override { marked = place; }

  int epochs = 0;
  std::uint64_t finished = 0;  // what the others say
  checkpoint::StepPlace marked = {};

 private:
  checkpoint::RunStore store_;
};

}  // namespace muster::train::testing
