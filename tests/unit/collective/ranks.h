// Groups of ranks inside one process: each rank is a thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "muster/collective/collective.h"

namespace muster::collective {

inline constexpr auto soon =
    std::chrono::seconds(2);  // far less than any deadline that a wrong wait would run into
inline const Options patient{.connect_timeout = std::chrono::seconds(30),
                             .call_timeout = std::chrono::seconds(60)};
inline const Options hasty{.connect_timeout = std::chrono::seconds(30),
                           .call_timeout = std::chrono::milliseconds(150)};

// How ranks are spread over hosts, and what they talk there when it is not TCP.
enum class Hosts { one, each_its_own, two_interleaved, each_its_own_over_ucx };

inline std::string host_of(Hosts hosts, std::uint32_t rank) {
  if (hosts == Hosts::one) return "host";
  return "host " + std::to_string(hosts == Hosts::two_interleaved ? rank % 2 : rank);
}
inline Transport transport_of(Hosts hosts) {
  return hosts == Hosts::each_its_own_over_ucx ? Transport::ucx : Transport::tcp;
}

struct Prepared {
  std::vector<Listener> listeners;
  std::vector<Endpoint> endpoints;
  Transport transport = Transport::tcp;
};

// By rank: the host that it is on.
inline Prepared prepare(const std::vector<std::string>& hosts) {
  Prepared made;
  for (const std::string& host : hosts) {
    made.listeners.push_back(Listener::open("127.0.0.1").value());
    made.endpoints.push_back({.host_key = host,
                              .address = "127.0.0.1",
                              .port = made.listeners.back().port(),
                              .local_name = made.listeners.back().local_name()});
  }
  return made;
}
inline Prepared prepare(std::uint32_t ranks, Hosts hosts) {
  std::vector<std::string> by_rank;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) by_rank.push_back(host_of(hosts, rank));
  Prepared made = prepare(by_rank);
  made.transport = transport_of(hosts);
  return made;
}

inline void run_threads(std::uint32_t ranks, const std::function<void(std::uint32_t)>& work) {
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) threads.emplace_back(work, rank);
  for (std::thread& thread : threads) thread.join();
}

// Why links over UCX are not to be tried here. UCX 1.13.1 ends the process by an assertion now and then: who
// works on them says so.
inline std::optional<std::string> why_no_ucx() {
  if (std::getenv("MUSTER_TEST_UCX") == nullptr) return "MUSTER_TEST_UCX is not set";
  if (const auto ucx = ucx_state(); !ucx) return ucx.error().message;
  return {};
}

using Ranks = std::vector<std::unique_ptr<Communicator>>;

inline Ranks connect_ranks(Prepared prepared, const std::function<Options(std::uint32_t)>& options) {
  const auto ranks = static_cast<std::uint32_t>(prepared.endpoints.size());
  Ranks made(ranks);
  run_threads(ranks, [&](std::uint32_t rank) {
    Group group{.epoch = 1,
                .job_id = 7,
                .rank = rank,
                .endpoints = prepared.endpoints,
                .transport = prepared.transport};
    auto connected = connect(std::move(group), std::move(prepared.listeners[rank]), options(rank));
    ASSERT_TRUE(connected) << "rank " << rank << ": " << connected.error().message;
    made[rank] = *std::move(connected);
  });
  return made;
}
inline Ranks connect_ranks(std::uint32_t ranks, Hosts hosts,
                           const std::function<Options(std::uint32_t)>& options) {
  return connect_ranks(prepare(ranks, hosts), options);
}
inline Ranks connect_ranks(std::uint32_t ranks, Hosts hosts, Options options = {}) {
  return connect_ranks(ranks, hosts, [&](std::uint32_t) { return options; });
}

using Bytes = std::vector<std::byte>;

// Drawn bytes.
inline Bytes bytes_of(std::uint64_t seed, std::uint64_t stream, std::size_t size_bytes) {
  const RandomStream random(seed, stream);
  Bytes bytes(size_bytes);
  for (std::size_t i = 0; i < size_bytes; i += 8) {
    const std::uint64_t bits = random.bits(i);
    std::memcpy(&bytes[i], &bits, std::min<std::size_t>(8, size_bytes - i));
  }
  return bytes;
}

}  // namespace muster::collective
