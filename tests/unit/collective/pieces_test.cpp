// all_to_all, gather, scatter, all_gather of unequal sizes, reduce_scatter and reduce, and the reductions of
// every dtype: the same bits on every layout of hosts, those of a plain loop.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstring>

#include "expected.h"
#include "ranks.h"

#include "tests/unit/base/mentions.h"

namespace muster::collective {
namespace {

constexpr std::size_t piece_counts[] = {0, 1, 13, 2000, (1 << 18) + 7};
constexpr Reduction all_reductions[] = {Reduction::sum,     Reduction::mean, Reduction::max, Reduction::min,
                                        Reduction::product, Reduction::band, Reduction::bor, Reduction::bxor};

std::string name_of_layout(const ::testing::TestParamInfo<std::tuple<std::uint32_t, Hosts>>& info) {
  constexpr const char* hosts[] = {"OneHost", "EachItsOwn", "TwoInterleaved"};
  return fmt::format("{}{}", hosts[static_cast<int>(std::get<1>(info.param))], std::get<0>(info.param));
}

// The bytes that one rank has for another.
Bytes piece_of(std::uint64_t seed, std::uint32_t from, std::uint32_t to, std::size_t size_bytes) {
  return bytes_of(seed, from * 1000 + to, size_bytes);
}

class Pieces : public ::testing::TestWithParam<std::tuple<std::uint32_t, Hosts>> {
 protected:
  void SetUp() override {
    seed_ = entropy();
    fmt::print("seed {}\n", seed_);
    comms_ = connect_ranks(ranks(), std::get<1>(GetParam()), patient);
  }
  std::uint32_t ranks() const { return std::get<0>(GetParam()); }

  // What this rank sends to all and gets of all, with sizes by the two ranks, and the call over them.
  template <class Size, class Call>
  void exchange_pieces(std::uint32_t rank, const Size& size, const Call& call) {
    std::vector<Bytes> in, out;
    for (std::uint32_t other = 0; other < ranks(); ++other) {
      in.push_back(piece_of(seed_, rank, other, size(rank, other)));
      out.emplace_back(size(other, rank));
    }
    const std::vector<std::span<const std::byte>> sent(in.begin(), in.end());
    const std::vector<std::span<std::byte>> got(out.begin(), out.end());
    const Result<> done = call(SentPieces(sent), ReceivedPieces(got));
    ASSERT_TRUE(done) << done.error().message;
    for (std::uint32_t other = 0; other < ranks(); ++other)
      EXPECT_TRUE(out[other] == piece_of(seed_, other, rank, size(other, rank)))
          << out[other].size() << " bytes from rank " << other << " to rank " << rank;
  }

  template <class T>
  void reduce_scatter_all(std::size_t count) {
    std::vector<std::vector<T>> inputs;
    for (std::uint32_t rank = 0; rank < ranks(); ++rank)
      inputs.push_back(drawn_values<T>(seed_ + count, rank, count * ranks()));
    for (const Reduction reduction : all_reductions) {
      if (!can_reduce(dtype_of<T>, reduction)) continue;
      const std::vector<T> expected = expected_of(inputs, reduction);
      run_threads(ranks(), [&](std::uint32_t rank) {
        std::vector<T> out(count);
        const auto done =
            comms_[rank]->reduce_scatter(inputs[rank].data(), out.data(), count, dtype_of<T>, reduction);
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_TRUE(count == 0 ||
                    std::memcmp(out.data(), expected.data() + rank * count, count * sizeof(T)) == 0)
            << count << " x " << to_string(dtype_of<T>) << ", " << to_string(reduction) << ", rank " << rank;
      });
    }
  }

  template <class T>
  void all_reduce_all(std::size_t count) {
    std::vector<std::vector<T>> inputs;
    for (std::uint32_t rank = 0; rank < ranks(); ++rank)
      inputs.push_back(drawn_values<T>(seed_ + count, rank, count));
    for (const Reduction reduction : all_reductions) {
      if (!can_reduce(dtype_of<T>, reduction)) continue;
      const std::vector<T> expected = expected_of(inputs, reduction);
      run_threads(ranks(), [&](std::uint32_t rank) {
        std::vector<T> data = inputs[rank];
        ASSERT_TRUE(comms_[rank]->all_reduce(data.data(), data.data(), count, dtype_of<T>, reduction));
        EXPECT_EQ(std::memcmp(data.data(), expected.data(), count * sizeof(T)), 0)
            << count << " x " << to_string(dtype_of<T>) << ", " << to_string(reduction) << ", rank " << rank;
      });
    }
  }

  std::uint64_t seed_ = 0;
  Ranks comms_;
};

TEST_P(Pieces, AllToAllBringsEachPieceToItsRank) {
  for (const std::size_t count : piece_counts)
    run_threads(ranks(), [&](std::uint32_t rank) {
      exchange_pieces(
          rank, [&](auto, auto) { return count; },
          [&](SentPieces in, ReceivedPieces out) { return comms_[rank]->all_to_all(in, out); });
    });
}

TEST_P(Pieces, AllToAllMayHavePiecesOfAnySizes) {
  const RandomStream random(seed_, 77);
  for (std::uint64_t round = 0; round < 6; ++round)
    run_threads(ranks(), [&](std::uint32_t rank) {
      const auto size = [&](std::uint32_t from, std::uint32_t to) -> std::size_t {
        const std::uint64_t at = 1000 * round + 2 * (from * ranks() + to);
        return random.below(at, 3) == 0 ? 0 : random.below(at + 1, std::uint64_t{1} << (4 * round));
      };
      exchange_pieces(rank, size, [&](SentPieces in, ReceivedPieces out) {
        return comms_[rank]->all_to_all_uneven(in, out);
      });
    });
}

TEST_P(Pieces, AllGatherMayHaveSizesThatDiffer) {
  for (const std::size_t count : piece_counts)
    run_threads(ranks(), [&](std::uint32_t rank) {
      const auto size = [&](std::uint32_t of) { return of % 3 == 1 ? 0 : count * of + 5; };
      const Bytes in = piece_of(seed_, rank, 0, size(rank));
      std::vector<Bytes> out;
      for (std::uint32_t other = 0; other < ranks(); ++other) out.emplace_back(size(other));
      const std::vector<std::span<std::byte>> places(out.begin(), out.end());
      const auto done = comms_[rank]->all_gather(in, places);
      ASSERT_TRUE(done) << done.error().message;
      for (std::uint32_t other = 0; other < ranks(); ++other)
        EXPECT_TRUE(out[other] == piece_of(seed_, other, 0, size(other))) << other << " at " << rank;
    });
}

TEST_P(Pieces, GatherBringsAllToTheRootAndScatterBringsItBack) {
  for (const std::size_t count : piece_counts)
    for (std::uint32_t root = 0; root < ranks(); ++root)
      run_threads(ranks(), [&](std::uint32_t rank) {
        const Bytes own = piece_of(seed_, rank, root, count);
        std::vector<Bytes> all(rank == root ? ranks() : 0, Bytes(count));
        const std::vector<std::span<std::byte>> places(all.begin(), all.end());
        const auto gathered = comms_[rank]->gather(own, places, root);
        ASSERT_TRUE(gathered) << gathered.error().message;
        for (std::uint32_t from = 0; from < all.size(); ++from)
          EXPECT_TRUE(all[from] == piece_of(seed_, from, root, count)) << count << " from " << from;
        Bytes back(count);
        const std::vector<std::span<const std::byte>> sent(all.begin(), all.end());
        const auto scattered = comms_[rank]->scatter(sent, back, root);
        ASSERT_TRUE(scattered) << scattered.error().message;
        EXPECT_TRUE(back == own) << count << " at rank " << rank << " from " << root;
      });
}

TEST_P(Pieces, ReduceScatterAddsInRankOrder) {
  for (const std::size_t count : piece_counts) reduce_scatter_all<float>(count);
  reduce_scatter_all<double>((1 << 17) + 3);
  reduce_scatter_all<bfloat16>(5001);
  reduce_scatter_all<std::int8_t>(4099);
}

// Each rank chooses for itself, call by call, where its data lies.
TEST_P(Pieces, ReduceScatterOfSharedBuffersDiffersInNothing) {
  constexpr std::size_t count = 100'003;
  std::vector<std::vector<float>> inputs;
  for (std::uint32_t rank = 0; rank < ranks(); ++rank)
    inputs.push_back(drawn_values<float>(seed_, rank, count * ranks()));
  const std::vector<float> expected = expected_of(inputs, Reduction::sum);
  run_threads(ranks(), [&](std::uint32_t rank) {
    const std::size_t bytes = inputs[rank].size() * sizeof(float);
    const auto memory = comms_[rank]->shared_buffer(bytes).value();
    auto* const shared = reinterpret_cast<float*>(memory.get());
    const RandomStream random(seed_, rank);
    for (std::uint64_t round = 0; round < 8; ++round) {
      const bool in_shared = round < 2 || random.below(round, 2) == 0;
      std::copy(inputs[rank].begin(), inputs[rank].end(), shared);
      // The result may be this rank's place in the input.
      float* const own = shared + rank * count;
      std::vector<float> plain(count);
      float* const out = in_shared && round % 2 == 1 ? own : plain.data();
      ASSERT_TRUE(comms_[rank]->reduce_scatter(in_shared ? shared : inputs[rank].data(), out, count,
                                               DType::float32, Reduction::sum));
      EXPECT_EQ(std::memcmp(out, expected.data() + rank * count, count * sizeof(float)), 0)
          << "rank " << rank << ", round " << round;
    }
  });
}

TEST_P(Pieces, ReduceWritesTheRootsOutputAlone) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{13}, std::size_t{300'007}})
    for (std::uint32_t root = 0; root < ranks(); ++root) {
      std::vector<std::vector<float>> inputs;
      for (std::uint32_t rank = 0; rank < ranks(); ++rank)
        inputs.push_back(drawn_values<float>(seed_ + root, rank, count));
      const std::vector<float> expected = expected_of(inputs, Reduction::sum);
      run_threads(ranks(), [&](std::uint32_t rank) {
        std::vector<float> data = inputs[rank];
        void* const out = rank == root ? data.data() : nullptr;
        const auto done = comms_[rank]->reduce(data.data(), out, count, DType::float32, Reduction::sum, root);
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_TRUE(data == (rank == root ? expected : inputs[rank])) << count << " at rank " << rank;
      });
    }
}

TEST_P(Pieces, AllReduceKnowsEveryDtype) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{1021}, std::size_t{70'001}}) {
    all_reduce_all<float>(count);
    all_reduce_all<double>(count);
    all_reduce_all<float16>(count);
    all_reduce_all<bfloat16>(count);
    all_reduce_all<std::int8_t>(count);
    all_reduce_all<std::int16_t>(count);
    all_reduce_all<std::int32_t>(count);
    all_reduce_all<std::int64_t>(count);
    all_reduce_all<std::uint8_t>(count);
    all_reduce_all<std::uint16_t>(count);
    all_reduce_all<std::uint32_t>(count);
    all_reduce_all<std::uint64_t>(count);
  }
}

// Nobody waits for anybody in between: areas that are used again too early would show.
TEST_P(Pieces, CallsOfEveryKindFollowEachOtherWithoutAPause) {
  run_threads(ranks(), [&](std::uint32_t rank) {
    const RandomStream random(seed_, 99);  // the same on all ranks
    for (std::uint64_t call = 0; call < 200; ++call) {
      const std::size_t count = random.below(3 * call, 1 << random.below(3 * call + 1, 20));
      const auto kind = random.below(3 * call + 2, 4);
      const auto equal = [&](auto, auto) { return count; };
      if (kind == 0) {
        exchange_pieces(rank, equal,
                        [&](SentPieces in, ReceivedPieces out) { return comms_[rank]->all_to_all(in, out); });
      } else if (kind == 1) {
        exchange_pieces(
            rank, [&](std::uint32_t from, std::uint32_t to) { return from == to ? count : count / 3; },
            [&](SentPieces in, ReceivedPieces out) { return comms_[rank]->all_to_all_uneven(in, out); });
      } else if (kind == 2) {
        std::vector<std::int64_t> data(count * ranks(), rank + 1), sum(count);
        ASSERT_TRUE(
            comms_[rank]->reduce_scatter(data.data(), sum.data(), count, DType::int64, Reduction::sum));
        ASSERT_EQ(sum, std::vector<std::int64_t>(count, ranks() * (ranks() + 1) / 2));
      } else {
        std::vector<std::int64_t> data(count, rank);
        ASSERT_TRUE(comms_[rank]->all_reduce(data.data(), data.data(), count, DType::int64, Reduction::max));
        ASSERT_EQ(data, std::vector<std::int64_t>(count, ranks() - 1));
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Layouts, Pieces,
                         ::testing::Combine(::testing::Values(1, 2, 3, 5),
                                            ::testing::Values(Hosts::one, Hosts::each_its_own,
                                                              Hosts::two_interleaved)),
                         name_of_layout);

TEST(PiecesThatDoNotMatch, AreNamedWithBothSides) {
  for (const Hosts hosts : {Hosts::one, Hosts::each_its_own}) {
    const Ranks comms = connect_ranks(2, hosts, patient);
    run_threads(2, [&](std::uint32_t rank) {
      // Rank 0 sends rank 1 eight bytes, which expects seven.
      std::vector<Bytes> in{Bytes(1), Bytes(rank == 0 ? 8 : 1)}, out{Bytes(rank == 0 ? 1 : 7), Bytes(1)};
      const std::vector<std::span<const std::byte>> sent(in.begin(), in.end());
      const std::vector<std::span<std::byte>> got(out.begin(), out.end());
      const auto done = comms[rank]->all_to_all_uneven(sent, got);
      ASSERT_FALSE(done);
      if (hosts == Hosts::one || rank == 1) {
        EXPECT_THAT(done.error().message, Mentions("rank 0 sends 8 bytes to rank 1", "expects 7"));
      }
    });
  }
}

TEST(PiecesThatDoNotMatch, AreMismatchesOfCallsWhereTheKindDiffers) {
  const Ranks comms = connect_ranks(2, Hosts::one, patient);
  run_threads(2, [&](std::uint32_t rank) {
    std::vector<float> in(4), out(4);
    const auto done =
        rank == 0 ? comms[0]->reduce_scatter(in.data(), out.data(), 2, DType::float32, Reduction::sum)
                  : comms[1]->reduce_scatter(in.data(), out.data(), 2, DType::float32, Reduction::product);
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message,
                Mentions("reduce_scatter #1 (2 x float32, sum for each rank)", "product"));
  });
}

TEST(PiecesThatDoNotMatch, AreRefusedBeforeOthersHearOfThem) {
  const Ranks comms = connect_ranks(1, Hosts::one, patient);
  Bytes four(4), two(2);
  const std::span<const std::byte> sent(four);
  const std::span<std::byte> place(two);
  EXPECT_THAT(comms[0]->all_to_all({&sent, 1}, {&place, 1}).error().message, Mentions("4 bytes", "2"));
  EXPECT_THAT(comms[0]->all_to_all({}, {}).error().message, Mentions("one for each rank"));
  EXPECT_THAT(comms[0]->gather(four, {}, 0).error().message, Mentions("the root gives 0 places"));
  EXPECT_THAT(comms[0]->scatter({}, four, 3).error().message, Mentions("rank 3 in a group of 1"));
  float value = 1;
  EXPECT_THAT(comms[0]->all_reduce(&value, &value, 1, DType::float32, Reduction::bxor).error().message,
              Mentions("float32", "bxor"));
  bool flag = true;
  EXPECT_THAT(comms[0]->all_reduce(&flag, &flag, 1, DType::bool_, Reduction::mean).error().message,
              Mentions("bool", "mean"));
  ASSERT_TRUE(comms[0]->all_reduce(&value, &value, 1, DType::float32, Reduction::product));
}

TEST(Bools, AreCombinedByOrAndAnd) {
  const Ranks comms = connect_ranks(2, Hosts::one, patient);
  run_threads(2, [&](std::uint32_t rank) {
    const std::uint8_t in[] = {0, rank == 0, 1};
    const auto of = [&](Reduction reduction) {
      std::uint8_t out[3];
      EXPECT_TRUE(comms[rank]->all_reduce(in, out, 3, DType::bool_, reduction));
      return std::vector<int>(out, out + 3);
    };
    using ::testing::ElementsAre;
    EXPECT_THAT(of(Reduction::sum), ElementsAre(0, 1, 1));
    EXPECT_THAT(of(Reduction::product), ElementsAre(0, 0, 1));
    EXPECT_THAT(of(Reduction::max), ElementsAre(0, 1, 1));
    EXPECT_THAT(of(Reduction::bxor), ElementsAre(0, 1, 0));
  });
}

}  // namespace
}  // namespace muster::collective
