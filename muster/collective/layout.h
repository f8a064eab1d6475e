// Layout of a group: the ranks of each host, and the lanes between ranks of different hosts. A pure function
// of the host keys, the same on every rank.
//
// Two hosts of a and b ranks have min(a, b) connections, their lanes, and no rank has more than one to each
// other host. Each lane carries what goes between a part of the ranks of the one host and all ranks of the
// other; the parts are blocks of places, one for each lane. Where all hosts have as many ranks, each rank has
// a lane of its own to the rank in its place on every other host.
//
// Making one costs n log n, of which n is the number of ranks.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace muster::collective {

// Of the ranks of one host, counted in their order, or of all ranks, host by host.
struct Places {
  std::uint32_t begin = 0;
  std::uint32_t count = 0;
  std::uint32_t end() const { return begin + count; }
  bool has(std::uint32_t place) const { return place >= begin && place < end(); }
};

// A connection of this rank with a rank of another host.
struct Lane {
  std::uint32_t peer = 0;  // that rank
  std::uint32_t host = 0;  // and its host
  Places ours, theirs;     // whose values it carries, of the ranks of each of the two hosts
};

class Layout {
 public:
  // `host_keys` by rank; for the rank `own`.
  Layout(const std::vector<std::string_view>& host_keys, std::uint32_t own);

  std::uint32_t size() const { return static_cast<std::uint32_t>(seats_.size()); }
  std::uint32_t host_count() const { return static_cast<std::uint32_t>(hosts_.size()); }
  // Its ranks, ascending. Hosts are in the order of their first ranks.
  const std::vector<std::uint32_t>& ranks_of(std::uint32_t host) const { return hosts_[host].ranks; }
  std::uint32_t host_of(std::uint32_t rank) const { return seats_[rank].host; }
  // Among the ranks of its host.
  std::uint32_t place_of(std::uint32_t rank) const { return seats_[rank].place; }
  // Among all ranks, host by host: those of a host lie together.
  std::uint32_t position_of(std::uint32_t rank) const {
    return positions_of(host_of(rank)).begin + place_of(rank);
  }
  Places positions_of(std::uint32_t host) const { return hosts_[host].positions; }
  std::uint32_t most_ranks_of_a_host() const { return most_; }

  std::uint32_t own_rank() const { return own_; }
  std::uint32_t own_host() const { return host_of(own_); }
  const std::vector<std::uint32_t>& own_ranks() const { return ranks_of(own_host()); }
  bool is_local(std::uint32_t rank) const { return host_of(rank) == own_host(); }
  bool has_one_host() const { return hosts_.size() == 1; }
  std::uint32_t remote_count() const { return size() - static_cast<std::uint32_t>(own_ranks().size()); }
  // Among the ranks of other hosts, those of a host together.
  std::uint32_t remote_index_of(std::uint32_t rank) const;

  // All hosts have as many ranks: each lane carries the values of its own two ranks, and no others.
  bool is_even() const { return is_even_; }
  // Of the own rank, by peer.
  const std::vector<Lane>& lanes() const { return lanes_; }
  // The ranks between which the lane runs that carries what `place` of `from` has for `to`.
  struct Ends {
    std::uint32_t near = 0, far = 0;
  };
  Ends ends_of_lane(std::uint32_t from, std::uint32_t place, std::uint32_t to) const;

 private:
  struct Host {
    std::vector<std::uint32_t> ranks;
    Places positions;
  };
  struct Seat {
    std::uint32_t host = 0, place = 0;
  };
  void seat(const std::vector<std::string_view>& host_keys);
  void add_lane_to(std::uint32_t host);
  std::uint32_t count_of(std::uint32_t host) const { return hosts_[host].positions.count; }

  std::uint32_t own_;
  std::vector<Host> hosts_;
  std::vector<Seat> seats_;  // by rank
  std::uint32_t most_ = 0;
  bool is_even_ = true;
  std::vector<Lane> lanes_;
};

}  // namespace muster::collective
