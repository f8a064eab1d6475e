// Two workers in one process: what one gives is what the other has.
#include "muster/train/handover.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

namespace muster::train {
namespace {

// Messages in order, one way.
struct Way {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::vector<std::byte>> messages;
};

// One end of it. `damage` is the number of a message whose first byte arrives as another one.
class End final : public Recovery {
 public:
  explicit End(Way& way, std::size_t damage = ~std::size_t{0}) : way_(way), damage_(damage) {}

  Result<> send(std::uint32_t, Pieces pieces) override {
    std::vector<std::byte> message(pieces[0].begin(), pieces[0].end());
    if (sent_++ == damage_) message[0] ^= std::byte{1};
    const std::lock_guard lock(way_.mutex);
    way_.messages.push_back(std::move(message));
    way_.changed.notify_one();
    return {};
  }
  Result<> receive(std::uint32_t, WritablePieces pieces) override {
    std::unique_lock lock(way_.mutex);
    way_.changed.wait(lock, [&] { return !way_.messages.empty(); });
    const std::vector<std::byte>& message = way_.messages.front();
    if (message.size() != pieces[0].size()) return fail(Code::corrupt, "another size");
    std::memcpy(pieces[0].data(), message.data(), message.size());
    way_.messages.pop_front();
    return {};
  }

  Result<checkpoint::RunStore*> store() override { return fail(Code::internal, "none"); }
  const Clock& clock() const override { return real_clock(); }
  std::uint32_t local_size() const override { return 1; }
  std::uint32_t rank() const override { return 0; }
  std::uint32_t size() const override { return 2; }
  Result<std::vector<Words>> gather(const Words&) override { return fail(Code::internal, "none"); }
  bool lost_epoch(const Error&) override { return false; }
  Result<> next_epoch() override { return {}; }
  std::uint64_t finished_calls() const override { return 0; }
  void report_finished_calls(std::uint64_t) override {}
  void mark_step(const checkpoint::StepPlace&) override {}

 private:
  Way& way_;
  std::size_t damage_;
  std::size_t sent_ = 0;
};

Handover given() {
  checkpoint::Point point{.id = {.call = 2, .moment = checkpoint::PointId::Moment::step, .step = 300},
                          .state = {{"training", "{\"step\": 300}"}, {"nothing", ""}},
                          .is_shared = true};
  Tensor large(DType::float32, Shape({3, 1 << 20}));  // several pieces, the last one shorter
  for (std::size_t i = 0; i < large.size_bytes() / sizeof(float); ++i)
    reinterpret_cast<float*>(large.bytes())[i] = static_cast<float>(i);
  point.tensors = {{"fc.weight", large},
                   {"empty", Tensor(DType::int32, Shape({0, 4}))},
                   {"global_step", Tensor::scalar(7.0F)}};
  return {.point = std::move(point), .result = "of the call"};
}

TEST(Handover, WhatIsGivenIsWhatIsTaken) {
  Way way;
  End giver(way), taker(way);
  SnapshotMemory memory;
  const Handover before = given();
  std::thread giving([&] { EXPECT_TRUE(send_handover(before, 1, giver)); });
  const auto taken = receive_handover(0, taker, memory);
  giving.join();
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(taken->result, before.result);
  EXPECT_EQ(taken->point->id, before.point->id);
  EXPECT_EQ(taken->point->state, before.point->state);
  EXPECT_TRUE(taken->point->is_shared);
  ASSERT_EQ(taken->point->tensors.size(), before.point->tensors.size());
  for (std::size_t i = 0; i < before.point->tensors.size(); ++i) {
    const Tensor &a = before.point->tensors[i].value, &b = taken->point->tensors[i].value;
    EXPECT_EQ(taken->point->tensors[i].name, before.point->tensors[i].name);
    EXPECT_EQ(b.shape(), a.shape());
    ASSERT_EQ(b.size_bytes(), a.size_bytes());
    EXPECT_TRUE(a.size_bytes() == 0 || std::memcmp(a.bytes(), b.bytes(), a.size_bytes()) == 0);
  }
}

TEST(Handover, ThatThereIsNothingIsSaid) {
  Way way;
  End giver(way), taker(way);
  SnapshotMemory memory;
  ASSERT_TRUE(send_handover({}, 1, giver));
  const auto taken = receive_handover(0, taker, memory);
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_FALSE(taken->point || taken->result);
}

TEST(Handover, AByteThatChangedOnItsWayIsNotTaken) {
  // The header, the result and the label come first; then the sections, the tensors and the hashes.
  for (const std::size_t message : {3, 4, 5, 6, 7, 8}) {
    Way way;
    End giver(way, message), taker(way);
    SnapshotMemory memory;
    const Handover before = given();
    std::thread giving([&] { EXPECT_TRUE(send_handover(before, 1, giver)); });
    const auto taken = receive_handover(0, taker, memory);
    giving.join();
    ASSERT_FALSE(taken) << "message " << message;
    EXPECT_EQ(taken.error().code, Code::corrupt);
  }
}

}  // namespace
}  // namespace muster::train
