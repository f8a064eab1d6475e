// Every operation on every layout gives the same bits: those of a plain loop over the ranks in order.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "expected.h"
#include "ranks.h"

namespace muster::collective {
namespace {

constexpr std::size_t counts[] = {0, 1, 13, 256, (64 << 10) / 4 + 3, (1 << 18) + 7};
constexpr std::size_t many_chunks_count = (1 << 20) + 7;  // of eight bytes: more than one chunk everywhere
constexpr Reduction reductions[] = {Reduction::sum, Reduction::mean, Reduction::max, Reduction::min};

class Conformance : public ::testing::TestWithParam<std::tuple<std::uint32_t, Hosts>> {
 protected:
  void SetUp() override {
    seed_ = entropy();
    fmt::print("seed {}\n", seed_);
    comms_ = connect_ranks(ranks(), std::get<1>(GetParam()));
  }
  std::uint32_t ranks() const { return std::get<0>(GetParam()); }

  template <class T>
  void all_reduce_everything(bool in_place) {
    for (const std::size_t count : counts) all_reduce_all<T>(count, reductions, in_place);
  }

  template <class T>
  void all_reduce_all(std::size_t count, std::span<const Reduction> chosen, bool in_place) {
    std::vector<std::vector<T>> inputs;
    for (std::uint32_t rank = 0; rank < ranks(); ++rank)
      inputs.push_back(drawn_values<T>(seed_ + count, rank, count));
    for (const Reduction reduction : chosen) {
      const std::vector<T> expected = expected_of(inputs, reduction);
      run_threads(ranks(), [&](std::uint32_t rank) {
        std::vector<T> out = in_place ? inputs[rank] : std::vector<T>(count);
        const void* in = in_place ? out.data() : inputs[rank].data();
        const auto done = comms_[rank]->all_reduce(in, out.data(), count, dtype_of<T>, reduction);
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_TRUE(count == 0 || std::memcmp(out.data(), expected.data(), count * sizeof(T)) == 0)
            << count << " x " << to_string(dtype_of<T>) << ", " << to_string(reduction) << ", rank " << rank;
      });
    }
  }

  std::uint64_t seed_ = 0;
  Ranks comms_;
};

TEST_P(Conformance, AllReduceAddsInRankOrder) {
  all_reduce_everything<float>(false);
  all_reduce_everything<double>(false);
  all_reduce_everything<std::int32_t>(false);
  all_reduce_everything<std::int64_t>(false);
}

TEST_P(Conformance, AllReduceMayWorkInPlace) { all_reduce_everything<float>(true); }

TEST_P(Conformance, AllReduceOfManyChunksDiffersInNothing) {
  constexpr Reduction sum[] = {Reduction::sum};
  all_reduce_all<double>(many_chunks_count, sum, false);
  all_reduce_all<std::int64_t>(many_chunks_count, sum, true);
}

// Each rank chooses for itself, call by call, where its data lies.
TEST_P(Conformance, AllReduceOfSharedBuffersDiffersInNothing) {
  for (const std::size_t count : {std::size_t{13}, std::size_t{50'003}, std::size_t{900'007}}) {
    std::vector<std::vector<float>> inputs;
    for (std::uint32_t rank = 0; rank < ranks(); ++rank)
      inputs.push_back(drawn_values<float>(seed_ + count, rank, count));
    run_threads(ranks(), [&](std::uint32_t rank) {
      const RandomStream random(seed_ + count, 1000 + rank);
      const auto shared = [&] {
        const auto made = comms_[rank]->shared_buffer((count + 5) * sizeof(float)).value();
        return std::shared_ptr<float>(made, reinterpret_cast<float*>(made.get()) + 5);
      };
      const std::shared_ptr<float> places[] = {
          shared(), shared(), std::shared_ptr<float>(new float[count], [](float* p) { delete[] p; }),
          std::shared_ptr<float>(new float[count], [](float* p) { delete[] p; })};
      for (std::uint64_t round = 0; round < 12; ++round) {
        const Reduction reduction = reductions[round % 4];
        // All ranks share everything in the first rounds; then each does as it likes.
        const float* out_of_place = places[round < 4 ? 1 : random.below(2 * round, 4)].get();
        float* in = places[round < 4 ? 0 : random.below(2 * round + 1, 4)].get();
        float* out = const_cast<float*>(out_of_place);
        std::copy(inputs[rank].begin(), inputs[rank].end(), in);
        ASSERT_TRUE(comms_[rank]->all_reduce(in, out, count, DType::float32, reduction));
        const std::vector<float> expected = expected_of(inputs, reduction);
        EXPECT_EQ(std::memcmp(out, expected.data(), count * sizeof(float)), 0)
            << count << ", " << to_string(reduction) << ", rank " << rank << ", round " << round;
      }
    });
  }
}

TEST_P(Conformance, BroadcastGivesTheRootsBytesToAll) {
  for (const std::size_t count : counts)
    for (std::uint32_t root = 0; root < ranks(); ++root) {
      const auto sent = drawn_values<std::int32_t>(seed_ + root, root, count);
      run_threads(ranks(), [&](std::uint32_t rank) {
        auto data = rank == root ? sent : std::vector<std::int32_t>(count);
        const auto done = comms_[rank]->broadcast(data.data(), count * 4, root);
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_TRUE(data == sent) << count << " from rank " << root << " at rank " << rank;
      });
    }
}

TEST_P(Conformance, AllGatherPutsRanksInOrder) {
  for (const bool in_place : {false, true})
    for (const std::size_t count : counts) {
      std::vector<std::int32_t> expected;
      std::vector<std::vector<std::int32_t>> inputs;
      for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
        inputs.push_back(drawn_values<std::int32_t>(seed_, rank, count));
        expected.insert(expected.end(), inputs.back().begin(), inputs.back().end());
      }
      run_threads(ranks(), [&](std::uint32_t rank) {
        std::vector<std::int32_t> out(count * ranks());
        std::int32_t* place = out.data() + rank * count;
        if (in_place) std::copy(inputs[rank].begin(), inputs[rank].end(), place);
        const auto done =
            comms_[rank]->all_gather(in_place ? place : inputs[rank].data(), out.data(), count * 4);
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_TRUE(out == expected) << count << " at rank " << rank;
      });
    }
}

TEST_P(Conformance, NobodyLeavesABarrierBeforeAllHaveCome) {
  std::atomic<std::uint32_t> came{0};
  run_threads(ranks(), [&](std::uint32_t rank) {
    for (std::uint32_t round = 1; round <= 50; ++round) {
      ++came;
      ASSERT_TRUE(comms_[rank]->barrier());
      EXPECT_GE(came.load(), round * ranks());
    }
  });
}

// Calls of every kind and size one after another, nobody waiting for anybody in between: areas that are
// used again too early would show.
TEST_P(Conformance, CallsOfEveryKindFollowEachOtherWithoutAPause) {
  run_threads(ranks(), [&](std::uint32_t rank) {
    const RandomStream random(seed_, 99);  // the same on all ranks
    for (std::uint64_t call = 0; call < 300; ++call) {
      const std::size_t count = 1 + random.below(3 * call, 1 << random.below(3 * call + 1, 20));
      const auto kind = random.below(3 * call + 2, 3);
      const auto value = [&](std::uint64_t r) { return static_cast<std::int64_t>(call * 100 + r); };
      std::vector<std::int64_t> data(count, value(rank));
      const std::uint32_t root = static_cast<std::uint32_t>(call % ranks());
      if (kind == 0) {
        ASSERT_TRUE(comms_[rank]->all_reduce(data.data(), data.data(), count, DType::int64, Reduction::max));
        ASSERT_EQ(data, std::vector<std::int64_t>(count, value(ranks() - 1)));
      } else if (kind == 1) {
        ASSERT_TRUE(comms_[rank]->broadcast(data.data(), count * 8, root));
        ASSERT_EQ(data, std::vector<std::int64_t>(count, value(root)));
      } else {
        std::vector<std::int64_t> out(count * ranks());
        ASSERT_TRUE(comms_[rank]->all_gather(data.data(), out.data(), count * 8));
        for (std::uint32_t r = 0; r < ranks(); ++r)
          ASSERT_TRUE(out[r * count] == value(r) && out[(r + 1) * count - 1] == value(r));
      }
    }
  });
}

std::string name_of(const ::testing::TestParamInfo<Conformance::ParamType>& info) {
  constexpr const char* hosts[] = {"OneHost", "EachItsOwn", "TwoInterleaved"};
  return fmt::format("{}{}", hosts[static_cast<int>(std::get<1>(info.param))], std::get<0>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Layouts, Conformance,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4, 5),
                                            ::testing::Values(Hosts::one, Hosts::each_its_own,
                                                              Hosts::two_interleaved)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Eight, Conformance,
                         ::testing::Combine(::testing::Values(8),
                                            ::testing::Values(Hosts::one, Hosts::two_interleaved)),
                         name_of);

TEST(Reduction, LetsNaNWinWhereverItStands) {
  const Ranks comms = connect_ranks(3, Hosts::one);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  run_threads(3, [&](std::uint32_t rank) {
    for (const Reduction reduction : reductions) {
      float data[] = {1, 1, 1, 1};
      data[rank] = nan;  // a NaN from each rank in turn, and none in the last place
      ASSERT_TRUE(comms[rank]->all_reduce(data, data, 4, DType::float32, reduction));
      EXPECT_TRUE(std::isnan(data[0]) && std::isnan(data[1]) && std::isnan(data[2])) << to_string(reduction);
      EXPECT_FALSE(std::isnan(data[3]));
    }
  });
}

TEST(Reduction, TruncatesTheMeanOfIntegersAndWrapsTheirSum) {
  const Ranks comms = connect_ranks(2, Hosts::one);
  run_threads(2, [&](std::uint32_t rank) {
    std::int32_t data[] = {-3, 3, std::numeric_limits<std::int32_t>::max()};
    if (rank == 1) data[0] = data[1] = 0;
    std::int32_t out[3];
    ASSERT_TRUE(comms[rank]->all_reduce(data, out, 3, DType::int32, Reduction::mean));
    EXPECT_THAT(out, ::testing::ElementsAre(-1, 1, -1));
  });
}

TEST(Communicator, KnowsItsPlaceOnItsHost) {
  const Ranks comms = connect_ranks(5, Hosts::two_interleaved);
  for (std::uint32_t rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(comms[rank]->rank(), rank);
    EXPECT_EQ(comms[rank]->size(), 5u);
    EXPECT_EQ(comms[rank]->local_rank(), rank / 2);
    EXPECT_EQ(comms[rank]->local_size(), rank % 2 == 0 ? 3u : 2u);
  }
}

}  // namespace
}  // namespace muster::collective
