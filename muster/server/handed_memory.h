// Handed memory: descriptors of shared memory that workers of this host hand over. Private to server.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "muster/server/shared_batches.h"

namespace muster::server {

class HandedMemory {
 public:
  static Result<HandedMemory> open();

  const std::string& name() const { return listener_.name(); }
  // What a worker has told of through its connection: it has sent the descriptor before. Never waits.
  Result<SharedBatches> take(const SharedMemory& memory);

 private:
  explicit HandedMemory(net::LocalListener listener) : listener_(std::move(listener)) {}
  void accept();

  net::LocalListener listener_;
  std::vector<net::Socket> arrivals_;                            // that have sent no descriptor yet
  std::map<std::uint64_t, net::ProcessDescriptor> descriptors_;  // by token, until a worker tells of them
};

}  // namespace muster::server
