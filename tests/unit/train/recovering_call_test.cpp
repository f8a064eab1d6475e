#include "muster/train/recovering_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>

#include "tests/unit/base/mentions.h"
#include "tests/unit/checkpoint/points.h"
#include "tests/unit/train/local_recovery.h"

namespace muster::train {
namespace {

using checkpoint::Standing;
using checkpoint::testing::Fault;
using checkpoint::testing::MemoryStorage;
using testing::LocalRecovery;
using In = Standing::State;

// Worker 0 of two: what the other one gives is written down.
class OfTwo final : public Recovery {
 public:
  explicit OfTwo(checkpoint::Storage& storage)
      : store_(checkpoint::RunStore::open(
                   {.folder = "/recovery", .job = "0123456789abcdef", .world_size = 2, .storage = &storage})
                   .value()) {}

  Result<checkpoint::RunStore*> store() override { return &store_; }
  const Clock& clock() const override { return real_clock(); }
  std::uint32_t local_size() const override { return 1; }
  std::uint32_t rank() const override { return 0; }
  std::uint32_t size() const override { return 2; }
  Result<std::vector<Words>> gather(const Words& mine) override {
    said = mine;
    if (others.empty()) return fail(Code::timeout, "the other one says no more");
    Words other = std::move(others.front());
    others.pop_front();
    if (meanwhile) meanwhile();
    other.resize(mine.size());
    return std::vector<Words>{mine, other};
  }
  Result<> send(std::uint32_t, Pieces pieces) override {
    for (const auto piece : pieces) mail.insert(mail.end(), piece.begin(), piece.end());
    return {};
  }
  Result<> receive(std::uint32_t, WritablePieces pieces) override {
    for (const auto piece : pieces) {
      if (mail.size() < piece.size()) return fail(Code::internal, "nothing is to be taken");
      const auto end = mail.begin() + static_cast<std::ptrdiff_t>(piece.size());
      std::copy(mail.begin(), end, piece.begin());
      mail.erase(mail.begin(), end);
    }
    return {};
  }
  bool lost_epoch(const Error&) override { return false; }
  Result<> next_epoch() override { return {}; }
  std::uint64_t finished_calls() const override { return finished; }
  void report_finished_calls(std::uint64_t calls) override { finished = calls; }
  void mark_step(const checkpoint::StepPlace&) override {}

  std::deque<Words> others;
  std::function<void()> meanwhile;  // while it waits for the other one
  std::deque<std::byte> mail;
  Words said;
  std::uint64_t finished = 0;

 private:
  checkpoint::RunStore store_;
};

std::unique_ptr<RecoveringCall> begin(Recovery& recovery) { return RecoveringCall::begin(recovery).value(); }

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
  EXPECT_THAT(start.error().message, Mentions("says"));
  EXPECT_EQ(recovery.finished, 0U);
}

TEST(RecoveringCall, LooksAtAFolderAgainEachTimeThatItSaysWhereItStands) {
  MemoryStorage disk;
  auto duplicate = checkpoint::RunStore::open(
      {.folder = "/recovery", .job = "0123456789abcdef", .world_size = 2, .storage = &disk});
  ASSERT_TRUE(duplicate);
  disk.set_fault({.at = 1, .kind = Fault::Kind::forever, .error_number = EROFS});
  OfTwo recovery(disk);
  const auto call = begin(recovery);
  // It says that it has nothing; then its disk can be written, and the stale incarnation does.
  recovery.others.push_back(checkpoint::encode(Standing{.state = In::committing, .steps = 1}));
  recovery.meanwhile = [&] {
    disk.set_fault({});
    ASSERT_TRUE(duplicate->save({.id = call->step_id(1)}));
  };
  ASSERT_FALSE(call->agree()) << "it is asked once more";
  const Standing said = checkpoint::decode_standing(recovery.said);
  ASSERT_EQ(said.points.size(), 1U);
  EXPECT_EQ(said.points[0].id, call->step_id(1));
}

// Where each is worker 0 of the same two, and the other one has gone on by itself meanwhile.
Standing said_by_who_comes_back(MemoryStorage& disk) {
  OfTwo recovery(disk);
  const auto call = begin(recovery);
  call->set_memory({.state = In::fresh});
  EXPECT_FALSE(call->agree());
  return checkpoint::decode_standing(recovery.said);
}

TEST(RecoveringCall, SaysWhetherItsFolderWasThereWhenAllBegan) {
  MemoryStorage disk;
  {
    OfTwo recovery(disk);
    const auto call = begin(recovery);
    call->set_memory({.state = In::fresh});
    recovery.others.push_back(checkpoint::encode(Standing{.may_have_lost = true}));
    ASSERT_TRUE(call->agree()) << "nobody has anything";
    EXPECT_TRUE(checkpoint::decode_standing(recovery.said).may_have_lost);
  }
  MemoryStorage kept = disk.after_kill(), lost;
  EXPECT_FALSE(said_by_who_comes_back(kept).may_have_lost);
  EXPECT_TRUE(said_by_who_comes_back(lost).may_have_lost);
}

TEST(RecoveringCall, AFolderFromWhichAllGoOnIsAsGoodAsOneThatWasThereBefore) {
  MemoryStorage disk;
  OfTwo recovery(disk);
  checkpoint::RunStore& store = *recovery.store().value();
  const auto call = begin(recovery);
  ASSERT_TRUE(store.save({.id = call->step_id(1)}));
  recovery.others.push_back(checkpoint::encode(Standing{.points = {{.id = call->step_id(1)}}}));
  recovery.others.push_back({1});
  ASSERT_TRUE(call->agree());
  EXPECT_TRUE(store.has_begun(0));
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

TEST(RecoveringCall, AnEndThatIsAnothersOwnIsNotItsOwnTheNextTimeEither) {
  MemoryStorage disk;
  OfTwo recovery(disk);
  recovery.finished = 1;
  ASSERT_TRUE(send_handover({.point = end_point(), .result = "{}"}, 0, recovery));
  recovery.others.push_back(checkpoint::encode(Standing{.state = In::fresh, .call = 1, .finished = 1}));
  recovery.others.push_back({0});
  for (const char* from : {"the other one", "its own disk"}) {
    recovery.calls() = {};
    const auto call = RecoveringCall::begin(recovery).value();
    const auto end = call->end();
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_TRUE(end->point.has_value()) << from;
    EXPECT_TRUE(end->is_of_another) << from;
  }
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

TEST(RecoveringCall, BeginsWhereNoDiskTakesAnything) {
  MemoryStorage disk;
  disk.set_fault({.at = 1, .kind = Fault::Kind::forever, .error_number = ENOSPC});
  OfTwo recovery(disk);
  recovery.others.push_back(checkpoint::encode(Standing{.state = In::fresh, .may_have_lost = true}));
  const auto call = begin(recovery);
  call->set_memory({.state = In::fresh});
  const auto start = call->agree();
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_EQ(checkpoint::decode_standing(recovery.said).state, In::fresh);
}

TEST(RecoveringCall, DoesNotBeginWhereADiskIsAway) {
  MemoryStorage disk;
  disk.set_fault({.at = 1, .kind = Fault::Kind::forever, .error_number = ENOENT});
  OfTwo recovery(disk);
  recovery.others.push_back(checkpoint::encode(Standing{.state = In::fresh, .may_have_lost = true}));
  const auto call = begin(recovery);
  call->set_memory({.state = In::fresh});
  EXPECT_FALSE(call->agree());
  EXPECT_EQ(checkpoint::decode_standing(recovery.said).state, In::spoilt);
}

// ---- Between two calls ------------------------------------------------------------------------------------

// Worker 0 has made a call whose end is on its disk.
void make_a_call(OfTwo& recovery) {
  const auto call = RecoveringCall::begin(recovery).value();
  ASSERT_TRUE(recovery.store().value()->save(end_point()));
  ASSERT_TRUE(recovery.store().value()->finish_call({.call = 0, .kind = "train", .result = "{}"}));
}

TEST(RecoveringCall, GivesTheEndBetweenTwoCallsToWhoLacksIt) {
  MemoryStorage disk;
  OfTwo recovery(disk);
  make_a_call(recovery);
  recovery.others.push_back(checkpoint::encode(Standing{.state = In::behind, .call = 0}));
  recovery.others.push_back({0});  // the call whose end it lacks
  recovery.others.push_back(checkpoint::encode(Standing{.state = In::behind, .call = 0, .has_end = true}));
  recovery.others.push_back(checkpoint::encode(Standing{.state = In::between, .call = 1}));
  ASSERT_TRUE(RecoveringCall::meet(recovery));
  EXPECT_FALSE(recovery.mail.empty());
  EXPECT_TRUE(recovery.others.empty()) << "until it is here as well";
  EXPECT_EQ(recovery.calls().begun, 1U) << "no call has begun";
}

TEST(RecoveringCall, DoesNotMeetThoseWhoAreInTheNextCall) {
  MemoryStorage disk;
  OfTwo recovery(disk);
  make_a_call(recovery);
  for (const std::uint64_t call : {1, 2}) {
    recovery.others.push_back(checkpoint::encode(Standing{.state = In::fresh, .call = call}));
    const auto met = RecoveringCall::meet(recovery);
    ASSERT_FALSE(met);
    EXPECT_EQ(met.error().code, Code::refused);
  }
}

TEST(RecoveringCall, ChangesNothingWhileAnotherOneHasNotBegunIt) {
  MemoryStorage disk;
  OfTwo recovery(disk);
  const auto call = RecoveringCall::begin(recovery).value();
  call->set_memory({.state = In::fresh});
  recovery.others.push_back(checkpoint::encode(Standing{.state = In::between, .call = 0}));
  recovery.others.push_back(checkpoint::encode(Standing{.state = In::fresh, .call = 0}));
  const auto start = call->agree();
  ASSERT_TRUE(start);
  EXPECT_FALSE(start->finished);
  EXPECT_TRUE(recovery.others.empty());
}

// ---- Ends that no disk takes ------------------------------------------------------------------------------

// A call that does nothing but end.
void end_a_call(Recovery& recovery, float value) {
  const auto call = begin(recovery);
  ASSERT_TRUE(call->finish(checkpoint::testing::point(call->end_id(), value), "result"));
}

std::size_t points_in_memory(LocalRecovery& recovery) {
  const auto& pending = recovery.pending_ends();
  return static_cast<std::size_t>(
      std::count_if(pending.begin(), pending.end(), [](const auto& end) { return end.point.has_value(); }));
}

TEST(RecoveringCall, TheCommonPointIsTheNewestThatAllTellOfNow) {
  MemoryStorage disk;
  OfTwo recovery(disk);
  checkpoint::RunStore& store = *recovery.store().value();
  const auto call = RecoveringCall::begin(recovery).value();
  for (const std::uint64_t step : {2, 3, 9}) ASSERT_TRUE(store.save({.id = call->step_id(step)}));
  call->save({.id = call->step_id(4)});
  // The other one's disk has been full for a while. That it has step 2 was said before, too, in an exchange
  // of which this one has not heard the end.
  recovery.others.push_back({0, 4, 0, 1, 2, 9});
  ASSERT_TRUE(call->exchange(4));
  EXPECT_EQ(store.committed(), call->step_id(2));
  EXPECT_EQ(std::vector(recovery.said.begin() + 4, recovery.said.begin() + 6),
            (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(std::count(recovery.said.begin() + 4, recovery.said.end(), 9U), 0) << "it may go at any moment";
}

TEST(RecoveringCall, TheEndTellsOfTheLastStepsToo) {
  MemoryStorage disk;
  OfTwo recovery(disk);
  checkpoint::RunStore& store = *recovery.store().value();
  const auto call = RecoveringCall::begin(recovery).value();
  for (const std::uint64_t step : {2, 4}) call->save({.id = call->step_id(step)});
  store.set_committed(call->step_id(2));
  // The other one has lost its folder behind step 2, and its disk does not take the end.
  recovery.others.push_back({0, 0, 0, 0, 4});
  ASSERT_TRUE(call->finish(end_point(), "{}"));
  EXPECT_EQ(store.committed(), call->step_id(4));
  EXPECT_EQ(recovery.finished, 0U);
}

TEST(RecoveringCall, EndsThatNoDiskTakesFillNoMemory) {
  MemoryStorage disk;
  LocalRecovery recovery(disk);
  disk.set_fault({.at = 1, .kind = Fault::Kind::forever});
  for (int i = 0; i < 5; ++i) end_a_call(recovery, static_cast<float>(i));
  EXPECT_EQ(recovery.pending_ends().size(), 5U);
  EXPECT_EQ(points_in_memory(recovery), 1U);
  EXPECT_EQ(recovery.finished, 0U) << "no call is over";
}

TEST(RecoveringCall, EndsThatNoDiskTookAreKeptOnceItHasRoom) {
  MemoryStorage disk;
  LocalRecovery recovery(disk);
  checkpoint::RunStore& store = *recovery.store().value();
  disk.set_fault({.at = 1, .kind = Fault::Kind::forever});
  for (int i = 0; i < 3; ++i) end_a_call(recovery, static_cast<float>(i));
  EXPECT_EQ(store.finished_calls(), 0U);
  disk.set_fault({});
  auto call = begin(recovery);
  call->save(checkpoint::testing::point(call->start_id(), 7));
  EXPECT_TRUE(recovery.pending_ends().empty());
  call.reset();  // its saver writes on a thread of its own, which the disk of this test does not bear
  EXPECT_EQ(store.finished_calls(), 3U);
  const auto kept = store.load(checkpoint::testing::end_of(2));
  ASSERT_TRUE(kept) << kept.error().message;
  checkpoint::testing::expect_equal(*kept, checkpoint::testing::point(checkpoint::testing::end_of(2), 2));
}

// An end is not in the journal before a point has what was in it: it would be taken for one that is no more
// needed.
TEST(RecoveringCall, NoEndIsRecordedBeforeItsStateIsKept) {
  for (std::size_t at = 1; at < 60; ++at) {
    MemoryStorage disk;
    LocalRecovery recovery(disk);
    disk.set_fault({.at = 1, .kind = Fault::Kind::forever});
    for (int i = 0; i < 3; ++i) end_a_call(recovery, static_cast<float>(i));
    disk.set_fault({.at = at});
    const auto call = begin(recovery);
    call->save(checkpoint::testing::point(call->start_id(), 7));
    const checkpoint::RunStore& store = *recovery.store().value();
    const auto points = store.points();
    const bool has_state =
        std::find(points.begin(), points.end(), checkpoint::testing::end_of(2)) != points.end();
    EXPECT_TRUE(has_state || !store.finished(0)) << "operation " << at << " fails";
  }
}

}  // namespace
}  // namespace muster::train
