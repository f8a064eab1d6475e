#include "muster/net/rejected_peers.h"

#include <utility>

namespace muster::net {

void RejectedPeerTally::add(const std::string& ip, const std::string& reason) {
  std::string key;
  key.reserve(ip.size() + 1 + reason.size());
  key.append(ip).append(1, '\0').append(reason);
  if (const auto known = counts_.find(key); known != counts_.end()) {
    ++kinds_[known->second].count;
  } else if (kinds_.size() == kinds_max) {
    ++others_;
  } else {
    counts_.emplace(std::move(key), kinds_.size());
    kinds_.push_back({.ip = ip, .reason = reason, .count = 1});
  }
}

std::vector<RejectedPeer> RejectedPeerTally::take() {
  counts_.clear();
  std::vector<RejectedPeer> taken = std::exchange(kinds_, {});
  if (const auto count = std::exchange(others_, 0); count > 0)
    taken.push_back({.ip = "more addresses",
                     .reason = "what they sent is no Muster, and too many of them come to be told apart",
                     .count = count});
  return taken;
}

Result<bool> look_at_first_frame(std::span<const std::byte> bytes, std::uint64_t payload_limit_bytes,
                                 const std::function<Result<>(const Frame&)>& may_begin) {
  MUSTER_TRY_VOID(check_frame_begin(bytes));
  if (bytes.size() < frame_header_size_bytes) return false;
  MUSTER_TRY(const FrameHeader header,
             decode_header(bytes.first<frame_header_size_bytes>(), payload_limit_bytes));
  const auto rest = bytes.subspan(frame_header_size_bytes);
  if (rest.size() < header.payload_size_bytes) return false;
  const auto payload = rest.first(header.payload_size_bytes);
  MUSTER_TRY_VOID(check_payload(header, payload));
  if (may_begin) MUSTER_TRY_VOID(may_begin({header, {payload.begin(), payload.end()}}));
  return true;
}

}  // namespace muster::net
