// Large pieces that ranks of one host read in each other's memory: the same bytes, whichever way a call
// takes.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "muster/collective/neighbour_memory.h"
#include "muster/collective/reading_choice.h"

#include "forked.h"
#include "ranks.h"

namespace muster::collective {
namespace {

constexpr std::size_t piece_bytes = 300'001;
constexpr int calls = 40;  // more than are tried out

// What a rank has for another one in a call.
Bytes piece(std::uint64_t seed, int call, std::uint32_t from, std::uint32_t to) {
  return bytes_of(seed + static_cast<std::uint64_t>(call), from * 100 + to, piece_bytes);
}

struct Pieces {
  Pieces(std::uint64_t seed, int call, const Communicator& group) {
    for (std::uint32_t other = 0; other < group.size(); ++other) {
      in.push_back(piece(seed, call, group.rank(), other));
      out.emplace_back(piece_bytes);
    }
    sent.assign(in.begin(), in.end());
    places.assign(out.begin(), out.end());
  }
  std::vector<Bytes> in, out;
  std::vector<std::span<const std::byte>> sent;
  std::vector<std::span<std::byte>> places;
};

// Each call in turn, with other bytes each time. Empty, or what was wrong.
std::string wrong_of_all_to_all(Communicator& group, std::uint64_t seed) {
  for (int call = 0; call < calls; ++call) {
    Pieces data(seed, call, group);
    if (const auto done = group.all_to_all(data.sent, data.places); !done) return done.error().message;
    for (std::uint32_t other = 0; other < group.size(); ++other)
      if (data.out[other] != piece(seed, call, other, group.rank()))
        return fmt::format("call {}: from rank {} to {}", call, other, group.rank());
  }
  return {};
}

std::string wrong_of_all_gather(Communicator& group, std::uint64_t seed, bool in_place) {
  for (int call = 0; call < calls; ++call) {
    const Bytes own = piece(seed, call, group.rank(), 0);
    Bytes all(group.size() * piece_bytes);
    std::byte* const place = all.data() + group.rank() * piece_bytes;
    if (in_place) std::copy(own.begin(), own.end(), place);
    if (const auto done = group.all_gather(in_place ? place : own.data(), all.data(), piece_bytes); !done)
      return done.error().message;
    for (std::uint32_t from = 0; from < group.size(); ++from)
      if (std::memcmp(all.data() + from * piece_bytes, piece(seed, call, from, 0).data(), piece_bytes) != 0)
        return fmt::format("call {}: from rank {} at {}", call, from, group.rank());
  }
  return {};
}

std::string wrong_of_broadcast(Communicator& group, std::uint64_t seed) {
  for (int call = 0; call < calls; ++call) {
    const std::uint32_t root = static_cast<std::uint32_t>(call) % group.size();
    Bytes data = group.rank() == root ? piece(seed, call, root, 0) : Bytes(piece_bytes);
    if (const auto done = group.broadcast(data.data(), data.size(), root); !done) return done.error().message;
    if (data != piece(seed, call, root, 0)) return fmt::format("call {} at rank {}", call, group.rank());
  }
  return {};
}

std::string wrong_of_all(Communicator& group, std::uint64_t seed) {
  for (const std::string& wrong : {wrong_of_all_to_all(group, seed), wrong_of_all_gather(group, seed, false),
                                   wrong_of_all_gather(group, seed, true), wrong_of_broadcast(group, seed)})
    if (!wrong.empty()) return wrong;
  return {};
}

TEST(Reading, GivesTheSameBytesBetweenProcesses) {
  const std::uint64_t seed = entropy();
  fmt::print("seed {}\n", seed);
  for (const std::uint32_t ranks : {2U, 4U}) {
    Forked group(ranks, Hosts::one, patient, [seed](const Forked::Child& child) {
      const std::string wrong = wrong_of_all(child.comm, seed);
      if (!wrong.empty()) fmt::print(stderr, "{}\n", wrong);
      return wrong.empty() ? 0 : 1;
    });
    EXPECT_EQ(wrong_of_all(group.comm(), seed), "");
    for (std::uint32_t rank = 1; rank < ranks; ++rank) EXPECT_EQ(group.wait_for(rank), 0);
  }
}

// As between containers, or under Yama: the system lets no rank read rank 1, or rank 1 read no rank.
TEST(Reading, IsLeftWhereTheSystemRefusesIt) {
  constexpr uid_t nobody = 65534;
  Forked group(3, Hosts::one, patient, [](const Forked::Child& child) {
    if (::prctl(PR_SET_DUMPABLE, 0) != 0 || (::geteuid() == 0 && ::setresuid(nobody, nobody, nobody) != 0))
      return 4;
    const std::string wrong = wrong_of_all(child.comm, 6);
    if (!wrong.empty()) fmt::print(stderr, "{}\n", wrong);
    return wrong.empty() ? 0 : 1;
  });
  EXPECT_EQ(wrong_of_all(group.comm(), 6), "");
  for (std::uint32_t rank = 1; rank < 3; ++rank) EXPECT_EQ(group.wait_for(rank), 0);
}

TEST(Reading, IsLeftWhereOneRankDoesNotWantIt) {
  const Ranks groups = connect_ranks(3, Hosts::one, [](std::uint32_t rank) {
    Options options = patient;
    options.reads_neighbours = rank != 1;
    return options;
  });
  run_threads(3, [&](std::uint32_t rank) { EXPECT_EQ(wrong_of_all(*groups[rank], 5), ""); });
}

// What comes is written where others would still have to read.
TEST(Reading, LeavesWhatIsSentWhereResultsGoInItsPlace) {
  const Ranks groups = connect_ranks(3, Hosts::one, patient);
  run_threads(3, [&](std::uint32_t rank) {
    for (int call = 0; call < calls; ++call) {
      Pieces data(7, call, *groups[rank]);
      const std::vector<std::span<std::byte>> places(data.in.begin(), data.in.end());
      ASSERT_TRUE(groups[rank]->all_to_all(data.sent, places));
      for (std::uint32_t from = 0; from < 3; ++from)
        EXPECT_TRUE(data.in[from] == piece(7, call, from, rank)) << call << ": " << from << " to " << rank;
    }
  });
}

TEST(NeighbourMemory, IsReadOfTheProcessThatIntroducedItselfAlone) {
  LocalGroup local =
      LocalGroup::create({.ranks = {0, 1}, .local_rank = 0, .small_size_bytes = 64, .chunk_size_bytes = 4096},
                         real_clock())
          .value();
  NeighbourMemory memory(local);
  const std::uint64_t there = 42;
  std::uint64_t here = 0;
  const auto read = [&](std::uint32_t rank) {
    here = 0;
    return memory.read(rank, reinterpret_cast<std::uint64_t>(&there),
                       std::as_writable_bytes(std::span(&here, 1)));
  };
  EXPECT_FALSE(read(1)) << "nobody";
  EXPECT_TRUE(read(0));
  EXPECT_EQ(here, 42U);
  NeighbourMemory other(local);  // as of a process that has taken the number of another one
  local.introduce({.id = ::getpid(), .address = reinterpret_cast<std::uint64_t>(&there), .mark = 41});
  EXPECT_FALSE(
      other.read(0, reinterpret_cast<std::uint64_t>(&there), std::as_writable_bytes(std::span(&here, 1))));
}

TEST(ReadingTrial, TakesTheWayThatWasFasterForTheSlowestRank) {
  for (const bool reading_is_fast : {false, true}) {
    ReadingChoice choice;
    ReadingTrial& trial = choice.of(CallKind::all_to_all, 1 << 18);
    std::array<int, 2> taken{};
    while (!trial.is_due()) {
      const bool reads = trial.reads();
      ++taken[reads ? 1 : 0];
      trial.record(reads, std::chrono::microseconds(reads == reading_is_fast ? 40 : 50));
    }
    EXPECT_EQ(taken[0], taken[1]);
    EXPECT_TRUE(trial.reads()) << "it is a call that reads in which ranks tell each other their times";
    trial.decide(trial.best());
    EXPECT_EQ(trial.reads(), reading_is_fast);
    EXPECT_FALSE(choice.of(CallKind::all_to_all, 1 << 20).is_decided()) << "of another size";
  }
}

}  // namespace
}  // namespace muster::collective
