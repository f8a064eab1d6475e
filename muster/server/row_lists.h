// Row lists: the rows of a table that several servers list part by part, as one list. Private to server.
#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/server/parameter_client.h"
#include "muster/server/wire.h"

namespace muster::server {

class RowLists {
 public:
  explicit RowLists(std::size_t width) : width_(width) {}

  // A server's answer; returns how many slots it has.
  Result<std::uint64_t> add(const Batch& answer);
  // By ascending ids.
  ParameterClient::ListedRows take();

 private:
  std::size_t width_;
  ParameterClient::ListedRows listed_;
};

}  // namespace muster::server
