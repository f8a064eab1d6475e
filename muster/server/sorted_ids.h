// Sorted ids: the ids of a batch, each once and by their servers, so that a row travels once however often
// the batch has it. Private to server.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/server/sharding.h"

namespace muster::server {

class SortedIds {
 public:
  SortedIds(std::span<const std::uint64_t> ids, const Owners& owners, std::uint32_t servers);

  // Of a server: distinct, ascending.
  std::span<const std::uint64_t> ids(std::uint32_t server) const {
    return std::span(ids_).subspan(servers_[server], servers_[server + 1] - servers_[server]);
  }
  // Writes a server's rows to all of their places in the batch.
  void spread(std::uint32_t server, std::span<const float> rows, std::size_t width,
              std::span<float> batch) const;
  // All of them, server by server; where a server's begin.
  std::span<const std::uint64_t> ids() const { return ids_; }
  std::size_t begin(std::uint32_t server) const { return servers_[server]; }
  // Writes the row of ids()[i] to its places in the batch.
  void spread_row(std::size_t i, const float* row, std::size_t width, std::span<float> batch) const;
  // Adds up the batch's rows of each of a server's ids, in the batch's order.
  void gather(std::uint32_t server, std::span<const float> batch, std::size_t width,
              std::span<float> rows) const;

 private:
  // Where in the batch ids_[i] stands, ascending.
  std::span<const std::uint32_t> places(std::size_t i) const {
    return std::span(places_).subspan(begins_[i], begins_[i + 1] - begins_[i]);
  }

  std::vector<std::uint64_t> ids_;
  std::vector<std::size_t> servers_;  // where in ids_ each one's begin, and their end
  std::vector<std::uint32_t> places_;
  std::vector<std::uint32_t> begins_;  // in places_, and its end
};

}  // namespace muster::server
