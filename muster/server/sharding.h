// Sharding: which server has a row.
#pragma once

#include <cstdint>

#include "muster/server/table_spec.h"

namespace muster::server {

// Rows [begin, end).
struct RowRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size() const { return end - begin; }
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

// Which server of how many.
struct Share {
  std::uint32_t server = 0;
  std::uint32_t servers = 1;
};

// Which servers have a share: server k that of its own number, and each copy is one server further on. A
// holder is one place of that, numbered copy * servers + share: the first ones are those that are asked for
// rows.
struct Holders {
  std::uint32_t servers = 1;
  std::uint32_t copies = 1;  // of each share; at most as many as servers

  std::uint32_t count() const { return servers * copies; }
  std::uint32_t share(std::uint32_t holder) const { return holder % servers; }
  std::uint32_t server(std::uint32_t holder) const { return (share(holder) + holder / servers) % servers; }
  // The next one with the same share.
  std::uint32_t other(std::uint32_t holder) const { return (holder + servers) % count(); }
};

// MindSpore's rule: rows // servers, the remainder one by one to the first servers.
RowRange range_of(std::uint64_t rows, Share share);

// 64 bits that depend on all bits of the id.
std::uint64_t mixed(std::uint64_t id);

// The owner of a row of a table, without a look at the spec for each.
class Owners {
 public:
  Owners(const TableSpec& spec, std::uint32_t servers);
  // The id must be one of the table.
  std::uint32_t of(std::uint64_t id) const;
  // Whether a higher id is never on a lower server.
  bool ascend() const { return sharding_ != Sharding::hash; }
  // What this share has of a table with a vocabulary.
  RowRange range(std::uint32_t server) const;

 private:
  Sharding sharding_;
  std::uint32_t servers_;
  std::uint32_t home_;
  std::uint64_t rows_;
  std::uint64_t least_;   // rows of the last servers
  std::uint64_t longer_;  // servers with one more
};

}  // namespace muster::server
