#include "muster/train/recovering_call.h"

#include <gtest/gtest.h>

#include <deque>

#include "tests/unit/checkpoint/memory_storage.h"
#include "tests/unit/train/local_recovery.h"

namespace muster::train {
namespace {

using checkpoint::Standing;
using checkpoint::testing::MemoryStorage;
using In = Standing::State;

// Worker 0 of two: what the other one gives is written down.
class OfTwo final : public Recovery {
 public:
  explicit OfTwo(checkpoint::Storage& storage)
      : store_(checkpoint::RunStore::open(
                   {.folder = "/recovery", .job = "0123456789abcdef", .world = 2, .storage = &storage})
                   .value()) {}

  Result<checkpoint::RunStore*> store() override { return &store_; }
  std::uint32_t local_size() const override { return 1; }
  std::uint32_t rank() const override { return 0; }
  std::uint32_t size() const override { return 2; }
  Result<std::vector<Words>> gather(const Words& mine) override {
    said = mine;
    if (others.empty()) return fail(Code::timeout, "the other one says no more");
    Words other = std::move(others.front());
    others.pop_front();
    other.resize(mine.size());
    return std::vector<Words>{mine, other};
  }
  Result<> send(std::uint32_t, Pieces) override { return fail(Code::internal, "nothing is to be given"); }
  Result<> receive(std::uint32_t, WritablePieces) override {
    return fail(Code::internal, "nothing is to be taken");
  }
  bool lost_epoch(const Error&) override { return false; }
  Result<> next_epoch() override { return {}; }
  std::uint64_t finished_calls() const override { return finished; }
  void report_finished_calls(std::uint64_t calls) override { finished = calls; }
  void mark_step(const checkpoint::StepPlace&) override {}

  std::deque<Words> others;
  Words said;
  std::uint64_t finished = 0;

 private:
  checkpoint::RunStore store_;
};

checkpoint::Point end_point() {
  return {.id = {.call = 0, .moment = checkpoint::PointId::Moment::end}, .own = "a number"};
}

TEST(RecoveringCall, IsNotOverWhileAnotherOneHasAStepToEnd) {
  MemoryStorage disk;
  OfTwo recovery(disk);
  const auto call = RecoveringCall::begin(recovery).value();
  ASSERT_TRUE(recovery.store().value()->save(end_point()));
  recovery.others.push_back(checkpoint::encode(Standing{.state = In::committing, .steps = 3}));
  const auto start = call->agree();
  ASSERT_FALSE(start) << "it is asked once more, and the other one has no end yet";
  EXPECT_EQ(start.error().message, "the other one says no more");
  EXPECT_EQ(recovery.finished, 0U);
}

TEST(RecoveringCall, WhoHasItsEndGoesToTheOthersAndDoesNotSayThatTheyAllHaveIt) {
  MemoryStorage disk;
  OfTwo recovery(disk);
  const auto call = RecoveringCall::begin(recovery).value();
  ASSERT_TRUE(recovery.store().value()->save(end_point()));
  ASSERT_TRUE(recovery.store().value()->finish_call({.call = 0, .kind = "train", .result = "{}"}));
  call->set_memory({.state = In::fresh});
  recovery.others.push_back(checkpoint::encode(Standing{.state = In::fresh, .call = 1}));
  const auto start = call->agree();
  ASSERT_TRUE(start);
  EXPECT_TRUE(start->finished);
  ASSERT_TRUE(call->end());
  EXPECT_EQ(recovery.finished, 0U) << "the other one may owe its own";
}

TEST(RecoveringCall, DoesNotBeginInMemoryThatLacksTheEndBefore) {
  MemoryStorage disk;
  OfTwo recovery(disk);
  recovery.finished = 1;
  for (const std::uint64_t call : {0, 1})
    ASSERT_TRUE(recovery.store().value()->finish_call({.call = call, .kind = "train", .result = "{}"}));
  auto call = RecoveringCall::begin(recovery).value();
  const auto end = call->end();
  ASSERT_TRUE(end);
  ASSERT_FALSE(end->point) << "only its record is left";
  call.reset();
  call = RecoveringCall::begin(recovery).value();
  call->set_memory({.state = In::fresh});
  EXPECT_FALSE(call->agree());
  EXPECT_EQ(checkpoint::decode_standing(recovery.said).state, In::spoilt);
}

}  // namespace
}  // namespace muster::train
