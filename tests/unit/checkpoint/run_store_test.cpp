#include "muster/checkpoint/run_store.h"

#include <gtest/gtest.h>

#include "muster/checkpoint/ledger.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/checkpoint/memory_storage.h"
#include "tests/unit/checkpoint/points.h"

namespace muster::checkpoint {
namespace {
namespace run_store_test {

using testing::end_of;
using testing::expect_equal;
using testing::MemoryStorage;
using testing::open_store;
using testing::options_in;
using testing::point;
using testing::refusal;
using testing::run_folder;
using testing::start_of;
using testing::step;

using Ids = std::vector<PointId>;

TEST(PointId, ComesInTheOrderInWhichAJobPasses) {
  EXPECT_LT(start_of(0), step(0, 1));
  EXPECT_LT(step(0, 99), step(0, 100));
  EXPECT_LT(step(0, 100), end_of(0));
  EXPECT_LT(end_of(0), start_of(1));
}

TEST(PointId, IsTheNameOfItsFolder) {
  for (const PointId& id : {start_of(0), step(3, 300), end_of(12)})
    EXPECT_EQ(point_of_folder(folder_name(id)), id) << folder_name(id);
  EXPECT_EQ(folder_name(step(3, 300)), "call_3.step_300");
  for (const char* name : {"",
                           "call_",
                           "call_.start",
                           "call_0",
                           "call_0.",
                           "call_0.begin",
                           "call_00.start",
                           "call_0.step_",
                           "call_0.step_01",
                           "call_0.step_-1",
                           "call_0.step_1.damaged",
                           "call_0.end.damaged",
                           ".new-000001",
                           "../call_0.end",
                           "call_0/../1.end",
                           "call_99999999999999999999.end",
                           ".",
                           "a.b",
                           "x.start",
                           "call_0.startx"})
    EXPECT_FALSE(point_of_folder(name)) << name;
}

TEST(RunStore, GivesBackWhatWasSaved) {
  MemoryStorage disk;
  const Point saved = point(step(0, 100), 1.5F);
  {
    RunStore store = open_store(disk);
    ASSERT_TRUE(store.save(saved));
    EXPECT_EQ(store.points(), Ids{saved.id});
  }
  const RunStore again = open_store(disk);
  EXPECT_EQ(again.folder(), run_folder);
  EXPECT_EQ(again.points(), Ids{saved.id});
  const auto loaded = again.load(saved.id);
  ASSERT_TRUE(loaded) << loaded.error().message;
  expect_equal(*loaded, saved);
}

TEST(RunStore, KeepsAPointWithoutTensorsOrSections) {
  MemoryStorage disk;
  RunStore store = open_store(disk);
  ASSERT_TRUE(store.save({.id = start_of(0)}));
  const auto loaded = store.load(start_of(0));
  ASSERT_TRUE(loaded) << loaded.error().message;
  expect_equal(*loaded, {.id = start_of(0)});
}

TEST(RunStore, SaysWhichPointIsMissing) {
  MemoryStorage disk;
  const auto loaded = open_store(disk).load(step(0, 7));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Code::not_found);
  EXPECT_NE(loaded.error().message.find(run_folder + "/call_0.step_7"), std::string::npos)
      << loaded.error().message;
}

class RunStoreReplaces : public ::testing::TestWithParam<bool> {};

TEST_P(RunStoreReplaces, APointThatIsSavedAgain) {
  MemoryStorage disk;
  disk.can_exchange = GetParam();
  RunStore store = open_store(disk);
  ASSERT_TRUE(store.save(point(step(0, 100), 1)));
  ASSERT_TRUE(store.save(point(step(0, 100), 2)));
  EXPECT_EQ(store.points(), Ids{step(0, 100)});
  expect_equal(store.load(step(0, 100)).value(), point(step(0, 100), 2));
  EXPECT_EQ(disk.list(run_folder).value(),
            (std::vector<std::string>{"call_0.step_100", "finished.log", "owner"}));
}
INSTANTIATE_TEST_SUITE_P(Disk, RunStoreReplaces, ::testing::Bool(),
                         [](const auto& kind) { return kind.param ? "Exchanges" : "CannotExchange"; });

TEST(RunStore, APointThatCannotBeReadNowStaysForTheNextProcess) {
  MemoryStorage disk;
  RunStore store = open_store(disk);
  for (const std::uint64_t i : {1, 2}) ASSERT_TRUE(store.save(point(step(0, i), 1)));
  store.pass_over(step(0, 2), "Input/output error");
  EXPECT_EQ(store.points(), Ids{step(0, 1)});
  EXPECT_EQ(store.unread(), "Input/output error");
  EXPECT_EQ(open_store(disk).points(), (Ids{step(0, 1), step(0, 2)}));
}

TEST(RunStore, PutsADamagedPointAside) {
  MemoryStorage disk;
  RunStore store = open_store(disk);
  for (const std::uint64_t i : {1, 2, 3}) ASSERT_TRUE(store.save(point(step(0, i), 1)));
  ::testing::internal::CaptureStderr();
  store.drop(step(0, 2), "its bytes are wrong");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "muster warning: the recovery point '" + run_folder +
                "/call_0.step_2' is damaged and is not used: its bytes are wrong; it is put aside as "
                "call_0.step_2.damaged\n");
  EXPECT_EQ(store.points(), (Ids{step(0, 1), step(0, 3)}));
  store.drop(step(0, 3));
  EXPECT_EQ(disk.list(run_folder).value(),
            (std::vector<std::string>{"call_0.step_1", "call_0.step_3.damaged", "finished.log", "owner"}))
      << "one is enough to look at";
  EXPECT_EQ(open_store(disk).points(), Ids{step(0, 1)});
}

TEST(RunStore, DoesNotCountAPointThatIsNotWhole) {
  MemoryStorage disk;
  {
    RunStore store = open_store(disk);
    for (const std::uint64_t i : {1, 2, 3}) ASSERT_TRUE(store.save(point(step(0, i), 1)));
  }
  disk.content(run_folder + "/call_0.step_3/tensors.safetensors").pop_back();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(open_store(disk).points(), (Ids{step(0, 1), step(0, 2)}));
  const std::string warning = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(warning.find("call_0.step_3/tensors.safetensors' is damaged: it has"), std::string::npos)
      << warning;
}

TEST(RunStore, RefusesThePointsOfAnotherNumberOfWorkers) {
  MemoryStorage disk;
  ASSERT_TRUE(open_store(disk).save(point(start_of(0), 0)));
  RunOptions options = options_in(disk);
  options.world_size = 8;
  EXPECT_EQ(refusal(options),
            "the recovery points in '" + run_folder +
                "' are those of a job of 4 workers, and this one has 8: start 4 workers, or "
                "delete '/recovery' to start fresh");
}

TEST(RunStore, RefusesWhatIsNoJob) {
  MemoryStorage disk;
  RunOptions options = options_in(disk);
  options.job = "../../etc/passwd";
  EXPECT_THAT(refusal(options), Mentions("'../../etc/passwd'", "16 hexadecimal", "digits"));
  options = options_in(disk);
  options.rank = 4;
  EXPECT_THAT(refusal(options), Mentions("rank 4", "none", "4 workers"));
  options = options_in(disk);
  options.folder = "";
  EXPECT_THAT(refusal(options), Mentions("need", "MS_RECOVERY_PATH"));
}

TEST(RunStore, DoesNotTakeAPointOfAnotherJobForItsOwn) {
  MemoryStorage disk;
  RunOptions other = options_in(disk);
  other.job = "ffffffffffffffff";
  ASSERT_TRUE(RunStore::open(other).value().save(point(step(0, 1), 1)));
  ASSERT_TRUE(disk.make_folder(run_folder));
  ASSERT_TRUE(
      disk.rename("/recovery/job-ffffffffffffffff/worker_1/call_0.step_1", run_folder + "/call_0.step_1"));
  EXPECT_EQ(open_store(disk).points(), Ids{});
}

TEST(RunStore, RefusesToSaveWhatCannotComeBack) {
  MemoryStorage disk;
  RunStore store = open_store(disk);
  const auto saving = [&](std::vector<Entry> tensors) {
    return store.save({.id = start_of(0), .tensors = std::move(tensors)}).error().message;
  };
  const Tensor one = Tensor::scalar(1.0F);
  EXPECT_NE(saving({{"a", one}, {"a", one}}).find("two tensors to save are named 'a'"), std::string::npos);
  EXPECT_NE(saving({{"", one}}).find("a tensor to save has no name"), std::string::npos);
  EXPECT_NE(saving({{"\xFF", one}}).find("is no UTF-8"), std::string::npos);
  EXPECT_NE(saving({{"a", Tensor()}}).find("'a', which is to be saved, has no elements"), std::string::npos);
  EXPECT_NE(
      saving({{"a", Tensor::absent(DType::float32, {2}, "'a' is on worker 3")}}).find("'a' is on worker 3"),
      std::string::npos);
  EXPECT_EQ(store.points(), Ids{});
}

TEST(RunStore, RemembersTheCallsThatHaveEnded) {
  MemoryStorage disk;
  const CallRecord train{.call = 0, .kind = "train", .result = ""};
  const CallRecord eval{
      .call = std::uint64_t{1} << 63, .kind = "eval", .result = std::string("\0{\"acc\": 0.5}", 13)};
  {
    RunStore store = open_store(disk);
    ASSERT_TRUE(store.finish_call(train));
    ASSERT_TRUE(store.finish_call(eval));
    EXPECT_EQ(store.finished(0), train);
  }
  const RunStore again = open_store(disk);
  EXPECT_EQ(again.finished(0), train);
  EXPECT_EQ(again.finished(eval.call), eval);
  EXPECT_EQ(again.finished(1), std::nullopt);
}

TEST(RunStore, CountsTheCallsThatHaveEndedWithoutAGap) {
  MemoryStorage disk;
  {
    RunStore store = open_store(disk);
    EXPECT_EQ(store.finished_calls(), 0u);
    for (const std::uint64_t call : {0, 1, 3})
      ASSERT_TRUE(store.finish_call({.call = call, .kind = "train"}));
    EXPECT_EQ(store.finished_calls(), 2u);
  }
  EXPECT_EQ(open_store(disk).finished_calls(), 2u);
}

TEST(RunStore, KnowsWhichPointsAnotherWorkerMayGoOnFrom) {
  MemoryStorage disk;
  Point shared = point(step(0, 1), 1), own = point(step(0, 2), 2);
  shared.is_shared = true;
  own.own = "callback 1 \"Counter\"";
  {
    RunStore store = open_store(disk);
    for (const Point& each : {shared, own}) ASSERT_TRUE(store.save(each));
    EXPECT_TRUE(store.is_shared(shared.id));
  }
  const RunStore store = open_store(disk);
  EXPECT_TRUE(store.is_shared(shared.id));
  EXPECT_FALSE(store.is_shared(own.id));
  EXPECT_FALSE(store.is_shared(step(0, 3)));
  EXPECT_TRUE(store.load(shared.id)->is_shared);
  EXPECT_EQ(store.load(own.id)->own, own.own);
}

TEST(RunStore, PutsADamagedJournalAside) {
  MemoryStorage disk;
  {
    RunStore store = open_store(disk);
    ASSERT_TRUE(store.finish_call({.call = 0, .kind = "train"}));
    ASSERT_TRUE(store.save(point(end_of(0), 1)));
  }
  disk.content(run_folder + "/finished.log")[9] ^= std::byte{1};
  ::testing::internal::CaptureStderr();
  const RunStore again = open_store(disk);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("finished.log' is no journal of calls"),
            std::string::npos);
  EXPECT_EQ(again.finished(0), std::nullopt);
  EXPECT_EQ(again.points(), Ids{end_of(0)});
}

TEST(RunStore, KeepsAHashOfEachStep) {
  MemoryStorage disk;
  {
    RunStore store = open_store(disk);
    for (std::uint64_t i = 1; i <= 300; ++i) ASSERT_TRUE(store.add_step_hash(0, i, 1000 + i));
    ASSERT_TRUE(store.add_step_hash(0, 299, 7)) << "a step that was done again";
  }
  {
    RunStore store = open_store(disk);
    ASSERT_TRUE(store.add_step_hash(1, 1, 5));
  }
  const auto hashes = read_ledger(run_folder + "/steps.log", disk);
  ASSERT_TRUE(hashes) << hashes.error().message;
  EXPECT_EQ(hashes->size(), 301u);
  EXPECT_EQ(hashes->at({0, 1}), 1001u);
  EXPECT_EQ(hashes->at({0, 299}), 7u);
  EXPECT_EQ(hashes->at({1, 1}), 5u);
}

TEST(RunStore, GoesOnWithALedgerWhoseEndIsTorn) {
  MemoryStorage disk;
  {
    RunStore store = open_store(disk);
    for (std::uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(store.add_step_hash(0, i, i));
  }
  auto& content = disk.content(run_folder + "/steps.log");
  content.resize(content.size() - 5);
  content[10] ^= std::byte{4};
  {
    RunStore store = open_store(disk);
    ASSERT_TRUE(store.add_step_hash(0, 3, 3));
  }
  const auto hashes = read_ledger(run_folder + "/steps.log", disk).value();
  EXPECT_EQ(hashes, (StepHashes{{{0, 2}, 2}, {{0, 3}, 3}}))
      << "the first is damaged, the third written again";
}

}  // namespace run_store_test
}  // namespace
}  // namespace muster::checkpoint
