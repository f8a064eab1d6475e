// Groups whose ranks are reached through a way that breaks.
#pragma once

#include <atomic>
#include <deque>
#include <memory>

#include "ranks.h"
#include "relay.h"

namespace muster::collective {

inline Options options_of(bool secured) {
  Options options = patient;
  options.call_timeout = std::chrono::seconds(20);
  if (secured) options.security = net::Security::from_token("0123456789abcdef0123456789abcdef").value();
  return options;
}

// Ranks that are reached through a relay each.
struct Relayed {
  std::deque<Relay> relays;
  Ranks comms;

  Relayed(std::uint32_t ranks, const Relay::Life& life, const Options& options,
          Hosts hosts = Hosts::each_its_own)
      : Relayed(prepare(ranks, hosts), life, options) {}
  Relayed(Prepared prepared, const Relay::Life& life, const Options& options) {
    for (Endpoint& endpoint : prepared.endpoints) {
      relays.emplace_back(endpoint.port, life);
      endpoint.port = relays.back().port();
    }
    comms = connect_ranks(std::move(prepared), [&](std::uint32_t) { return options; });
  }
  int cuts() const {
    int all = 0;
    for (const Relay& relay : relays) all += relay.cuts();
    return all;
  }
};

// Connections live for so many bytes; after so many cuts they live for ever.
inline Relay::Life lives_of(std::uint64_t seed, std::size_t shortest, std::size_t longest, int cuts) {
  auto drawn = std::make_shared<std::atomic<int>>(0);
  return [=, random = RandomStream(seed, 0)]() -> std::optional<std::size_t> {
    const int number = (*drawn)++;
    if (number >= cuts) return std::nullopt;
    return shortest + random.below(static_cast<std::uint64_t>(number), longest - shortest);
  };
}

}  // namespace muster::collective
