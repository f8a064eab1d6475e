#include "muster/graph/placement.h"

#include <utility>

namespace muster::graph {
namespace {

thread_local PlacementPtr innermost;

}  // namespace

PlaceScope::PlaceScope(PlacementPtr placement) : outer_(std::exchange(innermost, std::move(placement))) {}
PlaceScope::~PlaceScope() { innermost = std::move(outer_); }

const PlacementPtr& current_placement() { return innermost; }

}  // namespace muster::graph
