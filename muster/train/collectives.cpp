#include "muster/train/collectives.h"

#include <utility>
#include <vector>

namespace muster::train {

Result<Communicator*> Collectives::group(std::optional<std::uint32_t> stages) {
  return stages ? stage_group(*stages) : communicator();
}

Result<> Collectives::call(std::optional<std::uint32_t> stages, const GroupCall& make) {
  return call_now(stages, make).map_error([&](Error error) { return membership_.verdict(std::move(error)); });
}

// Behind those that are under way.
Result<> Collectives::call_now(std::optional<std::uint32_t> stages, const GroupCall& make) {
  if (!stages && groups_.has_calls())
    return groups_.calls().and_then([&](collective::AsyncGroup* calls) { return calls->run(make); });
  return group(stages).and_then([&](Communicator* made) { return make(*made); });
}

bool Collectives::shares_memory(std::optional<std::uint32_t> stages) const {
  if (membership_.in_forked_child()) return false;
  return stages ? stage_shares_memory(*stages) : groups_.has_neighbours();
}

bool Collectives::stage_shares_memory(std::uint32_t stages) const {
  if (!groups_.has_stage_group(stages)) return false;
  const std::vector<cluster::Member>& workers = membership_.roster().workers;
  const std::uint32_t rank = membership_.rank();
  for (std::uint32_t other = rank % stages; other < workers.size(); other += stages)
    if (other != rank && workers[other].host_key == workers[rank].host_key) return true;
  return false;
}

Result<std::shared_ptr<std::byte>> Collectives::shared_buffer(std::size_t size_bytes,
                                                              std::optional<std::uint32_t> stages) {
  return group(stages).and_then([&](Communicator* made) { return made->shared_buffer(size_bytes); });
}

}  // namespace muster::train
