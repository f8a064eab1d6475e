// Placement: on which worker a piece of a network runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace muster::graph {

struct Placement {
  std::uint32_t rank = 0;  // of RunContext::stages
  // What was placed and where in the code, for people: "LeNet 'conv1', lenet.py:31".
  std::string origin;
};
using PlacementPtr = std::shared_ptr<const Placement>;

// Whose part of a placed network is wanted, out of how many.
struct Division {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;  // one: everything runs here

  friend bool operator==(const Division&, const Division&) = default;
};

// While it lives, nodes that this thread adds to a trace are placed by `placement`; null: nowhere in
// particular. Scopes nest, and the innermost counts.
class PlaceScope {
 public:
  explicit PlaceScope(PlacementPtr placement);
  ~PlaceScope();
  PlaceScope(const PlaceScope&) = delete;
  PlaceScope& operator=(const PlaceScope&) = delete;

 private:
  PlacementPtr outer_;
};

// Of the innermost scope; null outside any.
const PlacementPtr& current_placement();

}  // namespace muster::graph
