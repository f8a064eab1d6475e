#include "muster/server/handed_memory.h"

#include <utility>

namespace muster::server {
namespace {

// Of workers that hand something over and do not say so.
constexpr std::size_t unclaimed_max = 256;

}  // namespace

Result<HandedMemory> HandedMemory::open() {
  MUSTER_TRY(net::LocalListener listener, net::LocalListener::open());
  return HandedMemory(std::move(listener));
}

void HandedMemory::accept() {
  for (net::Arrival arrival = listener_.accept(); arrival.socket; arrival = listener_.accept()) {
    if (arrivals_.size() >= unclaimed_max) arrivals_.erase(arrivals_.begin());
    arrivals_.push_back(*std::move(arrival.socket));
  }
  std::vector<net::Socket> silent;
  for (net::Socket& socket : arrivals_) {
    auto descriptor = socket.receive_fd({.deadline = real_clock().now()});
    if (!descriptor) {
      if (descriptor.error().code == Code::timeout) silent.push_back(std::move(socket));
      continue;
    }
    if (descriptors_.size() >= unclaimed_max) descriptors_.erase(descriptors_.begin());
    if (const auto token = SharedBatches::token_of(*descriptor))
      descriptors_[*token] = *std::move(descriptor);
  }
  arrivals_ = std::move(silent);
}

Result<SharedBatches> HandedMemory::take(const SharedMemory& memory) {
  accept();
  const auto found = descriptors_.find(memory.token);
  if (found == descriptors_.end())
    return fail(Code::not_found, "a worker tells of shared memory that it did not hand over");
  net::ProcessDescriptor descriptor = std::move(found->second);
  descriptors_.erase(found);
  return SharedBatches::open(std::move(descriptor), memory);
}

}  // namespace muster::server
