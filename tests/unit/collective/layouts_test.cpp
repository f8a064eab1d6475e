// Hosts of any size with ranks in any order: the same bits as those of a plain loop, whatever goes between
// the hosts and whatever breaks on the way.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "relayed.h"

namespace muster::collective {
namespace {

// What all ranks do next, drawn from a seed that all of them know.
struct Step {
  std::uint64_t kind, count;
  std::uint32_t root;
};

std::vector<float> values_of(std::uint64_t seed, std::uint64_t step, std::uint32_t rank, std::size_t count) {
  const RandomStream random(seed + step, rank);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = std::ldexp(static_cast<float>(random.uniform(i) - 0.5), static_cast<int>(i % 40) - 20);
  return values;
}

class World {
 public:
  World(std::uint64_t seed, std::uint64_t round, std::uint64_t longest)
      : seed_(seed + 1000 * round), longest_(longest) {
    const RandomStream random(seed, round);
    const std::uint64_t ranks = 2 + random.below(0, 8), hosts = 1 + random.below(1, ranks);
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      const std::uint64_t host = random.below(2 + rank, 1 + random.below(100 + rank, hosts));
      hosts_.push_back(fmt::format("host {}", host));
    }
  }
  const std::vector<std::string>& hosts() const { return hosts_; }
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(hosts_.size()); }
  std::string name() const { return fmt::format("{}", fmt::join(hosts_, ", ")); }

  Step step(std::uint64_t number) const {
    const RandomStream random(seed_, 7);
    const std::uint64_t longest = std::uint64_t{1} << random.below(4 * number, longest_);
    return {.kind = random.below(4 * number + 1, 5),
            .count = 1 + random.below(4 * number + 2, longest),
            .root = static_cast<std::uint32_t>(random.below(4 * number + 3, ranks()))};
  }

  void make(Communicator& comm, std::uint64_t number) const {
    const Step now = step(number);
    const auto values = [&](std::uint32_t rank) { return values_of(seed_, number, rank, now.count); };
    const std::size_t bytes = now.count * sizeof(float);
    std::vector<float> own = values(comm.rank());
    Result<> done;
    if (now.kind <= 1) {
      std::shared_ptr<float> shared;
      if (now.kind == 1) {  // where the others of the host reach it
        const auto memory = comm.shared_buffer(bytes).value();
        shared = std::shared_ptr<float>(memory, reinterpret_cast<float*>(memory.get()));
        std::ranges::copy(own, shared.get());
      }
      float* const data = now.root % 2 == 0 || !shared ? own.data() : shared.get();
      float* const out = shared ? shared.get() : own.data();
      done = comm.all_reduce(data, out, now.count, DType::float32, Reduction::sum);
      std::vector<float> sum = values(0);
      for (std::uint32_t rank = 1; rank < ranks(); ++rank) {
        const std::vector<float> theirs = values(rank);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += theirs[i];
      }
      EXPECT_TRUE(!done || std::memcmp(out, sum.data(), bytes) == 0)
          << name() << ": all_reduce of " << now.count;
    } else if (now.kind == 2) {
      done = comm.broadcast(own.data(), bytes, now.root);
      EXPECT_TRUE(!done || own == values(now.root)) << name() << ": broadcast of " << now.count;
      // More of them, for which nobody meets where all are on one host.
      for (std::uint32_t root = 0; done && root < ranks(); ++root) {
        std::uint64_t told = comm.rank() == root ? number + root : 0;
        done = comm.broadcast(&told, sizeof(told), root);
        EXPECT_TRUE(!done || told == number + root) << name() << ": small broadcast from " << root;
      }
    } else if (now.kind == 3) {
      std::vector<float> all(ranks() * now.count), expected;
      done = comm.all_gather(own.data(), all.data(), bytes);
      for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
        const std::vector<float> theirs = values(rank);
        expected.insert(expected.end(), theirs.begin(), theirs.end());
      }
      EXPECT_TRUE(!done || all == expected) << name() << ": all_gather of " << now.count;
    } else {
      done = comm.barrier();
    }
    ASSERT_TRUE(done) << name() << ": " << done.error().message;
  }

 private:
  std::uint64_t seed_, longest_;
  std::vector<std::string> hosts_;
};

class AnyHosts : public ::testing::Test {
 protected:
  void SetUp() override {
    seed_ = entropy();
    fmt::print("seed {}\n", seed_);
  }
  std::uint64_t seed_ = 0;
};

TEST_F(AnyHosts, GiveTheSameBits) {
  for (std::uint64_t round = 0; round < 20 && !HasFailure(); ++round) {
    const World world(seed_, round, 18);
    const Ranks comms = connect_ranks(prepare(world.hosts()), [](std::uint32_t) { return patient; });
    run_threads(world.ranks(), [&](std::uint32_t rank) {
      for (std::uint64_t step = 0; step < 25 && !HasFatalFailure(); ++step) world.make(*comms[rank], step);
    });
  }
}

TEST_F(AnyHosts, KeepTheirBitsWhenConnectionsBreak) {
  int cuts = 0;
  for (std::uint64_t round = 0; round < 15 && !HasFailure(); ++round) {
    const World world(seed_, round, 17);
    Relayed group(prepare(world.hosts()), lives_of(seed_ + round, 3000, 600'000, 40), options_of(false));
    run_threads(world.ranks(), [&](std::uint32_t rank) {
      for (std::uint64_t step = 0; step < 30 && !HasFatalFailure(); ++step)
        world.make(*group.comms[rank], step);
    });
    cuts += group.cuts();
  }
  EXPECT_GE(cuts, 5);  // how many depends on the worlds that were drawn
}

// Whoever waits for whom: one rank ends the group, or leaves it, and nobody waits on.
TEST_F(AnyHosts, EndForAllWhenTheGroupEndsForOne) {
  for (std::uint64_t round = 0; round < 40 && !HasFailure(); ++round) {
    const World world(seed_, round, 10);
    const RandomStream random(seed_, 5000 + round);
    const auto ends = static_cast<std::uint32_t>(random.below(0, world.ranks()));
    Ranks comms = connect_ranks(prepare(world.hosts()), [](std::uint32_t) { return patient; });
    run_threads(world.ranks(), [&](std::uint32_t rank) { world.make(*comms[rank], 0); });
    const TimePoint start = real_clock().now();
    run_threads(world.ranks(), [&](std::uint32_t rank) {
      if (rank != ends) {
        EXPECT_FALSE(comms[rank]->barrier()) << world.name();
      } else if (random.below(1, 3) == 0) {
        comms[rank]->abort({Code::peer_lost, "worker 7 was killed"});
      } else if (random.below(1, 3) == 1) {
        comms[rank]->leave({Code::peer_lost, "worker 7 has left"});
      } else {
        comms[rank].reset();
      }
    });
    EXPECT_LT(real_clock().now() - start, soon) << world.name() << ", rank " << ends;
  }
}

// A rank that computes hears of no end, but its neighbours and others wait for messages.
TEST_F(AnyHosts, EndMessagesWithTheGroup) {
  for (std::uint64_t round = 0; round < 40 && !HasFailure(); ++round) {
    const World world(seed_, round, 10);
    if (world.ranks() < 3) continue;
    const RandomStream random(seed_, 5000 + round);
    const auto drawn = static_cast<std::uint32_t>(random.below(0, world.ranks()));
    const std::uint32_t ends = drawn, waits = (drawn + 1) % world.ranks(), idle = (drawn + 2) % world.ranks();
    const Ranks comms = connect_ranks(prepare(world.hosts()), [](std::uint32_t) { return patient; });
    const TimePoint start = real_clock().now();
    Result<> done;
    std::thread waiter([&] {
      Bytes bytes(100);
      const std::span<std::byte> piece(bytes);
      done = comms[waits]->receive(idle, {&piece, 1});
    });
    while (comms[waits]->in_flight_call().kind != CallKind::receive) std::this_thread::yield();
    comms[ends]->abort({Code::peer_lost, "worker 7 was killed"});
    waiter.join();
    EXPECT_FALSE(done);
    EXPECT_LT(real_clock().now() - start, soon) << world.name() << ", rank " << ends << " ends";
  }
}

}  // namespace
}  // namespace muster::collective
