#include "muster/checkpoint/retention.h"

#include <algorithm>
#include <set>

#include "muster/checkpoint/bytes.h"

namespace muster::checkpoint {
namespace {

using Moment = PointId::Moment;

constexpr std::size_t record_bytes = 5 * number_bytes;
constexpr std::uint64_t hash_seed = 3;
constexpr std::uint64_t no_moment = 3;

// What no worker may remove, whatever its age.
std::set<PointId> anchors(const StoredPoints& held, const Common& common) {
  if (common.point && held.contains(*common.point)) return {*common.point};
  std::set<PointId> found;
  const auto keep_oldest = [&](const auto& counts) {
    const auto oldest = std::find_if(held.begin(), held.end(), [&](const auto& point) {
      return point.first.call >= common.finished_calls && counts(point.first);
    });
    if (oldest != held.end()) found.insert(oldest->first);
  };
  keep_oldest([](const PointId&) { return true; });
  keep_oldest([](const PointId& id) { return id.moment == Moment::step; });
  return found;
}

// Of points from the newest to the oldest.
class Surplus {
 public:
  Surplus(const Common& common, std::size_t keep_steps) : common_(common), keep_steps_(keep_steps) {}

  bool takes(const PointId& id, std::uint64_t signature) {
    if (id.moment == Moment::step) return ++steps_ > keep_steps_;
    if (id.moment == Moment::start) return ++starts_ > 1;
    if (id.call < common_.finished_calls) return !kept_by_all_.insert(signature).second;
    return ++ends_[signature] > keep_steps_;
  }

 private:
  const Common& common_;
  std::size_t keep_steps_;
  std::size_t steps_ = 0, starts_ = 0;
  std::map<std::uint64_t, std::size_t> ends_;  // that not all have kept, by their tensors
  std::set<std::uint64_t> kept_by_all_;
};

}  // namespace

std::vector<PointId> needless(const StoredPoints& held, const PointId& saved, const Common& common,
                              std::size_t keep_steps) {
  const std::set<PointId> kept = anchors(held, common);
  const bool future_is_lost = common.point && *common.point <= saved && held.contains(*common.point);
  Surplus past(common, keep_steps), future(common, keep_steps);
  std::vector<PointId> found;
  for (auto at = held.rbegin(); at != held.rend(); ++at) {
    const auto& [id, point] = *at;
    // An end that is saved late says nothing of the calls behind it.
    const bool is_lost = future_is_lost && id.call == saved.call;
    const bool is_surplus =
        id > saved ? future.takes(id, point.signature) || is_lost : past.takes(id, point.signature);
    if (is_surplus && id != saved && !kept.contains(id)) found.push_back(id);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

std::optional<Common> read_common(const std::string& path, const Storage& storage) {
  const auto bytes = storage.read(path);
  if (!bytes || bytes->size() != record_bytes) return std::nullopt;
  const std::span<const std::byte> record(*bytes);
  const std::size_t hash_at = record_bytes - number_bytes;
  if (hash_bytes(record.data(), hash_at, hash_seed) != get(record, hash_at)) return std::nullopt;
  Common common{.finished_calls = get(record, 3 * number_bytes)};
  if (const std::uint64_t moment = get(record, number_bytes); moment < no_moment)
    common.point = PointId{
        .call = get(record, 0), .moment = static_cast<Moment>(moment), .step = get(record, 2 * number_bytes)};
  return common;
}

Result<> write_common(const std::string& path, const Common& common, Storage& storage) {
  const PointId id = common.point.value_or(PointId{});
  std::vector<std::byte> record;
  put(record, id.call);
  put(record, common.point ? static_cast<std::uint64_t>(id.moment) : no_moment);
  put(record, id.step);
  put(record, common.finished_calls);
  put(record, hash_bytes(record.data(), record.size(), hash_seed));
  return storage.write(path, record);
}

}  // namespace muster::checkpoint
