// Several buffers in one call: the bits of a call for each, and fewer calls.
#include <cstring>

#include "ranks.h"

namespace muster::collective {
namespace {
namespace coalesced_test {

// Many small ones, some of another dtype between them, and one that goes by itself.
const std::vector<std::pair<std::size_t, DType>> buffers_wanted = {
    {3, DType::float32},   {1, DType::float32}, {0, DType::float32},       {5, DType::bfloat16},
    {700, DType::float32}, {2, DType::int64},   {100'000, DType::float32}, {9, DType::float32}};

struct Data {
  Data(std::uint32_t rank, std::size_t in_times, std::size_t out_times) {
    for (std::size_t i = 0; i < buffers_wanted.size(); ++i) {
      const auto& [count, dtype] = buffers_wanted[i];
      const std::size_t bytes = count * size_bytes(dtype);
      in.push_back(finite(bytes_of(7 + rank, i, bytes * in_times)));
      out.emplace_back(bytes * out_times);
    }
  }
  // The exponents of 16 and 32 bits are kept small, so that no sum is NaN, which has many bits.
  static Bytes finite(Bytes bytes) {
    for (std::size_t i = 1; i < bytes.size(); i += 2) bytes[i] &= std::byte{0x3f};
    return bytes;
  }
  std::vector<Bytes> in, out;
};

// The numbers of the group's calls so far.
std::uint64_t calls_of(const Communicator& group) { return group.in_flight_call().finished; }

class Coalesced : public ::testing::TestWithParam<Hosts> {};

TEST_P(Coalesced, ReductionsGiveTheBitsOfACallForEach) {
  constexpr std::uint32_t ranks = 3;
  const Ranks comms = connect_ranks(ranks, GetParam());
  run_threads(ranks, [&](std::uint32_t rank) {
    Communicator& group = *comms[rank];
    for (const bool scatters : {false, true}) {
      Data joined(rank, scatters ? ranks : 1, 1), single(rank, scatters ? ranks : 1, 1);
      std::vector<Reduced> buffers;
      for (std::size_t i = 0; i < buffers_wanted.size(); ++i)
        buffers.push_back(
            {joined.in[i].data(), joined.out[i].data(), buffers_wanted[i].first, buffers_wanted[i].second});
      const auto done = scatters ? reduce_scatter(group, buffers, Reduction::sum)
                                 : all_reduce(group, buffers, Reduction::sum);
      ASSERT_TRUE(done) << done.error().message;
      for (std::size_t i = 0; i < buffers_wanted.size(); ++i) {
        const auto& [count, dtype] = buffers_wanted[i];
        std::byte *const in = single.in[i].data(), *const out = single.out[i].data();
        ASSERT_TRUE(scatters ? group.reduce_scatter(in, out, count, dtype, Reduction::sum)
                             : group.all_reduce(in, out, count, dtype, Reduction::sum));
        EXPECT_TRUE(joined.out[i] == single.out[i]) << "buffer " << i << (scatters ? ", scattered" : "");
      }
    }
  });
}

TEST_P(Coalesced, AGatheringPutsEachRanksBytesInTheirPlaces) {
  constexpr std::uint32_t ranks = 3;
  const Ranks comms = connect_ranks(ranks, GetParam());
  run_threads(ranks, [&](std::uint32_t rank) {
    Data data(rank, 1, ranks);
    std::vector<Gathered> buffers;
    for (std::size_t i = 0; i < data.in.size(); ++i)
      buffers.push_back({data.in[i].data(), data.out[i].data(), data.in[i].size()});
    const auto done = all_gather(*comms[rank], buffers);
    ASSERT_TRUE(done) << done.error().message;
    for (std::uint32_t from = 0; from < ranks; ++from) {
      const Data theirs(from, 1, 1);
      for (std::size_t i = 0; i < buffers.size(); ++i)
        EXPECT_EQ(std::memcmp(data.out[i].data() + from * theirs.in[i].size(), theirs.in[i].data(),
                              theirs.in[i].size()),
                  0)
            << "buffer " << i << " of rank " << from;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Layouts, Coalesced,
                         ::testing::Values(Hosts::one, Hosts::each_its_own, Hosts::two_interleaved));

TEST(SmallBuffers, AreOneCall) {
  const Ranks comms = connect_ranks(2, Hosts::one);
  run_threads(2, [&](std::uint32_t rank) {
    std::vector<float> values(100, 1);
    std::vector<Reduced> buffers;
    for (float& value : values) buffers.push_back({&value, &value, 1, DType::float32});
    const std::uint64_t before = calls_of(*comms[rank]);
    ASSERT_TRUE(all_reduce(*comms[rank], buffers, Reduction::sum));
    EXPECT_EQ(calls_of(*comms[rank]), before + 1);
    EXPECT_EQ(values, std::vector<float>(100, 2));
  });
}

}  // namespace coalesced_test
}  // namespace
}  // namespace muster::collective
