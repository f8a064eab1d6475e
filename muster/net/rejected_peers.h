// Rejected peers: processes that connect to a listener and do not belong there. The check of their first
// bytes, and a count of them. The rules alone, without sockets; every peer that connects runs them, so they
// are cheap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "muster/base/base.h"
#include "muster/net/frame.h"
#include "muster/net/unauthenticated_peers.h"

namespace muster::net {

// Counts unauthorized peers between two looks. However many come, it holds few kinds of them.
class RejectedPeerTally {
 public:
  static constexpr std::size_t kinds_max = 64;

  void add(const std::string& ip, const std::string& reason);
  bool empty() const { return counts_.empty() && others_ == 0; }
  // All since the last call, those that were too many to be told apart as one.
  std::vector<RejectedPeer> take();

 private:
  std::unordered_map<std::string, std::size_t> counts_;  // "ip\0reason" -> place in kinds_
  std::vector<RejectedPeer> kinds_;
  std::uint64_t others_ = 0;
};

// Checks the first bytes of a peer, which must be a frame. True: it is whole and sound, and
// `may_begin` takes it. False: more bytes are needed. An error: it is none, or not such a one.
Result<bool> look_at_first_frame(std::span<const std::byte> bytes, std::uint64_t payload_limit_bytes,
                                 const std::function<Result<>(const Frame&)>& may_begin);

}  // namespace muster::net
