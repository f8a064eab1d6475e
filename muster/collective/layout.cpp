#include "muster/collective/layout.h"

#include <algorithm>
#include <unordered_map>

namespace muster::collective {
namespace {

// Lane `lane` of `lanes` between a host of `count` ranks and another carries this block of its places.
Places block_of(std::uint32_t lane, std::uint32_t lanes, std::uint32_t count) {
  const std::uint32_t begin = lane * count / lanes;
  return {.begin = begin, .count = (lane + 1) * count / lanes - begin};
}

// The lane in whose block a place is.
std::uint32_t lane_of(std::uint32_t place, std::uint32_t lanes, std::uint32_t count) {
  return ((place + 1) * lanes - 1) / count;
}

// Who of a host of `count` ranks has the lane. Towards hosts of other sizes it moves on with the other host's
// number, so that one rank does not have the lanes to all of them.
std::uint32_t keeper_of(std::uint32_t lane, std::uint32_t lanes, std::uint32_t count, std::uint32_t shift) {
  return (lane * count / lanes + shift) % count;
}

}  // namespace

Layout::Layout(const std::vector<std::string_view>& host_keys, std::uint32_t own) : own_(own) {
  seat(host_keys);
  std::uint32_t begin = 0;
  for (Host& host : hosts_) {
    host.positions = {.begin = begin, .count = static_cast<std::uint32_t>(host.ranks.size())};
    begin = host.positions.end();
    most_ = std::max(most_, host.positions.count);
    is_even_ = is_even_ && host.positions.count == hosts_.front().positions.count;
  }
  for (std::uint32_t host = 0; host < host_count(); ++host)
    if (host != own_host()) add_lane_to(host);
  std::ranges::sort(lanes_, {}, &Lane::peer);
}

void Layout::seat(const std::vector<std::string_view>& host_keys) {
  std::unordered_map<std::string_view, std::uint32_t> numbers;
  seats_.reserve(host_keys.size());
  for (std::uint32_t rank = 0; rank < host_keys.size(); ++rank) {
    const auto [known, is_new] = numbers.try_emplace(host_keys[rank], host_count());
    if (is_new) hosts_.emplace_back();
    std::vector<std::uint32_t>& ranks = hosts_[known->second].ranks;
    seats_.push_back({.host = known->second, .place = static_cast<std::uint32_t>(ranks.size())});
    ranks.push_back(rank);
  }
}

std::uint32_t Layout::remote_index_of(std::uint32_t rank) const {
  const std::uint32_t position = position_of(rank);
  const Places here = positions_of(own_host());
  return position < here.begin ? position : position - here.count;
}

void Layout::add_lane_to(std::uint32_t host) {
  const std::uint32_t here = count_of(own_host()), there = count_of(host), lanes = std::min(here, there);
  const std::uint32_t shift = here == there ? 0 : host % here;
  const std::uint32_t kept = (place_of(own_) + here - shift) % here;  // the block that it has begins here
  const std::uint32_t lane = lane_of(kept, lanes, here);
  const Places ours = block_of(lane, lanes, here);
  if (ours.begin != kept) return;
  const std::uint32_t theirs = keeper_of(lane, lanes, there, here == there ? 0 : own_host());
  lanes_.push_back(
      {.peer = ranks_of(host)[theirs], .host = host, .ours = ours, .theirs = block_of(lane, lanes, there)});
}

Layout::Ends Layout::ends_of_lane(std::uint32_t from, std::uint32_t place, std::uint32_t to) const {
  const std::uint32_t near = count_of(from), far = count_of(to), lanes = std::min(near, far);
  const std::uint32_t lane = lane_of(place, lanes, near);
  const bool moves = near != far;
  return {.near = ranks_of(from)[keeper_of(lane, lanes, near, moves ? to : 0)],
          .far = ranks_of(to)[keeper_of(lane, lanes, far, moves ? from : 0)]};
}

}  // namespace muster::collective
