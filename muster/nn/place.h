// Place: on which worker a piece of a network runs, in a job that divides the network over its workers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>

#include "muster/graph/graph.h"

namespace muster::nn {

// What place() was told, and where in the code: "lenet.py:31".
struct Place {
  std::uint32_t rank = 0;
  std::string where;
  std::shared_ptr<const void> counted = {};  // one of the placed ranks for as long as it is held
};

// "lenet.py:31", whatever folder the file lies in.
std::string code_line(std::string_view file, std::uint64_t line);
inline std::string code_line(const std::source_location& location) {
  return code_line(location.file_name(), location.line());
}

// Cells belong to networks, which know theirs; whose primitives are only their traces know.
enum class Placed { cell, primitive };

// What place(role, rank) of a thing that is called `what` means. An error names it, its line and the choices.
Result<Place> make_place(Placed kind, std::string_view what, std::string_view role, std::int64_t rank,
                         std::string where);

// 1 + the highest rank at which something is placed that lives in this process; 0: nothing is.
std::uint32_t placed_ranks(Placed kind);
std::uint32_t placed_ranks();

// What this process's job says about a rank that something is placed on; `train` knows. It is asked when
// something is placed, and op by op in eager mode. Null, the default: everything is possible. Set before
// placing.
using PlaceCheck = Result<> (*)(std::uint32_t rank);
void set_place_check(PlaceCheck check);
// Its answer, about `what`.
Result<> check_place(std::string_view what, const Place& place);

// "Conv2d 'conv1', lenet.py:31"
graph::PlacementPtr placement_of(std::string_view what, const Place& place);

// An op with its settings as an object, which can be placed. Threads: used by one thread at a time.
//
//   nn::Primitive matmul("matmul");
//   matmul.place("MS_WORKER", 1);
//   Value y = matmul({x, weight});
class Primitive {
 public:
  explicit Primitive(std::string op, graph::Attributes attributes = {});

  // As Cell::place, for the calls of this object.
  Result<> place(std::string_view role, std::int64_t rank,
                 const std::source_location& where = std::source_location::current());
  graph::Value operator()(std::initializer_list<graph::Value> inputs) const;
  graph::Values call(std::span<const graph::Value> inputs) const;

 private:
  std::string op_;
  graph::Attributes attributes_;
  std::optional<Place> place_;
};

// For Primitive and its kin of other languages: a trace that calls one depends on the places of all, which
// any place() changes.
void watch_primitives();
void note_placed_primitive();

}  // namespace muster::nn
